"""`cuzk VERB …`: finds the verb's module, runs it, turns errors into a line on stderr and an exit code.

Only the module of the verb that is called is imported, so `cuzk --help` needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import importlib
import os
import sys
from collections.abc import Sequence

from cuzk import __version__
from cuzk.cli.terminal import Parser, Terminated, Watched, speak_any_encoding
from cuzk.errors import CuzkError, InputError, OutOfMemoryError, ScenarioError

VERBS: dict[str, dict[str, str]] = {
    "Plan": {
        "sim": "predict a scenario: does it fit, how fast is it, what binds",
        "plan": "which settings to run on this machine, and why not others",
        "size": "which machine to buy for a target",
        "explain": "what the peak consists of, why, and what the nearest changes would do",
        "show": "print the pipeline of a scenario, worker by worker, line by line",
        "check": "find faults of a pipeline without running it",
        "sweep": "every combination of some values of any keys, simulated",
        "diff": "two scenarios: what differs, and what each difference does",
        "sensitivity": "how much each figure moves the answer",
        "schema": "the JSON Schema of scenario files",
        "validate": "back-test predictions against measured points",
        "calibrate": "fit a calibration to measured points, traces or a daemon's log",
        "import": "read timelines and logs of other provers into traces",
    },
    "Prove": {
        "prove": "make one proof from a key and a witness",
        "verify": "check a proof, a batch or a Filecoin bundle",
        "run": "execute a scenario for real: threads, memory, proofs",
        "fullprove": "make one proof from a key, circom's wasm and its input",
        "witness": "run circom's wasm on an input: a .wtns without node",
        "proof": "a proof in other provers' forms, calldata for Ethereum",
        "serve": "the proving service: gRPC as Curio calls it, HTTP for everybody else",
        "setup": "make a development key from a circuit",
        "key": "convert, optimise or check a key, contribute to one",
        "ptau": "check powers of tau",
        "inspect": "what a file is, its counts, what it takes in RAM and VRAM",
        "circuit": "sizes of the built-in circuits; write them as R1CS",
        "porep": "seal, prove and verify a Filecoin sector",
        "post": "WinningPoSt and WindowPoSt: open sectors, prove, verify",
        "update": "SnapDeals: put data into a sealed sector, prove, verify",
    },
    "Look": {
        "compare": "predicted against measured, figure by figure",
        "plot": "one offline HTML page with curves and lanes",
        "doctor": "what this machine has: CPU, RAM, GPU",
        "demo": "the whole tour in a few minutes",
    },
}
_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
_ALL = {verb: line for group in VERBS.values() for verb, line in group.items()}


def _help() -> str:
    lines = ["usage: cuzk VERB …   (cuzk VERB --help for its options)", "",
             "Capacity planner and executor for GPU Groth16 proving on BLS12-381."]  # fmt: skip
    for group, verbs in VERBS.items():
        lines += ["", f"{group}:"] + [f"  {verb:<11} {line}" for verb, line in verbs.items()]
    codes = "0 fine, 1 internal, 2 bad input, 3 out of memory, 4 measured disagrees, 5 hardware missing, 6 invalid proof"
    return "\n".join([*lines, "", f"exit codes: {codes}, 130 interrupted"])


def _parser(verb: str) -> tuple[argparse.ArgumentParser, object]:
    module = importlib.import_module("cuzk.cli." + {"import": "import_"}.get(verb, verb))
    parser = Parser(prog="cuzk", allow_abbrev=False)
    module.add_parser(parser.add_subparsers(dest="verb", required=True))
    return parser, module


def _complain(message: str) -> None:
    print(f"cuzk: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code. `--debug` anywhere shows tracebacks.

    With `--json` a failure too is one JSON document on stdout (unless the verb has printed its own): kind, exit code, message,
    and where in which file.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    speak_any_encoding()
    with Watched() if "--json" in args else contextlib.nullcontext() as printed:
        try:
            code, error = _outcome(args, debug)
        except SystemExit as stop:  # argparse has said what is wrong
            if printed and stop.code == 2:
                printed.fail(2, InputError(Parser.complaint or "the command line is wrong"))
            raise
        if printed and error is not None:
            printed.fail(code, error)
        return code


def _outcome(args: list[str], debug: bool) -> tuple[int, BaseException | None]:
    """The exit code of a verb, and the error where it failed; that has been told on stderr."""
    try:
        try:
            code = _run(args)
            _require_unchanged_inputs()
            return code, None
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a full disk or a closed pipe can still be told
    except BrokenPipeError:
        _drop_stdout()
        return 0, None
    except Terminated as stop:
        _complain(f"ended by {stop.name}")
        return stop.exit_code, None
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130, None
    except Exception as error:
        if debug:
            raise
        error = _behind(error)
        return _told(error), error


def _require_unchanged_inputs() -> None:
    """Raises InputError where a mapped file shrank: the verb may have read zeros."""
    files = sys.modules.get("cuzk.groth16.formats.files")
    if files is not None:
        files.require_unchanged()


def _behind(error: Exception) -> Exception:
    """The error itself, or that a file shrank, which explains any other."""
    try:
        _require_unchanged_inputs()
    except CuzkError as cause:
        return cause
    return error


def _told(error: Exception) -> int:
    """Tell an error on stderr; the exit code of its kind."""
    if isinstance(error, ScenarioError):
        print(error, file=sys.stderr)  # each line begins with its position: editors and scripts look for that
        return error.exit_code
    if isinstance(error, CuzkError):
        _complain(str(error))
        return error.exit_code
    if isinstance(error, MemoryError):
        _complain("this machine's memory does not suffice for that")
        return OutOfMemoryError.exit_code
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK):
        if error.filename is None:
            _drop_stdout()
        _complain(f"{error.filename or 'cannot write the output'}: {error.strerror}")
        return InputError.exit_code
    _complain(f"internal fault: {type(error).__name__}: {error} (run again with --debug for the traceback)")
    return CuzkError.exit_code


def _run(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if args else 2
    if args[0] in ("-V", "--version"):
        print(f"cuzk {__version__}")
        return 0
    if args[0] not in _ALL:
        near = difflib.get_close_matches(args[0], _ALL, n=1)
        _complain(f"no verb {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else "; see cuzk --help"))
        return 2
    parser, module = _parser(args[0])
    return int(module.run(parser.parse_args(args)) or 0)  # type: ignore[attr-defined]


def _drop_stdout() -> None:
    """The text that is still buffered goes nowhere, so that the interpreter does not try again at its end."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """The console script. SIGTERM and SIGHUP end it as Ctrl-C does: what it has begun to write goes."""
    Terminated.arm()
    sys.exit(main())

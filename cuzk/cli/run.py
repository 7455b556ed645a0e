"""`cuzk run SCENARIO`: execute a scenario for real.

With --key and --witness on the CPU (or a GPU: --device cuda): every partition is a Groth16 proof, verified by an
independent pairing before it counts. Without them on the null device: it takes the scenario's memory and time, scaled,
and computes nothing. Either way the run is predicted first, if there is a calibration to predict it with.

Exit code 0 when every proof came out, 3 when memory ran out, 6 for an invalid proof, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load

if TYPE_CHECKING:
    from cuzk.exec.device import Device
    from cuzk.exec.result import RunResult
    from cuzk.model.calibration import Calibration
    from cuzk.model.scenario import Scenario


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("run", help="execute a scenario for real", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="directory for proofs, trace.jsonl and run.json; made if absent")
    parser.add_argument("--ram-cap", type=_size, metavar="SIZE",
                        help="end the run cleanly when the pipeline needs more RAM: 4GiB")  # fmt: skip
    parser.add_argument("--no-predict", action="store_true", help="do not simulate first")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    proofs = parser.add_argument_group("real proofs")
    proofs.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what proves (default: cpu)")
    proofs.add_argument("--key", metavar="KEY", help=".zkey, .ckey or .params (these need --r1cs)")
    proofs.add_argument("--witness", metavar="WITNESS", action="append", default=[],
                        help=".wtns or .cwit; repeat it to give the partitions different ones, in turn")  # fmt: skip
    proofs.add_argument("--c1", metavar="C1.json", action="append", default=[],
                        help="a C1 output in place of witnesses; KEY may be a folder of parameters; repeat it to give "
                        "the proofs different ones, in turn")  # fmt: skip
    proofs.add_argument("--job", metavar="JOB", action="append", dest="c1",
                        help="a folder with vanilla.json and statement.json of a PoSt or an update, as --c1")  # fmt: skip
    proofs.add_argument("--makers", type=int, default=0, metavar="N",
                        help="with --c1: processes that make values (default: none; the run's threads do)")  # fmt: skip
    proofs.add_argument("--resume", action="store_true",
                        help="make only the proofs that are not in -o DIR yet, or do not hold")  # fmt: skip
    proofs.add_argument("--r1cs", metavar="R1CS",
                        help="the circuit, .r1cs, .pce or template: needed for .params; names a failing constraint")  # fmt: skip
    proofs.add_argument("--threads", type=int, metavar="N", help="threads a step (default: all cores)")
    proofs.add_argument("--calibration", metavar="FILE", help="a calibration of this machine, to predict the run with (default: "
                             "$CUZK_CALIBRATION or ~/.config/cuzk/calibration.yaml, if there)")  # fmt: skip
    proofs.add_argument("--worker", action=argparse.BooleanOptionalAction, default=None,
                        help="prove in a process of its own: when its GPU is lost, or the system kills it, the proofs in flight "
                             "fail and a fresh one goes on (default: with --device cuda)")  # fmt: skip
    proofs.add_argument("--ray", metavar="ADDRESS", help="prove on the hosts of a Ray cluster, which have the same files under "
                        "the same paths; 'local': one on this machine")  # fmt: skip
    proofs.add_argument("--insecure-seed", type=int, metavar="N",
                        help="fixed blinding, for tests: such proofs are NOT private")  # fmt: skip
    null = parser.add_argument_group("no proofs (device null)")
    null.add_argument(
        "--scale",
        type=_scale,
        metavar="X",
        help="bytes here for one of the scenario's, such as 1/128 (default: so that all memory comes to 2 GiB)",
    )
    null.add_argument(
        "--time-scale", type=_scale, metavar="X", help="seconds here for one of the scenario's (default: 1/16 if it is scaled)"
    )
    null.add_argument(
        "--burn",
        choices=("emulate", "spin"),
        default="emulate",
        help="how steps take their time: sleep, slowed as the calibration says (default), or burn real cores",
    )


def _size(text: str) -> int:
    from cuzk.model.units import parse_bytes

    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size == 0:
        raise argparse.ArgumentTypeError("a cap of nothing")
    return size


def _scale(text: str) -> float:
    top, slash, bottom = text.partition("/")
    try:
        value = float(top) / (float(bottom) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a number or a fraction such as 1/128, not {text!r}") from None
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    if bool(args.key) != bool(args.witness or args.c1) or (args.witness and args.c1):
        raise InputError("--key goes with --witness or --c1: for real proofs; none of them for the null device")
    if args.resume and not (args.key and args.output):
        raise InputError("--resume goes with real proofs and -o DIR: what is there already is not made again")
    if args.makers < 0 or (args.makers and not args.c1):
        raise InputError("--makers is for --c1: a number of processes, or 0 for none")
    if args.c1 and args.r1cs:
        raise InputError("--r1cs goes with --witness; the circuit of a C1 output is known")
    if args.threads is not None and args.threads < 1:
        raise InputError("--threads must be at least 1")
    jobs = [os.path.isdir(path) for path in args.c1]
    if any(jobs) and not all(jobs):
        raise InputError("--c1 and --job do not go together: a run proves one circuit")
    if any(jobs) and args.resume:
        raise InputError("--resume is for --c1 and --witness")
    if args.c1 and os.path.isdir(args.key):
        args.key = _key_of_job(args.key, args.c1[0]) if any(jobs) else _key_in(args.key, args.c1[0])
    scenario = load(args)
    numbers = _missing(args, scenario) if args.resume else ()
    if args.resume and not numbers:
        return _nothing_left(args, scenario)
    if args.output:
        try:
            os.makedirs(args.output, exist_ok=True)
        except OSError as error:
            raise InputError(f"{args.output}: {error.strerror}") from error
    if args.ray:
        from cuzk.cli.run_ray import run_on_ray

        return run_on_ray(args, scenario, numbers)
    result, predicted, notes = _prove(args, scenario, numbers) if args.key else _play(args, scenario)
    document = result.to_json()
    if predicted is not None:
        document["predicted"] = {key: predicted[key] for key in ("verdict", "oom", "throughput", "peaks", "calibration")}
    document["warnings"] = notes
    if args.output:
        from cuzk.report.files import write_text

        write_text(os.path.join(args.output, "run.json"), json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2) if args.json else _text(document))
    if result.error is not None:
        from cuzk.errors import describe

        print(f"cuzk: {describe(result.error)}", file=sys.stderr)
    return result.exit_code


def _key_in(folder: str, c1: str) -> str:
    """The .params in a folder that a C1 output's circuit needs."""
    from cuzk import api
    from cuzk.porep.parameters import find_published
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.proving import find_params

    maker = PartitionMaker(api.read_c1(c1).shape)
    return str(find_published(folder, maker) or find_params(folder, maker))


def _key_of_job(folder: str, job: str) -> str:
    """The .params in a folder that a job's circuit needs."""
    from cuzk.jobs import open_job
    from cuzk.porep.keys import find_key

    found = open_job(job)
    return find_key(folder, found.template, found.what, found.published)


def _missing(args: argparse.Namespace, scenario: Scenario) -> tuple[int, ...]:
    """The proofs of a scenario that are not in the output folder, or do not hold."""
    from pathlib import Path

    from cuzk import api
    from cuzk.exec.proofs import missing
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.verify import Verifier

    verifier = Verifier(read_any_vk(args.key), args.key)
    sectors = [api.read_c1(path) for path in args.c1]
    if not sectors:
        return tuple(missing(Path(args.output), scenario.workload.proofs, scenario.circuit.partitions, verifier))
    publics = [[one.public_inputs(part) for part in range(one.partitions)] for one in sectors]
    count = sectors[0].partitions
    return tuple(missing(Path(args.output), scenario.workload.proofs, count, verifier, lambda n: publics[n % len(publics)]))


def _nothing_left(args: argparse.Namespace, scenario: Scenario) -> int:
    text = f"{args.output}: all {scenario.workload.proofs} proofs are there and hold"
    print(json.dumps({"schema_version": 1, "resumed": scenario.workload.proofs, "made": 0, "output": args.output}, indent=2)
          if args.json else text)  # fmt: skip
    return 0


def _trace(args: argparse.Namespace) -> str | None:
    return os.path.join(args.output, "trace.jsonl") if args.output else None


def _play(args: argparse.Namespace, scenario: Scenario) -> tuple[RunResult, dict[str, Any] | None, list[str]]:
    """On the null device: what it plays is the scenario's own calibration, so that predicts it."""
    from cuzk.exec.run import null_device, progress_line, with_ram_cap
    from cuzk.exec.run import run as execute

    if args.ram_cap is not None:
        scenario = with_ram_cap(scenario, args.ram_cap)
    device, scenario, notes = null_device(scenario, args.scale, args.time_scale, args.burn)
    for note in notes:
        print(f"cuzk: {note}", file=sys.stderr)
    if args.burn == "spin" and device.scale < 1:
        notes.append("burning cores at a scale: the cores are this machine's, not the scenario's")
    predicted = None
    if scenario.calibration is None:
        notes.append("no calibration: steps take no time, and nothing is predicted")
    elif not args.no_predict:
        predicted = _predict(scenario)
    progress = progress_line(scenario.workload.proofs)
    measured = {"scale": device.scale, "time_scale": device.time_scale, "burn": args.burn}
    return execute(scenario, device, trace_path=_trace(args), progress=progress, measured=measured), predicted, notes


def _prove(
    args: argparse.Namespace, scenario: Scenario, numbers: tuple[int, ...]
) -> tuple[RunResult, dict[str, Any] | None, list[str]]:
    """Real proofs."""
    from cuzk.exec.run import Proving, own_pipeline, prepare, progress_line, prove_with
    from cuzk.pipeline.program import bind

    own = own_pipeline(scenario)
    if own is not scenario:
        print(
            f"cuzk: {scenario.pipeline} describes the reference prover: its options are run by our own pipeline (own)",
            file=sys.stderr,
        )
    bind(own)  # what does not go together is said before any file is opened

    proving = Proving(args.key, tuple(args.witness), args.r1cs, args.threads, args.insecure_seed, tuple(args.c1),
                      args.makers, numbers)  # fmt: skip
    make_device: Callable[..., Device] | None = None
    if args.device == "cuda":
        from cuzk.exec.cuda import CudaProver

        make_device = CudaProver
    calibration = None if args.no_predict else _own_calibration(args.calibration)
    if calibration is not None:
        import cuzk.sim.run  # noqa: F401 - what it takes is part of the idle state
    prepared = prepare(scenario, proving, ram_cap_bytes=args.ram_cap, make_device=make_device, worker=args.worker)
    notes, predicted = [], None
    if calibration is not None:
        predicted = _predict(prepared.scenario.model_copy(update={"calibration": calibration}))
    elif not args.no_predict:
        notes.append("not predicted: no calibration of this machine (cuzk calibrate DIR/trace.jsonl -o FILE makes one, "
                     f"--calibration FILE uses it, and so does every run if it is {_own_path()})")  # fmt: skip
        print(f"cuzk: {notes[0]}", file=sys.stderr)
    from cuzk.cli.proving import warn_unsafe
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import weaknesses

    warn_unsafe(args.key, weaknesses(read_any_vk(args.key, with_ic=False)))
    progress = progress_line(scenario.workload.proofs)
    result = prove_with(prepared, args.output, trace_path=_trace(args), progress=progress)
    return result, predicted, notes


def _own_path() -> str:
    """The place where this machine's calibration is looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.environ.get("CUZK_CALIBRATION") or os.path.join(config, "cuzk", "calibration.yaml")


def _own_calibration(given: str | None) -> Calibration | None:
    """The calibration that was given, or this machine's; None if there is none. Raises ScenarioError."""
    from cuzk.model.calibration import Calibration
    from cuzk.model.scenario import load_part

    path = given or _own_path()
    return load_part(path, "calibration", Calibration) if given or os.path.isfile(path) else None


def _predict(scenario: Scenario) -> dict[str, Any]:
    from cuzk import api
    from cuzk.report.verdict import verdict_line

    document = api.predict(scenario)
    print(f"cuzk: predicted: {verdict_line(document)}", file=sys.stderr)
    return document


def _text(document: dict[str, Any]) -> str:
    from cuzk.report.verdict import gib, summary

    lines = [summary(document)]
    measured, predicted = document["measured"], document.get("predicted")
    if measured.get("verified_partitions") is not None:
        privacy = "" if measured["private"] else ", NOT PRIVATE (fixed seed)"
        lines.append(f"{'verified':<16}{measured['verified_partitions']} partitions by an independent pairing{privacy}")
    lines += [f"{'restart':<16}a fresh worker process at {row['at_s']:.3f} s: {row['reason']}" for row in
              measured.get("worker_restarts", [])]  # fmt: skip
    if measured.get("files"):
        lines.append(f"{'proofs':<16}{len(measured['files'])} written")
    if predicted is not None:
        pace, real = predicted["throughput"]["s_per_proof"], document["throughput"]["s_per_proof"]
        parts = [predicted["verdict"].upper()]
        if pace is not None and real is not None:
            parts.append(f"{pace:.3f} s/proof, measured {real:.3f}")
        for pool, peak in predicted["peaks"].items():
            seen = document["peaks"].get(pool)
            if seen and seen["resident_is"] == "sampled":
                parts.append(f"{pool} {gib(peak['resident_bytes'])}, measured {gib(seen['resident_bytes'])}")
        lines.append(f"{'predicted':<16}" + "; ".join(parts))
    return "\n".join(lines)

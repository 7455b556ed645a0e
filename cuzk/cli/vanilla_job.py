"""The verbs that PoSt and SnapDeals share: setup of a circuit, proofs of a job, their verification, a partition's witness.

A job is a folder with `vanilla.json` (the items of a vanilla proof) and `statement.json`; or a file of items, and its
statement with --statement.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from cuzk.cli.proving import add_allow_unsafe_key, print_json, quotient_list, terminal_progress, warn_unsafe

if TYPE_CHECKING:
    from cuzk.groth16.template.model import Template
    from cuzk.vanilla.proving import Job

JOB_FILES = ("vanilla.json", "statement.json")
PROOF_FILES = ("proof.bin", "public.json", "verification_key.json", "statement.json")


def add_verbs(verbs: Any, setup: Any, sizes: str) -> None:
    """check, setup, prove, verify, inputs; `setup` adds what names a circuit to a parser, of sizes `sizes`."""
    check = verbs.add_parser("check", help="is a vanilla proof what its statement says; no key is needed")
    prove = verbs.add_parser("prove", help="prove the partitions of a vanilla proof")
    for verb in (check, prove):
        verb.add_argument("job", metavar="JOB", help="a folder with vanilla.json and statement.json, or a file of items")
        verb.add_argument("--statement", metavar="FILE", help="the statement, where it is not beside the items")
    prove.add_argument("key", metavar="KEY", help=".params, .ckey or .zkey of the circuit, or a folder with .params")
    prove.add_argument("-o", "--output", metavar="DIR", help=f"for {', '.join(PROOF_FILES)} (default: JOB-proof)")
    prove.add_argument("--quotient", choices=("bellman", "odd-coset", "c-free"), help="default: the best that the key serves")
    prove.add_argument("--threads", type=int, metavar="N", help="threads (default: all cores)")
    key = verbs.add_parser("setup", help="a development key for the circuit")
    setup(key)
    key.add_argument("-o", "--output", required=True, metavar="KEY", help=".params (Filecoin's layout), .ckey or .zkey")
    key.add_argument("--quotients", type=quotient_list, metavar="LIST",
                     help=".ckey only: c-free, odd-coset, bellman, or all (default); fewer make a smaller file")  # fmt: skip
    verify = verbs.add_parser("verify", help="check proofs against their statement alone")
    verify.add_argument("directory", metavar="PROOF_DIR", help="with proof.bin and statement.json")
    verify.add_argument("key", metavar="VKEY", help="verifying key, or a proving key")
    verify.add_argument("--statement", metavar="FILE", help="another statement than PROOF_DIR/statement.json")
    add_allow_unsafe_key(verify)
    inputs = verbs.add_parser("inputs", help="public inputs that follow from a statement")
    inputs.add_argument("statement", metavar="STATEMENT")
    witness = verbs.add_parser("witness", help="a partition's values as .wtns, for other provers and for cuzk run, or as bits")
    witness.add_argument(
        "job", metavar="JOB", nargs="?", help="a folder with vanilla.json and statement.json, or a file of items"
    )
    witness.add_argument("--statement", metavar="FILE", help="the statement, where it is not beside the items")
    witness.add_argument("--synthetic", metavar="SIZE", help=f"of a made-up sector that satisfies the circuit: {sizes}")
    witness.add_argument("--partition", type=int, default=0, metavar="K", help="from 0 (default)")
    witness.add_argument("-o", "--output", required=True, metavar="FILE",
                         help=".wtns, 32 bytes a value; or .cwit, bits for keys made from a template")  # fmt: skip
    for verb in (check, prove, key, verify, inputs, witness):
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")


def job_paths(args: argparse.Namespace) -> tuple[str, str]:
    """The files of items and statement. Raises InputError."""
    from cuzk.errors import InputError

    if os.path.isdir(args.job):
        items, statement = (os.path.join(args.job, name) for name in JOB_FILES)
        return items, args.statement or statement
    if args.statement is None:
        raise InputError(f"{args.job}: a file of items; say what it proves with --statement")
    return args.job, args.statement


def write_job(directory: str, items: list[bytes], statement: dict[str, Any]) -> None:
    """A new folder with the files of a job."""
    from cuzk.outputs import whole_directory
    from cuzk.vanilla.items import raw_items_text

    with whole_directory(directory) as temporary:
        (temporary / "vanilla.json").write_text(raw_items_text(items))
        (temporary / "statement.json").write_text(json.dumps(statement, indent=2) + "\n")


def make_key(template: Template, what: str, args: argparse.Namespace, facts: dict[str, Any]) -> int:
    """`setup`."""
    from cuzk.errors import InputError
    from cuzk.groth16.key import QUOTIENTS
    from cuzk.groth16.safety import DEVELOPMENT
    from cuzk.groth16.setup.development import key_suffix, setup_development
    from cuzk.groth16.template.system import TemplateSystem
    from cuzk.outputs import require_writable

    start = time.perf_counter()
    suffix = key_suffix(args.output)
    if args.quotients and suffix != ".ckey":
        raise InputError(f"--quotients is for .ckey; a {suffix} serves one quotient by its format")
    require_writable(args.output)
    setup_development(TemplateSystem(template), args.output, quotients=args.quotients or QUOTIENTS, progress=terminal_progress())
    warn_unsafe(args.output, [DEVELOPMENT])
    total_s, size = time.perf_counter() - start, os.path.getsize(args.output)
    if args.json:
        print_json({"key": args.output, **facts, "bytes": size, "development_key": True, "total_s": total_s})
    else:
        print(f"{args.output}: {size:,} bytes, development key of {what}, {total_s:.1f} s")
    return 0


def prove(job: Job, statement: dict[str, Any], args: argparse.Namespace, start: float) -> int:
    """`prove`, of a job that is checked."""
    from cuzk.cli.porep_job import write_proof
    from cuzk.errors import InputError
    from cuzk.groth16.safety import weaknesses
    from cuzk.outputs import require_folder
    from cuzk.porep.keys import load_circuit_key
    from cuzk.vanilla.proving import prove_job

    if args.threads is not None and args.threads < 1:
        raise InputError("--threads must be at least 1")
    output = args.output or f"{os.path.splitext(args.job.rstrip(os.sep))[0]}-proof"
    require_folder(output, *PROOF_FILES, inputs=(args.job, args.key))
    checked_s = time.perf_counter() - start
    key = load_circuit_key(args.key, job.template, job.what, job.published, terminal_progress())
    warn_unsafe(key.path, weaknesses(key.verifying_key()))
    made = prove_job(job, key, threads=args.threads, quotient=args.quotient, progress=_note)
    write_proof(output, made.proofs, made.publics, key.verifying_key().to_json(), statement)
    paths = {name: os.path.join(output, name) for name in PROOF_FILES}
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"verified": True, "development_key": key.development, "partitions": len(made.proofs),
                    "quotient": made.quotient, "proof_hex": [p.to_bytes().hex() for p in made.proofs], "files": paths,
                    "attempts": made.attempts, "step_s": made.step_s, "checked_s": checked_s, "total_s": total_s})  # fmt: skip
    else:
        print(f"{len(made.proofs)} proof(s) verified: {job.what}, domain {key.domain}, {total_s:.1f} s")
        print("\n".join(paths.values()))
    return 0


def _note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def verify(publics: list[list[int]], what: str, args: argparse.Namespace) -> int:
    """`verify`, under public inputs that the statement gives."""
    from cuzk.errors import InputError
    from cuzk.groth16.formats.proof import read_proofs
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.safety import unsafe_key, weaknesses
    from cuzk.groth16.verify import Verifier, require_valid

    proofs = read_proofs(os.path.join(args.directory, "proof.bin"))
    if len(proofs) != len(publics):
        raise InputError(f"{args.directory}: {len(proofs)} proofs; the statement has {len(publics)} partitions")
    key = read_any_vk(args.key)
    require_valid(Verifier(key, args.key), proofs, publics)
    unsafe = weaknesses(key)
    warn_unsafe(args.key, unsafe)
    if unsafe and not args.allow_unsafe_key:
        raise unsafe_key(args.key, unsafe)
    if args.json:
        print_json({"valid": True, "proofs": len(proofs), "development_key": key.development, "unsafe_key": unsafe})
    else:
        print(f"valid: {what}")
    return 0


def print_inputs(publics: list[list[int]], facts: dict[str, Any], as_json: bool) -> int:
    """`inputs`."""
    partitions = [[str(v) for v in public] for public in publics]
    if as_json:
        print_json({**facts, "partitions": partitions})
    else:
        print(json.dumps(partitions, indent=1))
    return 0


def write_witness(job: Job, args: argparse.Namespace, facts: dict[str, Any], start: float) -> int:
    """`witness`, of a job that is checked."""
    from cuzk.circuits.witness import require_satisfied
    from cuzk.errors import InputError
    from cuzk.groth16.formats.cwit import write_cwit
    from cuzk.groth16.formats.wtns import write_wtns_chunks

    if not 0 <= args.partition < job.partitions:
        raise InputError(f"--partition {args.partition}: there are partitions 0 to {job.partitions - 1}")
    witness = job.witness(args.partition)
    require_satisfied(job.template, witness, f"partition {args.partition}")
    made_s, wires = time.perf_counter() - start, job.template.n_wires
    if os.path.splitext(args.output)[1] == ".cwit":
        write_cwit(args.output, witness)
    else:
        write_wtns_chunks(args.output, wires, witness.chunks_std())
    if args.json:
        print_json({"file": args.output, **facts, "partition": args.partition, "wires": wires, "bits_bytes": witness.nbytes,
                    "made_s": made_s, "total_s": time.perf_counter() - start})  # fmt: skip
    else:
        print(f"{args.output}: {wires:,} values of partition {args.partition} of {job.what}; made and checked in {made_s:.1f} s")
    return 0


def require_witness(args: argparse.Namespace) -> None:
    """Options of `witness` that go together. Raises InputError before the work."""
    from cuzk.errors import InputError
    from cuzk.outputs import require_writable

    require_writable(args.output)
    if os.path.splitext(args.output)[1] not in (".wtns", ".cwit"):
        raise InputError(f"{args.output}: the name must end in .wtns or .cwit, which says how the values are written")
    if (args.job is None) == (args.synthetic is None):
        raise InputError("give either a JOB or --synthetic SIZE")

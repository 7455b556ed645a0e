"""`cuzk prove KEY WITNESS -o DIR`: one proof, verified before it is written as proof.json, public.json and proof.bin."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.cli.proving import print_json, warn_unsafe

if TYPE_CHECKING:
    from cuzk import api
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.groth16.prover.run import Proved

FILES = ("proof.json", "public.json", "proof.bin")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("prove", help="make one proof", description=__doc__)
    parser.add_argument("key", metavar="KEY", help=".zkey, .ckey or .params (these need --r1cs)")
    parser.add_argument("witness", metavar="WITNESS", help=".wtns, or .cwit where the key's matrices are a template")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that `fullprove` has too."""
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="directory for the three files; made if absent")
    parser.add_argument(
        "--quotient",
        choices=("bellman", "odd-coset", "c-free"),
        help="how A·B − C is summed: 7, 6 or 4 transforms (default: the cheapest that the key serves)",
    )
    parser.add_argument(
        "--r1cs", metavar="R1CS", help="the circuit, .r1cs, .pce or template: needed for .params; names a failing constraint"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to prove: the host, or its first GPU")
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--insecure-seed",
        type=int,
        metavar="N",
        help="fixed blinding, for tests: such a proof is NOT private, and the output says so",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    def make(opened: api.Key, blinding: Blinding) -> Proved:
        from cuzk import api

        return api.prove(
            opened, args.witness, blinding=blinding, device=args.device, quotient=args.quotient, threads=args.threads
        )

    from cuzk.groth16.load import open_witness

    open_witness(args.witness)  # what is no witness is said before the key is opened
    return run_with(args, (args.key, args.witness, args.r1cs), make)


def run_with(args: argparse.Namespace, inputs: tuple[str | None, ...], make: Callable[[api.Key, Blinding], Proved]) -> int:
    """Make a proof and write its files; `inputs` are files that must not be written over."""
    # NumPy's BLAS is not used; starting its threads costs a short proof a tenth of its time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cuzk import api
    from cuzk.errors import InputError
    from cuzk.groth16.formats.proof import proof_json, public_json
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.outputs import file_set, require_folder

    start = time.perf_counter()
    if args.threads is not None and args.threads < 1:
        raise InputError("--threads must be at least 1")
    require_folder(args.output, *FILES, inputs=inputs)
    paths = {name: os.path.join(args.output, name) for name in FILES}
    opened = api.load_key(args.key, r1cs=args.r1cs)
    key = opened.proving_key
    blinding = Blinding.random() if args.insecure_seed is None else Blinding.from_seed(args.insecure_seed)
    made = make(opened, blinding)
    unsafe = opened.weaknesses
    warn_unsafe(args.key, unsafe)
    with file_set(args.output, *FILES) as stage:
        (stage / "proof.json").write_text(proof_json(made.proof))
        (stage / "public.json").write_text(public_json(made.public))
        (stage / "proof.bin").write_bytes(made.proof.to_bytes())
    total_s = time.perf_counter() - start
    if args.json:
        document = {
            "verified": True,
            "private": made.private,
            "development_key": key.development,
            "unsafe_key": unsafe,
            "quotient": made.quotient,
            "public": [str(v) for v in made.public],
            "proof_hex": made.proof.to_bytes().hex(),
            "files": paths,
            "n_wires": key.n_wires,
            "domain": key.domain,
            "step_s": made.step_s,
            "total_s": total_s,
        }
        print_json(document)
        return 0
    privacy = "" if made.private else ", NOT PRIVATE (fixed seed)"
    print(f"proof verified{privacy}: domain {key.domain}, quotient {made.quotient}, {total_s:.2f} s")
    print("\n".join(paths.values()))
    return 0

"""`cuzk fullprove KEY CIRCUIT.wasm INPUT.json -o DIR`: witness and proof in one go; the witness is not kept (needs the
extra `witness`).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cuzk.cli import prove

if TYPE_CHECKING:
    from cuzk import api
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.groth16.prover.run import Proved


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("fullprove", help="from a circuit's input to a proof", description=__doc__)
    parser.add_argument("key", metavar="KEY", help=".zkey, .ckey or .params (these need --r1cs)")
    parser.add_argument("wasm", metavar="WASM", help="the circuit's witness calculator, of circom --wasm --prime bls12381")
    parser.add_argument("input", metavar="INPUT", help="input.json")
    prove.add_options(parser)


def run(args: argparse.Namespace) -> int:
    def make(opened: api.Key, blinding: Blinding) -> Proved:
        from cuzk.errors import InputError
        from cuzk.groth16.circom_wasm import Calculator, read_input
        from cuzk.groth16.prover.run import prove as prove_one

        key = opened.proving_key
        values = Calculator(args.wasm).witness(read_input(args.input), args.input)
        if len(values) != key.n_wires:
            raise InputError(f"{args.wasm}: makes {len(values)} values, the circuit of {args.key} has {key.n_wires} wires")
        if args.device == "cuda":
            from cuzk.api import this_machine
            from cuzk.exec.one import prove_on_gpu

            where = {"quotient": args.quotient, "blinding": blinding, "threads": args.threads}
            return prove_on_gpu(key, values, lambda: this_machine(args.threads), **where)
        return prove_one(key, values, args.quotient, blinding, args.threads)

    return prove.run_with(args, (args.key, args.wasm, args.input, args.r1cs), make)

"""`cuzk witness CIRCUIT.wasm INPUT.json -o OUT`: circom's witness calculator, run without node (needs the extra `witness`).

OUT ends in .wtns, or in .json for a list of decimal strings, as `snarkjs wtns export json` writes it.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from cuzk.cli.proving import print_json


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("witness", help="from a circuit's input to its witness", description=__doc__)
    parser.add_argument("wasm", metavar="WASM", help="the circuit's witness calculator, of circom --wasm --prime bls12381")
    parser.add_argument("input", metavar="INPUT", help="input.json")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help=".wtns or .json")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.groth16.circom_wasm import Calculator, read_input
    from cuzk.groth16.field import fr_ints
    from cuzk.groth16.formats.wtns import write_wtns
    from cuzk.outputs import require_writable, write_text

    start = time.perf_counter()
    require_writable(args.output, inputs=(args.wasm, args.input))
    inputs = read_input(args.input)
    values = Calculator(args.wasm).witness(inputs, args.input)
    if args.output.endswith(".json"):
        write_text(args.output, json.dumps([str(v) for v in fr_ints(values)], indent=1) + "\n")
    else:
        write_wtns(args.output, values)
    total_s = time.perf_counter() - start
    if args.json:
        print_json({"file": args.output, "n_values": len(values), "total_s": total_s})
    else:
        print(f"{args.output}: {len(values)} values, {total_s:.2f} s")
    return 0

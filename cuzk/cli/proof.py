"""`cuzk proof convert PROOF -o OUT` and `cuzk proof calldata PUBLIC PROOF`: proofs in other provers' forms, and for Ethereum.

- convert: .json is snarkjs's proof.json, anything else binary in --layout; several proofs stay several where the form allows.
- calldata: what the contract of `cuzk key convert VKEY -o Verifier.sol` is called with (EIP-2537), in hexadecimal.
"""

from __future__ import annotations

import argparse
from typing import Any

from cuzk.cli.proving import print_json


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("proof", help="proofs in other forms, calldata for Ethereum", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    actions = parser.add_subparsers(dest="action", required=True, metavar="convert | calldata")
    convert = actions.add_parser("convert", help="write a proof in another form")
    convert.add_argument("proof", metavar="PROOF", help="proof.json, bellman's, arkworks's or gnark's bytes, or hexadecimal")
    convert.add_argument("-o", "--output", metavar="OUT", required=True)
    names = ("bellman", "gnark", "gnark-raw", "arkworks", "arkworks-uncompressed")
    convert.add_argument("--layout", choices=names, default="bellman", help="of a binary OUT (default: bellman)")
    calldata = actions.add_parser("calldata", help="the call of a Solidity verifier")
    calldata.add_argument("public", metavar="PUBLIC", help="public.json")
    calldata.add_argument("proof", metavar="PROOF")
    for action in (convert, calldata):
        action.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    return _convert(args) if args.action == "convert" else _calldata(args)


def _convert(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.formats.layouts import LAYOUTS
    from cuzk.groth16.formats.proof import proof_json, read_proofs
    from cuzk.outputs import atomic_write, require_writable

    require_writable(args.output, inputs=(args.proof,))
    proofs = read_proofs(args.proof)
    as_json = args.output.endswith(".json")
    if len(proofs) > 1 and (as_json or LAYOUTS[args.layout].proof_tail):
        form = "proof.json" if as_json else f"the form of {args.layout}"
        raise InputError(f"{args.proof}: has {len(proofs)} proofs, {form} holds one")
    data = proof_json(proofs[0]).encode() if as_json else b"".join(proof.to_bytes(args.layout) for proof in proofs)
    with atomic_write(args.output) as file:
        file.write(data)
    form = "snarkjs" if as_json else args.layout
    if args.json:
        print_json({"file": args.output, "layout": form, "proofs": len(proofs), "size_bytes": len(data)})
    else:
        print(f"{args.output}: {len(proofs)} proof(s), {form}, {len(data)} bytes")
    return 0


def _calldata(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.formats.proof import read_proofs, read_public
    from cuzk.groth16.formats.solidity import calldata, proof_bytes

    proofs, publics = read_proofs(args.proof), read_public(args.public)
    if len(proofs) != 1 or len(publics) != 1:
        raise InputError(f"{args.proof}: one proof and one list of public signals are needed")
    call = calldata(proofs[0], publics[0])
    if args.json:
        print_json({"calldata": "0x" + call.hex(), "proof": "0x" + proof_bytes(proofs[0]).hex(),
                    "input": [str(v) for v in publics[0]]})  # fmt: skip
    else:
        print("0x" + call.hex())
    return 0

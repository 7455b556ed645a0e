"""`cuzk key ACTION`: one key in other forms, and what can be checked of it.

- optimise KEY -o OUT.ckey: a key that is used where it lies in the file and serves the c-free quotient (4 transforms instead
  of 7, no C). Done once, by Fourier transforms over the key's points; key, circuit and result are checked on random
  evaluations before anything is written.
- convert KEY -o OUT: by the suffix of OUT: .ckey, .zkey, .params, .pk (arkworks's proving key), or the verifying key as
  .json, .vk (binary, --layout) or .sol (a Solidity contract over EIP-2537). What the mathematics forbids is refused.
- verify KEY: every point, the pairing relations among them, the contributions of a .zkey; with --r1cs also against the
  circuit, and with --r1cs and --ptau that nothing but the contributions' delta makes the key differ from the circuit's.
- contribute KEY -o OUT.zkey, beacon KEY -o OUT.zkey --beacon HEX: a contribution to phase 2, as snarkjs reads it.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from cuzk.cli.proving import add_allow_unsafe_key, print_json, quotient_list, terminal_progress, warn_unsafe


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "key",
        help="convert, optimise, check a key or contribute to one",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lines = {"optimise": "make a .ckey for the cheapest quotient", "convert": "write a key as another kind"}
    for name, line in lines.items():
        action = actions.add_parser(name, help=line, aliases=["optimize"] if name == "optimise" else [])
        action.add_argument("key", metavar="KEY", help=".zkey, .params, .ckey or arkworks's")
        action.add_argument("-o", "--output", metavar="OUT", required=True)
        action.add_argument("--r1cs", metavar="R1CS", help="the circuit: has the C that a .zkey lacks; needed for .params")
        action.add_argument(
            "--quotients",
            type=quotient_list,
            metavar="LIST",
            help="what OUT.ckey must serve: c-free, odd-coset, bellman, or all (default: c-free, and what comes for free)",
        )
        action.add_argument("--json", action="store_true", help="one JSON document on stdout")
        if name == "convert":
            names = ("bellman", "gnark", "gnark-raw", "arkworks", "arkworks-uncompressed")
            action.add_argument("--layout", choices=names, help="of OUT.vk (default: bellman) and OUT.pk (default: arkworks)")
    verify = actions.add_parser("verify", help="check a key against itself, its circuit, its powers of tau")
    verify.add_argument("key", metavar="KEY", help=".zkey, .params, .ckey or arkworks's")
    verify.add_argument("--r1cs", metavar="R1CS", help="the circuit")
    verify.add_argument("--ptau", metavar="PTAU", help="prepared powers of tau that the key was made from (with --r1cs; a .zkey)")
    add_allow_unsafe_key(verify)
    verify.add_argument("--json", action="store_true", help="one JSON document on stdout")
    for name, line in (("contribute", "multiply delta by a secret"), ("beacon", "multiply delta by a public random value")):
        action = actions.add_parser(name, help=line)
        action.add_argument("key", metavar="KEY", help="a .zkey of cuzk setup --ptau or of snarkjs")
        action.add_argument("-o", "--output", metavar="OUT.zkey", required=True)
        action.add_argument("--name", default="", help="of the contributor, at most 64 bytes")
        if name == "contribute":
            action.add_argument("--entropy", default="", metavar="TEXT", help="mixed into the system's randomness")
        else:
            action.add_argument("--beacon", required=True, metavar="HEX", help="the public value, 1 to 255 bytes")
            action.add_argument("--iterations", type=int, default=10, metavar="N", help="2^N rounds of SHA-256 (10 to 40)")
        action.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    actions = {"verify": _verify, "contribute": _contribute, "beacon": _contribute}
    return actions.get(args.action, _convert)(args)


def _convert(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16 import convert
    from cuzk.groth16.load import load_key, read_any_vk
    from cuzk.groth16.safety import weaknesses
    from cuzk.outputs import require_writable

    start = time.perf_counter()
    suffix = os.path.splitext(args.output)[1]
    optimise = args.action != "convert"
    layout = None if optimise else args.layout
    if optimise and suffix != ".ckey":
        raise InputError(f"{args.output}: an optimised key is a .ckey")
    if args.quotients and suffix != ".ckey":
        raise InputError(f"--quotients is for .ckey, not for {suffix or 'a name without suffix'}")
    if layout and suffix not in (".vk", ".pk"):
        raise InputError(f"--layout is for .vk and .pk, not for {suffix or 'a name without suffix'}")
    require_writable(args.output, inputs=(args.key, args.r1cs))
    if suffix in convert.VERIFYING:
        key = read_any_vk(args.key)
        convert.write_verifying_key_of(key, args.output, layout or "bellman")
        what, development = "verifying key", key.development
        unsafe = weaknesses(key)
    else:
        proving_key = load_key(args.key, args.r1cs)
        development, unsafe = proving_key.development, weaknesses(proving_key.verifying_key())
        if optimise:
            served = convert.optimise(proving_key, args.output, args.quotients, terminal_progress())
            what = "ckey for " + ", ".join(served)
        else:
            what = convert.convert(proving_key, args.output, args.quotients, terminal_progress(), layout)
    warn_unsafe(args.output, unsafe)
    total_s = time.perf_counter() - start
    size = os.path.getsize(args.output)
    if args.json:
        document = {
            "file": args.output,
            "what": what,
            "from": args.key,
            "development_key": development,
            "unsafe_key": unsafe,
            "size_bytes": size,
            "total_s": total_s,
        }
        print_json(document)
    else:
        print(f"{args.output}: {what}, {size} bytes, {total_s:.2f} s")
    return 0


def _verify(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.ceremony.check import check_against_start, check_contributions
    from cuzk.groth16.consistency import check_key
    from cuzk.groth16.deep import deep_check
    from cuzk.groth16.inspect import detect
    from cuzk.groth16.load import load_key
    from cuzk.groth16.safety import unsafe_key, weaknesses

    start, progress = time.perf_counter(), terminal_progress()
    kind = detect(args.key)
    if args.ptau and (not args.r1cs or kind != "zkey"):
        raise InputError("--ptau is for a .zkey and goes with --r1cs: what is compared is the key that both give")
    held = [f"{deep_check(args.key, kind, progress=progress).get('points_checked', 0)} points in their groups"]
    key = load_key(args.key, args.r1cs)
    checked = check_key(key)
    held += checked.relations
    untested = checked.untested_wires
    chain = None
    if kind == "zkey" and not key.development:
        chain = check_contributions(args.key)
        held.append(f"{len(chain.contributions)} contributions, each behind the other")
    if args.ptau:
        check_against_start(args.key, args.r1cs, args.ptau, progress)
        held.append("the circuit over the powers of tau, with nothing but delta changed")
        untested = 0
    unsafe = weaknesses(key.verifying_key(with_ic=False))
    warn_unsafe(args.key, unsafe)
    contributions = [
        {"name": c.name, "beacon": c.beacon.hex() or None, "iterations_exp": c.iterations_exp or None, "hash": c.digest().hex()}
        for c in (chain.contributions if chain else [])
    ]
    document = {
        "valid": not unsafe or args.allow_unsafe_key, "kind": kind, "held": held, "untested_wires": untested,
        "circuit_hash": chain.circuit_hash.hex() if chain else None, "contributions": contributions,
        "development_key": key.development, "unsafe_key": unsafe, "total_s": time.perf_counter() - start,
    }  # fmt: skip
    if args.json:
        print_json(document)
    else:
        print("\n".join(f"holds: {line}" for line in held))
        if untested:
            print(f"not tested: L and C of {untested} wires (--r1cs and, for a .zkey, --ptau test more)")
        for c in contributions:
            print(f"contribution {c['name'] or '(unnamed)'}{' (beacon)' if c['beacon'] else ''}: {c['hash']}")
    if unsafe and not args.allow_unsafe_key:
        if args.json:
            return 6
        raise unsafe_key(args.key, unsafe)
    return 0


def _contribute(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.ceremony.contributions import apply_beacon, contribute
    from cuzk.outputs import require_writable

    if os.path.splitext(args.output)[1] != ".zkey":
        raise InputError(f"{args.output}: the key of a ceremony is a .zkey")
    require_writable(args.output, inputs=(args.key,))
    progress = terminal_progress()
    if args.action == "contribute":
        made = contribute(args.key, args.output, args.name, args.entropy.encode(), progress)
    else:
        try:
            beacon = bytes.fromhex(args.beacon)
        except ValueError:
            raise InputError(f"--beacon: {args.beacon[:40]!r} is not hexadecimal") from None
        made = apply_beacon(args.key, args.output, beacon, args.iterations, args.name, progress)
    if args.json:
        print_json({"file": args.output, "name": made.name, "contribution_hash": made.digest().hex()})
    else:
        print(f"{args.output}: contribution {made.name or '(unnamed)'}, hash {made.digest().hex()}")
    return 0

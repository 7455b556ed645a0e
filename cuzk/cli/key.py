"""`cuzk key optimise KEY -o OUT.ckey` and `cuzk key convert KEY -o OUT`: one key in other forms.

- optimise: a .ckey that is used where it lies in the file and serves the c-free quotient (4 transforms instead of 7,
  no C). Done once, by Fourier transforms over the key's points, and checked on random evaluations before anything is
  written.
- convert: by the suffix of OUT: .ckey, .zkey, .params, or the verifying key as .json or .vk. What the mathematics
  forbids is refused.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from cuzk.cli.proving import print_json, quotient_list, terminal_progress, warn_unsafe


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "key",
        help="convert or optimise a key",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="optimise | convert")
    lines = {"optimise": "make a .ckey for the cheapest quotient", "convert": "write a key as another kind"}
    for name, line in lines.items():
        action = actions.add_parser(name, help=line, aliases=["optimize"] if name == "optimise" else [])
        action.add_argument("key", metavar="KEY", help=".zkey, .params or .ckey")
        action.add_argument("-o", "--output", metavar="OUT", required=True)
        action.add_argument("--r1cs", metavar="R1CS", help="the circuit: has the C that a .zkey lacks; needed for .params")
        action.add_argument(
            "--quotients",
            type=quotient_list,
            metavar="LIST",
            help="what OUT.ckey must serve: c-free, odd-coset, bellman, or all (default: c-free, and what comes for free)",
        )
        action.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16 import convert
    from cuzk.groth16.formats.files import require_writable
    from cuzk.groth16.load import load_key
    from cuzk.groth16.safety import weaknesses

    start = time.perf_counter()
    suffix = os.path.splitext(args.output)[1]
    optimise = args.action != "convert"
    if optimise and suffix != ".ckey":
        raise InputError(f"{args.output}: an optimised key is a .ckey")
    if args.quotients and suffix != ".ckey":
        raise InputError(f"--quotients is for .ckey, not for {suffix or 'a name without suffix'}")
    require_writable(args.output, inputs=(args.key, args.r1cs))
    if suffix in (".json", ".vk"):
        from cuzk.groth16.load import read_any_vk

        key = read_any_vk(args.key)
        convert.write_verifying_key_of(key, args.output)
        what, development = "verifying key", key.development
        unsafe = weaknesses(key)
    else:
        proving_key = load_key(args.key, args.r1cs)
        development, unsafe = proving_key.development, weaknesses(proving_key.verifying_key())
        if optimise:
            served = convert.optimise(proving_key, args.output, args.quotients, terminal_progress())
            what = "ckey for " + ", ".join(served)
        else:
            what = convert.convert(proving_key, args.output, args.quotients, terminal_progress())
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

"""`cuzk setup R1CS -o KEY`: a key for development, or the first key of a phase 2 from a powers-of-tau file.

Of a template (cuzk circuit porep-… --template) no row is expanded, and a .ckey keeps it as one.
The suffix of KEY says what is written: .zkey (snarkjs), .params (bellman), .ckey (cuzk: every quotient, mapped).
Without --ptau this machine draws the secrets; they are never written, and the key is marked as a development key.
A key made with --ptau is not one to prove with either, before somebody contributes to it (cuzk key contribute).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from cuzk.cli.proving import print_json, quotient_list, terminal_progress, warn_unsafe


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("setup", help="make a key from a circuit", description=__doc__)
    parser.add_argument("r1cs", metavar="R1CS", help="the circuit (.r1cs, .pce or a template)")
    parser.add_argument("-o", "--output", metavar="KEY", required=True, help=".zkey, .params or .ckey")
    parser.add_argument("--vkey", metavar="FILE", help="also write the verifying key: JSON, or binary if it ends in .vk")
    parser.add_argument("--ptau", metavar="PTAU", help="prepared powers of tau: phase 2 instead of secrets of this machine")
    parser.add_argument(
        "--quotients",
        type=quotient_list,
        metavar="LIST",
        help=".ckey only: c-free, odd-coset, bellman, or all (default); fewer make a smaller file",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.convert import write_verifying_key_of
    from cuzk.groth16.formats.files import require_writable
    from cuzk.groth16.key import QUOTIENTS
    from cuzk.groth16.load import read_r1cs_system
    from cuzk.groth16.safety import weaknesses
    from cuzk.groth16.setup.development import key_suffix, setup_development

    start = time.perf_counter()
    suffix = key_suffix(args.output)
    if args.quotients and suffix != ".ckey":
        raise InputError(f"--quotients is for .ckey; a {suffix} serves one quotient by its format")
    quotients = args.quotients or QUOTIENTS
    require_writable(args.output, args.vkey, inputs=(args.r1cs, args.ptau))
    system = read_r1cs_system(args.r1cs)
    progress = terminal_progress()
    if args.ptau:
        from cuzk.groth16.formats.ptau import PtauFile
        from cuzk.groth16.setup.circuit_hash import needs_larger_ptau
        from cuzk.groth16.setup.phase2 import setup_phase2

        key = setup_phase2(system, args.ptau, args.output, quotients, progress)
        if needs_larger_ptau(PtauFile(args.ptau), 1 << system.log_domain):
            print(
                f"cuzk: {args.ptau} has no power to spare: the key is sound, but snarkjs zkey verify, which hashes one "
                "power more, will not recognise its circuit; take a .ptau of the next power for that",
                file=sys.stderr,
            )
    else:
        key = setup_development(system, args.output, quotients=quotients, progress=progress)
    if args.vkey:
        write_verifying_key_of(key, args.vkey)
    unsafe = weaknesses(key)
    warn_unsafe(args.output, unsafe)
    total_s = time.perf_counter() - start
    files = {"key": args.output, **({"vkey": args.vkey} if args.vkey else {})}
    if args.json:
        size = os.path.getsize(args.output)
        document = {
            "files": files,
            "kind": suffix[1:],
            "development_key": key.development,
            "unsafe_key": unsafe,
            "n_constraints": system.n_constraints,
            "n_wires": system.n_wires,
            "n_public": system.n_public,
            "domain": 1 << system.log_domain,
            "size_bytes": size,
            "total_s": total_s,
        }
        print_json(document)
    else:
        print(f"{args.output}: {system.n_constraints} constraints, domain {1 << system.log_domain}, {total_s:.2f} s")
    return 0

"""`cuzk ptau verify FILE`: powers of tau against one another, and their Lagrange points against the powers.

Checked by pairings of random sums: tau^i in G1 and G2, alpha·tau^i, beta·tau^i, beta in G2, and every prepared domain. Who
contributed is not checked: snarkjs powersoftau verify reads that.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from cuzk.cli.proving import print_json, terminal_progress


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("ptau", help="check powers of tau", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="verify")
    verify = actions.add_parser("verify", help="check powers of tau", description=__doc__)
    verify.add_argument("file", metavar="PTAU")
    verify.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.groth16.ceremony.check import check_ptau
    from cuzk.groth16.formats.ptau import PtauFile

    start = time.perf_counter()
    held = check_ptau(args.file, terminal_progress())
    file = PtauFile(args.file)
    contributions = file.contributions
    if not contributions:
        print(f"cuzk: WARNING: {args.file} names no contribution: whoever made it may know tau", file=sys.stderr)
    if args.json:
        print_json({"valid": True, "power": file.power, "prepared": file.prepared, "contributions": contributions,
                    "held": held, "total_s": time.perf_counter() - start})  # fmt: skip
    else:
        print("\n".join(f"holds: {line}" for line in held))
        print(f"{contributions} contributions are named; who made them is not checked")
    return 0

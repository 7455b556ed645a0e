"""`cuzk run --ray ADDRESS`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuzk.model.scenario import Scenario


def run_on_ray(args: argparse.Namespace, scenario: Scenario, numbers: Sequence[int]) -> int:
    """The exit code. Prints the document, or a line of it. `numbers`: proofs that are made, all if there are none."""
    from cuzk.errors import CuzkError, InputError, describe
    from cuzk.exec.run import Proving
    from cuzk.service import ray_run

    if not args.key:
        raise InputError("--ray needs --key with --witness or --c1: hosts make real proofs")
    proving = Proving(args.key, tuple(args.witness), args.r1cs, args.threads, args.insecure_seed, c1=tuple(args.c1))
    document, error = ray_run.run_on_ray(scenario, proving, args.ray, args.device, args.output, numbers)
    text = json.dumps(document, indent=2)
    if args.output:
        from cuzk.report.files import write_text

        write_text(os.path.join(args.output, "run.json"), text + "\n")
    counts, pace = document["counts"], document["throughput"]["s_per_proof"]
    hosts = f"{len(document['ray']['devices'])} device(s), {document['ray']['hosts_lost']} host(s) lost"
    line = f"{counts['proofs']} proofs, {counts['partitions']} partitions verified, {pace} s/proof, {hosts}"
    print(text if args.json else line)
    if error is not None:
        print(f"cuzk: {describe(error)}", file=sys.stderr)
        return error.exit_code if isinstance(error, CuzkError) else 1
    return 0

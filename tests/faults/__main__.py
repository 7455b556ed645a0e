"""`python -m tests.faults --seeds 200`: planted faults, simulated and real; exit 1 on any breach of an invariant.

`--seed N` replays one.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.faults.harness import INVARIANTS, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="seeds 0 to N - 1")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this one")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one, with what it struck")
    args = parser.parse_args()
    seeds = [args.seed] if args.seed is not None else range(args.first, args.first + args.seeds)
    began, struck, broken, compared = time.monotonic(), 0, 0, 0
    for done, seed in enumerate(seeds, 1):
        report = run_seed(seed)
        struck += len(report.struck)
        compared += report.compared
        if args.seed is not None:
            print("struck:", "; ".join(report.struck) or "nothing")
        if report.breaches:
            broken += 1
            print(f"seed {seed} ({'; '.join(report.struck)}): replay with python -m tests.faults --seed {seed}")
            print("\n".join(f"  {breach}" for breach in report.breaches))
        if sys.stderr.isatty():
            print(f"\r{done} seeds, {struck} faults, {broken} broken", end="", file=sys.stderr, flush=True)
    held = f"broken in {broken} seeds" if broken else "held"
    print(f"{len(seeds)} seeds run, {struck} faults struck, {compared} simulated outcomes compared with real ones")
    print(f"{len(INVARIANTS)} invariants {held}, {time.monotonic() - began:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

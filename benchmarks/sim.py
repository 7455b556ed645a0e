"""How fast the simulator is: one 20-proof scenario, and a sweep over pw × gw × j.

    python benchmarks/sim.py [--sweep] [--repeat N] [--json]

Wall and processor time of `simulate` (compile, run, result) in this process; a *work* is one timed step (a begin and an end).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from cuzk.analysis.sweeps import sweep
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate

SCENARIOS = Path(__file__).parents[1] / "scenarios"
AXES = {"pw": range(1, 25), "gw": [1, 2, 3], "j": [1, 2, 5, 10, 15, 20]}
"""432 combinations."""


def single(name: str, repeat: int) -> dict[str, Any]:
    scenario = load_scenario(SCENARIOS / name)
    simulate(scenario)
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        result = simulate(scenario)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {
        "scenario": name, "n": repeat, "median_s": statistics.median(walls), "min_s": min(walls),
        "cpu_median_s": statistics.median(cpus), "works": result.simulated_events,
        "works_per_s": result.simulated_events / statistics.median(walls), "scenarios_per_s": 1 / statistics.median(walls),
    }  # fmt: skip


def whole_sweep(name: str, processes: int | None) -> dict[str, Any]:
    scenario = load_scenario(SCENARIOS / name)
    start = time.perf_counter()
    rows = sweep(scenario, AXES, processes=processes)
    seconds = time.perf_counter() - start
    sample = rows[:: max(1, len(rows) // 12)]
    equal = all(row.result.to_json() == simulate(scenario.with_policy(**row.settings)).to_json() for row in sample)
    works = sum(row.result.simulated_events for row in rows)
    return {
        "scenario": name, "scenarios": len(rows), "seconds": seconds, "scenarios_per_s": len(rows) / seconds,
        "works_per_s": works / seconds, "sample_equals_single_runs": equal,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--sweep", action="store_true", help="also the 432 scenarios")
    parser.add_argument("--processes", type=int, help="of the sweep (default: one per core)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [single("pw12-fixed.yaml", args.repeat)]
    if args.sweep:
        rows.append(whole_sweep("pw12-fixed.yaml", args.processes))
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    one = rows[0]
    print(f"{one['scenario']}: {one['median_s'] * 1e3:.1f} ms a simulation (median of {one['n']}; of processor "
          f"{one['cpu_median_s'] * 1e3:.1f} ms), {one['works']} works, {one['works_per_s'] / 1e3:.0f} thousand/s")  # fmt: skip
    for many in rows[1:]:
        print(f"sweep: {many['scenarios']} scenarios in {many['seconds']:.2f} s, {many['scenarios_per_s']:.0f} a second; "
              f"equal to single runs: {many['sample_equals_single_runs']}")  # fmt: skip


if __name__ == "__main__":
    main()

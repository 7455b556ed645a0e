"""The planner: which policy to run. Every combination of permits and GPU workers is simulated, the sensible ones kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cuzk.model.scenario import Scenario
from cuzk.sim.run import simulate
from cuzk.sim.sweeps import Progress, SweepRow, sweep

AXES: Mapping[str, Iterable[Any]] = {"pw": range(1, 25), "gw": (1, 2, 3)}
SEEDS = 3
"""A policy that is kept fits under this many seeds."""


def sensible_policies(scenario: Scenario, axes: Mapping[str, Iterable[Any]] | None = None, *,
                      processes: int | None = None, progress: Progress | None = None) -> list[SweepRow]:  # fmt: skip
    """Policies that fit and that no other one beats in both time a proof and peak of RAM, fastest first.

    `axes`: policy options and the values to try (default: pw 1 to 24, gw 1 to 3). Of policies with the same figures to a
    thousandth the first in order stays.
    """
    tried = sweep(scenario, AXES if axes is None else axes, processes=processes, progress=progress)
    rows = [row for row in tried if row.result.fits]
    rows = [row for row in rows if row.result.s_per_proof is not None]
    rows.sort(key=lambda row: (round(row.result.s_per_proof or 0.0, 3), row.result.peak_ram_bytes))
    kept: list[SweepRow] = []
    for row in rows:
        if kept and row.result.peak_ram_bytes >= 0.999 * kept[-1].result.peak_ram_bytes:
            continue
        if all(simulate(row.result.scenario, seed=scenario.seed + n).fits for n in range(1, SEEDS)):
            kept.append(row)
    return kept

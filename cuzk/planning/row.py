"""One simulated scenario, reduced to the figures that tables, pages and plans are made of."""

from __future__ import annotations

from typing import Any

from cuzk.analysis.bands import uncertainty
from cuzk.errors import InputError
from cuzk.model.scenario import Scenario
from cuzk.sim import simulate
from cuzk.sim.result import SimResult

Row = dict[str, Any]
"""verdict, s_per_proof and so on; see `figures`. JSON as it is."""
FIGURES = ("verdict", "oom_pool", "s_per_proof", "steady_s_per_proof", "prove_s", "peak_ram_bytes", "ram_limit_bytes",
           "peak_vram_bytes", "vram_limit_bytes", "makespan_s", "bottleneck", "why", "p_oom", "s_per_proof_p5",
           "s_per_proof_p95", "peak_ram_p95_bytes", "error")  # fmt: skip


def figures(result: SimResult) -> Row:
    """The figures of one run. `peak_vram_bytes` is that of the fullest GPU."""
    ram = result.peaks["ram"]
    cards = [peak for pool, peak in result.peaks.items() if pool.startswith("vram")]
    fullest = max(cards, key=lambda peak: peak.resident_bytes / max(1, peak.capacity_bytes), default=None)
    return {
        "verdict": result.verdict,
        "oom_pool": result.oom.pool if result.oom else None,
        "s_per_proof": _rounded(result.s_per_proof),
        "steady_s_per_proof": _rounded(result.steady_s_per_proof),
        "prove_s": _rounded(result.prove_s),
        "peak_ram_bytes": ram.resident_bytes,
        "ram_limit_bytes": ram.capacity_bytes,
        "peak_vram_bytes": fullest.resident_bytes if fullest else None,
        "vram_limit_bytes": fullest.capacity_bytes if fullest else None,
        "makespan_s": _rounded(result.makespan_s),
        "bottleneck": result.bottleneck.get("resource", ""),
        "why": result.bottleneck.get("why", ""),
    }


def simulated(scenario: Scenario, seeds: int = 1) -> Row:
    """The row of a scenario; with several seeds the verdict and the bands are theirs.

    A scenario whose options do not go together, or that no run can finish, gives a row with the verdict `invalid` and an `error`.
    """
    try:
        result = simulate(scenario)
        row = figures(result)
        if seeds > 1:
            bands = uncertainty(scenario, seeds, processes=1)
            pace = bands.s_per_proof
            row |= {
                "verdict": bands.verdict,
                "p_oom": _rounded(bands.p_oom),
                "s_per_proof_p5": _rounded(pace.p5) if pace else None,
                "s_per_proof_p95": _rounded(pace.p95) if pace else None,
                "peak_ram_p95_bytes": int(bands.peaks["ram"].p95),
            }
        return row
    except InputError as error:
        return invalid(str(error))


def invalid(error: str) -> Row:
    return {"verdict": "invalid", "error": error}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

"""A setting that was simulated, with what decides between settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.analysis.bands import Uncertainty
from cuzk.model.scenario import Scenario
from cuzk.planning.space import Settings, words
from cuzk.sim.result import SimResult

RESERVE_STEP = 1 << 30


@dataclass
class Candidate:
    settings: Settings
    scenario: Scenario
    result: SimResult
    bands: Uncertainty | None = None

    @property
    def pace_s(self) -> float:
        """Seconds a proof: steady where the run was long enough, over the whole batch otherwise."""
        result = self.result
        return result.steady_s_per_proof or result.s_per_proof or float("inf")

    @property
    def batch_pace_s(self) -> float:
        return self.result.s_per_proof or float("inf")

    @property
    def latency_s(self) -> float:
        """Mean time of a proof from admission to completion."""
        times = self.result.proof_s
        return sum(times) / len(times) if times else float("inf")

    @property
    def ram_bytes(self) -> int:
        return self.result.peak_ram_bytes

    def peak(self, pool: str) -> float:
        """The highest resident level that the pool is expected to reach: P95 where bands are known."""
        found = self.bands.peaks.get(pool) if self.bands else None
        return found.p95 if found else float(self.result.peaks[pool].resident_bytes)

    def margins(self) -> dict[str, float]:
        """Share of each pool that stays free at its peak."""
        return {
            pool: 1.0 - self.peak(pool) / peak.capacity_bytes for pool, peak in self.result.peaks.items() if peak.capacity_bytes
        }

    @property
    def verdict(self) -> str:
        return self.bands.verdict if self.bands else self.result.verdict

    def to_json(self, basis: dict[str, Any]) -> dict[str, Any]:
        pace = self.bands.s_per_proof if self.bands else None
        result = self.result
        return {
            "policy": self.settings,
            "set": words(self.settings),
            "verdict": self.verdict,
            "basis": basis["basis"],
            "basis_why": basis["why"],
            "s_per_proof": _rounded(result.s_per_proof),
            "steady_s_per_proof": _rounded(result.steady_s_per_proof),
            "s_per_proof_band": _widened(pace.to_json() if pace else None, result.s_per_proof, basis["error"]),
            "latency_s": _rounded(self.latency_s),
            "makespan_s": _rounded(result.makespan_s),
            "p_oom": round(self.bands.p_oom, 6) if self.bands else None,
            "peaks": {
                pool: {
                    "resident_bytes": peak.resident_bytes,
                    "p95_bytes": int(self.peak(pool)),
                    "capacity_bytes": peak.capacity_bytes,
                    "reserve_bytes": _reservation(self.peak(pool), peak.capacity_bytes),
                }
                for pool, peak in result.peaks.items()
            },
            "margin": {pool: round(share, 4) for pool, share in self.margins().items()},
            "bottleneck": result.bottleneck,
            "warnings": result.warnings,
        }


def _reservation(peak: float, capacity: int) -> int:
    """A container's limit that the peak fits with 5 % to spare, in whole GiB, no more than there is."""
    return min(capacity, -(-int(1.05 * peak) // RESERVE_STEP) * RESERVE_STEP)


def _rounded(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else round(value, 6)


def _widened(band: dict[str, float] | None, middle: float | None, error: float) -> dict[str, float] | None:
    """The band of the seeds, no narrower than the error of the basis (two standard deviations to each side)."""
    if middle is None:
        return None
    low, high = middle * (1 - 1.645 * error), middle * (1 + 1.645 * error)
    if band is None:
        return {"p5": round(low, 6), "p50": round(middle, 6), "p95": round(high, 6)}
    return {"p5": round(min(low, band["p5"]), 6), "p50": band["p50"], "p95": round(max(high, band["p95"]), 6)}

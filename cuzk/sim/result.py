"""The result of a simulation, and its JSON document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.trace.event import Event

SCHEMA_VERSION = 1
Verdict = Literal["fits", "risky", "oom"]
Holders = list[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest levels of a pool, each at its own time; `at_s` and `holders` are those of the resident peak."""

    live_bytes: int
    reserved_bytes: int
    resident_bytes: int
    at_s: float
    capacity_bytes: int
    holders: Holders

    def to_json(self) -> dict[str, Any]:
        return {
            "live_bytes": self.live_bytes, "reserved_bytes": self.reserved_bytes,
            "resident_bytes": self.resident_bytes, "at_s": round(self.at_s, 6), "capacity_bytes": self.capacity_bytes,
            "holders": holders_json(self.holders),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Oom:
    """The first allocation (or touch of a page) that did not fit."""

    pool: str
    buffer: str
    at_s: float
    request_bytes: int
    level_bytes: int
    capacity_bytes: int
    holders: Holders
    proof: int | None = None
    partition: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "pool": self.pool, "buffer": self.buffer, "at_s": round(self.at_s, 6), "request_bytes": self.request_bytes,
            "level_bytes": self.level_bytes, "capacity_bytes": self.capacity_bytes,
            "proof": self.proof, "partition": self.partition, "holders": holders_json(self.holders),
        }  # fmt: skip


@dataclass(slots=True)
class SimResult:
    """One simulated run. Times in seconds from its start, sizes in bytes."""

    scenario: Scenario
    seed: int
    verdict: Verdict
    oom: Oom | None
    s_per_proof: float | None
    """Time to the last completion / proofs; None if not all proofs came out."""
    steady_s_per_proof: float | None
    """Slope between completion w and completion P - w of the P sets, w = GPU workers."""
    prove_s: float | None
    """Mean over proofs of the sum of the GPU calls of their sets, waits for the lock included."""
    peaks: dict[str, Peak]
    bottleneck: dict[str, str]
    completions: int
    deallocations: dict[str, int]
    failed_proofs: int
    admitted: int
    """Most sets that were admitted to synthesis at once."""
    idle_gpus: int
    makespan_s: float
    proof_s: list[float]
    """Time from admission to completion of each proof that came out."""
    waited_s: dict[str, float]
    """Seconds that workers waited in all, by what for."""
    shares: dict[str, float]
    """The share of the time that each lock, permit, device and link was busy, and the mean DRAM slowdown, in the steady part."""
    pw: int | None
    calibration: str
    warnings: list[str] = field(default_factory=list)
    events: list[Event] | None = None
    simulated_events: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys of the document: uncertainty, explore, smallest_change, bench."""

    @property
    def peak_ram_bytes(self) -> int:
        return self.peaks["ram"].resident_bytes

    @property
    def fits(self) -> bool:
        return self.verdict != "oom"

    def trace_header(self) -> dict[str, Any]:
        """First line of the trace file."""
        program = bind(self.scenario)
        return {
            "clock": "sim", "scenario": self.scenario.name, "scenario_hash": self.scenario.hash(), "seed": self.seed,
            "calibration": self.calibration, "pipeline": program.pipeline.name, "machine": self.scenario.machine.name,
            "policy": program.policy.model_dump(mode="json", exclude_none=True),
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The document of `cuzk sim --json`: same scenario, seed and version give the same bytes."""
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "oom": self.oom.to_json() if self.oom else None,
            "throughput": {
                "s_per_proof": _rounded(self.s_per_proof),
                "steady_s_per_proof": _rounded(self.steady_s_per_proof),
                "prove_s": _rounded(self.prove_s),
            },
            "peaks": {pool: peak.to_json() for pool, peak in self.peaks.items()},
            "bottleneck": self.bottleneck,
            "counts": {
                "completions": self.completions,
                "deallocations": dict(sorted(self.deallocations.items())),
                "failed_proofs": self.failed_proofs,
                "admitted_at_once": self.admitted,
                "idle_gpus": self.idle_gpus,
            },
            "makespan_s": _rounded(self.makespan_s),
            "seed": self.seed,
            "scenario_hash": self.scenario.hash(),
            "calibration": self.calibration,
            "warnings": list(self.warnings),
        }
        if self.pw is not None:
            document["rule_of_thumb"] = {"peak_ram_bytes": rule_of_thumb_bytes(self.pw)}
        return document | self.extra


def rule_of_thumb_bytes(pw: int) -> int:
    """69 + 20·pw GiB, as operators reckon; printed beside the prediction."""
    return (69 + 20 * pw) << 30


def holders_json(rows: Holders) -> list[dict[str, Any]]:
    return [{"buffer": name, "count": count, "bytes": nbytes} for name, count, nbytes in rows if nbytes]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

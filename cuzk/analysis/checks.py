"""The claims of a scenario file, judged against what came out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.analysis.bands import explore
from cuzk.model.scenario import Scenario
from cuzk.sim.result import SimResult

EXPLORED_ORDERS = 40


@dataclass(frozen=True)
class Claim:
    name: str
    expected: str
    found: str
    holds: bool

    def to_json(self) -> dict[str, Any]:
        return {"check": self.name, "expected": self.expected, "found": self.found, "holds": self.holds}

    def __str__(self) -> str:
        return f"{self.name}: expected {self.expected}, found {self.found}"


def judge(scenario: Scenario, result: SimResult) -> list[Claim]:
    """Every claim of `scenario.checks`. `explore` is run here if it is claimed."""
    checks, claims = scenario.checks, []

    def equal(name: str, expected: Any, found: Any) -> None:
        if expected is not None:
            claims.append(Claim(name, str(expected), str(found), expected == found))

    equal("verdict", checks.verdict, result.verdict)
    equal("pool", checks.pool, result.oom.pool if result.oom else None)
    if checks.explore is not None:
        equal("explore", checks.explore, explore(scenario, EXPLORED_ORDERS).verdict)
    for name in ("s_per_proof", "steady_s_per_proof", "prove_s"):
        bounds, value = getattr(checks, name), getattr(result, name)
        if bounds is not None:
            text = ", ".join(f"{k} {v:g}" for k, v in bounds if v is not None)
            claims.append(Claim(name, text, str(value), value is not None and bounds.holds(value)))
    for pool, size in checks.peaks.items():
        found = result.peaks[pool].resident_bytes if pool in result.peaks else None
        text = ", ".join(f"{k} {v / 2**30:.1f} GiB" for k, v in size if v)
        shown = "no such pool" if found is None else f"{found / 2**30:.1f} GiB"
        claims.append(Claim(f"peak of {pool}", text, shown, found is not None and size.holds(found)))
    equal("bottleneck", checks.bottleneck, result.bottleneck.get("resource"))
    if checks.holder is not None:
        rows = result.oom.holders if result.oom else result.peaks["ram"].holders
        equal("holder", checks.holder, rows[0][0] if rows else None)
    equal("completions", checks.completions, result.completions)
    if checks.deallocations is not None:
        counts = sorted(set(result.deallocations.values())) or [0]
        equal("deallocations", str(checks.deallocations), ", ".join(map(str, counts)))
    equal("admitted", checks.admitted, result.admitted)
    equal("idle_gpus", checks.idle_gpus, result.idle_gpus)
    return claims

"""Reading one run as a service: how long proofs take from admission, whether arrivals are kept up with, what to reserve."""

from __future__ import annotations

import math
from typing import Any

from cuzk.model.scenario import Scenario
from cuzk.sim.result import SimResult

GIB = 1 << 30
FEWEST = 5
"""Arrivals below which nothing is said of keeping up."""
BEHIND = 0.1
"""Share of the time of the arrivals by which the work may end late; more is an overload."""


def latency(result: SimResult) -> dict[str, float] | None:
    """Seconds of a proof from admission to completion; None where none came out."""
    times = sorted(result.proof_s)
    if not times:
        return None
    at = {"p50_s": 0.5, "p95_s": 0.95}
    found = {name: times[min(len(times) - 1, math.ceil(share * len(times)) - 1)] for name, share in at.items()}
    out = {"first_s": result.proof_s[0], "mean_s": sum(times) / len(times), **found, "max_s": times[-1]}
    return {name: round(value, 6) for name, value in out.items()}


def keeping_up(scenario: Scenario, result: SimResult) -> dict[str, str] | None:
    """{state, why} for open arrivals: stable, backlogged or overloaded; None for a closed loop, too few proofs or none done."""
    workload = scenario.workload
    if workload.arrivals == "closed" or workload.proofs < FEWEST or len(result.proof_s) < workload.proofs:
        return None
    times = [arrival.at_s or 0.0 for arrival in workload.plan(result.seed)]
    span, alone = times[-1] - times[0], min(result.proof_s)
    late = result.makespan_s - times[-1] - alone
    rate = f"{workload.proofs} proofs in {span:.0f} s, the last one done {result.makespan_s - times[-1]:.0f} s after it came"
    if span > 0 and late > BEHIND * span and late > alone:
        return {"state": "overloaded", "why": f"{rate}: more come than are made, and the wait grows with every proof"}
    if late > alone:
        return {"state": "backlogged", "why": f"{rate}: proofs wait for those before them"}
    return {"state": "stable", "why": rate}


def reservations(result: SimResult) -> dict[str, int]:
    """By pool: the peak and 5 %, in whole GiB, no more than there is; `pinned` is part of `ram`."""
    return {
        pool: min(peak.capacity_bytes, -(-int(1.05 * peak.resident_bytes) // GIB) * GIB)
        for pool, peak in result.peaks.items()
        if pool != "pinned"
    }


def notes(scenario: Scenario) -> list[str]:
    """Remarks on figures that an override may have left behind."""
    machine, said = scenario.machine, []
    if machine.reserved > machine.ram / 4:
        share = machine.reserved / machine.ram
        sizes = f"{machine.reserved / GIB:.0f} of {machine.ram / GIB:.0f} GiB"
        said.append(f"machine.reserved keeps {sizes} ({share:.0%}) from the prover")
    return said


def enriched(scenario: Scenario, result: SimResult) -> dict[str, Any]:
    """All of it, as keys of the document of `cuzk sim`."""
    out: dict[str, Any] = {"latency": latency(result), "reserve_bytes": reservations(result)}
    if (state := keeping_up(scenario, result)) is not None:
        out["service"] = state
    return out

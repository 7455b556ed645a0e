"""The resource that binds: shares of time in the steady part of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cuzk.sim.rates import UNIT
from cuzk.sim.result import Oom

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine

Mark = dict[str, Any]
"""The integrals at one instant (`Ledger.proof_done`)."""
BUSY = 0.9
"""A resource counts as fully used from this share of the time on."""


def window(marks: list[Mark]) -> tuple[Mark | None, Mark]:
    """The integrals between which a run is steady: from the first finished proof to the last that still had others behind."""
    if len(marks) < 5:
        return None, marks[-1]
    return marks[0], marks[max(1, (len(marks) - 1) * 3 // 4)]


def shares(engine: Engine, first: Mark | None = None, last: Mark | None = None) -> dict[str, float]:
    """Between two marks (default: the steady part): share of the time for which each lock or device was used, permits as
    a share of their units; `dram`: mean slowdown less one; `cores`: asked for, as a share of those there are."""
    if last is None:
        first, last = window(engine.ledger.marks)
    span = last["t"] - (first["t"] if first else 0.0)
    if span <= 0.0:
        return {}

    def grown(key: str, name: str) -> float:
        return float((last[key].get(name, 0.0) - (first[key].get(name, 0.0) if first else 0.0)) / span)

    arbiter, permits = engine.arbiter, {n: engine.program.permits[n] for n in engine.program.pipeline.permits}
    out = {}
    for name in engine.ledger.held:
        most = min(permits[name][0], arbiter.most_held(name)) if name in permits else 1
        out[name] = grown("held", name) / max(1, most if most else 1)
    for name in engine.costs.groups:
        if name != "cores":
            out[name] = grown("busy", name)
    begin = first or {"slowdown": 0.0, "cores": 0.0}
    out["dram"] = (last["slowdown"] - begin["slowdown"]) / span - 1.0
    out["cores"] = (last["cores"] - begin["cores"]) / span / (engine.cores.capacity / UNIT)
    return {name: round(value, 6) for name, value in out.items()}


def bottleneck(engine: Engine, oom: Oom | None, used: dict[str, float], of_part: bool = False) -> dict[str, str]:
    """{resource, why}. `of_part`: of a part of the run, so the peak of the whole says nothing."""
    if oom is not None and not (oom.pool.startswith("vram") and engine.core.completion_s):
        return {"resource": oom.pool, "why": f"it runs out: {oom.buffer} does not fit"}
    if not used:
        return {"resource": "none", "why": "nothing ran"}
    locks = [n for n in engine.ledger.held if n not in engine.program.pipeline.permits and ":" in n]
    devices = [n for n in used if n.startswith("gpu:")]
    permits = list(engine.program.pipeline.permits)
    device = max(locks or devices, key=lambda n: used[n], default=None)
    permit = max(permits, key=lambda n: used[n], default=None)
    if device is not None and used[device] >= BUSY and (permit is None or used[device] >= used[permit] - 0.05):
        why = f"{device} is held {used[device]:.0%} of the time"
        gpu = device.rpartition(":")[2]
        kernels = used.get(f"gpu:{gpu}")
        if kernels is not None and device in locks:
            why += f", kernels run {kernels:.0%} of it"
        return {"resource": device, "why": why}
    if permit is not None and used[permit] >= BUSY:
        room = None if of_part else _room_for_another_set(engine)
        if room is not None:
            return {"resource": "ram", "why": f"all {permit} permits are in use, and {room}"}
        if used["cores"] > 1.0:
            return {"resource": "cores", "why": f"synthesis asks for {used['cores']:.0%} of the cores"}
        if used["dram"] > 0.1:
            why = f"memory-bound work is {used['dram']:.0%} slower than alone, and all {permit} permits are in use"
            return {"resource": "dram", "why": why}
        return {"resource": permit, "why": f"its permits are in use {used[permit]:.0%} of the time, the GPU is not"}
    limit, workload = engine.program.in_flight, engine.program.scenario.workload
    if workload.arrivals != "closed" and all(proof.admitted_s <= proof.arrived_s for proof in engine.core.proofs):
        return {"resource": "arrivals", "why": "every proof was admitted when it came: nothing is fully used"}
    if limit is not None and workload.proofs > limit:
        return {"resource": "j", "why": f"at most {limit} in flight (policy.j): nothing else is fully used"}
    return {"resource": "workload", "why": "too few proofs to keep anything fully used"}


def _room_for_another_set(engine: Engine) -> str | None:
    """Words on how little room the host's memory has, if one more set than at the peak would not fit."""
    pool = engine.books.pools["ram"]
    circuit = engine.program.scenario.circuit
    specs = engine.program.pipeline.buffers.items()
    written = [name for name, spec in specs if spec.scope == "set" and spec.touched_by and spec.pool == "ram"]
    needs = sum(engine.program.size(name, circuit) for name in written)
    left = pool.capacity - engine.ledger.peak_resident
    if not needs or left >= needs:
        return None
    return f"the {left / 2**30:.1f} GiB left at the peak have no room for another set of {needs / 2**30:.1f} GiB"


def over_time(engine: Engine, parts: int = 10) -> list[dict[str, Any]]:
    """The resource that binds in each part of a run, neighbours with the same resource joined: {from_s, to_s, resource, why}."""
    marks = engine.ledger.marks
    step = max(1, len(marks) // parts)
    chosen: list[Mark | None] = [None, *marks[step - 1 : -1 : step], marks[-1]]
    rows: list[dict[str, Any]] = []
    for first, last in pairwise(chosen):
        assert last is not None
        begin = first["t"] if first else 0.0
        if last["t"] <= begin:
            continue
        found = bottleneck(engine, None, shares(engine, first, last), of_part=True)
        if rows and rows[-1]["resource"] == found["resource"]:
            rows[-1] |= {"to_s": round(last["t"], 6), "why": found["why"]}
        else:
            rows.append({"from_s": round(begin, 6), "to_s": round(last["t"], 6), **found})
    return rows

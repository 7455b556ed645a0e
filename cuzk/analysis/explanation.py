"""Why a scenario comes out as it does: what the peak consists of, who waited for what then, which resource binds when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cuzk.analysis.fixes import Change, nearest_changes
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.sim.bottleneck import over_time
from cuzk.sim.engine import Engine
from cuzk.sim.options import Options
from cuzk.sim.result import Peak, SimResult
from cuzk.sim.run import result_of
from cuzk.trace.event import Event

Set = tuple[int, int]
"""(proof, partition)"""


@dataclass
class _SetState:
    """One set's work and holdings at an instant."""

    doing: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    """(worker, name) -> ('runs' | 'waits for', since)"""
    held: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    """Steps that have ended."""
    last: str = "admitted"

    def runs(self, step: str) -> bool:
        return any(name == step and what == "runs" for (_, name), (what, _) in self.doing.items())

    def stage(self) -> str:
        if not self.doing:
            return f"after {self.last}"
        (_, name), (what, _) = max(self.doing.items(), key=lambda item: (item[1][0] == "runs", item[1][1]))
        return f"{what} {name}"


@dataclass(frozen=True)
class Explanation:
    result: SimResult
    pool: str
    """The pool that is explained: the one that ran out, or the tightest."""
    peak: Peak
    """Its level at `at_s`: the highest, or the one at which a request did not fit."""
    at_s: float
    composition: list[dict[str, Any]]
    """Rows {stage, sets, buffers: [{buffer, count, bytes}], bytes}: the level by what the holding sets were doing. Their bytes
    add up to `peak`; pages that a set has not touched yet are not in it."""
    waits: list[dict[str, Any]]
    """The chain of waits at that time: {what, sets, oldest_s, served_by}."""
    binding: list[dict[str, Any]]
    """{from_s, to_s, resource, why} over the run."""
    changes: list[Change]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "verdict": self.result.verdict,
            "pool": self.pool,
            "at_s": round(self.at_s, 6),
            "peak": self.peak.to_json(),
            "composition": self.composition,
            "waits": self.waits,
            "waited_s": self.result.waited_s,
            "binding": self.binding,
            "changes": [change.to_json() for change in self.changes],
            "scenario_hash": self.result.scenario.hash(),
        }


def explain(scenario: Scenario, *, seed: int | None = None, changes: bool = True) -> Explanation:
    """Simulate `scenario` with its events, take the tightest pool's peak apart, and try the nearest changes."""
    program = bind(scenario)
    engine = Engine(program, scenario.seed if seed is None else seed, Options(trace=True))
    engine.run()
    result = result_of(engine)
    pool, peak = _moment(result)
    events = result.events or []
    sets = _states(events, pool, peak, result.oom is not None)
    touched_by = {
        name: spec.touched_by for name, spec in program.pipeline.buffers.items() if spec.touched_by and spec.pool == "ram"
    }
    tried = nearest_changes(scenario, seed) if changes else []
    return Explanation(result, pool, peak, peak.at_s, _composition(sets, peak, touched_by), _waits(sets, events, peak.at_s),
                       over_time(engine), tried)  # fmt: skip


def _moment(result: SimResult) -> tuple[str, Peak]:
    """The pool to explain and its level then."""
    oom = result.oom
    if oom is not None:
        at_peak = result.peaks[oom.pool]
        level = replace(at_peak, resident_bytes=oom.level_bytes, at_s=oom.at_s, holders=oom.holders)
        return oom.pool, level
    return max(result.peaks.items(), key=lambda item: (item[1].resident_bytes / item[1].capacity_bytes, item[0]))


def _states(events: Iterable[Event], pool: str, peak: Peak, ran_out: bool) -> dict[Set, _SetState]:
    """Every set at the instant of `peak`, before what is freed then."""
    sets: dict[Set, _SetState] = {}
    until, on_device = peak.at_s, pool.startswith("vram")
    for event in events:
        if event.t > until or (ran_out and event.kind == "oom"):
            break
        if event.t == until and event.kind == "free" and not (ran_out or on_device):
            break
        if event.proof is None or event.partition is None or event.partition < 0:
            continue
        state = sets.setdefault((event.proof, event.partition), _SetState())
        key = (event.worker, event.name)
        if event.kind in ("begin", "wait"):
            state.doing[key] = ("runs" if event.kind == "begin" else "waits for", event.t)
        elif event.kind in ("end", "grant"):
            state.doing.pop(key, None)
            state.last = event.name
            state.done.add(event.name)
        elif event.kind == "alloc" and event.pool == pool and event.bytes is not None:
            state.held[event.name] = event.bytes
        elif event.kind == "free" and event.pool == pool:
            state.held.pop(event.name, None)
        if event.t == until and not ran_out and on_device and event.pool == pool and event.reserved == peak.reserved_bytes:
            break
    return sets


def _composition(sets: dict[Set, _SetState], peak: Peak, touched_by: dict[str, str]) -> list[dict[str, Any]]:
    for state in sets.values():
        state.held = {name: n for name, n in state.held.items() if n}
    _keep_resident(list(sets.values()), peak, touched_by)
    rows: dict[str, dict[str, Any]] = {}
    by_sets: dict[str, list[int]] = {}
    for state in sets.values():
        if not state.held:
            continue
        row = rows.setdefault(state.stage(), {"stage": state.stage(), "sets": 0, "bytes": 0, "buffers": {}})
        row["sets"] += 1
        for buffer, nbytes in state.held.items():
            entry = row["buffers"].setdefault(buffer, [0, 0])
            entry[0] += 1
            entry[1] += nbytes
            row["bytes"] += nbytes
            total = by_sets.setdefault(buffer, [0, 0])
            total[0] += 1
            total[1] += nbytes
    kept: dict[str, list[int]] = {}
    for buffer, count, nbytes in peak.holders:
        theirs = by_sets.get(buffer, [0, 0])
        if nbytes > theirs[1]:
            kept[buffer] = [max(1, count - theirs[0]), nbytes - theirs[1]]
    if kept:
        total_bytes = sum(n for _, n in kept.values())
        rows["resident"] = {"stage": "held by no set", "sets": 0, "bytes": total_bytes, "buffers": kept}
    out = sorted(rows.values(), key=lambda row: -row["bytes"])
    for row in out:
        row["buffers"] = [
            {"buffer": buffer, "count": count, "bytes": nbytes}
            for buffer, (count, nbytes) in sorted(row["buffers"].items(), key=lambda item: -item[1][1])
        ]
    return out


def _keep_resident(states: list[_SetState], peak: Peak, touched_by: dict[str, str]) -> None:
    """Buffers count with the pages that are there while a step brings them: whole where the step has ended, the rest of the
    level shared by the sets at which it runs."""
    resident = {name: nbytes for name, _, nbytes in peak.holders}
    for buffer, step in touched_by.items():
        holding = [state for state in states if buffer in state.held]
        partly = [state for state in holding if step not in state.done]
        writing = [state for state in partly if state.runs(step)]
        left = resident.get(buffer, 0) - sum(state.held[buffer] for state in holding if step in state.done)
        for state in partly:
            del state.held[buffer]
        for index, state in enumerate(writing):
            share = max(0, left) // (len(writing) - index)
            left -= share
            if share:
                state.held[buffer] = share


def _waits(sets: dict[Set, _SetState], events: list[Event], at_s: float) -> list[dict[str, Any]]:
    """Who waits for what, most sets first, and what those do that will serve them."""
    waiting: dict[str, list[float]] = {}
    running: dict[str, list[str]] = {}
    for number, state in sets.items():
        for (worker, name), (what, since) in state.doing.items():
            if what == "waits for":
                waiting.setdefault(name, []).append(since)
            elif ":" in worker:
                running.setdefault(worker, []).append(f"{name} of proof {number[0]}, partition {number[1]}")
    pool_workers = sorted(worker for worker in running if worker.count(".") == 1)
    busy = [f"{worker} runs {', '.join(running[worker])}" for worker in pool_workers]
    serving = sorted({e.worker for e in events if e.kind in ("wait", "grant") and e.worker.count(".") == 1 and e.gpu is not None})
    rows = []
    for name, starts in sorted(waiting.items(), key=lambda item: -len(item[1])):
        rows.append({
            "what": name, "sets": len(starts), "oldest_s": round(at_s - min(starts), 6),
            "served_by": busy if busy else [f"{worker} waits" for worker in serving],
        })  # fmt: skip
    return rows

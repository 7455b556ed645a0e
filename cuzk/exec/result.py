"""The result of a run, in the shape of the simulator's document, and the parts that only a run has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import CuzkError, Interrupted, describe
from cuzk.exec.engine import Engine
from cuzk.exec.sampler import Sampler
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.program import Program
from cuzk.trace.event import Event
from cuzk.trace.spans import step_times
from cuzk.trace.throughput import throughput

SCHEMA_VERSION = 1


@dataclass
class RunResult:
    """One run. `document` is what `cuzk run --json` prints; `error` is None for a run in which every proof came out."""

    document: dict[str, Any]
    error: BaseException | None
    events: list[Event] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        if self.error is None:
            return 0
        return self.error.exit_code if isinstance(self.error, CuzkError) else 1

    def to_json(self) -> dict[str, Any]:
        return self.document


@dataclass
class Peak:
    """One pool's peak, by the books."""

    live_bytes: int
    reserved_bytes: int
    at_s: float
    """When the reserved peak was reached."""
    holders: list[tuple[str, int, int]]


@dataclass
class Outcome:
    """The results of one engine, or of several one after another; plain data, so that it can go from one process to another."""

    gpu_call_s: dict[int, float | None]
    """Proof that is complete -> time that pool workers held its sets (None: unknown)."""
    failures: list[tuple[int, BaseException]]
    failure: BaseException | None
    lost: BaseException | None
    """Why another process has to go on."""
    oom: tuple[float, OutOfMemory] | None
    completions: int
    deallocations: dict[str, int]
    peaks: dict[str, Peak]
    sampled: dict[str, tuple[int, float]]
    """Pool -> (highest resident bytes, when)."""
    samples: int
    load_s: float
    ended_s: float

    def then(self, later: Outcome) -> Outcome:
        """This one and what came after it."""
        names = list(dict.fromkeys([*self.peaks, *later.peaks]))
        return Outcome(
            self.gpu_call_s | later.gpu_call_s, self.failures + later.failures, later.failure, later.lost, self.oom or later.oom,
            self.completions + later.completions,
            {n: self.deallocations.get(n, 0) + later.deallocations.get(n, 0) for n in self.deallocations | later.deallocations},
            {name: _higher(self.peaks.get(name), later.peaks.get(name)) for name in names},
            {name: max(o.sampled[name] for o in (self, later) if name in o.sampled) for name in self.sampled | later.sampled},
            self.samples + later.samples, self.load_s, later.ended_s,
        )  # fmt: skip


def _higher(one: Peak | None, other: Peak | None) -> Peak:
    if one is None or other is None:
        return one or other or Peak(0, 0, 0.0, [])
    top = one if one.reserved_bytes >= other.reserved_bytes else other
    return Peak(max(one.live_bytes, other.live_bytes), top.reserved_bytes, top.at_s, top.holders)


def outcome_of(engine: Engine, sampler: Sampler) -> Outcome:
    peaks = {
        name: Peak(pool.peak_live, pool.peak_reserved, pool.peak_reserved_at,
                   sorted(((b, c, n) for b, (c, n) in pool.peak_held.items()), key=lambda row: (-row[2], row[0])))
        for name, pool in engine.core.books.pools.items()
    }  # fmt: skip
    core = engine.core
    return Outcome(
        {proof.number: proof.gpu_call_s for proof in core.proofs if proof.completed_s is not None}, core.failures,
        core.failure, next(iter(core.lost.values()), None), core.oom, len(core.completion_s), core.deallocations,
        peaks, sampler.peaks, sampler.count, engine.load_s, engine.ended_s,
    )  # fmt: skip


def result_of(program: Program, device: str, outcome: Outcome, events: list[Event], measured: dict[str, Any]) -> RunResult:
    """`device`: its name. `measured`: what the caller adds to the part of the same name."""
    done = [e.t for e in events if e.kind == "complete" and e.partition != -1]
    pace = throughput(done, len(outcome.gpu_call_s), sum(program.pool_workers.values()))
    error = outcome.failure or (outcome.failures[0][1] if outcome.failures else None)
    failed = [{"proof": number, "why": describe(why)} for number, why in outcome.failures]
    calls_s = [seconds for seconds in outcome.gpu_call_s.values() if seconds is not None]
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": _verdict(outcome, error),
        "oom": _oom(outcome.oom),
        "throughput": {
            "s_per_proof": _rounded(pace.s_per_proof),
            "steady_s_per_proof": _rounded(pace.steady_s_per_proof),
            "prove_s": _rounded(sum(calls_s) / len(calls_s) if calls_s else None),
        },
        "peaks": _peaks(program, outcome),
        "bottleneck": _bottleneck(program, outcome, events),
        "counts": {
            "completions": outcome.completions,
            "deallocations": dict(sorted(outcome.deallocations.items())),
            "proofs": len(outcome.gpu_call_s),
            "failed_proofs": len(outcome.failures),
        },
        "makespan_s": _rounded(max(done, default=outcome.ended_s)),
        "seed": program.scenario.seed,
        "scenario_hash": program.scenario.hash(),
        "calibration": program.scenario.calibration.name if program.scenario.calibration else None,
        "failures": failed if outcome.failure is None else [*failed, {"proof": None, "why": describe(outcome.failure)}],
        "measured": {
            "device": device,
            "samples": outcome.samples,
            "step_s": {name: round(times.median_s, 6) for name, times in step_times(events).items()},
            **measured,
            "load_s": round(outcome.load_s, 6),
        },
    }  # fmt: skip
    return RunResult(document, error, events)


def _verdict(outcome: Outcome, error: BaseException | None) -> str:
    if outcome.oom is not None:
        return "oom"
    if isinstance(error, Interrupted):
        return "interrupted"
    return "fits" if error is None else "failed"


def _oom(found: tuple[float, OutOfMemory] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    at_s, error = found
    return {
        "pool": error.pool, "buffer": error.buffer, "at_s": round(at_s, 6), "request_bytes": error.request_bytes,
        "level_bytes": error.level_bytes, "capacity_bytes": error.capacity_bytes,
        "proof": error.proof,
        "partition": error.partition,
        "holders": _holders(error.holders),
    }  # fmt: skip


def _holders(rows: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    return [{"buffer": name, "count": count, "bytes": nbytes} for name, count, nbytes in rows if nbytes]


def _peaks(program: Program, outcome: Outcome) -> dict[str, Any]:
    peaks: dict[str, Any] = {}
    for name, peak in outcome.peaks.items():
        resident, at_s = outcome.sampled.get(name, (None, peak.at_s))
        peaks[name] = {
            "live_bytes": peak.live_bytes, "reserved_bytes": peak.reserved_bytes,
            "resident_bytes": peak.reserved_bytes if resident is None else resident,
            "resident_is": "booked" if resident is None else "sampled",
            "at_s": round(at_s, 6), "capacity_bytes": program.pools[name], "holders": _holders(peak.holders),
        }  # fmt: skip
    return peaks


def _bottleneck(program: Program, outcome: Outcome, events: list[Event]) -> dict[str, str]:
    """The resource that binds, by who waited for whom: pool workers for sets, or sets for pool workers."""
    if outcome.oom is not None and outcome.failure is not None:
        return {"resource": outcome.oom[1].pool, "why": f"it runs out: {outcome.oom[1].buffer} does not fit"}
    span = max((e.t for e in events if e.kind == "complete"), default=0.0)
    lanes = {e.worker for e in events if e.worker and any(e.worker.startswith(f"{name}:") for name in program.pool_workers)}
    if span <= 0 or not lanes:
        return {"resource": "none", "why": "nothing was completed"}
    channels = set(program.pipeline.channels)
    opened: dict[str, float] = {}
    idle = 0.0
    for event in events:
        if event.worker in lanes and event.name in channels:
            if event.kind == "wait":
                opened[event.worker] = event.t
            elif event.kind == "grant":
                idle += event.t - opened.pop(event.worker, event.t)
    idle += sum(max(0.0, span - start) for start in opened.values())
    share = idle / (span * len(lanes))
    if share > 0.5:
        return {"resource": "synthesis", "why": f"GPU workers waited for sets {share:.0%} of the time"}
    return {"resource": "gpu", "why": f"GPU workers had a set {1 - share:.0%} of the time"}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

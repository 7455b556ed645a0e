"""The result of a run, in the shape of the simulator's document, and the parts that only a run has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import CuzkError, Interrupted, describe
from cuzk.exec.engine import Engine
from cuzk.exec.sampler import Sampler
from cuzk.pipeline.arbiter import OutOfMemory
from cuzk.pipeline.plan import Plan
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
        for name, pool in engine.arbiter.pools.items()
    }  # fmt: skip
    return Outcome(
        {proof.number: proof.gpu_call_s for proof in engine.proofs if proof.completed_s is not None}, engine.failures,
        engine.failure, next(iter(engine.lost.values()), None), engine.oom, engine.completions, engine.deallocations,
        peaks, sampler.peaks, sampler.count, engine.load_s, engine.ended_s,
    )  # fmt: skip


def result_of(plan: Plan, device: str, outcome: Outcome, events: list[Event], measured: dict[str, Any]) -> RunResult:
    """`device`: its name. `measured`: what the caller adds to the part of the same name."""
    done = [e.t for e in events if e.kind == "complete" and e.partition != -1]
    per_gpu = {name: worker.per == "gpu" for name, worker in plan.pipeline.workers.items()}
    workers = sum(plan.worker_count(name) * (plan.gpus if per_gpu[name] else 1) for name in _pools(plan))
    pace = throughput(done, len(outcome.gpu_call_s), workers)
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
        "peaks": _peaks(plan, outcome),
        "bottleneck": _bottleneck(plan, outcome, events),
        "counts": {
            "completions": outcome.completions,
            "deallocations": dict(sorted(outcome.deallocations.items())),
            "proofs": len(outcome.gpu_call_s),
            "failed_proofs": len(outcome.failures),
        },
        "makespan_s": _rounded(max(done, default=outcome.ended_s)),
        "seed": plan.scenario.seed,
        "scenario_hash": plan.scenario.hash(),
        "calibration": plan.scenario.calibration.name if plan.scenario.calibration else None,
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
    of_set = error.token is not None and error.token.proof >= 0
    return {
        "pool": error.pool, "buffer": error.buffer, "at_s": round(at_s, 6), "request_bytes": error.request_bytes,
        "level_bytes": error.level_bytes, "capacity_bytes": error.capacity_bytes,
        "proof": error.token.proof if of_set and error.token else None,
        "partition": error.token.partition if of_set and error.token else None,
        "holders": _holders(error.holders),
    }  # fmt: skip


def _holders(rows: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    return [{"buffer": name, "count": count, "bytes": nbytes} for name, count, nbytes in rows if nbytes]


def _peaks(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    peaks: dict[str, Any] = {}
    for name, peak in outcome.peaks.items():
        resident, at_s = outcome.sampled.get(name, (None, peak.at_s))
        peaks[name] = {
            "live_bytes": peak.live_bytes, "reserved_bytes": peak.reserved_bytes,
            "resident_bytes": peak.reserved_bytes if resident is None else resident,
            "resident_is": "booked" if resident is None else "sampled",
            "at_s": round(at_s, 6), "capacity_bytes": plan.pools[name], "holders": _holders(peak.holders),
        }  # fmt: skip
    return peaks


def _bottleneck(plan: Plan, outcome: Outcome, events: list[Event]) -> dict[str, str]:
    """The resource that binds, by who waited for whom: pool workers for sets, or sets for pool workers."""
    if outcome.oom is not None and outcome.failure is not None:
        return {"resource": outcome.oom[1].pool, "why": f"it runs out: {outcome.oom[1].buffer} does not fit"}
    span = max((e.t for e in events if e.kind == "complete"), default=0.0)
    lanes = {e.worker for e in events if e.worker and any(e.worker.startswith(f"{name}:") for name in _pools(plan))}
    if span <= 0 or not lanes:
        return {"resource": "none", "why": "nothing was completed"}
    channels = set(plan.pipeline.channels)
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


def _pools(plan: Plan) -> list[str]:
    return [name for name, worker in plan.pipeline.workers.items() if worker.start == "pool"]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

"""What a run says, in the shape of the simulator's document, and what only a run can say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import CuzkError, Interrupted
from cuzk.exec.engine import Engine, describe
from cuzk.exec.sampler import Sampler
from cuzk.pipeline.arbiter import OutOfMemory
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


def result_of(engine: Engine, sampler: Sampler, events: list[Event], measured: dict[str, Any]) -> RunResult:
    """`measured`: what the caller adds to the part of the same name."""
    plan = engine.plan
    whole = [proof for proof in engine.proofs if proof.completed_s is not None]
    done = [e.t for e in events if e.kind == "complete" and e.partition != -1]
    workers = sum(
        plan.worker_count(name) * (plan.gpus if worker.per == "gpu" else 1)
        for name, worker in plan.pipeline.workers.items() if worker.start == "pool"
    )  # fmt: skip
    pace = throughput(done, len(whole), workers)
    error = engine.failure or (engine.failures[0][1] if engine.failures else None)
    failed = [{"proof": number, "why": describe(why)} for number, why in engine.failures]
    document = {
        "schema_version": SCHEMA_VERSION,
        "verdict": _verdict(engine, error),
        "oom": _oom(engine.oom),
        "throughput": {
            "s_per_proof": _rounded(pace.s_per_proof),
            "steady_s_per_proof": _rounded(pace.steady_s_per_proof),
            "prove_s": _rounded(sum(p.gpu_call_s for p in whole) / len(whole) if whole else None),
        },
        "peaks": _peaks(engine, sampler),
        "bottleneck": _bottleneck(engine, events),
        "counts": {
            "completions": engine.completions,
            "deallocations": dict(sorted(engine.deallocations.items())),
            "proofs": len(whole),
            "failed_proofs": len(engine.failures),
        },
        "makespan_s": _rounded(max(done, default=engine.ended_s)),
        "seed": plan.scenario.seed,
        "scenario_hash": plan.scenario.hash(),
        "calibration": plan.scenario.calibration.name if plan.scenario.calibration else None,
        "failures": failed if engine.failure is None else [*failed, {"proof": None, "why": describe(engine.failure)}],
        "measured": {
            "device": engine.device.name,
            "samples": sampler.count,
            "step_s": {name: round(times.median_s, 6) for name, times in step_times(events).items()},
            **measured,
        },
    }  # fmt: skip
    return RunResult(document, error, events)


def _verdict(engine: Engine, error: BaseException | None) -> str:
    if engine.oom is not None:
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


def _peaks(engine: Engine, sampler: Sampler) -> dict[str, Any]:
    peaks: dict[str, Any] = {}
    for name, pool in engine.arbiter.pools.items():
        resident, at_s = sampler.peaks.get(name, (None, pool.peak_reserved_at))
        held = sorted(((b, c, n) for b, (c, n) in pool.peak_held.items()), key=lambda row: (-row[2], row[0]))
        peaks[name] = {
            "live_bytes": pool.peak_live, "reserved_bytes": pool.peak_reserved,
            "resident_bytes": pool.peak_reserved if resident is None else resident,
            "resident_is": "booked" if resident is None else "sampled",
            "at_s": round(at_s, 6), "capacity_bytes": engine.plan.pools[name], "holders": _holders(held),
        }  # fmt: skip
    return peaks


def _bottleneck(engine: Engine, events: list[Event]) -> dict[str, str]:
    """From who waited for whom: pool workers for sets, or sets for pool workers."""
    if engine.oom is not None and engine.failure is not None:
        return {"resource": engine.oom[1].pool, "why": f"it runs out: {engine.oom[1].buffer} does not fit"}
    span = max((e.t for e in events if e.kind == "complete"), default=0.0)
    lanes = {e.worker for e in events if e.worker and any(e.worker.startswith(f"{name}:") for name in _pools(engine))}
    if span <= 0 or not lanes:
        return {"resource": "none", "why": "nothing was completed"}
    channels = set(engine.plan.pipeline.channels)
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


def _pools(engine: Engine) -> list[str]:
    return [name for name, worker in engine.plan.pipeline.workers.items() if worker.start == "pool"]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)

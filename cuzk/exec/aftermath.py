"""The remains of a worker process that ended without a word: its outcome as far as its events tell, and the events of its end.

The system takes back everything that a process held, at once. The trace says so with the same events that the process would
have written: each proof in flight fails, each buffer is freed, each set is unwound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from cuzk.errors import CuzkError, describe
from cuzk.exec.result import Outcome, Peak
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.sets import PartitionSet
from cuzk.trace.event import Event

LANE = "system"
"""The worker that is named where the system did what a worker would have done."""


def aftermath(events: Sequence[Event], done: Collection[int], reason: CuzkError, now: float) -> tuple[Outcome, list[Event]]:
    """`events`: those of this process. `done`: the proofs that it handed over. `now`: when it ended."""
    admitted = [e.proof for e in events if e.kind == "admit" and e.proof is not None]
    fails = [e for e in events if e.kind == "fail"]
    failed = {e.proof: CuzkError(e.reason or "") for e in fails if e.name == "proof" and e.proof is not None}
    ends = [CuzkError(e.reason or "") for e in fails if e.name == "run"]
    oom = _first_oom(events)
    in_flight = [proof for proof in admitted if proof not in done and proof not in failed]
    told = [Event(now, "fail", name="proof", proof=proof, reason=describe(reason)) for proof in in_flight]
    outcome = Outcome(
        gpu_call_s=dict.fromkeys(done), failures=[*failed.items(), *((proof, reason) for proof in in_flight)],
        failure=(oom[1] if oom is not None else ends[0]) if ends else None, lost=reason, oom=oom,
        completions=sum(e.kind == "complete" and e.partition != -1 for e in events),
        deallocations=dict(Counter(e.name for e in events if e.kind == "dealloc")),
        peaks=_peaks(events), sampled=_sampled(events),
        samples=sum(e.kind == "sample" and e.pool == "ram" for e in events), load_s=0.0, ended_s=now,
    )  # fmt: skip
    return outcome, [*told, *_given_back(events, now)]


def _first_oom(events: Sequence[Event]) -> tuple[float, OutOfMemory] | None:
    event = next((e for e in events if e.kind == "oom"), None)
    if event is None:
        return None
    pset = PartitionSet(event.proof, event.partition or 0) if event.proof is not None else None
    oom = OutOfMemory(event.pool or "", event.name, event.bytes or 0, event.reserved or 0, event.capacity or 0,
                      event.holders or [], pset)  # fmt: skip
    return event.t, oom


def _sampled(events: Sequence[Event]) -> dict[str, tuple[int, float]]:
    peaks: dict[str, tuple[int, float]] = {}
    for event in events:
        pool, nbytes = event.pool or "", event.resident
        if event.kind == "sample" and nbytes is not None and nbytes > peaks.get(pool, (-1, 0.0))[0]:
            peaks[pool] = (nbytes, event.t)
    return peaks


def _held(events: Sequence[Event]) -> dict[tuple[str, str, int | None, int | None], Event]:
    """(pool, buffer, proof, partition) -> the allocation, of all that is not freed at the end."""
    held: dict[tuple[str, str, int | None, int | None], Event] = {}
    for event in events:
        key = (event.pool or "", event.name, event.proof, event.partition)
        if event.kind == "alloc":
            held[key] = event
        elif event.kind == "free":
            held.pop(key, None)
    return held


def _peaks(events: Sequence[Event]) -> dict[str, Peak]:
    top: dict[str, int] = {}
    live: dict[str, int] = {}
    for index, event in enumerate(events):
        if event.kind == "alloc" and event.pool is not None:
            live[event.pool] = max(live.get(event.pool, 0), event.live or 0)
            if event.pool not in top or (event.reserved or 0) > (events[top[event.pool]].reserved or 0):
                top[event.pool] = index
    peaks = {}
    for pool, index in top.items():
        rows = [e for (where, *_), e in _held(events[: index + 1]).items() if where == pool]
        sizes, counts = Counter[str](), Counter(e.name for e in rows)
        for event in rows:
            sizes[event.name] += event.bytes or 0
        holders = sorted(((name, counts[name], size) for name, size in sizes.items()), key=lambda row: (-row[2], row[0]))
        peaks[pool] = Peak(live[pool], events[index].reserved or 0, events[index].t, holders)
    return peaks


def _given_back(events: Sequence[Event], now: float) -> Iterator[Event]:
    held = _held(events)
    live = {pool: sum(e.bytes or 0 for (where, *_), e in held.items() if where == pool) for pool, *_ in held}
    for (pool, name, proof, partition), event in reversed(held.items()):
        live[pool] -= event.bytes or 0
        # what allocators kept is gone with the process, too
        yield Event(now, "free", name=name, worker=LANE, proof=proof, partition=partition, pool=pool, bytes=event.bytes,
                    live=live[pool], reserved=live[pool], capacity=event.capacity)  # fmt: skip
    for proof, partition in dict.fromkeys((proof, partition) for _, _, proof, partition in held if proof is not None):
        yield Event(now, "unwind", worker=LANE, proof=proof, partition=partition)

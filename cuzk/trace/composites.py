"""Steps that another prover reports as one, made of the several that they consist of here."""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.trace.event import Event
from cuzk.trace.spans import Span, StepTimes, spans, times_of

MADE_OF = {"synthesis": frozenset(("witness", "matvec")), "ntt_msm_h": frozenset(("ntt_h", "msm_h"))}
"""Name -> the steps from whose first begin to whose last end a set's time counts."""
GPU_CALL = "gpu_call"
"""A set's time from its first step on a GPU's worker until the set is complete: waits for the lock are in it."""


def composites(events: Iterable[Event]) -> dict[str, StepTimes]:
    """Times by name, over all sets that have the whole of it; what the trace has under that name itself is left out."""
    events = list(events)
    runs = spans(events)
    own = {span.name for span in runs}
    found = {name: _over(runs, parts) for name, parts in MADE_OF.items() if name not in own}
    if GPU_CALL not in own:
        found[GPU_CALL] = _calls(runs, events)
    return {name: times_of(times) for name, times in found.items() if times}


def _over(runs: list[Span], parts: frozenset[str]) -> list[float]:
    begin: dict[tuple[int | None, int | None], float] = {}
    end: dict[tuple[int | None, int | None], float] = {}
    seen: dict[tuple[int | None, int | None], set[str]] = {}
    for span in runs:
        if span.name in parts:
            key = (span.proof, span.partition)
            begin[key] = min(begin.get(key, span.start), span.start)
            end[key] = max(end.get(key, span.end), span.end)
            seen.setdefault(key, set()).add(span.name)
    return [end[key] - begin[key] for key in begin if seen[key] == parts]


def _calls(runs: list[Span], events: list[Event]) -> list[float]:
    begin: dict[tuple[int | None, int | None], float] = {}
    for span in runs:
        if span.worker.startswith("gpu:"):
            key = (span.proof, span.partition)
            begin[key] = min(begin.get(key, span.start), span.start)
    done = {(e.proof, e.partition): e.t for e in events if e.kind == "complete" and e.partition != -1}
    return [done[key] - start for key, start in begin.items() if key in done and done[key] >= start]

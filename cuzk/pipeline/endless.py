"""Whether every set of a pipeline comes to an end: asked before anything else walks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuzk.pipeline.steps import Get, Pipeline, Put, Spawn, StepBase, TryAlloc

MOST_WALKS = 10_000


def endless(pipeline: Pipeline) -> tuple[str, str] | None:
    """(worker, why) if sets of this pipeline could be walked for ever: workers that feed or spawn each other in a circle, or
    that multiply beyond reason. None: every set comes to an end."""
    takers: dict[str, list[str]] = {}
    for name, worker in pipeline.workers.items():
        for step in _all_steps(worker.steps):
            if isinstance(step, Get):
                takers.setdefault(step.get, []).append(name)
    feeds: dict[str, list[str]] = {name: [] for name in pipeline.workers}
    for name, worker in pipeline.workers.items():
        for step in _all_steps(worker.steps):
            if isinstance(step, Put):
                feeds[name] += takers.get(step.put, [])[:1]
            elif isinstance(step, Spawn) and step.spawn in feeds:
                feeds[name].append(step.spawn)
    walks = dict.fromkeys(feeds, 0)
    """The walks that one walk of a worker leads to, itself included; 0: not known yet."""
    for start in feeds:
        path: list[tuple[str, Iterator[str]]] = [(start, iter(feeds[start]))]
        while path:
            name, children = path[-1]
            child = next((c for c in children if not walks[c]), None)
            if child is None:
                walks[name] = 1 + sum(walks[c] for c in feeds[name])
                if walks[name] > MOST_WALKS:
                    return name, f"leads to more than {MOST_WALKS:,} walks of other workers"
                path.pop()
            elif any(child == above for above, _ in path):
                names = [above for above, _ in path]
                circle = " → ".join([*names[names.index(child) :], child])
                return name, f"feeds or spawns workers in a circle, so a set never ends: {circle}"
            else:
                path.append((child, iter(feeds[child])))
    return None


def _all_steps(steps: Iterable[StepBase]) -> Iterator[StepBase]:
    for step in steps:
        yield step
        if isinstance(step, TryAlloc):
            yield from _all_steps(step.then)
            yield from _all_steps(step.otherwise)

"""A pool's level by who holds it: buffers stacked over time, the largest at the bottom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cuzk.trace.event import Event

MOST_LAYERS = 8
MOST_MOMENTS = 800
OTHERS = "others"


@dataclass(frozen=True)
class Stack:
    """Bytes of each layer at each moment; the layers' sum is the level."""

    t: list[float]
    layers: dict[str, list[int]]


def stacks(events: Iterable[Event]) -> dict[str, Stack]:
    """By pool. Of a long run each stretch of time shows the moment at which the pool held most."""
    by_pool: dict[str, list[Event]] = {}
    for event in events:
        if event.pool is not None and event.kind in ("alloc", "free") and event.bytes is not None:
            by_pool.setdefault(event.pool, []).append(event)
    return {pool: _stack(changes) for pool, changes in by_pool.items()}


def _stack(changes: list[Event]) -> Stack:
    chosen = _moments(changes)
    held: dict[str, int] = {}
    shots: list[tuple[float, dict[str, int]]] = []
    for index, event in enumerate(changes):
        sign = 1 if event.kind == "alloc" else -1
        held[event.name] = held.get(event.name, 0) + sign * (event.bytes or 0)
        if index in chosen:
            shots.append((event.t, dict(held)))
    most: dict[str, int] = {}
    for _, shot in shots:
        for name, nbytes in shot.items():
            most[name] = max(most.get(name, 0), nbytes)
    ranked = sorted(most, key=lambda name: (-most[name], name))
    layers = {name: [shot.get(name, 0) for _, shot in shots] for name in ranked[:MOST_LAYERS]}
    if len(ranked) > MOST_LAYERS:
        layers[OTHERS] = [sum(shot.get(name, 0) for name in ranked[MOST_LAYERS:]) for _, shot in shots]
    return Stack([t for t, _ in shots], layers)


def _moments(changes: list[Event]) -> set[int]:
    """Indices of the changes that are shown: of each stretch the highest and the last, and the last change of each instant."""
    last_of_instant = [i for i, e in enumerate(changes) if i + 1 == len(changes) or changes[i + 1].t > e.t]
    if len(last_of_instant) <= MOST_MOMENTS:
        return set(last_of_instant)
    level, levels = 0, []
    for event in changes:
        level += (event.bytes or 0) * (1 if event.kind == "alloc" else -1)
        levels.append(level)
    stretch = -(-len(last_of_instant) // (MOST_MOMENTS // 2))
    kept: set[int] = set()
    for start in range(0, len(last_of_instant), stretch):
        part = last_of_instant[start : start + stretch]
        kept |= {max(part, key=levels.__getitem__), part[-1]}
    return kept

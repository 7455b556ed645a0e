"""Who held what at each moment, as short HTML for a hover; where requests did not fit."""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.trace.event import Event

GIB = 2**30
MOST = 6


def holders_over_time(events: Iterable[Event]) -> dict[str, dict[float, str]]:
    """By pool, then by time of each change: the largest holders, one a line."""
    held: dict[str, dict[str, list[int]]] = {}
    out: dict[str, dict[float, str]] = {}
    for event in events:
        if event.pool is None or event.kind not in ("alloc", "free") or event.bytes is None:
            continue
        row = held.setdefault(event.pool, {}).setdefault(event.name, [0, 0])
        sign = 1 if event.kind == "alloc" else -1
        row[0] += sign
        row[1] += sign * event.bytes
        out.setdefault(event.pool, {})[event.t] = _text(held[event.pool])
    return out


def _size(nbytes: int) -> str:
    return f"{nbytes / GIB:.1f} GiB" if nbytes >= GIB // 10 else f"{nbytes / 2**20:.1f} MiB"


def _text(held: dict[str, list[int]]) -> str:
    rows = sorted(((size, name, count) for name, (count, size) in held.items() if count > 0), reverse=True)
    lines = [f"{name} × {count}: {size / GIB:.2f} GiB" for size, name, count in rows[:MOST]]
    return "<br>".join(lines + ([f"and {len(rows) - MOST} more"] if len(rows) > MOST else []))


def ooms(events: Iterable[Event]) -> dict[str, list[tuple[float, str]]]:
    """By pool: (time, what was asked for) of every request that did not fit."""
    out: dict[str, list[tuple[float, str]]] = {}
    for event in events:
        if event.kind == "oom" and event.pool is not None:
            out.setdefault(event.pool, []).append((event.t, f"{event.name} needs {_size(event.bytes or 0)}"))
    return out

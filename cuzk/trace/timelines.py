"""Timelines of the stand-alone reference prover: one JSONL file a run.

A header with the run's settings and column names, one array of numbers a partition (milliseconds from the run's start; null
or -1: did not happen), and a last line of samples. Damaged lines are dropped and named; the rest is used.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import InputError
from cuzk.trace.event import Event

MAX_LINE_BYTES = 1 << 24


@dataclass(frozen=True)
class Partition:
    """One partition's times in seconds by column; what did not happen is missing."""

    times_s: dict[str, float]
    labels: dict[str, str]

    def get(self, column: str) -> float | None:
        return self.times_s.get(column)


@dataclass
class Timeline:
    """One run as its file has it."""

    path: str
    settings: dict[str, Any]
    partitions: list[Partition] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    """t_s, vram_used_bytes, pool_reserved_bytes, rss_bytes"""
    dropped: list[str] = field(default_factory=list)


def read_timeline(path: str | os.PathLike[str]) -> Timeline:
    """Raises InputError if the file is no timeline; lines that are damaged are dropped and named."""
    shown = os.fspath(path)
    with open(path, "rb") as file:
        header = _json(file.readline(MAX_LINE_BYTES))
        columns = header.get("part_cols") if isinstance(header, dict) else None
        if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
            raise InputError(f"{shown}:1: not a timeline: its first line must be an object with part_cols")
        out = Timeline(shown, {k: v for k, v in header.items() if k != "part_cols"})
        number = 1
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            data = _json(raw)
            if isinstance(data, list) and len(data) == len(columns):
                out.partitions.append(_partition(columns, data))
            elif isinstance(data, dict) and isinstance(data.get("samples"), list):
                out.samples = _samples(data, out, f"{shown}:{number}")
            elif raw.strip():
                out.dropped.append(f"{shown}:{number}: dropped: neither a partition's row nor samples")
    return out


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _partition(columns: list[str], row: list[Any]) -> Partition:
    times: dict[str, float] = {}
    labels: dict[str, str] = {}
    for column, value in zip(columns, row, strict=True):
        if isinstance(value, str):
            labels[column] = value
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            times[column] = float(value) if column in ("p", "set", "w") else value / 1000.0
    return Partition(times, labels)


def _samples(data: dict[str, Any], out: Timeline, where: str) -> list[dict[str, float]]:
    columns = data.get("sample_cols")
    names = {
        "t_ms": ("t_s", 1e-3),
        "vram_used_mib": ("vram_used_bytes", 2**20),
        "pool_reserved_mib": ("pool_reserved_bytes", 2**20),
        "rss_mib": ("rss_bytes", 2**20),
    }
    if not isinstance(columns, list):
        out.dropped.append(f"{where}: dropped: samples without their columns")
        return []
    rows: list[dict[str, float]] = []
    for row in data["samples"]:
        if isinstance(row, list) and len(row) == len(columns) and all(isinstance(v, (int, float)) for v in row):
            rows.append({names[c][0]: v * names[c][1] for c, v in zip(columns, row, strict=True) if c in names})
    return rows


STAGES = {
    "prep_msm": ("prep", "prep_t", "prep"),
    "ntt_msm_h": ("gpu", "ntt_t", "ntt_h_total"),
    "batch_add": ("gpu", "batch_add_t", "batch_add"),
    "tail_msm": ("gpu", "tail_t", "tail"),
    "b_g2_msm": ("b_g2", "b_g2_t", "b_g2"),
    "dealloc": ("dealloc", "dealloc_t", "dealloc"),
}
"""Step -> (lane, column of its end, column of its length)."""


def header_of(timeline: Timeline) -> dict[str, Any]:
    """The header of the trace that a timeline becomes."""
    return {"clock": "wall", "device": "supraseal", "source": os.path.basename(timeline.path), "settings": timeline.settings}


def events_of(timeline: Timeline) -> list[Event]:
    """Steps, waits for the mutex and for prep_msm, completions and samples, in order of time."""
    rows: list[tuple[float, int, Event]] = []
    for n, part in enumerate(timeline.partitions):
        number, worker = int(part.times_s.get("p", n)), int(part.times_s.get("w", 0))

        def put(t: float, order: int, kind: Any, name: str = "", lane: str = "", number: int = number) -> None:
            rows.append((t, order, Event(max(0.0, t), kind, name, lane, proof=number, partition=0)))

        put(part.times_s.get("ready", 0.0), -2, "admit")
        for name, (lane, end, length) in STAGES.items():
            stop, took = part.get(end), part.get(length)
            if stop is not None and took is not None:
                who = f"gpu:0.{worker}" if lane == "gpu" else f"{lane}:{number}"
                put(max(0.0, stop - took), 1, "begin", name, who)
                put(stop, 0, "end", name, who)
        for name, end, length in (("gpu_mutex", "lock_t", "mutex_wait"), ("prep", "barrier_t", "barrier_wait")):
            stop, took = part.get(end), part.get(length)
            if stop is not None and took:
                put(max(0.0, stop - took), 1, "wait", name, f"gpu:0.{worker}")
                put(stop, 0, "grant", name, f"gpu:0.{worker}")
        ended = part.get("fin1")
        if ended is not None and part.labels.get("proof", "same") == "same":
            put(ended, 2, "complete")
            rows.append((ended, 3, Event(ended, "complete", proof=number, partition=-1)))
        elif part.labels.get("proof") is not None:
            failed = part.get("start1") or 0.0
            rows.append((failed, 3, Event(failed, "fail", proof=number, reason=f"proof: {part.labels['proof']}")))
    for sample in timeline.samples:
        t = max(0.0, sample.get("t_s", 0.0))
        for pool, column in (("vram:0", "vram_used_bytes"), ("ram", "rss_bytes")):
            if column in sample:
                rows.append((t, 4, Event(t, "sample", pool=pool, resident=int(sample[column]))))
    return [event for _, _, event in sorted(rows, key=lambda row: (row[0], row[1]))]

"""The structured log of a daemon: times of partitions, loading of keys and matrices, its memory budget.

    2026-01-02T03:04:05.678901Z  INFO gpu_worker{worker_id=1}: … partition GPU prove complete job_id=a partition=3 gpu_ms=3117

The message is searched for, then pairs of key and value are read: nothing is counted in columns. Source: the daemon's log calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z")
_PAIR = re.compile(r"\b([a-z][a-z0-9_]*)=(\"[^\"]*\"|Some\(\d+\)|[^\s,}]+)")
_SPANS = (
    ("partition synthesis complete", "synth_ms", "SYNTH_START", "SYNTH_END"),
    ("partition GPU prove complete", "gpu_ms", "GPU_START", "GPU_END"),
)
_LOADS = (("SRS loaded successfully", "elapsed_ms", "load_srs"), ("PCE extraction complete", "extract_ms", "extract_pce"))
_DONE = "all partitions complete, proof assembled"

Row = tuple[float, str, str, int | None, str]


@dataclass
class Messages:
    rows: list[Row] = field(default_factory=list)
    """(seconds of the clock, event, job, partition, \"\"), as TIMELINE lines would give them."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """load_srs, extract_pce: how long each took."""
    budget_gib: int | None = None
    proofs: int = 0
    """Proofs that were assembled."""

    def read(self, line: str) -> bool:
        """Whether the line was one of these, and all of it is read."""
        stamp = _TIME.search(line)
        if stamp is None:
            return False
        pairs = {key: value.strip('"').removeprefix("Some(").rstrip(")") for key, value in _PAIR.findall(line)}
        for message, key, begin, end in _SPANS:
            taken = _number(pairs.get(key))
            if message in line and taken is not None and pairs.get("job_id"):
                t = datetime.fromisoformat(stamp[1]).timestamp()
                partition = _number(pairs.get("partition"))
                where = (pairs["job_id"], None if partition is None else int(partition), "")
                self.rows += [(t - taken / 1000.0, begin, *where), (t, end, *where)]
                return True
        for message, key, name in _LOADS:
            taken = _number(pairs.get(key))
            if message in line and taken is not None:
                self.seconds.setdefault(name, []).append(taken / 1000.0)
                return True
        if "memory budget initialized" in line and (budget := _number(pairs.get("total_budget_gib"))) is not None:
            self.budget_gib = int(budget)
            return True
        if _DONE in line:
            self.proofs += 1
            return True
        return False

    def moments(self) -> list[Row]:
        """In order of time, the first at 0."""
        rows = sorted(self.rows, key=lambda row: row[0])
        zero = rows[0][0] if rows else 0.0
        return [(t - zero, *rest) for t, *rest in rows]  # type: ignore[misc]


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,12}(\.\d+)?", text) else None

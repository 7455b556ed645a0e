"""The log of a running daemon of the reference system: what its `CUZK_TIMING` and `TIMELINE` lines say.

    CUZK_TIMING: prep_msm_ms=1909
    CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=690 barrier_wait_ms=1100 batch_add_ms=650 tail_msm_ms=83 gpu_total_ms=2643
    TIMELINE,48211,GPU_START,7f3a,partition=4

Lines come from many threads: in any order, with other text around them, several run together or cut anywhere. What cannot be
read is counted and dropped; nothing is guessed.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import InputError
from cuzk.trace.daemon_messages import ANSI, Messages
from cuzk.trace.event import Event

TIMINGS = frozenset((
    "split_vectors_ms", "setup_to_split_ms", "prep_msm_ms", "b_g2_msm_ms", "pre_lock_cpu_ms", "mutex_wait_ms", "ntt_msm_h_ms",
    "barrier_wait_ms", "batch_add_ms", "tail_msm_ms", "gpu_total_ms", "mutex_held_ms", "total_start_fn_ms", "async_dealloc_ms",
    "prestage_setup_ms",
))  # fmt: skip
STEPS_OF = {
    "prep_msm": "prep_msm", "b_g2_msm": "b_g2_msm", "ntt_msm_h": "ntt_msm_h", "batch_add": "batch_add", "tail_msm": "tail_msm",
    "async_dealloc": "dealloc_native", "prestage_setup": "prestage_setup",
}  # fmt: skip
"""Name in the log -> step of the pipeline, or what `cuzk compare` makes of several."""
TAGS = frozenset(("num_circuits", "gpu_tid"))
EVENTS = ("SYNTH_START", "SYNTH_END", "CHAN_SEND", "GPU_QUEUE", "GPU_PICKUP", "GPU_START", "GPU_END")
MAX_LINE_BYTES = 1 << 20
LONGEST_S = 24 * 3600.0
"""A step that took longer is a misread number."""

_MARK = re.compile(r"CUZK_TIMING|TIMELINE,")
_PAIR = re.compile(r"\b([a-z][a-z0-9_]*)\s*[=:]\s*(-?\d+(?:\.\d+)?)(?![\w.])")
_LINE = re.compile(r"TIMELINE,\s*(-?\d+(?:\.\d+)?)\s*,\s*([A-Z_]+)\s*,\s*([^,\r\n]*?)\s*(?:,\s*([^\r\n]*))?(?:[\r\n]|$)")
_NUMBER = re.compile(r"\b(?:partition|part|p|slot|circuit)\w*\s*[=:#]?\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """One TIMELINE line."""

    t_s: float
    event: str
    job: str
    partition: int | None
    detail: str = ""


@dataclass
class DaemonLog:
    """All that could be read."""

    path: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """CUZK_TIMING values by name without `_ms`, in seconds."""
    moments: list[Moment] = field(default_factory=list)
    """TIMELINE lines in order of time."""
    lines: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """The lines that were not used, and how often."""
    messages: Messages = field(default_factory=Messages)
    """The structured log beside them."""

    def add(self, name: str, value_ms: float) -> None:
        seconds = value_ms / 1000.0
        if not math.isfinite(seconds) or seconds < 0 or seconds > LONGEST_S:
            self.dropped["time that cannot be (negative or longer than a day)"] += 1
        else:
            self.seconds.setdefault(name.removesuffix("_ms"), []).append(seconds)


def read_log(path: str | os.PathLike[str]) -> DaemonLog:
    """Raises InputError if no line of the file is usable, OSError if it cannot be read."""
    out = DaemonLog(os.fspath(path))
    with open(path, "rb") as file:
        while raw := file.readline(MAX_LINE_BYTES):
            out.lines += 1
            cut = not raw.endswith(b"\n")
            text = ANSI.sub("", raw.decode("utf-8", "replace"))
            if not cut and out.messages.read(text):
                continue
            marks = [m.start() for m in _MARK.finditer(text)]
            if not marks:
                out.dropped["line of something else"] += bool(text.strip())
                continue
            for begin, end in zip(marks, [*marks[1:], len(text)], strict=True):
                _piece(text[begin:end], cut and end == len(text), out)
    if not out.moments:
        out.moments = [Moment(*row) for row in out.messages.moments()]
    if not out.seconds and not out.moments:
        raise InputError(f"{out.path}: no usable CUZK_TIMING or TIMELINE line in {out.lines} lines")
    out.moments.sort(key=lambda m: m.t_s)
    return out


def _piece(text: str, cut: bool, out: DaemonLog) -> None:
    """One record, from its mark to the next one. `cut`: the file ends in it, so its last number may lack digits."""
    if text.startswith("TIMELINE"):
        found = _LINE.match(text)
        if found is None or found[2] not in EVENTS or cut:
            out.dropped["TIMELINE record that is cut or unknown"] += 1
        elif float(found[1]) < 0:
            out.dropped["time that cannot be (negative or longer than a day)"] += 1
        else:
            detail = (found[4] or "").strip()
            number = _NUMBER.search(detail)
            partition = int(number[1]) if number else int(detail) if detail.isdigit() else None
            out.moments.append(Moment(float(found[1]) / 1000.0, found[2], found[3], partition, detail))
        return
    pairs = [(m[1], float(m[2])) for m in _PAIR.finditer(text)]
    if cut and pairs and text.rstrip()[-1:].isdigit():
        pairs = pairs[:-1]
    known = [(name, value) for name, value in pairs if name in TIMINGS]
    if not known:
        out.dropped["CUZK_TIMING record that is cut or unknown"] += 1
    out.dropped["name that is not known"] += sum(name not in TIMINGS and name not in TAGS for name, _ in pairs)
    circuits = next((value for name, value in pairs if name == "num_circuits" and value >= 1), 1.0)
    for name, value in known:
        out.add(name, value / circuits if name == "b_g2_msm_ms" else value)


def intervals(moments: Iterable[Moment], begin: str, end: str) -> list[tuple[str, int | None, float, float]]:
    """(job, partition, start, end) of what both lines are there for, each begin with the next end of its job and partition."""
    open_at: dict[tuple[str, int | None], float] = {}
    out: list[tuple[str, int | None, float, float]] = []
    for moment in moments:
        key = (moment.job, moment.partition)
        if moment.event == begin:
            open_at[key] = moment.t_s
        elif moment.event == end and key in open_at:
            out.append((*key, open_at.pop(key), moment.t_s))
    return out


def mean_overlap(spans: list[tuple[str, int | None, float, float]]) -> float:
    """The number of spans that run at once, seen from inside one of them."""
    if not spans:
        return 1.0
    total = inside = 0.0
    for _, _, start, end in spans:
        total += end - start
        inside += sum(max(0.0, min(end, e) - max(start, s)) for _, _, s, e in spans)
    return inside / total if total > 0 else 1.0


def events_of(log: DaemonLog) -> list[Event]:
    """The TIMELINE as a trace: synthesis on a lane for each partition, GPU calls, hand-over."""
    if not log.moments:
        return []
    zero = log.moments[0].t_s
    jobs = {job: n for n, job in enumerate(dict.fromkeys(m.job for m in log.moments))}
    rows: list[tuple[float, int, Event]] = []

    def put(t: float, order: int, kind: Any, name: str, worker: str, job: str, partition: int | None) -> None:
        rows.append((t, order, Event(t - zero, kind, name, worker, proof=jobs[job], partition=partition)))

    kinds = (("synthesis", "synthesis", "SYNTH_START", "SYNTH_END"), ("gpu_call", "gpu", "GPU_START", "GPU_END"))
    for name, worker, begin, end in kinds:
        for lane, (job, partition, start, stop) in _lanes(intervals(log.moments, begin, end)):
            put(start, 1, "begin", name, f"{worker}:{lane}", job, partition)
            put(stop, 0, "end", name, f"{worker}:{lane}", job, partition)
            if name == "gpu_call":
                put(stop, 0, "complete", "", f"{worker}:{lane}", job, partition)
    for job, first, last in _proofs(log.moments):
        put(first, -1, "admit", "", "", job, None)
        if last is not None:
            put(last, 2, "complete", "", "", job, -1)
    return [event for _, _, event in sorted(rows, key=lambda row: (row[0], row[1]))]


def _proofs(moments: list[Moment]) -> list[tuple[str, float, float | None]]:
    """(job, first moment, when its last partition came off a GPU or None if one of them never did)."""
    first: dict[str, float] = {}
    begun: dict[str, set[int | None]] = {}
    ended: dict[str, dict[int | None, float]] = {}
    for moment in moments:
        first.setdefault(moment.job, moment.t_s)
        if moment.event == "GPU_END":
            ended.setdefault(moment.job, {})[moment.partition] = moment.t_s
        elif moment.event in ("SYNTH_START", "GPU_START"):
            begun.setdefault(moment.job, set()).add(moment.partition)
    return [
        (job, t, max(ended[job].values()) if ended.get(job) and begun.get(job, set()) <= ended[job].keys() else None)
        for job, t in first.items()
    ]


def step_seconds(log: DaemonLog) -> dict[str, list[float]]:
    """The times of CUZK_TIMING under the names of the pipeline's steps, for the header of a trace: they have no place in time."""
    found = {step: log.seconds[name] for name, step in STEPS_OF.items() if log.seconds.get(name)}
    return {step: [round(t, 6) for t in times] for step, times in found.items()}


def _lanes(spans: list[tuple[str, int | None, float, float]]) -> list[tuple[int, tuple[str, int | None, float, float]]]:
    """Each span with the lowest lane that is free when it starts."""
    busy_until: list[float] = []
    out = []
    for span in sorted(spans, key=lambda s: s[2]):
        lane = next((i for i, t in enumerate(busy_until) if t <= span[2]), len(busy_until))
        busy_until[lane : lane + 1] = [span[3]]
        out.append((lane, span))
    return out

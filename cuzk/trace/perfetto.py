"""Export to the Chrome trace format, which ui.perfetto.dev and chrome://tracing open.

One process for the host and one for each GPU; a track for each worker, and for each of its streams; a counter for each pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cuzk.trace.curves import LEVELS
from cuzk.trace.event import Event
from cuzk.trace.spans import Span, spans

GIB = 1 << 30
HOST_PID = 1
_INSTANTS = ("admit", "complete", "oom", "fail", "unwind", "trim", "dealloc", "restart")


def perfetto(header: dict[str, Any], events: Iterable[Event]) -> dict[str, Any]:
    """The document to write as JSON. Times in microseconds."""
    events = list(events)
    gpu_of = {(e.worker, e.stream): e.gpu for e in events if e.kind == "begin" and e.gpu is not None}
    tracks: dict[tuple[int, str], int] = {}
    out: list[dict[str, Any]] = []

    def track(worker: str, stream: str | None) -> tuple[int, int]:
        on_gpu = stream is not None or worker.startswith("gpu")
        pid = HOST_PID + 1 + (gpu_of.get((worker, stream)) or 0) if on_gpu else HOST_PID
        lane = worker if stream is None else f"{worker} · {stream}"
        key = (pid, lane)
        if key not in tracks:
            tracks[key] = len(tracks) + 1
            out.append(_meta("thread_name", pid, tracks[key], lane))
        return pid, tracks[key]

    for span in spans(events, waits=True):
        pid, tid = track(span.worker, span.stream)
        out.append(_slice(span, pid, tid))
    for event in events:
        if event.kind in _INSTANTS:
            pid, tid = track(event.worker or "run", event.stream)
            scope = "g" if event.kind in ("oom", "fail", "restart") else "t"
            out.append({"ph": "i", "s": scope, "name": f"{event.kind} {event.name}".strip(), "cat": event.kind,
                        "ts": event.t * 1e6, "pid": pid, "tid": tid, "args": event.to_json()})  # fmt: skip
        if event.pool is not None and event.kind != "oom":
            levels = {name: getattr(event, name) / GIB for name in LEVELS if getattr(event, name) is not None}
            for name, value in levels.items():
                out.append({"ph": "C", "name": f"{event.pool} {name}, GiB", "pid": HOST_PID, "ts": event.t * 1e6,
                            "args": {name: value}})  # fmt: skip
    for pid in sorted({pid for pid, _ in tracks} | {HOST_PID}):
        out.append(_meta("process_name", pid, 0, "host" if pid == HOST_PID else f"gpu {pid - HOST_PID - 1}"))
    return {"traceEvents": out, "displayTimeUnit": "ms", "otherData": {k: str(v) for k, v in header.items()}}


def _meta(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(span: Span, pid: int, tid: int) -> dict[str, Any]:
    label = span.name if span.kind == "run" else f"wait {span.name}"
    args: dict[str, Any] = {}
    if span.proof is not None:
        args = {"proof": span.proof, "partition": span.partition}
    if span.bytes is not None:
        args["bytes"] = span.bytes
    return {"ph": "X", "name": label, "cat": span.kind, "ts": span.start * 1e6, "dur": span.seconds * 1e6, "pid": pid,
            "tid": tid, "args": args}  # fmt: skip

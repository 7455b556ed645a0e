"""A pipeline as a person reads it: each worker's numbered lines, with sizes, pools and processors."""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.model.units import fmt_gib
from cuzk.pipeline import ops
from cuzk.pipeline.program import Program


def pipeline_text(program: Program) -> str:
    """The text that `cuzk show` prints."""
    pipeline = program.pipeline
    lines = [f"{pipeline.name} on {program.scenario.machine.name}, circuit {program.scenario.circuit.name}"]
    shared = [f"{name} ({spec.per}, {spec.order})" for name, spec in pipeline.locks.items()]
    shared += [f"{name} ({spec.count} units, {spec.order})" for name, spec in pipeline.permits.items()]
    shared += [f"{name} (capacity {spec.capacity or 'unbounded'})" for name, spec in pipeline.channels.items()]
    lines += ["locks, permits, channels: " + ", ".join(shared)]
    lines += [f"resident: {r.buffer} {fmt_gib(r.nbytes)} in {r.pool}" for r in program.residents]
    for name in pipeline.workers:
        lines += ["", f"{name} ({_how_many(program, name)})"]
        lines += _numbered(program, program.code(name, program.scenario.circuit.name), "")
    return "\n".join(lines)


def _how_many(program: Program, name: str) -> str:
    worker = program.pipeline.workers[name]
    if worker.start == "pool":
        return f"{program.worker_count(name)} per {'GPU' if worker.per == 'gpu' else 'host'}"
    limit = f", at most {worker.limit} at once" if worker.limit else ""
    starts = {"partition": "a task for each partition", "proof": "a task for each proof", "spawned": "spawned"}
    return starts[worker.start] + limit


def _numbered(program: Program, code: Iterable[ops.Op], indent: str) -> list[str]:
    lines: list[str] = []
    line = _Line(program)
    for number, op in enumerate(code, 1):
        verb, what, where = line.visit(op)
        lines.append(f"{indent}{number:>3}  {verb:<11} {what:<42} {where}".rstrip())
        if isinstance(op, ops.TryAlloc):
            for title, arm in (("then", op.then), ("else", op.otherwise)):
                lines.append(f"{indent}     {title}:")
                lines += _numbered(program, arm, indent + "      ")
    return lines


Text = tuple[str, str, str]
"""Verb, what, where."""


class _Line(ops.Visitor[Text]):
    """One step as words. Pools and locks are named as the pipeline names them, for every GPU alike."""

    def __init__(self, program: Program) -> None:
        self.pipeline = program.pipeline

    def _sized(self, wants: Iterable[ops.Want]) -> str:
        return ", ".join(f"{want.buffer} {fmt_gib(want.nbytes)}" for want in wants)

    def _pools(self, wants: Iterable[ops.Want]) -> str:
        return ", ".join(dict.fromkeys(self.pipeline.buffers[want.buffer].pool for want in wants))

    def get(self, op: ops.Get) -> Text:
        return "get", op.channel, ""

    def put(self, op: ops.Put) -> Text:
        return "put", op.channel, ""

    def acquire(self, op: ops.Acquire) -> Text:
        return "acquire", op.name + (f" × {op.units:,}" if op.units != 1 else ""), ""

    def release(self, op: ops.Release) -> Text:
        return "release", op.name, ""

    def alloc(self, op: ops.Alloc) -> Text:
        return "alloc", self._sized(op.wants), self._pools(op.wants)

    def try_alloc(self, op: ops.TryAlloc) -> Text:
        return "try_alloc", f"{self._sized(op.wants)}, guard {fmt_gib(op.guard)}", self._pools(op.wants)

    def free(self, op: ops.Free) -> Text:
        return "free", ", ".join(op.buffers) + (f" after {op.after}" if op.after else ""), ""

    def trim(self, op: ops.Trim) -> Text:
        return "trim", op.pool.replace(":0", ":$gpu"), ""

    def run(self, op: ops.Run) -> Text:
        law = f" (cost {op.law})" if op.law != op.name else ""
        waits = "" if op.stream is None else f", stream {op.stream}"
        reads = "".join(f", reads {read.resident} {fmt_gib(read.nbytes)}" for read in op.reads)
        return "run", op.name + law, f"{op.at}{waits}{reads}"

    def copy(self, op: ops.Copy) -> Text:
        waits = "blocking" if op.stream is None else f"stream {op.stream}"
        return "copy", f"{op.target} from {', '.join(op.source)}", f"{op.direction}, {waits}"

    def record(self, op: ops.Record) -> Text:
        return "record", op.event, f"stream {op.stream}"

    def wait(self, op: ops.Wait) -> Text:
        return "wait", op.event, ""

    def stream_wait(self, op: ops.StreamWait) -> Text:
        return "stream_wait", op.event, f"stream {op.stream}"

    def spawn(self, op: ops.Spawn) -> Text:
        return "spawn", op.worker + (f" as {op.handle}" if op.handle else ""), "takes the set along" if op.moves else ""

    def join(self, op: ops.Join) -> Text:
        return "join", op.handle, ""

    def complete(self, op: ops.Complete) -> Text:
        return "complete", "the partition", ""

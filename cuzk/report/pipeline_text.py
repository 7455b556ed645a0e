"""A pipeline as a person reads it: each worker's numbered lines, with sizes and pools."""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.model.units import fmt_gib
from cuzk.pipeline.plan import Plan
from cuzk.pipeline.steps import (
    HOST,
    Acquire,
    Alloc,
    Complete,
    Copy,
    Free,
    Record,
    Run,
    Spawn,
    StepBase,
    StreamWait,
    TryAlloc,
    Worker,
)


def pipeline_text(plan: Plan) -> str:
    """The text that `cuzk show` prints."""
    lines = [f"{plan.pipeline.name} on {plan.scenario.machine.name}, circuit {plan.scenario.circuit.name}"]
    shared = [f"{name} ({spec.per}, {spec.order})" for name, spec in plan.pipeline.locks.items()]
    shared += [f"{name} ({spec.count} units, {spec.order})" for name, spec in plan.pipeline.permits.items()]
    shared += [f"{name} (capacity {spec.capacity or 'unbounded'})" for name, spec in plan.pipeline.channels.items()]
    lines += ["locks, permits, channels: " + ", ".join(shared)]
    for buffer, pool, nbytes in plan.residents():
        lines.append(f"resident: {buffer} {fmt_gib(nbytes)} in {pool}")
    for name, worker in plan.pipeline.workers.items():
        lines += ["", f"{name} ({_how_many(plan, name, worker)})"]
        lines += _numbered(plan, worker.steps, "")
    return "\n".join(lines)


def _how_many(plan: Plan, name: str, worker: Worker) -> str:
    if worker.start == "pool":
        return f"{plan.worker_count(name)} per {'GPU' if worker.per == 'gpu' else 'host'}"
    limit = f", at most {worker.limit} at once" if worker.limit else ""
    return {"partition": "a task for each partition", "proof": "a task for each proof", "spawned": "spawned"}[
        worker.start
    ] + limit


def _numbered(plan: Plan, steps: Iterable[StepBase], indent: str) -> list[str]:
    lines: list[str] = []
    for number, step in enumerate(steps, 1):
        what, where = _line(plan, step)
        lines.append(f"{indent}{number:>3}  {step.verb:<11} {what:<42} {where}".rstrip())
        if isinstance(step, TryAlloc):
            for title, arm in (("then", step.then), ("else", step.otherwise)):
                lines.append(f"{indent}     {title}:")
                lines += _numbered(plan, arm, indent + "      ")
    return lines


def _sized(plan: Plan, names: Iterable[str]) -> str:
    circuit = plan.scenario.circuit
    return ", ".join(f"{name} {fmt_gib(plan.size(name, circuit))}" for name in names)


def _pools(plan: Plan, names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(plan.pipeline.buffers[name].pool for name in names))


def _line(plan: Plan, step: StepBase) -> tuple[str, str]:
    match step:
        case Alloc(alloc=names):
            return _sized(plan, names), _pools(plan, names)
        case TryAlloc(try_alloc=names, guard=guard):
            return f"{_sized(plan, names)}, guard {fmt_gib(guard)}", _pools(plan, names)
        case Free(free=names, after=event):
            return ", ".join(names) + (f" after {event}" if event else ""), ""
        case Run(run=name, on=on, cost=cost):
            return name + (f" (cost {cost})" if cost else ""), "cpu" if on == HOST else f"stream {on}"
        case Copy(copy_=device, source=sources, on=on, direction=direction):
            return f"{device} from {', '.join(sources)}", f"{direction}, " + ("blocking" if on == HOST else f"stream {on}")
        case Record(record=event, on=on) | StreamWait(stream_wait=event, on=on):
            return event, f"stream {on}"
        case Spawn(spawn=worker, handle=handle, moves=moves):
            return worker + (f" as {handle}" if handle else ""), "takes the set along" if moves else ""
        case Acquire(acquire=name, n=n):
            return name + (f" × {n}" if n else ""), ""
        case Complete():
            return "the partition", ""
    return str(getattr(step, step.verb)), ""

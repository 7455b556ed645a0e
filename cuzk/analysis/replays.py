"""The simulator with the step times of a trace: what of an error is the scheduling model's, and what the cost laws'."""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.errors import InputError
from cuzk.model.scenario import Scenario
from cuzk.pipeline import ops
from cuzk.pipeline.program import bind, every_op
from cuzk.sim.options import Durations, Options
from cuzk.sim.result import SimResult
from cuzk.sim.run import run_program
from cuzk.trace.event import Event
from cuzk.trace.spans import spans


def durations_of(events: Iterable[Event]) -> Durations:
    """(proof, partition, step) -> seconds of each of its runs, in order of their beginnings."""
    found: Durations = {}
    for span in sorted(spans(events), key=lambda span: span.start):
        if span.proof is not None and span.partition is not None:
            found.setdefault((span.proof, span.partition, span.name), []).append(span.seconds)
    return found


def replay(scenario: Scenario, events: Iterable[Event], *, trace: bool = False) -> SimResult:
    """Run `scenario` with the measured durations in `events`; steps that were not measured take their cost law.

    Measured times contain whatever slowed the step, so nothing slows it again. Raises InputError if no step of the
    scenario's pipeline is in the trace.
    """
    durations = durations_of(events)
    program = bind(scenario)
    runs = [op for worker in program.pipeline.workers for op in every_op(program.code(worker, scenario.circuit.name))]
    steps = {op.law for op in runs if isinstance(op, (ops.Run, ops.Copy))} | {op.name for op in runs if isinstance(op, ops.Run)}
    if not any(name in steps for _, _, name in durations):
        raise InputError("the trace has no step of this pipeline: nothing to replay")
    return run_program(program, None, Options(trace=trace, durations=durations))

"""Steps that take time, compiled: on the host, on the device, on a stream, and while pages become resident."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.pipeline import ops
from cuzk.sim.actors import Actor, SetFailed, SimOp, SimSet
from cuzk.sim.rates import Cost, Ramp

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine

Seconds = Callable[[Any], float]
"""Seconds of work for a set."""


def compile_work(engine: Engine, op: ops.Run | ops.Copy, gpu: int) -> list[SimOp]:
    """The closures of a `run` or `copy`."""
    cost = engine.costs.of(op, gpu)
    seconds = _seconds(engine, cost, op.name if isinstance(op, ops.Run) else op.law)
    if op.stream is not None:
        return [_on_stream(engine, op, cost, seconds, op.stream)]
    touches = op.touches if isinstance(op, ops.Run) else ()
    if touches:
        work = _touching(engine, cost, seconds, {want.buffer: want.nbytes for want in touches})
    elif cost.device is not None:
        work = _on_device(engine, cost, seconds, cost.device)
    else:
        work = _on_host(engine, cost, seconds)
    strike = [_may_fail(engine, op)] if engine.options.faults is not None and isinstance(op, ops.Run) else []
    if not engine.traced:
        return [*work, *strike]
    step = engine.core.journal.step

    def begin(actor: Actor) -> bool:
        step("begin", op, actor.pset, actor.name)
        return True

    def end(actor: Actor) -> bool:
        step("end", op, actor.pset, actor.name)
        return True

    return [begin, *work, end, *strike]


def _may_fail(engine: Engine, op: ops.Run) -> SimOp:
    """A step that is done may have failed, where faults are planted."""

    def run(actor: Actor) -> bool:
        error = engine.planted(actor.pset, op)
        if error is None:
            return True
        engine.core.fail_proof(actor.pset.run, error)
        raise SetFailed

    return run


def _seconds(engine: Engine, cost: Cost, name: str) -> Seconds:
    base = cost.seconds
    durations = engine.durations
    if durations is not None:

        def measured(pset: SimSet) -> float:
            runs = durations.get((pset.proof, pset.partition, name))
            return runs.pop(0) if runs else base

        return measured
    if cost.jitter is None:
        return lambda pset: base
    place = cost.jitter
    return lambda pset: base * float(pset.spread[place])


def _on_stream(engine: Engine, op: ops.Run | ops.Copy, cost: Cost, seconds: Seconds, stream: str) -> SimOp:
    devices = engine.devices

    def run(actor: Actor) -> bool:
        pset = actor.pset
        devices.queue_work(devices.stream_of(actor, stream), cost, op, pset, seconds(pset))
        return True

    return run


def _on_device(engine: Engine, cost: Cost, seconds: Seconds, device: int) -> list[SimOp]:
    devices, rates = engine.devices, engine.rates

    def run(actor: Actor) -> bool:
        actor.started_v = devices.device_begin(device)
        actor.at_end = done
        rates.start(cost, seconds(actor.pset), actor)
        return False

    def done(actor: Actor) -> bool:
        actor.at_end = None
        devices.device_done(device, int(actor.started_v))
        return True

    return [run, done]


def _on_host(engine: Engine, cost: Cost, seconds: Seconds) -> list[SimOp]:
    rates, base = engine.rates, cost.seconds
    if cost.jitter is None and engine.durations is None:  # the same time each time

        def fixed(actor: Actor) -> bool:
            rates.start(cost, base, actor)
            return False

        return [fixed] if base > 0.0 else []

    def run(actor: Actor) -> bool:
        rates.start(cost, seconds(actor.pset), actor)
        return False

    return [run]


def _touching(engine: Engine, cost: Cost, seconds: Seconds, sizes: dict[str, int]) -> list[SimOp]:
    """Work during which the pages of some buffers become resident, evenly."""
    rates, books, ledger = engine.rates, engine.core.books, engine.ledger
    all_names, traced = frozenset(sizes), engine.traced

    def ramp_of(some: dict[str, int]) -> Ramp:
        ramp, new = engine.costs.ramp(some, cost.cls)
        if new:
            ledger.ramps.append(ramp)
        return ramp

    whole = ramp_of(sizes)

    def run(actor: Actor) -> bool:
        pset = actor.pset
        work_s = actor.work_s = max(seconds(pset), 1e-9)
        v = actor.started_v = cost.cls.at(rates.now)
        untouched = pset.untouched  # without some: they are not allocated, or touched before
        ramp = whole if all_names <= untouched else ramp_of({n: size for n, size in sizes.items() if n in untouched})
        actor.ramp = ramp
        actor.at_end = done
        ramp.start(work_s, v)
        if traced:
            ledger.sample()
        rates.start(cost, work_s, actor)
        return False

    def done(actor: Actor) -> bool:
        actor.at_end = None
        pset, ramp = actor.pset, actor.ramp
        for name in ramp.sizes:
            books.touched(pset, name)
        ramp.stop(actor.work_s, actor.started_v)
        if traced:
            ledger.sample()
        return True

    return [run, done]

"""Steps that take time, compiled: on the host, on the device, on a stream, and while pages become resident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuzk.pipeline import steps as s
from cuzk.sim.actors import Actor, Op
from cuzk.sim.costs import Costs
from cuzk.sim.rates import Cost

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine
    from cuzk.sim.programs import Programs

DEALLOC = "dealloc_"
"""Steps of this name end a deallocation path at the free behind them."""


class WorkCompiler:
    """The part of the compiler that turns `run` and `copy` into closures."""

    engine: Engine
    programs: Programs
    costs: Costs
    circuit: str
    gpu: int
    ops: list[Op]
    freeing: str | None

    def _want(self, name: str) -> tuple[str, str, int, bool, bool]:
        spec = self.programs.plan.pipeline.buffers[name]
        pool = spec.pool.replace("$gpu", str(self.gpu))
        lazy = spec.touched_by is not None and pool == "ram"
        return name, pool, self.costs.size(name, self.circuit, self.gpu), spec.allocator == "cached", lazy

    def _run(self, step: s.Run, at: object) -> None:
        cost = self.costs.cost(step.run, step.law, self.circuit, self.gpu)
        self._work(cost, step.on, step.run)
        self.freeing = step.run.removeprefix(DEALLOC) if step.run.startswith(DEALLOC) else None

    def _copy(self, step: s.Copy, at: object) -> None:
        nbytes = sum(self.costs.size(name, self.circuit, self.gpu) for name in step.source)
        cost = self.costs.copy_cost("copy", step.law, step.direction, nbytes, self.circuit, self.gpu)
        self._work(cost, step.on, step.law)

    def _seconds(self, cost: Cost, name: str) -> Any:
        """A function of the token: seconds of work."""
        base = cost.seconds
        durations = self.engine.durations
        if durations is not None:

            def measured(token: Any) -> float:
                runs = durations.get((token.proof, token.partition, name))
                return runs.pop(0) if runs else base

            return measured
        if cost.jitter is None:
            return lambda token: base
        place = cost.jitter
        return lambda token: base * token.spread[place]

    def _fixed(self, cost: Cost) -> bool:
        """Whether the step takes the same time each time."""
        return cost.jitter is None and self.engine.durations is None

    def _work(self, cost: Cost, on: str, name: str) -> None:
        engine, rates = self.engine, self.engine.rates
        seconds = self._seconds(cost, name)
        if on != s.HOST:
            devices = engine.devices

            def on_stream(actor: Actor) -> bool:
                token = actor.token
                devices.queue_work(devices.stream_of(actor, on), cost, name, token, seconds(token))
                return True

            self.ops.append(on_stream)
            return
        touched = [n for n in self.programs.touched_by.get(name, ()) if self._want(n)[4]]
        traced, device = engine.events is not None, cost.device
        if traced:
            self.ops.append(lambda actor: engine.event("begin", actor, name) or True)
        if touched:
            self._touching_work(cost, seconds, touched)
        elif device is not None:

            def on_device(actor: Actor) -> bool:
                actor.started_v = engine.devices.device_begin(device)
                actor.at_end = done
                rates.start(cost, seconds(actor.token), actor)
                return False

            def done(actor: Actor) -> bool:
                actor.at_end = None
                engine.devices.device_done(device, int(actor.started_v))
                return True

            self.ops += [on_device, done]
        elif self._fixed(cost):
            base = cost.seconds

            def run_fixed(actor: Actor) -> bool:
                rates.start(cost, base, actor)
                return False

            if base > 0.0:
                self.ops.append(run_fixed)
        else:

            def run(actor: Actor) -> bool:
                rates.start(cost, seconds(actor.token), actor)
                return False

            self.ops.append(run)
        if traced:
            self.ops.append(lambda actor: engine.event("end", actor, name) or True)

    def _touching_work(self, cost: Cost, seconds: Any, names: list[str]) -> None:
        """Work during which the pages of some buffers become resident, evenly."""
        engine, rates, arbiter = self.engine, self.engine.rates, self.engine.arbiter
        costs = self.costs
        sizes = {name: costs.size(name, self.circuit, self.gpu) for name in names}
        whole, all_names = costs.ramp(sizes, cost.cls), frozenset(names)
        ledger, traced = engine.ledger, engine.events is not None

        def run(actor: Actor) -> bool:
            token = actor.token
            work_s = actor.work_s = max(seconds(token), 1e-9)
            v = actor.started_v = cost.cls.at(rates.now)
            if all_names <= token.untouched:
                ramp = whole
            else:  # some are not allocated, or touched before
                ramp = costs.ramp({n: size for n, size in sizes.items() if n in token.untouched}, cost.cls)
            actor.ramp = ramp
            actor.at_end = done
            ramp.start(work_s, v)
            if traced:
                ledger.sample()
            rates.start(cost, work_s, actor)
            return False

        def done(actor: Actor) -> bool:
            actor.at_end = None
            token, ramp = actor.token, actor.ramp
            for name in ramp.sizes:
                arbiter.touched(token, name)
            ramp.stop(actor.work_s, actor.started_v)
            if traced:
                ledger.sample()
            return True

        self.ops += [run, done]

"""Step lists compiled for the simulator: one closure a step, for each (worker, circuit, GPU).

Everything that a formula says is evaluated here, once; a running step touches no model.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from cuzk.model.calibration import CostLaw
from cuzk.pipeline import steps as s
from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, Handle, Op
from cuzk.sim.rates import Cost, Group, Ramp, SlowdownClass

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine

DEALLOC = "dealloc_"


class Programs:
    """The compiled workers of one run, made when first needed."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.plan = engine, engine.plan
        self.calibration = engine.calibration
        self._programs: dict[tuple[str, str, int], list[Op]] = {}
        self._names: dict[tuple[str, int], dict[str, Any]] = {}
        self._classes: dict[tuple[str, float], SlowdownClass] = {}
        self._ramps: dict[Any, Ramp] = {}
        self.groups: dict[str, Group] = {"cores": engine.cores}
        laws = self.calibration.costs
        jittered = sorted(name for name, law in laws.items() if law.jitter or law.group_jitter)
        self._place = {name: index for index, name in enumerate(jittered)}
        self.spread = tuple((laws[name].jitter, laws[name].group_jitter) for name in jittered)
        self._locks = {
            instance for name, lock in self.plan.pipeline.locks.items()
            for instance in ([f"{name}:{gpu}" for gpu in range(self.plan.gpus)] if lock.per == "gpu" else [name])
        }  # fmt: skip
        self._device_buffers: set[tuple[str, int]] = set()
        touched = [(b, spec.touched_by) for b, spec in self.plan.pipeline.buffers.items() if spec.touched_by]
        self._touched_by = {step: [b for b, by in touched if by == step] for _, step in touched}

    def is_lock(self, instance: str | None) -> bool:
        return instance in self._locks

    def of(self, worker: str, circuit: str, gpu: int) -> list[Op]:
        key = (worker, circuit, gpu)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = []
            program += _Compiler(self, worker, circuit, gpu).program()
        return program

    # ------------------------------------------------------------------ numbers

    def names(self, circuit: str, gpu: int) -> dict[str, Any]:
        key = (circuit, gpu)
        if key not in self._names:
            plan = self.plan
            self._names[key] = plan.names(plan.circuits[circuit], gpu) | self.calibration.parameters
        return self._names[key]

    def size(self, buffer: str, circuit: str, gpu: int) -> int:
        return self.plan.pipeline.buffers[buffer].size.size(self.names(circuit, gpu))

    def cls(self, group: str, capacity: float, exponent: float, m: float) -> SlowdownClass:
        key = (group, m)
        if key not in self._classes:
            if group not in self.groups:
                self.groups[group] = Group(group, capacity, exponent)
            self._classes[key] = SlowdownClass(self.groups[group], m)
        return self._classes[key]

    def ramp(self, sizes: dict[str, int], cls: SlowdownClass) -> Ramp:
        key = (id(cls), tuple(sizes.items()))
        if key not in self._ramps:
            self._ramps[key] = Ramp(sizes, cls)
            self.engine.ledger.ramps.append(self._ramps[key])
        return self._ramps[key]

    def cost(self, name: str, law_name: str, circuit: str, gpu: int) -> Cost:
        """The cost of a host or device step."""
        law = self.calibration.law(law_name)
        names = self.names(circuit, gpu)
        if law.gpu > 0.0:
            exponent = self.calibration.contention.gpu_exponent
            cls, load, device = self.cls(f"gpu:{gpu}", 1.0, exponent, law.dram), law.gpu, gpu
        elif law.link is not None:
            return self.copy_cost(name, law_name, law.link, 0, circuit, gpu)
        else:
            cls, load, device = self.cls("cores", 0.0, 1.0, law.dram), 0.0, None
        return self._make(name, law_name, law, names, cls, law.seconds.evaluate(names), 0.0, load, device)

    def copy_cost(self, name: str, law_name: str, direction: str, nbytes: int, circuit: str, gpu: int) -> Cost:
        """The cost of moving `nbytes` over PCIe, unless the law says how many."""
        law = self.calibration.law(law_name)
        names = self.names(circuit, gpu)
        device = self.plan.scenario.machine.gpus[gpu]
        link = device.pcie_h2d if (law.link or direction) == "h2d" else device.pcie_d2h
        rate = min(link, law.rate) if law.rate is not None else link
        moved = law.bytes.evaluate(names) if law.bytes is not None else float(nbytes)
        cls = self.cls(f"{law.link or direction}:{gpu}", 1.0, 1.0, law.dram)
        share = rate / link
        extra = self.calibration.contention.pcie_dram * share
        return self._make(name, law_name, law, names, cls, law.seconds.evaluate(names) + moved / rate, extra, share, gpu)

    def _make(self, name: str, law_name: str, law: CostLaw, names: dict[str, Any], cls: SlowdownClass, seconds: float,
              extra_demand: float, load: float, device: int | None) -> Cost:  # fmt: skip
        jitter = self._place.get(law_name)
        demand = law.dram_demand.evaluate(names) + extra_demand
        if self.engine.options.errors is not None:
            seconds *= self._drawn(law_name, law, "seconds")
            demand *= self._drawn(law_name, law, "dram_demand")
        if self.engine.durations is not None:  # measured times contain what slowed them
            return Cost(name, self.cls("replay", 1.0, 1.0, 0.0), max(0.0, seconds), 0.0, 0.0, 0.0, device, jitter)
        return Cost(name, cls, max(0.0, seconds), demand, law.cores.evaluate(names), load, device, jitter)


    def _drawn(self, law_name: str, law: CostLaw, field: str) -> float:
        """A factor for one figure within its standard error, the same throughout a run."""
        error = math.hypot(law.origin(field).error or 0.0, self.engine.options.extra_error)
        if not error:
            return 1.0
        z = random.Random(f"{self.engine.options.errors} {law_name} {field}").gauss(0.0, 1.0)
        return max(0.2, 1.0 + error * max(-2.5, min(2.5, z)))


class _Compiler:
    """Compiles one worker for one circuit on one GPU."""

    def __init__(self, programs: Programs, worker: str, circuit: str, gpu: int) -> None:
        self.programs, self.engine, self.plan = programs, programs.engine, programs.plan
        self.worker, self.circuit, self.gpu = worker, circuit, gpu
        self.spec = self.plan.pipeline.workers[worker]
        self.ops: list[Op] = []
        self.freeing: str | None = None
        """The deallocation path whose run was last: the free behind it ends it."""

    def program(self) -> list[Op]:
        engine = self.engine
        if engine.events is not None and self.spec.start != "pool":
            self.ops.append(_always(engine.name_lane))
        self.steps(self.spec.steps)
        if self.spec.start == "pool" and engine.turnaround_s > 0.0:
            self.ops.append(engine.turn_around)
        self.ops.append(engine.end)
        return self.ops

    def steps(self, steps: tuple[s.StepBase, ...]) -> None:
        for step in steps:
            getattr(self, "_" + step.verb)(step)

    # ------------------------------------------------------------------- claims

    def _get(self, step: s.Get) -> None:
        engine, arbiter, name, gpu = self.engine, self.engine.arbiter, step.get, self.gpu

        def op(actor: Actor) -> Any:
            engine.leave(actor)
            token = arbiter.get(actor, name, gpu)
            if token is None:
                return engine.block(actor, name)
            if token is FAILED:
                return False
            engine.take(actor, token)
            return here

        here = len(self.ops) + 1
        self.ops.append(op)

    def _put(self, step: s.Put) -> None:
        engine, arbiter, name = self.engine, self.engine.arbiter, step.put

        def op(actor: Actor) -> bool:
            granted = arbiter.put(actor, actor.token, name)
            if granted is True:
                return True
            if granted is FAILED:
                engine._abandon(actor)
                return False
            return engine.block(actor, name)

        def hand_over(actor: Actor) -> bool:
            actor.owns = False  # whoever takes it from the channel holds it now
            return True

        self.ops += [op, hand_over]

    def _acquire(self, step: s.Acquire) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        name = self.plan.claim_instance(step.acquire, self.gpu)
        n = 1 if step.n is None else step.n.size(self.programs.names(self.circuit, self.gpu))

        def op(actor: Actor) -> bool:
            granted = arbiter.acquire(actor, actor.token, name, n)
            if granted is True:
                ledger.held[name] -= engine.now
                return True
            if granted is FAILED:
                engine._abandon(actor)
                return False
            return engine.block(actor, name)

        self.ops.append(op)

    def _release(self, step: s.Release) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        name = self.plan.claim_instance(step.release, self.gpu)

        def op(actor: Actor) -> bool:
            token = actor.token
            if token.failed:  # whoever unwinds the set gives it back
                engine._abandon(actor)
                return False
            arbiter.release(token, name)
            ledger.held[name] += engine.now
            return True

        self.ops.append(op)

    # ------------------------------------------------------------------- memory

    def _want(self, name: str) -> tuple[str, str, int, bool, bool]:
        spec = self.plan.pipeline.buffers[name]
        pool = spec.pool.replace("$gpu", str(self.gpu))
        lazy = spec.touched_by is not None and pool == "ram"
        return name, pool, self.programs.size(name, self.circuit, self.gpu), spec.allocator == "cached", lazy

    def _alloc(self, step: s.Alloc) -> None:
        for name in step.alloc:
            self._alloc_one(name)

    def _alloc_one(self, name: str) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        name, pool, nbytes, cached, lazy = self._want(name)
        traced = engine.events is not None

        def op(actor: Actor) -> bool:
            arbiter.alloc(actor.token, name, pool, nbytes, cached, lazy)
            if traced:
                ledger.emit("alloc", actor.token, name, pool, nbytes, actor.name)
            return True

        once, key = self.programs._device_buffers, (name, self.gpu)

        def op_once(actor: Actor) -> bool:
            if key not in once:
                once.add(key)
                arbiter.alloc(ledger.device_token(key), name, pool, nbytes, cached)
                if traced:
                    ledger.emit("alloc", actor.token, name, pool, nbytes, actor.name)
            return True

        self.ops.append(op_once if self.plan.pipeline.buffers[name].scope == "gpu" else op)

    def _try_alloc(self, step: s.TryAlloc) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        wants = [self._want(name) for name in step.try_alloc if self.plan.pipeline.buffers[name].scope == "token"]
        asked = [want[:4] for want in wants]
        guard, traced = step.guard, engine.events is not None

        def op(actor: Actor) -> Any:
            if not arbiter.try_alloc(actor.token, asked, guard):
                return otherwise
            if traced:
                for name, pool, nbytes, _ in asked:
                    ledger.emit("alloc", actor.token, name, pool, nbytes, actor.name)
            return True

        self.ops.append(op)
        for name in step.try_alloc:
            if self.plan.pipeline.buffers[name].scope == "gpu":
                self._alloc_one(name)
        self.steps(step.then)
        self.ops.append(lambda actor: end)
        otherwise = len(self.ops)
        self.steps(step.otherwise)
        end = len(self.ops)

    def _free(self, step: s.Free) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        if step.after is not None:
            self._wait(s.Wait(wait=step.after))
        names = tuple(n for n in step.free if self.plan.pipeline.buffers[n].scope == "token")
        host = any(not self.plan.pipeline.buffers[n].pool.startswith("vram") for n in names)
        ram = arbiter.pools["ram"]
        traced, path = engine.events is not None, self.freeing
        self.freeing = None

        def op(actor: Actor) -> bool:
            token = actor.token
            if host and ram.live + ram.cached > ledger.peak_resident:
                ledger.before_free()
            for name in names:
                if traced:
                    pool, nbytes, _ = token.buffers[name]
                    if pool == "ram":
                        ledger.sample()
                    arbiter.free(token, name)
                    ledger.emit("free", token, name, pool, nbytes, actor.name)
                else:
                    arbiter.free(token, name)
            if path is not None:
                ledger.deallocated(actor, path)
            return True

        self.ops.append(op)

    def _trim(self, step: s.Trim) -> None:
        engine, arbiter = self.engine, self.engine.arbiter
        pool, gpu, ledger = step.trim.replace("$gpu", str(self.gpu)), self.gpu, self.engine.ledger

        def synchronise(actor: Actor) -> bool:
            # the driver's trim waits for the whole device, whoever queued the work
            return engine.devices.synchronise(actor, gpu) or engine.block(actor, f"device {gpu}")

        def op(actor: Actor) -> bool:
            given = arbiter.trim(pool)
            if given and engine.events is not None:
                ledger.emit("trim", actor.token, "", pool, given, actor.name)
            return True

        self.ops += [synchronise, op] if pool.startswith("vram") else [op]

    # --------------------------------------------------------------------- work

    def _run(self, step: s.Run) -> None:
        cost = self.programs.cost(step.run, step.law, self.circuit, self.gpu)
        self._work(cost, step.on, step.run)
        self.freeing = step.run.removeprefix(DEALLOC) if step.run.startswith(DEALLOC) else None

    def _copy(self, step: s.Copy) -> None:
        nbytes = sum(self.programs.size(name, self.circuit, self.gpu) for name in step.source)
        cost = self.programs.copy_cost("copy", step.law, step.direction, nbytes, self.circuit, self.gpu)
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
        touched = [n for n in self.programs._touched_by.get(name, ()) if self._want(n)[4]]
        traced, device = engine.events is not None, cost.device
        if traced:
            self.ops.append(lambda actor: engine._event("begin", actor, name) or True)
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
            self.ops.append(lambda actor: engine._event("end", actor, name) or True)

    def _touching_work(self, cost: Cost, seconds: Any, names: list[str]) -> None:
        """Work during which the pages of some buffers become resident, evenly."""
        engine, rates, arbiter = self.engine, self.engine.rates, self.engine.arbiter
        programs = self.programs
        sizes = {name: programs.size(name, self.circuit, self.gpu) for name in names}
        whole, all_names = programs.ramp(sizes, cost.cls), frozenset(names)
        ledger, traced = engine.ledger, engine.events is not None

        def run(actor: Actor) -> bool:
            token = actor.token
            work_s = actor.work_s = max(seconds(token), 1e-9)
            v = actor.started_v = cost.cls.at(rates.now)
            if all_names <= token.untouched:
                ramp = whole
            else:  # some are not allocated, or touched before
                ramp = programs.ramp({n: size for n, size in sizes.items() if n in token.untouched}, cost.cls)
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

    # ------------------------------------------------------------------- order

    def _record(self, step: s.Record) -> None:
        devices, name, on = self.engine.devices, step.record, step.on

        def op(actor: Actor) -> bool:
            devices.record(devices.stream_of(actor, on), actor.token, name)
            return True

        self.ops.append(op)

    def _wait(self, step: s.Wait) -> None:
        engine, name = self.engine, step.wait

        def op(actor: Actor) -> bool:
            event = actor.token.events.get(name)
            if event is None or event.reached:
                return True
            event.waiters.append(actor)
            return engine.block(actor, name)

        self.ops.append(op)

    def _stream_wait(self, step: s.StreamWait) -> None:
        engine, name, on = self.engine, step.stream_wait, step.on

        def op(actor: Actor) -> bool:
            event = actor.token.events.get(name)
            if event is not None and not event.reached:  # never recorded (the slow arm): nothing to wait for
                engine.devices.queue_wait(engine.devices.stream_of(actor, on), event)
            return True

        self.ops.append(op)

    def _spawn(self, step: s.Spawn) -> None:
        engine, programs, worker, label, circuit = self.engine, self.programs, step.spawn, step.handle, self.circuit
        gpu = self.gpu
        program: list[Op] = []

        def op(actor: Actor) -> bool:
            nonlocal program
            if not program:
                program = programs.of(worker, circuit, gpu)
            token = actor.token
            child = Actor(worker, program, token, gpu)
            token.attached += 1
            if label is not None:
                handle = token.handles.get(label)
                if handle is None or handle.ended:
                    handle = token.handles[label] = Handle()
                child.handle = handle
            engine._begin(child)
            return True

        self.ops.append(op)

    def _join(self, step: s.Join) -> None:
        engine, label = self.engine, step.join

        def op(actor: Actor) -> bool:
            handles = actor.token.handles
            handle = handles.get(label)
            if handle is None:
                handle = handles[label] = Handle()
            if handle.ended:
                return True
            handle.waiters.append(actor)
            return engine.block(actor, label)

        self.ops.append(op)

    def _complete(self, step: s.Complete) -> None:
        self.ops.append(_always(self.engine.complete))


def _always(call: Any) -> Op:
    def op(actor: Actor) -> bool:
        call(actor)
        return True

    return op

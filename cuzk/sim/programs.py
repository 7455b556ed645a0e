"""Step lists compiled for the simulator: one closure a step, for each (worker, circuit, GPU).

Everything that a formula says is evaluated here, once; a running step touches no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuzk.errors import InputError, ScenarioError
from cuzk.pipeline import steps as s
from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, Handle, Op
from cuzk.sim.costs import Costs
from cuzk.sim.work import WorkCompiler

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine

Place = tuple[str | int, ...]
"""Keys of a step in the pipeline: ("workers", "gpu", "steps", 3)."""


class Programs:
    """The compiled workers of one run, made when first needed."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.plan = engine, engine.plan
        self._programs: dict[tuple[str, str, int], list[Op]] = {}
        self._places: dict[tuple[str, str, int], list[Place]] = {}
        self.costs = Costs(engine)
        self._locks = {
            instance for name, lock in self.plan.pipeline.locks.items()
            for instance in ([f"{name}:{gpu}" for gpu in range(self.plan.gpus)] if lock.per == "gpu" else [name])
        }  # fmt: skip
        self.device_buffers: set[tuple[str, int]] = set()
        touched = [(b, spec.touched_by) for b, spec in self.plan.pipeline.buffers.items() if spec.touched_by]
        self.touched_by = {step: [b for b, by in touched if by == step] for _, step in touched}

    def is_lock(self, instance: str | None) -> bool:
        return instance in self._locks

    def of(self, worker: str, circuit: str, gpu: int) -> list[Op]:
        key = (worker, circuit, gpu)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = []
            compiler = _Compiler(self, worker, circuit, gpu)
            program += compiler.program()
            self._places[key] = compiler.places
        return program

    def place(self, actor: Actor, pc: int) -> Place:
        """Where the step stands that an actor is at."""
        for key, program in self._programs.items():
            if program is actor.program and pc < len(self._places[key]):
                return self._places[key][pc]
        return ("workers", actor.kind)


class _Compiler(WorkCompiler):
    """Compiles one worker for one circuit on one GPU."""

    def __init__(self, programs: Programs, worker: str, circuit: str, gpu: int) -> None:
        self.programs, self.costs, self.engine, self.plan = programs, programs.costs, programs.engine, programs.plan
        self.worker, self.circuit, self.gpu = worker, circuit, gpu
        self.spec = self.plan.pipeline.workers[worker]
        self.ops: list[Op] = []
        self.places: list[Place] = []
        """For each op, where its step stands in the pipeline."""
        self.freeing: str | None = None
        """The deallocation path whose run was last: the free behind it ends it."""

    def program(self) -> list[Op]:
        engine = self.engine
        if engine.events is not None and self.spec.start != "pool":
            self.ops.append(_always(engine.name_lane))
        here = ("workers", self.worker, "steps")
        if self.spec.start == "pool" and not (self.spec.steps and isinstance(self.spec.steps[0], s.Get)):
            raise self.plan.scenario.error(("pipeline", *here), "a pool worker begins with a get")
        self.steps(self.spec.steps, here)
        if self.spec.start == "pool" and engine.turnaround_s > 0.0:
            self.ops.append(engine.turn_around)
        self.ops.append(engine.end)
        return self.ops

    def steps(self, steps: tuple[s.StepBase, ...], at: Place) -> None:
        for index, step in enumerate(steps):
            try:
                getattr(self, "_" + step.verb)(step, (*at, index))
            except KeyError as missing:
                message = f"{step.verb}: there is no {missing}"
                raise self.plan.scenario.error(("pipeline", *at, index), message) from None
            except ScenarioError:
                raise
            except InputError as error:
                raise self.plan.scenario.error(("pipeline", *at, index), str(error)) from None
            self.places += [(*at, index)] * (len(self.ops) - len(self.places))

    # ------------------------------------------------------------------- claims

    def _get(self, step: s.Get, at: Place) -> None:
        engine, arbiter, name, gpu = self.engine, self.engine.arbiter, step.get, self.gpu
        arbiter.known_channel(name)

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

    def _put(self, step: s.Put, at: Place) -> None:
        engine, arbiter, name = self.engine, self.engine.arbiter, step.put
        arbiter.known_channel(name)

        def op(actor: Actor) -> bool:
            granted = arbiter.put(actor, actor.token, name)
            if granted is True:
                return True
            if granted is FAILED:
                engine.abandon(actor)
                return False
            return engine.block(actor, name)

        def hand_over(actor: Actor) -> bool:
            actor.owns = False  # whoever takes it from the channel holds it now
            return True

        self.ops += [op, hand_over]

    def _acquire(self, step: s.Acquire, at: Place) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        name = self.plan.claim_instance(step.acquire, self.gpu)
        arbiter.known_claim(name)
        names = self.costs.names(self.circuit, self.gpu)
        n = 1 if step.n is None else self.plan.number(step.n, names, *at, "n")
        units = arbiter.units(name)
        if n > units:
            message = f"asks for {n:,} units of {name}, which has {units:,} in all: it would wait for ever"
            raise self.plan.scenario.error(("pipeline", *at), message)

        def op(actor: Actor) -> bool:
            granted = arbiter.acquire(actor, actor.token, name, n)
            if granted is True:
                ledger.held[name] -= engine.now
                return True
            if granted is FAILED:
                engine.abandon(actor)
                return False
            return engine.block(actor, name)

        self.ops.append(op)

    def _release(self, step: s.Release, at: Place) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        name = self.plan.claim_instance(step.release, self.gpu)
        arbiter.known_claim(name)

        def op(actor: Actor) -> bool:
            token = actor.token
            if token.failed:  # whoever unwinds the set gives it back
                engine.abandon(actor)
                return False
            arbiter.release(token, name)
            ledger.held[name] += engine.now
            return not (arbiter.woken and engine.shuffle is not None) or engine.go_on(actor)

        self.ops.append(op)

    # ------------------------------------------------------------------- memory

    def _alloc(self, step: s.Alloc, at: Place) -> None:
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

        once, key = self.programs.device_buffers, (name, self.gpu)

        def op_once(actor: Actor) -> bool:
            if key not in once:
                once.add(key)
                arbiter.alloc(ledger.device_token(key), name, pool, nbytes, cached)
                if traced:
                    ledger.emit("alloc", actor.token, name, pool, nbytes, actor.name)
            return True

        self.ops.append(op_once if self.plan.pipeline.buffers[name].scope == "gpu" else op)

    def _try_alloc(self, step: s.TryAlloc, at: Place) -> None:
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
        self.steps(step.then, (*at, "then"))
        self.ops.append(lambda actor: end)
        otherwise = len(self.ops)
        self.steps(step.otherwise, (*at, "else"))
        end = len(self.ops)

    def _free(self, step: s.Free, at: Place) -> None:
        engine, arbiter, ledger = self.engine, self.engine.arbiter, self.engine.ledger
        if step.after is not None:
            self._wait(s.Wait(wait=step.after), at)
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

    def _trim(self, step: s.Trim, at: Place) -> None:
        engine, arbiter = self.engine, self.engine.arbiter
        pool, gpu, ledger = step.trim.replace("$gpu", str(self.gpu)), self.gpu, self.engine.ledger
        arbiter.chain(pool)  # KeyError if there is none

        def synchronise(actor: Actor) -> bool:
            # the driver's trim waits for the whole device, whoever queued the work
            return engine.devices.synchronise(actor, gpu) or engine.block(actor, f"device {gpu}")

        def op(actor: Actor) -> bool:
            given = arbiter.trim(pool)
            if given and engine.events is not None:
                ledger.emit("trim", actor.token, "", pool, given, actor.name)
            return True

        self.ops += [synchronise, op] if pool.startswith("vram") else [op]

    # ------------------------------------------------------------------- order

    def _record(self, step: s.Record, at: Place) -> None:
        devices, name, on = self.engine.devices, step.record, step.on

        def op(actor: Actor) -> bool:
            devices.record(devices.stream_of(actor, on), actor.token, name)
            return True

        self.ops.append(op)

    def _wait(self, step: s.Wait, at: Place) -> None:
        engine, name = self.engine, step.wait

        def op(actor: Actor) -> bool:
            event = actor.token.events.get(name)
            if event is None or event.reached:
                return True
            event.waiters.append(actor)
            return engine.block(actor, name)

        self.ops.append(op)

    def _stream_wait(self, step: s.StreamWait, at: Place) -> None:
        engine, name, on = self.engine, step.stream_wait, step.on

        def op(actor: Actor) -> bool:
            event = actor.token.events.get(name)
            if event is not None and not event.reached:  # never recorded (the slow arm): nothing to wait for
                engine.devices.queue_wait(engine.devices.stream_of(actor, on), event)
            return True

        self.ops.append(op)

    def _spawn(self, step: s.Spawn, at: Place) -> None:
        engine, programs, worker, label, circuit = self.engine, self.programs, step.spawn, step.handle, self.circuit
        gpu = self.gpu
        if worker not in self.plan.pipeline.workers:
            raise KeyError(worker)
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
            engine.begin(child)
            return True

        self.ops.append(op)

    def _join(self, step: s.Join, at: Place) -> None:
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

    def _complete(self, step: s.Complete, at: Place) -> None:
        self.ops.append(_always(self.engine.admission.complete))


def _always(call: Any) -> Op:
    def op(actor: Actor) -> bool:
        call(actor)
        return True

    return op

"""Bound steps compiled for the simulator: one closure a step or two, for each (worker, circuit, GPU)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.pipeline import ops
from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, Handle, SetFailed, SimOp, SimSet
from cuzk.sim.work import compile_work

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Code:
    """The compiled workers of one run, made when first needed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._codes: dict[tuple[str, str, int], list[SimOp]] = {}
        self._places: dict[tuple[str, str, int], list[ops.Place]] = {}

    def of(self, worker: str, circuit: str, gpu: int) -> list[SimOp]:
        key = (worker, circuit, gpu)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = []
            compiler = _Compiler(self, worker, circuit, gpu)
            code += compiler.code()
            self._places[key] = compiler.places
        return code

    def place(self, actor: Actor, pc: int) -> ops.Place:
        """The place of the step that an actor is at."""
        for key, code in self._codes.items():
            if code is actor.code and pc < len(self._places[key]):
                return self._places[key][pc]
        return ("workers", actor.kind)


class _Compiler(ops.Visitor[None]):
    """Compiles one worker for one circuit on one GPU."""

    def __init__(self, codes: Code, worker: str, circuit: str, gpu: int) -> None:
        self.codes, self.engine, self.core = codes, codes.engine, codes.engine.core
        self.worker, self.circuit, self.gpu = worker, circuit, gpu
        self.out: list[SimOp] = []
        self.places: list[ops.Place] = []
        """For each closure, where its step stands in the pipeline."""

    def code(self) -> list[SimOp]:
        engine, program = self.engine, self.engine.program
        pool = program.pipeline.workers[self.worker].start == "pool"
        if engine.traced and not pool:
            self.out.append(_always(engine.name_lane))
        self.all(program.code(self.worker, self.circuit, self.gpu))
        if pool and engine.turnaround_s > 0.0:
            self.out.append(engine.turn_around)
        self.out.append(engine.end)
        return self.out

    def all(self, code: tuple[ops.Op, ...]) -> None:
        for op in code:
            self.visit(op)
            self.places += [op.place] * (len(self.out) - len(self.places))

    # ------------------------------------------------------------------- claims

    def get(self, op: ops.Get) -> None:
        engine, arbiter, name, gpu = self.engine, self.core.arbiter, op.channel, self.gpu

        def run(actor: Actor) -> Any:
            engine.leave(actor)
            pset = arbiter.get(actor, name, gpu)
            if pset is None:
                return engine.block(actor, name)
            if pset is FAILED:
                return False
            assert isinstance(pset, SimSet)
            engine.take(actor, pset)
            return here

        here = len(self.out) + 1
        self.out.append(run)

    def put(self, op: ops.Put) -> None:
        engine, arbiter, name = self.engine, self.core.arbiter, op.channel

        def run(actor: Actor) -> bool:
            granted = arbiter.put(actor, actor.pset, name)
            if granted is True:
                return True
            if granted is FAILED:
                raise SetFailed
            return engine.block(actor, name)

        def hand_over(actor: Actor) -> bool:
            actor.owns = False  # whoever takes it from the channel holds it now
            return True

        self.out += [run, hand_over]

    def acquire(self, op: ops.Acquire) -> None:
        engine, arbiter, held = self.engine, self.core.arbiter, self.engine.ledger.held
        name, units = op.instance, op.units

        def run(actor: Actor) -> bool:
            granted = arbiter.acquire(actor, actor.pset, name, units)
            if granted is True:
                held[name] -= engine.now
                if actor.asked is not None:
                    engine.granted(actor)
                return True
            if granted is FAILED:
                raise SetFailed
            return engine.block(actor, name)

        self.out.append(run)

    def release(self, op: ops.Release) -> None:
        engine, arbiter, held, name = self.engine, self.core.arbiter, self.engine.ledger.held, op.instance

        def run(actor: Actor) -> bool:
            pset = actor.pset
            if pset.failed:  # whoever unwinds the set gives it back
                raise SetFailed
            arbiter.release(pset, name)
            held[name] += engine.now
            return not (arbiter.woken and engine.shuffle is not None) or engine.go_on(actor)

        self.out.append(run)

    # ------------------------------------------------------------------- memory

    def alloc(self, op: ops.Alloc) -> None:
        for want in op.wants:
            self.take(want)

    def take(self, want: ops.Want) -> None:
        core, books = self.core, self.core.books
        buffer, pool, nbytes, cached, lazy = want.buffer, want.pool, want.nbytes, want.cached, want.lazy

        def plain(actor: Actor) -> bool:
            books.alloc(actor.pset, buffer, pool, nbytes, cached, lazy)
            return True

        def journalled(actor: Actor) -> bool:
            core.alloc(actor.pset, want, actor.name)
            return True

        def may_be_refused(actor: Actor) -> bool:
            core.alloc(actor.pset, want, actor.name)
            refusal = faults.refused(actor.pset, buffer) if faults is not None else None
            if refusal is not None:
                core.free(actor.pset, buffer, actor.name)
                raise core.refused(buffer, pool, nbytes, actor.pset, refusal)
            return True

        faults = self.engine.options.faults
        if faults is not None and not want.kept:
            self.out.append(may_be_refused)
        else:
            self.out.append(journalled if self.engine.traced or want.kept else plain)

    def try_alloc(self, op: ops.TryAlloc) -> None:
        core, wants, guard = self.core, op.wants, op.guard

        def run(actor: Actor) -> Any:
            return True if core.try_alloc(actor.pset, wants, guard, actor.name) else otherwise

        self.out.append(run)
        for want in wants:
            if want.kept:
                self.take(want)
        self.all(op.then)
        self.out.append(lambda actor: end)
        otherwise = len(self.out)
        self.all(op.otherwise)
        end = len(self.out)

    def free(self, op: ops.Free) -> None:
        core, books, ledger = self.core, self.core.books, self.engine.ledger
        if op.after is not None:
            self.wait(ops.Wait(op.place, op.after))
        names, host, path, ram, traced = op.buffers, op.host, op.path, ledger.ram, self.engine.traced

        def run(actor: Actor) -> bool:
            pset = actor.pset
            if host and ram.live + ram.cached > ledger.peak_resident:
                ledger.before_free()
            if traced:
                for name in names:
                    if host:
                        ledger.sample()
                    core.free(pset, name, actor.name)
            else:
                for name in names:
                    books.free(pset, name)
            if path is not None:
                core.deallocated(path, pset, actor.name)
            return True

        self.out.append(run)

    def trim(self, op: ops.Trim) -> None:
        engine, core, gpu, pool = self.engine, self.core, self.gpu, op.pool

        def synchronise(actor: Actor) -> bool:
            # the driver's trim waits for the whole device, whoever queued the work
            return engine.devices.synchronise(actor, gpu) or engine.sleep(actor, f"device {gpu}")

        def run(actor: Actor) -> bool:
            core.trim(actor.pset, pool, actor.name)
            return True

        self.out += [synchronise, run] if pool.startswith("vram") else [run]

    # --------------------------------------------------------------------- work

    def run(self, op: ops.Run) -> None:
        self.out += compile_work(self.engine, op, self.gpu)

    def copy(self, op: ops.Copy) -> None:
        self.out += compile_work(self.engine, op, self.gpu)

    # ------------------------------------------------------------------- order

    def record(self, op: ops.Record) -> None:
        devices, name, stream = self.engine.devices, op.event, op.stream

        def run(actor: Actor) -> bool:
            devices.record(devices.stream_of(actor, stream), actor.pset, name)
            return True

        self.out.append(run)

    def wait(self, op: ops.Wait) -> None:
        engine, name = self.engine, op.event

        def run(actor: Actor) -> bool:
            event = actor.pset.events.get(name)
            if event is None or event.reached:
                return True
            event.waiters.append(actor)
            return engine.sleep(actor, name)

        self.out.append(run)

    def stream_wait(self, op: ops.StreamWait) -> None:
        devices, name, stream = self.engine.devices, op.event, op.stream

        def run(actor: Actor) -> bool:
            event = actor.pset.events.get(name)
            if event is not None and not event.reached:  # never recorded (the slow arm): nothing to wait for
                devices.queue_wait(devices.stream_of(actor, stream), event)
            return True

        self.out.append(run)

    def spawn(self, op: ops.Spawn) -> None:
        engine, codes, worker, label, circuit, gpu = self.engine, self.codes, op.worker, op.handle, self.circuit, self.gpu
        code: list[SimOp] = []

        def run(actor: Actor) -> bool:
            nonlocal code
            if not code:
                code = codes.of(worker, circuit, gpu)
            pset = actor.pset
            child = Actor(worker, code, pset, gpu)
            pset.attached += 1
            if label is not None:
                handle = pset.handles.get(label)
                if handle is None or handle.ended:
                    handle = pset.handles[label] = Handle()
                child.handle = handle
            engine.begin(child)
            return True

        self.out.append(run)

    def join(self, op: ops.Join) -> None:
        engine, label = self.engine, op.handle

        def run(actor: Actor) -> bool:
            handles = actor.pset.handles
            handle = handles.get(label)
            if handle is None:
                handle = handles[label] = Handle()
            if handle.ended:
                return True
            handle.waiters.append(actor)
            return engine.block(actor, label)

        self.out.append(run)

    def complete(self, op: ops.Complete) -> None:
        self.out.append(_always(self.engine.complete))


def _always(call: Callable[[Actor], object]) -> SimOp:
    def run(actor: Actor) -> bool:
        call(actor)
        return True

    return run

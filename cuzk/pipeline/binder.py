"""Binds the steps of one worker: names become instances, formulas numbers, laws prices. Every fault is named where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cuzk.errors import InputError
from cuzk.model.circuit import Circuit
from cuzk.model.formula import suggestion
from cuzk.pipeline import ops
from cuzk.pipeline import steps as s
from cuzk.pipeline.prices import Price, copy_price, step_price

if TYPE_CHECKING:
    from cuzk.pipeline.program import Program

GPU = "$gpu"
DEALLOC = "dealloc_"
"""A step of this name ends a deallocation path at the free behind it."""


class Binder:
    """One worker for one circuit on one GPU."""

    def __init__(self, program: Program, worker: str, circuit: Circuit, gpu: int) -> None:
        self.program, self.worker, self.circuit, self.gpu = program, worker, circuit, gpu
        self.pipeline = program.pipeline
        self._path: str | None = None
        """The deallocation path whose run was last."""

    def code(self) -> tuple[ops.Op, ...]:
        spec, here = self.pipeline.workers[self.worker], ("workers", self.worker, "steps")
        if spec.start == "pool" and not (spec.steps and isinstance(spec.steps[0], s.Get)):
            raise self.program.error(here, "a pool worker begins with a get")
        return self._bind_all(spec.steps, here)

    def _bind_all(self, steps: tuple[s.StepBase, ...], at: ops.Place) -> tuple[ops.Op, ...]:
        return tuple(self._bind(step, (*at, index)) for index, step in enumerate(steps))

    def _bind(self, step: s.StepBase, at: ops.Place) -> ops.Op:
        match step:
            case s.Get(get=channel):
                return ops.Get(at, self._known(at, "channel", channel, self.pipeline.channels))
            case s.Put(put=channel):
                return ops.Put(at, self._known(at, "channel", channel, self.pipeline.channels))
            case s.Acquire():
                return self._acquire(step, at)
            case s.Release(release=name):
                self._known_claim(at, name)
                return ops.Release(at, name, self.program.claim_instance(name, self.gpu))
            case s.Alloc(alloc=names):
                return ops.Alloc(at, self._wants(at, names))
            case s.TryAlloc():
                wants = self._wants(at, step.try_alloc)
                then = self._bind_all(step.then, (*at, "then"))
                return ops.TryAlloc(at, wants, step.guard, then, self._bind_all(step.otherwise, (*at, "else")))
            case s.Free(free=names, after=event):
                return self._free(at, names, event)
            case s.Trim(trim=pool):
                name = pool.replace(GPU, str(self.gpu))
                return ops.Trim(at, self._known(at, "pool", name, self.program.pools))
            case s.Run():
                return self._run(step, at)
            case s.Copy():
                return self._copy(step, at)
            case s.Record(record=event, on=on):
                return ops.Record(at, event, on)
            case s.Wait(wait=event):
                return ops.Wait(at, event)
            case s.StreamWait(stream_wait=event, on=on):
                return ops.StreamWait(at, event, on)
            case s.Spawn(spawn=worker, handle=handle, moves=moves):
                self._known(at, "worker", worker, self.pipeline.workers)
                if self.pipeline.workers[worker].start != "spawned":
                    raise self.program.error(at, f"{worker} is not a spawned worker")
                return ops.Spawn(at, worker, handle, moves)
            case s.Join(join=handle):
                return ops.Join(at, handle)
            case s.Complete():
                return ops.Complete(at)
        raise TypeError(f"no such step: {step!r}")

    def _known(self, at: ops.Place, what: str, name: str, table: Mapping[str, object]) -> str:
        if name not in table:
            raise self.program.error(at, f"there is no {what} {name!r}{suggestion(name, table)}")
        return name

    def _known_claim(self, at: ops.Place, name: str) -> None:
        self._known(at, "lock or permit", name, {**self.pipeline.locks, **self.pipeline.permits})

    def _acquire(self, step: s.Acquire, at: ops.Place) -> ops.Acquire:
        name, program = step.acquire, self.program
        self._known_claim(at, name)
        names = program.names(self.circuit, self.gpu)
        units = 1 if step.n is None else program.number(step.n, names, *at, "n")
        most = 1 if name in self.pipeline.locks else program.permits[name][0]
        if units > most:
            message = f"asks for {units:,} units of {name}, which has {most:,} in all: it would wait for ever"
            raise program.error(at, message)
        return ops.Acquire(at, name, program.claim_instance(name, self.gpu), units)

    # -- memory -------------------------------------------------------------------------------------------

    def _wants(self, at: ops.Place, names: Iterable[str]) -> tuple[ops.Want, ...]:
        return tuple(self._want(at, name) for name in names)

    def _want(self, at: ops.Place, name: str) -> ops.Want:
        spec = self.pipeline.buffers[self._known(at, "buffer", name, self.pipeline.buffers)]
        pool = spec.pool.replace(GPU, str(self.gpu))
        lazy = spec.touched_by is not None and pool == "ram"
        nbytes = self.program.size(name, self.circuit, self.gpu)
        return ops.Want(name, pool, nbytes, spec.allocator == "cached", lazy, spec.scope != "set")

    def _free(self, at: ops.Place, names: Iterable[str], event: str | None) -> ops.Free:
        wants = [want for want in self._wants(at, names) if not want.kept]
        path, self._path = self._path, None
        host = any(not want.pool.startswith("vram") for want in wants)
        return ops.Free(at, tuple(want.buffer for want in wants), event, path, host)

    # -- work ---------------------------------------------------------------------------------------------

    def _run(self, step: s.Run, at: ops.Place) -> ops.Run:
        self._path = step.run.removeprefix(DEALLOC) if step.run.startswith(DEALLOC) else None
        for name in step.uses:
            self._known(at, "buffer", name, self.pipeline.buffers)
        filled = [name for name, spec in self.pipeline.buffers.items() if spec.touched_by == step.run]
        touches = tuple(want for want in self._wants(at, filled) if want.lazy)
        reads = tuple(self._read(at, step, resident) for resident in step.reads)
        stream = None if step.on == s.HOST else step.on
        price = self._run_price(step, reads)
        return ops.Run(at, step.run, step.law, step.processor, stream, touches, reads, step.uses, price)

    def _read(self, at: ops.Place, step: s.Run, resident: str) -> ops.Read:
        spec = self.pipeline.buffers[self._known(at, "buffer", resident, self.pipeline.buffers)]
        if spec.scope != "run":
            raise self.program.error((*at, "reads", resident), f"{resident} is not there for the whole run")
        names = self.program.names(self.circuit, self.gpu)
        nbytes = self.program.number(step.reads[resident], names, *at, "reads", resident)
        return ops.Read(resident, spec.pool.replace(GPU, str(self.gpu)), nbytes)

    def _run_price(self, step: s.Run, reads: tuple[ops.Read, ...]) -> Price | None:
        scenario = self.program.scenario
        if scenario.calibration is None:
            return None
        names = self.program.names(self.circuit, self.gpu)
        try:
            return step_price(scenario.calibration, scenario.machine, names, step.run, step.law, step.processor, self.gpu, reads,
                              step.overlaps)  # fmt: skip
        except InputError:
            if step.law in scenario.calibration.costs:
                raise
            return None

    def _copy(self, step: s.Copy, at: ops.Place) -> ops.Copy:
        for name in (step.copy_, *step.source):
            self._known(at, "buffer", name, self.pipeline.buffers)
        moved = sum(self.program.size(name, self.circuit, self.gpu) for name in step.source)
        stream = None if step.on == s.HOST else step.on
        price = self._copy_price(step, at, moved)
        return ops.Copy(at, step.law, step.copy_, step.source, step.direction, stream, moved, price)

    def _copy_price(self, step: s.Copy, at: ops.Place, moved: int) -> Price | None:
        scenario = self.program.scenario
        if not scenario.machine.gpus:
            raise self.program.error(at, "copies to a device, and the machine has none")
        if scenario.calibration is None or step.law not in scenario.calibration.costs:
            return None
        names = self.program.names(self.circuit, self.gpu)
        return copy_price(scenario.calibration, scenario.machine, names, step.law, step.direction, moved, self.gpu)

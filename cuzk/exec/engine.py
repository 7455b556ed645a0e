"""A run of the executor: real threads walk the same bound steps as the simulator, through the same core and Arbiter.

One mutex guards both. Each actor waits on a condition of its own, and the Arbiter's list says whom to wake, so nobody is served
out of turn. The first claim of an actor is made by whoever starts it, in order: the order in which threads start is the system's
whim, the order of claims is the pipeline's. A task that begins with a claim which has to wait gets no thread until it is granted.

Failure has a scope, and the core knows it: sets concerned are marked and their waiters woken; every actor then leaves its set at
its next step, and the last one to leave gives back what the set holds. A body that is running is not interrupted; it is asked
(`Work.cancelled`) to be brief. Whatever ends a run needs no new thread: the main thread unwinds what no actor holds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from cuzk.errors import CuzkError, DeviceLost, InputError, Interrupted, OutOfMemoryError
from cuzk.exec.actor import Actor
from cuzk.exec.claims import Claimant
from cuzk.exec.device import Allocation, Device
from cuzk.exec.sets import Handle, RealSet
from cuzk.exec.touching import Touching
from cuzk.pipeline import ops
from cuzk.pipeline.core import RunCore
from cuzk.pipeline.journal import LOAD, Sink
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.program import Program, limit_permit
from cuzk.pipeline.sets import PartitionSet, ProofRun

POLL_S = 0.1
"""The time after which the main thread looks for an interrupt."""


class Engine:
    """One run of `program` on `device`. `sink` gets every event, in order, one at a time. Used once."""

    def __init__(self, program: Program, device: Device, sink: Sink, on_proof: Callable[[ProofRun], None] | None = None, *,
                 first: int = 0, start_s: float | None = None, replaceable: bool = False,
                 make_core: Callable[..., RunCore] = RunCore) -> None:  # fmt: skip
        """`first`, `start_s`: go on with that proof, by the clock of a run that began then. `replaceable`: another process will
        take over when a device is lost, so nothing is admitted any more. `make_core`: a core of another kind (live.py)."""
        self.program, self.device = program, device
        self.mutex = threading.Lock()
        self.core = make_core(
            program, self, self.now, sink, new_set=self._new_set, first=first, replaceable=replaceable
        )  # fmt: skip
        self.touching = Touching(self.core.books, self.mutex)
        self._on_proof = on_proof or (lambda proof: None)
        self._changed = threading.Condition(self.mutex)
        self._actors: set[Actor] = set()
        self._slots: dict[str, set[int]] = {}
        self._turns: dict[str, deque[Claimant]] = {}
        self._interrupted = False
        self._halted: BaseException | None = None
        """Why somebody outside wants the end of the run."""
        self._residents: list[tuple[PartitionSet, str, Any]] = []
        """A thing that stays for the whole run, or on a device: its holder, name and real memory."""
        self._orphans: deque[tuple[RealSet, str]] = deque()
        """Sets that no actor holds and somebody must detach, with the lane that is named for it."""
        self.queued_work = 0
        """Pieces of work on streams that have not ended."""
        self.load_s = self.ended_s = 0.0
        self.start_s = start_s
        """On the clock of time.perf_counter; None while keys and matrices are being loaded: all that is at t = 0."""

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Returns when all is done or unwound; no thread is left. The outcome is in `core`; a failed run raises nothing."""
        try:
            try:
                loading_s = time.perf_counter()
                self._load()
                loaded_s = time.perf_counter()
                self.load_s = loaded_s - loading_s
                self.start_s = loaded_s if self.start_s is None else self.start_s
                with self.mutex:
                    if self.core.failure is None:
                        self._start_pools()
                        self._main_loop()
            finally:
                self.ended_s = self.now()
                self._stop()
        finally:
            self._unload()

    def interrupt(self) -> None:
        """Ask for the end of the run; safe in a signal handler. The main thread acts on it within a tenth of a second."""
        self._interrupted = True

    def nudge(self) -> None:
        """The main thread looks at what has come; from any thread."""
        with self.mutex:
            self._changed.notify_all()

    def give_up(self, proof: ProofRun, error: BaseException) -> None:
        """One proof fails with `error`; from any thread."""
        with self.mutex:
            self.core.fail_proof(proof, error)
            self.deliver()
            self._changed.notify_all()

    def halt(self, why: BaseException) -> None:
        """Ask for the end of the run for a reason outside of it; from any thread, with or without the mutex."""
        self._halted = self._halted or why

    def now(self) -> float:
        """Seconds of the scenario since the start of the run: real ones, divided by the device's time scale."""
        return 0.0 if self.start_s is None else (time.perf_counter() - self.start_s) / self.device.time_scale

    def _main_loop(self) -> None:
        core = self.core
        while True:
            self._bury()
            if self._interrupted and core.failure is None:
                core.fail_run(Interrupted("interrupted"))
                self.deliver()
            if self._halted is not None and core.failure is None:
                core.fail_run(self._halted)
                self.deliver()
            if core.failure is None:
                self._admit()
                self._refuse_deadlock()
            if not self._orphans:
                if core.is_over:
                    return
                self._changed.wait(POLL_S)

    def _admit(self) -> None:
        for worker, pset in self.core.admit_due(self.now()):
            assert isinstance(pset, RealSet)
            try:
                self.device.begin(pset)
            except Exception as error:
                self.core.fail_proof(pset.run, error)
            self.start(Actor(self, worker, gpu=0, pset=pset))

    def _new_set(self, proof: int, partition: int, circuit: str) -> RealSet:
        return RealSet(proof, partition, circuit, condition=threading.Condition(self.mutex))

    def _refuse_deadlock(self) -> None:
        """If every worker sleeps and nothing is under way that could wake one, nothing will ever happen again."""
        if not self.core.open_sets or self.queued_work or self._orphans or self.core.has_room:
            return
        waits = [(actor, actor.stuck_on()) for actor in self._actors]
        if all(what is not None for _, what in waits):
            of_sets = sorted({f"{actor.kind} waits for {what}" for actor, what in waits if actor.pset is not None})
            lying = [f"{n} sets lie in {name}, and nobody takes them" for name, n in self.core.arbiter.lying().items()]
            told = "; ".join([*of_sets, *lying]) or "nothing can go on"
            self.core.fail_run(InputError(f"the pipeline '{self.program.pipeline.name}' deadlocks: {told}"))
            self.deliver()

    def _start_pools(self) -> None:
        for name, worker in self.program.pipeline.workers.items():
            if worker.start != "pool":
                continue
            places = range(self.program.gpus) if worker.per == "gpu" else (None,)
            # one worker on each device before the second one on any: otherwise the first device takes all
            for index in range(self.program.worker_count(name)):
                for gpu in places:
                    label = f"{name}:{index}" if gpu is None else f"{name}:{gpu}.{index}"
                    self.start(Actor(self, name, gpu=gpu or 0, label=label, pool=True, on_device=gpu))

    def _stop(self) -> None:
        with self.mutex:
            # nothing is in flight any more: this only wakes the pool workers that wait for a set
            for dropped in self.core.arbiter.fail("run", reason="finished"):
                self.let_go(dropped)
            self.deliver()
            while self._actors or self._orphans:
                self._bury()
                if self._actors:
                    self._changed.wait(POLL_S)

    # ---------------------------------------------------------------- residents

    def _load(self) -> None:
        """Keys, matrices, contexts: all that is there before the start."""
        for resident in self.program.residents:
            if self._interrupted:
                return
            try:
                with self.mutex:
                    holder = self.core.load(resident)
                    cache = self.core.books.pools[resident.pool].cached
                request = Allocation(
                    resident.buffer, resident.pool, resident.nbytes, resident.gpu, resident.cached, cache_bytes=cache
                )
                real = self._really(request, holder)
                self.keep(holder, resident.buffer, real)
            except OutOfMemory as oom:
                with self.mutex:
                    self.core.out_of_memory(oom, None, LOAD)
                return
            except DeviceLost as error:
                with self.mutex:
                    self.core.fail_device(error, ())
                return

    def _really(self, request: Allocation, holder: PartitionSet) -> Any:
        try:
            return self.device.allocate(request)
        except BaseException as error:
            with self.mutex:
                self.core.free(holder, request.buffer, LOAD)
                if not isinstance(error, (MemoryError, OutOfMemoryError)):
                    raise
                oom = self.core.refused(request.buffer, request.pool, request.nbytes, holder, error)
            raise oom from error

    def keep(self, holder: PartitionSet, buffer: str, real: Any) -> None:
        """Something stays until the end of the run."""
        self._residents.append((holder, buffer, real))

    def _unload(self) -> None:
        for holder, buffer, real in reversed(self._residents):
            self.device.free(real)
            with self.mutex:
                self.core.free(holder, buffer, LOAD)
        self._residents.clear()

    # ------------------------------------------------------------------ actors

    def code_of(self, kind: str, pset: RealSet | None, gpu: int) -> tuple[ops.Op, ...]:
        """The bound steps of a worker for a set. A kind with a limit holds a permit around the whole of it."""
        circuit = self.program.scenario.circuit.name if pset is None else pset.circuit
        code = self.program.code(kind, circuit, gpu)
        if self.program.pipeline.workers[kind].limit is None:
            return code
        place, permit = ("workers", kind, "limit"), limit_permit(kind)
        return (ops.Acquire(place, permit, permit, 1), *code, ops.Release(place, permit, permit))

    def start(self, actor: Actor) -> None:
        """Make the actor's first claim for it, and give it a thread once that is granted (mutex held)."""
        self._actors.add(actor)
        actor.claim_first(self._turns.setdefault(actor.kind, deque()))
        if actor.has_mail or not actor.claimed_first:
            actor.begin_thread()

    def stillborn(self, actor: Claimant, error: BaseException) -> None:
        """The system has no thread for an actor: its set fails, and the run too where a pool worker is missing (mutex held)."""
        assert isinstance(actor, Actor)
        self._actors.discard(actor)
        actor.leave_turns()
        told = CuzkError(f"the system has no thread for {actor.name}: {error}")
        mail = actor.take_mail()
        held = [pset for pset in (actor.pset, mail) if isinstance(pset, RealSet)]
        for pset in held:
            self._orphans.append((pset, actor.name))
        if actor.handle is not None:
            actor.handle.ended = True
        if actor.pool:
            self.core.fail_run(told)
        else:
            for pset in held:
                self.core.fail_proof(pset.run, told)
        self.deliver()
        self._changed.notify_all()

    def spawn(self, worker: str, pset: RealSet, handle: str | None, on_device: int | None) -> None:
        """Start a spawned worker on a set (mutex held)."""
        record = Handle()
        if handle:
            pset.handles[handle] = record
            pset.condition.notify_all()
        pset.attached += 1
        self.start(Actor(self, worker, gpu=pset.gpu, pset=pset, handle=record, on_device=on_device))

    def take_slot(self, kind: str) -> int:
        """The lowest number that no running worker of this kind has: a lane in the trace."""
        used = self._slots.setdefault(kind, set())
        slot = next(i for i in range(len(used) + 1) if i not in used)
        used.add(slot)
        return slot

    def ended(self, actor: Actor, slot: int | None) -> None:
        """The actor's thread is about to end."""
        with self.mutex:
            if slot is not None:
                self._slots[actor.kind].discard(slot)
            self._actors.discard(actor)
            self._changed.notify_all()

    def deliver(self) -> None:
        """Wake whom the Arbiter's last calls have woken (mutex held)."""
        arbiter = self.core.arbiter
        while arbiter.woken:
            woken, arbiter.woken = arbiter.woken, []
            for actor, value in woken:
                actor.wake(value)

    # ----------------------------------------------------------- sets and proofs

    def complete(self, pset: RealSet, worker: str) -> None:
        """One partition (or the whole proof) is out (mutex held)."""
        proof = self.core.complete(pset, worker)
        if proof is not None:
            self._on_proof(proof)
            self._changed.notify_all()

    def detach(self, pset: RealSet, worker: str) -> None:
        """One holder less. The last one ends the set: what is real first, then the books."""
        with self.mutex:
            if not self.core.detach(pset):
                return
            pset.attached = 1  # held by this call, until everything is given back
        for buffer in reversed(list(pset.buffers)):
            real = pset.real.pop(buffer, None)
            try:
                if real is not None:
                    self.device.free(real)
            except Exception as error:  # a fault of earlier work may surface here
                self.failed(pset, error, worker)
        with self.mutex:
            for buffer in pset.buffers:
                self.touching.forget(pset, buffer)
            pset.attached = 0
            self.core.end(pset, worker)
            self.deliver()
            pset.state = None
            self._changed.notify_all()

    def _bury(self) -> None:
        """Detach what no actor holds (mutex held; released meanwhile, for giving back is real work)."""
        while self._orphans:
            pset, worker = self._orphans.popleft()
            self.mutex.release()
            try:
                self.detach(pset, worker)
            finally:
                self.mutex.acquire()

    # ----------------------------------------------------------------- failures

    def failed(self, pset: RealSet, error: BaseException, worker: str) -> None:
        """A step of `pset` has raised `error`: fail what it concerns."""
        core = self.core
        with self.mutex:
            if isinstance(error, (OutOfMemoryError, MemoryError)):
                oom = error if isinstance(error, OutOfMemory) else core.met(error, worker, pset)
                core.out_of_memory(oom, pset, worker, by_driver=oom is not error and isinstance(error, OutOfMemoryError))
            elif isinstance(error, DeviceLost):
                core.fail_device(error, [a.pset.run for a in self._actors if a.pset is not None and a.on_device == error.gpu])
                pset.failed = True
                pset.condition.notify_all()
                if not pset.run.left:  # else it is out already
                    core.fail_proof(pset.run, error)
            elif isinstance(error, (KeyboardInterrupt, Interrupted)):
                core.fail_run(Interrupted("interrupted"))
            else:
                core.fail_proof(pset.run, error)
            self.deliver()
            self._changed.notify_all()

    def internal_fault(self, error: BaseException) -> None:
        """A fault of the interpreter itself: nothing can be trusted to go on."""
        with self.mutex:
            self.core.fail_run(error)
            self.deliver()
            self._changed.notify_all()

    def wake_failed(self, psets: Iterable[PartitionSet]) -> None:
        """For the core: sets have failed, and whoever sleeps on one must learn of it (mutex held)."""
        for pset in psets:
            assert isinstance(pset, RealSet)
            pset.condition.notify_all()

    def let_go(self, pset: PartitionSet) -> None:
        """For the core: a set that lay in a channel has failed; the main thread detaches it (mutex held)."""
        assert isinstance(pset, RealSet)
        self._orphans.append((pset, "channel"))
        self._changed.notify_all()

"""A run of the executor: real threads walk the same steps as the simulator, through the same Arbiter.

One mutex guards the Arbiter and all bookkeeping. Each actor waits on a condition of its own, and the Arbiter's list says
whom to wake, so nobody is served out of turn. The first claim of an actor is made by whoever starts it, in order: the
order in which threads start is the system's whim, the order of claims is the pipeline's. A task that begins with a claim
which has to wait gets no thread until it is granted.

Failure has a scope. `fail_proof` and `fail_run` mark the sets concerned and wake their waiters; every actor then leaves
its set at its next step, and the last one to leave gives back what the set holds: buffers in reverse order, then locks
and permits. A body that is running is not interrupted; it is asked (`Work.cancelled`) to be brief.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from cuzk.errors import DeviceLost, InputError, Interrupted, OutOfMemoryError, describe
from cuzk.exec.actor import Actor
from cuzk.exec.books import Books
from cuzk.exec.claims import Claimant
from cuzk.exec.device import Device
from cuzk.exec.sets import Handle, Proof, Set
from cuzk.model.circuit import Circuit
from cuzk.model.workload import Arrival
from cuzk.pipeline.arbiter import OutOfMemory, Token
from cuzk.pipeline.plan import Plan, limit_permit
from cuzk.pipeline.steps import Acquire, Release
from cuzk.trace.event import Event

Sink = Callable[[Event], None]
POLL_S = 0.1
"""How often the main thread looks for an interrupt."""


class Engine:
    """One run of `plan` on `device`. `sink` gets every event, in order, one at a time. Used once."""

    def __init__(self, plan: Plan, device: Device, sink: Sink, on_proof: Callable[[Proof], None] | None = None, *,
                 first: int = 0, start_s: float | None = None, replaceable: bool = False) -> None:  # fmt: skip
        """`first`, `start_s`: go on with that proof, by the clock of a run that began then. `replaceable`: another process will
        take over when a device is lost, so nothing is admitted any more."""
        self.plan, self.device, self._replaceable = plan, device, replaceable
        self.arbiter = plan.arbiter()
        self.mutex = threading.Lock()
        self.emit = sink
        """Takes an event, with the mutex held."""
        self.books = Books(plan, device, self.arbiter, self.mutex, sink, self.now)
        self._on_proof = on_proof or (lambda proof: None)
        self._changed = threading.Condition(self.mutex)
        self._arrivals: deque[Arrival] = deque(plan.scenario.workload.plan(plan.scenario.seed)[first:])
        self._j = plan.in_flight or len(self._arrivals)
        self._first = first
        self.proofs: list[Proof] = []
        self._in_flight = 0
        self._actors: set[Actor] = set()
        self._slots: dict[str, set[int]] = {}
        self._turns: dict[str, deque[Claimant]] = {}
        self.steps = {name: tuple(worker.steps) for name, worker in plan.pipeline.workers.items()}
        for name, worker in plan.pipeline.workers.items():
            if worker.limit is not None:  # so many of them at once: a permit around the whole of it
                limit = limit_permit(name)
                self.steps[name] = (Acquire(acquire=limit), *self.steps[name], Release(release=limit))
        self.failure: BaseException | None = None
        """Why the run as a whole failed."""
        self.failures: list[tuple[int, BaseException]] = []
        """(proof, why) of each proof that failed alone."""
        self.oom: tuple[float, OutOfMemory] | None = None
        """The first out-of-memory."""
        self._interrupted = False
        self._stopping = False
        self.lost: dict[int, DeviceLost] = {}
        """Devices that can do no more work in this process."""
        self.deallocations: dict[str, int] = {}
        self.completions = 0
        self.load_s = self.ended_s = 0.0
        self._open_sets = 0
        self._unwinding = 0
        self.queued_work = 0
        """Pieces of work on streams that have not ended."""
        self._sets: dict[Token, Set] = {}
        self.start_s = start_s
        """On the clock of time.perf_counter; None while keys and matrices are being loaded: all that is at t = 0."""

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Returns when all is done or unwound; no thread is left. The outcome is in the attributes; nothing is raised
        for a failed run."""
        try:
            try:
                loading_s = time.perf_counter()
                self._load()
                loaded_s = time.perf_counter()
                self.load_s = loaded_s - loading_s
                self.start_s = loaded_s if self.start_s is None else self.start_s
                with self.mutex:
                    if self.failure is None:
                        self._start_pools()
                        self._main_loop()
            finally:
                self.ended_s = self.now()
                self._stop()
        finally:
            self.books.unload_residents()

    def _load(self) -> None:
        try:
            self.books.load_residents(lambda: self._interrupted)
        except OutOfMemory as oom:
            with self.mutex:
                self._note_oom(oom, "load", None)
                self.fail_run(oom)
        except DeviceLost as error:
            with self.mutex:
                self._fail_device(error)

    def interrupt(self) -> None:
        """Ask for the end of the run; safe in a signal handler. The main thread acts on it within a tenth of a second."""
        self._interrupted = True

    def now(self) -> float:
        """Seconds of the scenario since the start of the run: real ones, divided by the device's time scale."""
        return 0.0 if self.start_s is None else (time.perf_counter() - self.start_s) / self.device.time_scale

    def _main_loop(self) -> None:
        while True:
            if self._interrupted and self.failure is None:
                self.fail_run(Interrupted("interrupted"))
            if self.failure is None:
                self._admit_due()
                self._refuse_deadlock()
            if not self._open_sets and not self._in_flight and (self.failure is not None or not self._arrivals):
                return
            self._changed.wait(POLL_S)

    def _refuse_deadlock(self) -> None:
        """If every worker sleeps and nothing is under way that could wake one, nothing will ever happen again."""
        if not self._open_sets or self.queued_work or self._unwinding or (self._arrivals and self._in_flight < self._j):
            return
        waits = [(actor, actor.stuck_on()) for actor in self._actors]
        if all(what is not None for _, what in waits):
            of_sets = sorted({f"{actor.kind} waits for {what}" for actor, what in waits if actor.set is not None})
            self.fail_run(InputError(f"the pipeline '{self.plan.pipeline.name}' deadlocks: {'; '.join(of_sets)}"))

    def _admit_due(self) -> None:
        while self._arrivals and self._in_flight < self._j:
            arrival = self._arrivals[0]
            if arrival.at_s is not None and arrival.at_s > self.now():
                return
            self._arrivals.popleft()
            self._admit(arrival)

    def _admit(self, arrival: Arrival) -> None:
        workload = self.plan.scenario.workload
        circuit = workload.circuits[arrival.entry].circuit if workload.circuits else self.plan.scenario.circuit
        first = [name for name, worker in self.plan.pipeline.workers.items() if worker.start in ("partition", "proof")]
        number = self._first + len(self.proofs)
        tasks = [(name, part) for name in first for part in self._parts(name, circuit)]
        proof = Proof(number, circuit, len(tasks), admitted_s=self.now(), open_sets=len(tasks))
        self.proofs.append(proof)
        self._in_flight += 1
        self._open_sets += len(tasks)
        self.emit(Event(self.now(), "admit", name=circuit.name, proof=number))
        for name, part in tasks:
            token = Token(number, part, circuit.name, priority=arrival.priority)
            new = Set(token, proof, circuit, threading.Condition(self.mutex), attached=1)
            proof.members.append(new)
            self._sets[token] = new
            try:
                self.device.begin(new)
            except Exception as error:
                self._fail_proof(proof, error)
            self.start(Actor(self, name, gpu=0, set_=new))

    def _parts(self, worker: str, circuit: Circuit) -> Iterable[int]:
        return range(circuit.partitions) if self.plan.pipeline.workers[worker].start == "partition" else (0,)

    def _start_pools(self) -> None:
        for name, worker in self.plan.pipeline.workers.items():
            if worker.start != "pool":
                continue
            places = range(self.plan.gpus) if worker.per == "gpu" else (None,)
            # one worker on each device before the second one on any: otherwise the first device takes all
            for index in range(self.plan.worker_count(name)):
                for gpu in places:
                    label = f"{name}:{index}" if gpu is None else f"{name}:{gpu}.{index}"
                    self.start(Actor(self, name, gpu=gpu or 0, label=label, pool=True, on_device=gpu))

    def _stop(self) -> None:
        with self.mutex:
            self._stopping = True
            # nothing is in flight any more: this only wakes the pool workers that wait for a set
            for dropped in self.arbiter.fail("run", reason="finished"):
                self._drop(dropped)
            self.deliver()
            while self._actors:
                self._changed.wait(POLL_S)

    # ------------------------------------------------------------------ actors

    def start(self, actor: Actor) -> None:
        """Make the actor's first claim for it, and give it a thread once that is granted (mutex held)."""
        self._actors.add(actor)
        actor.claim_first(self._turns.setdefault(actor.kind, deque()))
        if actor.has_mail or not actor.claimed_first:
            actor.begin_thread()

    def set_of(self, token: Token) -> Set:
        return self._sets[token]

    def spawn(self, worker: str, set_: Set, handle: str | None, gpu: int, on_device: int | None) -> None:
        """Start a spawned worker on a set (mutex held)."""
        record = Handle()
        if handle:
            set_.handles[handle] = record
            set_.condition.notify_all()
        set_.attached += 1
        self.start(Actor(self, worker, gpu=gpu, set_=set_, handle=record, on_device=on_device))

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
        woken, self.arbiter.woken = self.arbiter.woken, []
        for actor, value in woken:
            actor.wake(value)

    # ----------------------------------------------------------- sets and proofs

    def complete(self, set_: Set, worker: str) -> None:
        """One partition (or the whole proof) is out (mutex held)."""
        proof = set_.proof
        proof.completed += 1
        self.completions += 1
        token = set_.token
        self.emit(Event(self.now(), "complete", worker=worker, gpu=token.gpu, proof=token.proof, partition=token.partition))
        if proof.completed == proof.sets and proof.failure is None:
            proof.completed_s = self.now()
            self.emit(Event(proof.completed_s, "complete", proof=token.proof, partition=-1))
            self._leave(proof)
            self._on_proof(proof)

    def deallocated(self, path: str, set_: Set, worker: str) -> None:
        """A deallocation path of a set has ended (mutex held)."""
        self.deallocations[path] = self.deallocations.get(path, 0) + 1
        self.emit(Event(self.now(), "dealloc", name=path, worker=worker, proof=set_.token.proof,
                        partition=set_.token.partition))  # fmt: skip

    def _leave(self, proof: Proof) -> None:
        if not proof.left:
            proof.left = True
            self._in_flight -= 1
            self._changed.notify_all()

    def detach(self, set_: Set, worker: str) -> None:
        """One holder less. The last one ends the set."""
        with self.mutex:
            set_.attached -= 1
            if set_.attached:
                return
            set_.attached = 1  # held by this call, until everything is given back
            failed = self.arbiter.is_failed(set_.token)
            leaked = not failed and (set_.token.buffers or set_.token.claims)
            if leaked:
                what = ", ".join([*set_.token.buffers, *(name for name, _ in set_.token.claims)])
                self._fail_proof(set_.proof, InputError(f"set {set_.token} ends and still holds {what}"))
        self._give_back(set_, worker, unwinding=failed or bool(leaked))
        with self.mutex:
            set_.attached = 0
            set_.proof.open_sets -= 1
            self._open_sets -= 1
            del self._sets[set_.token]
            if not set_.proof.open_sets:
                self._leave(set_.proof)
            self._changed.notify_all()

    def _give_back(self, set_: Set, worker: str, unwinding: bool) -> None:
        held = bool(set_.token.buffers or set_.token.claims)
        for buffer in reversed(list(set_.token.buffers)):
            real = set_.real.pop(buffer, None)
            try:
                if real is not None:
                    self.device.free(real)
            except Exception as error:  # a fault of earlier work may surface here
                self.failed(set_, error, worker)
            with self.mutex:
                self.books.unbook(set_.token, buffer, worker)
        with self.mutex:
            self.arbiter.unwind(set_.token) if unwinding else None
            self.deliver()
            if unwinding and held:
                self.emit(Event(self.now(), "unwind", worker=worker, proof=set_.token.proof, partition=set_.token.partition))
        set_.state = None

    def _drop(self, token: Token) -> None:
        """A set that lay in a channel has failed: the channel lets go of it (mutex held)."""
        dropped = self._sets[token]
        # giving back means real work without the mutex: a short-lived thread does it
        self._unwinding += 1
        threading.Thread(target=self._unwind_dropped, args=(dropped,), name="unwind", daemon=True).start()

    def _unwind_dropped(self, dropped: Set) -> None:
        self.detach(dropped, "channel")
        with self.mutex:
            self._unwinding -= 1
            self._changed.notify_all()

    # ----------------------------------------------------------------- failures

    def failed(self, set_: Set, error: BaseException, worker: str) -> None:
        """A step of `set_` has raised `error`: fail what it concerns."""
        with self.mutex:
            if isinstance(error, (OutOfMemoryError, MemoryError)):
                oom = error if isinstance(error, OutOfMemory) else self.books.met(error, worker, set_)
                # what a device's driver refuses, VRAM or pages to lock, the system has no need to kill anybody for
                alone = oom.pool.startswith("vram") if oom is error else isinstance(error, OutOfMemoryError)
                self._note_oom(oom, worker, set_)
                self._fail_proof(set_.proof, oom) if alone else self.fail_run(oom)
            elif isinstance(error, DeviceLost):
                self._fail_device(error)
                self._mark([set_])
                if not set_.proof.left:  # else it is out already
                    self._fail_proof(set_.proof, error)
            elif isinstance(error, (KeyboardInterrupt, Interrupted)):
                self.fail_run(Interrupted("interrupted"))
            else:
                self._fail_proof(set_.proof, error)

    def internal_fault(self, error: BaseException) -> None:
        """A fault of the interpreter itself: nothing can be trusted to go on."""
        with self.mutex:
            self.fail_run(error)

    def _note_oom(self, oom: OutOfMemory, worker: str, set_: Set | None) -> None:
        now = self.now()
        if self.oom is None:
            self.oom = (now, oom)
        level = self.arbiter.pools[oom.pool]
        proof, partition = (set_.token.proof, set_.token.partition) if set_ is not None else (None, None)
        self.emit(Event(now, "oom", name=oom.buffer, worker=worker, proof=proof, partition=partition, pool=oom.pool,
                        bytes=oom.request_bytes, live=level.live, reserved=oom.level_bytes, capacity=oom.capacity_bytes,
                        holders=oom.holders, reason=str(oom)))  # fmt: skip

    def _fail_proof(self, proof: Proof, error: BaseException) -> None:
        if proof.failure is not None or self.failure is not None:
            return
        proof.failure = error
        self.failures.append((proof.number, error))
        self.emit(Event(self.now(), "fail", name="proof", proof=proof.number, reason=describe(error)))
        dropped = self.arbiter.fail("proof", proof.number, describe(error))
        self._mark(proof.members)
        for token in dropped:
            self._drop(token)
        self.deliver()

    def _fail_device(self, error: DeviceLost) -> None:
        """Proofs on the device fail, and all of them if it was the last one; then that is the end of the run, unless there is
        another process to go on."""
        if error.gpu in self.lost or self.failure is not None:
            return
        self.lost[error.gpu] = error
        none_left = len(self.lost) == self.plan.gpus
        if none_left and not self._replaceable:
            self.fail_run(error)
            return
        self.emit(Event(self.now(), "fail", name="device", gpu=error.gpu, reason=describe(error)))
        if self._replaceable:
            self._arrivals.clear()
        on_it = {actor.set.proof for actor in self._actors if actor.set is not None and actor.on_device == error.gpu}
        for proof in self.proofs:
            if not proof.left and (none_left or proof in on_it):
                self._fail_proof(proof, error)
        for token in self.arbiter.fail("device", error.gpu, describe(error)):
            self._drop(token)
        self.deliver()

    def fail_run(self, error: BaseException) -> None:
        if self.failure is not None:
            return
        self.failure = error
        self.emit(Event(self.now(), "fail", name="run", reason=describe(error)))
        dropped = self.arbiter.fail("run", reason=describe(error))
        for proof in self.proofs:
            self._mark(proof.members)
        for token in dropped:
            self._drop(token)
        self.deliver()
        self._changed.notify_all()

    @staticmethod
    def _mark(sets: Iterable[Set]) -> None:
        for set_ in sets:
            if set_.attached:
                set_.token.failed = True
                set_.condition.notify_all()

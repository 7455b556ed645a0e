"""The pure core of a run, beside the Arbiter: books, sets, admission, the out-of-memory rule, failure scopes, and the journal.

Simulator and executor add time, threads and devices, nothing else: they start an actor for every set that is admitted, call the
Arbiter for claims and this for all else, wake whom it names. It knows no clock but the one it is given and starts nothing. A
caller with threads holds one mutex around each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cuzk.errors import DeviceLost, InputError, OutOfMemoryError, describe
from cuzk.model.circuit import Circuit
from cuzk.model.workload import Arrival
from cuzk.pipeline.journal import LOAD, Journal, Sink
from cuzk.pipeline.ops import Want
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.program import Program, Resident
from cuzk.pipeline.sets import PartitionSet, ProofRun

NewSet = Callable[[int, int, str], PartitionSet]


class Interpreter(Protocol):
    """The calls that the core makes to whoever runs it."""

    def wake_failed(self, psets: Iterable[PartitionSet]) -> None:
        """These sets have failed: whoever sleeps on something of theirs must learn of it."""

    def let_go(self, pset: PartitionSet) -> None:
        """A set that lay in a channel has failed: detach it, once what it really holds is given back."""


class RunCore:
    """One run of a program. Used once."""

    def __init__(self, program: Program, interpreter: Interpreter, clock: Callable[[], float], sink: Sink | None, *,
                 seed: int | None = None, new_set: NewSet = PartitionSet, first: int = 0, replaceable: bool = False,
                 resident: Callable[[str], int | None] = lambda pool: None) -> None:  # fmt: skip
        """`first`: go on with the proof of that number. `replaceable`: another process takes over when a device is lost, so
        nothing is admitted any more. `new_set(proof, partition, circuit)` makes a set of the interpreter's own kind."""
        self.program, self._interpreter, self._clock, self._new_set = program, interpreter, clock, new_set
        self.books, self.arbiter = program.books(), program.arbiter(seed)
        self.journal = Journal(self.books, clock, sink, resident)
        self._replaceable = replaceable
        plan = program.scenario.workload.plan(program.scenario.seed if seed is None else seed)
        self.arrivals: deque[Arrival] = deque(plan[first:])
        self._limit = program.in_flight
        self._next = first
        """The number of the next proof that is admitted."""
        self.proofs: list[ProofRun] = []
        self.in_flight = self.open_sets = 0
        self.completion_s: list[float] = []
        """When each set was completed."""
        self.deallocations: dict[str, int] = {}
        self.oom: tuple[float, OutOfMemory] | None = None
        """The first out-of-memory, and when."""
        self.failure: BaseException | None = None
        """Why the run as a whole failed."""
        self.failures: list[tuple[int, BaseException]] = []
        """(proof, why) of each proof that failed alone."""
        self.lost: dict[int, DeviceLost] = {}
        """Devices that can do no more work in this process."""
        self._kept: set[tuple[int, str]] = set()

    # -- memory -------------------------------------------------------------------------------------------

    def load(self, resident: Resident) -> PartitionSet:
        """Account for something resident; returns its holder. Raises OutOfMemory."""
        return self._hold(resident.buffer, resident.pool, resident.nbytes, resident.cached, resident.gpu, LOAD)

    def _hold(self, buffer: str, pool: str, nbytes: int, cached: bool, gpu: int, worker: str) -> PartitionSet:
        holder = PartitionSet(-1, -1, gpu=gpu)
        self.books.alloc(holder, buffer, pool, nbytes, cached)
        self.journal.levels("alloc", holder, buffer, pool, nbytes, worker)
        return holder

    def alloc(self, pset: PartitionSet, want: Want, worker: str) -> PartitionSet | None:
        """Account for a buffer of a set, or for one that its device keeps: then its holder is returned, None if it is there
        already. Raises OutOfMemory."""
        if not want.kept:
            self.books.alloc(pset, want.buffer, want.pool, want.nbytes, want.cached, want.lazy)
            self.journal.levels("alloc", pset, want.buffer, want.pool, want.nbytes, worker)
            return pset
        key = (pset.gpu, want.buffer)
        if key in self._kept:
            return None
        holder = self._hold(want.buffer, want.pool, want.nbytes, want.cached, pset.gpu, worker)
        self._kept.add(key)
        return holder

    def refused_kept(self, holder: PartitionSet, want: Want, worker: str) -> None:
        """The device had no room for a buffer that it was to keep."""
        self._kept.discard((holder.gpu, want.buffer))
        self.free(holder, want.buffer, worker)

    def try_alloc(self, pset: PartitionSet, wants: Iterable[Want], guard: int, worker: str) -> bool:
        """Account for all of them if `guard` bytes stay free in each pool, else for none."""
        asked = [want for want in wants if not want.kept]
        if not self.books.try_alloc(pset, [(w.buffer, w.pool, w.nbytes, w.cached) for w in asked], guard):
            return False
        if self.journal.on:
            later: dict[str, int] = {}
            for want in asked:
                later[want.pool] = later.get(want.pool, 0) + want.nbytes
            for want in asked:
                later[want.pool] -= want.nbytes
                self.journal.levels("alloc", pset, want.buffer, want.pool, want.nbytes, worker, later[want.pool])
        return True

    def free(self, pset: PartitionSet, buffer: str, worker: str) -> None:
        """Take a buffer off the books. Raises KeyError if the set does not hold it."""
        if self.journal.on and buffer in pset.buffers:
            pool, nbytes, _ = pset.buffers[buffer]
            self.books.free(pset, buffer)
            self.journal.levels("free", pset, buffer, pool, nbytes, worker)
        else:
            self.books.free(pset, buffer)

    def trim(self, pset: PartitionSet, pool: str, worker: str) -> None:
        """A pool's allocator gives back what it caches."""
        self.journal.trim(pset, pool, self.books.trim(pool), worker)

    # -- admission ----------------------------------------------------------------------------------------

    def admit_due(self, now: float) -> list[tuple[str, PartitionSet]]:
        """Admit what has arrived, up to j proofs at once: (worker, set) of every task that begins."""
        tasks: list[tuple[str, PartitionSet]] = []
        while self.arrivals and self.has_capacity and self.failure is None:
            at_s = self.arrivals[0].at_s
            if at_s is not None and at_s > now:
                break
            tasks += self._admit(self.arrivals.popleft(), now)
        return tasks

    def _admit(self, arrival: Arrival, now: float) -> list[tuple[str, PartitionSet]]:
        scenario = self.program.scenario
        mix = scenario.workload.circuits
        circuit = mix[arrival.entry].circuit if mix else scenario.circuit
        return self.admit(circuit, arrival.priority, arrival.at_s or 0.0, now, range(circuit.partitions))

    def admit(
        self, circuit: Circuit, priority: int, arrived_s: float, now: float, partitions: Sequence[int]
    ) -> list[tuple[str, PartitionSet]]:
        """A proof of these partitions is in flight from now on: (worker, set) of every task that begins."""
        workers = self.program.pipeline.workers
        number, self._next = self._next, self._next + 1
        parts = [(name, part) for name in self.program.starts
                 for part in (partitions if workers[name].start == "partition" else (0,))]  # fmt: skip
        proof = ProofRun(number, circuit.name, priority, arrived_s, now, len(parts), len(parts))
        self.proofs.append(proof)
        self.in_flight += 1
        self.open_sets += len(parts)
        self.journal.admit(proof)
        for _, part in parts:
            pset = self._new_set(number, part, circuit.name)
            pset.priority, pset.owner = priority, proof
            proof.members.append(pset)
        if not parts:  # no worker takes it up: it is in nobody's way
            self._leave(proof)
        return [(name, pset) for (name, _), pset in zip(parts, proof.members, strict=True)]

    @property
    def has_capacity(self) -> bool:
        """Whether another proof could be in flight."""
        return self._limit is None or self.in_flight < self._limit

    @property
    def has_room(self) -> bool:
        """Whether another proof could be admitted now, if one has arrived."""
        return bool(self.arrivals) and self.has_capacity

    @property
    def is_over(self) -> bool:
        """Every proof has come (or none will be admitted any more), and every set has ended."""
        return not self.open_sets and not self.in_flight and (self.failure is not None or not self.arrivals)

    # -- sets ---------------------------------------------------------------------------------------------

    def complete(self, pset: PartitionSet, worker: str) -> ProofRun | None:
        """One partition (or the whole proof) is out; returns the proof if that was its last. ValueError: the second time."""
        if pset.completed:
            raise ValueError(f"{pset} completes a second time")
        pset.completed = True
        proof, now = pset.run, self._clock()
        proof.completed += 1
        self.completion_s.append(now)
        self.journal.complete(pset, worker)
        if proof.completed < proof.sets or proof.failure is not None:
            return None
        proof.completed_s = now
        self.journal.complete_proof(proof)
        self._leave(proof)
        return proof

    def deallocated(self, path: str, pset: PartitionSet, worker: str) -> None:
        """A deallocation path of a set has ended."""
        self.deallocations[path] = self.deallocations.get(path, 0) + 1
        self.journal.dealloc(path, pset, worker)

    def detach(self, pset: PartitionSet) -> bool:
        """One holder less. True: it was the last one, and whoever called must `end` the set, its real memory given back."""
        pset.attached -= 1
        return not pset.attached

    def end(self, pset: PartitionSet, worker: str) -> None:
        """Nobody holds a set any more. What a failed one still has goes back; a set that has not failed must have nothing: that
        is a fault of the pipeline, and fails its proof (a leak of the books would end every later one)."""
        held = bool(pset.buffers or pset.claims)
        if held and not self.arbiter.is_failed(pset):
            what = ", ".join([*pset.buffers, *(name for name, _ in pset.claims)])
            leak = InputError(f"pipeline '{self.program.pipeline.name}': set {pset} ends and still holds {what}")
            self.fail_proof(pset.run, leak)
        if held:
            pset.failed = True
            for buffer in list(reversed(pset.buffers)):
                self.free(pset, buffer, worker)
            self.arbiter.release_all(pset)
            self.journal.unwind(pset, worker)
        proof = pset.run
        self.open_sets -= 1
        proof.open_sets -= 1
        if not proof.open_sets:
            proof.members.clear()
            self._leave(proof)

    def _leave(self, proof: ProofRun) -> None:
        if not proof.left:
            proof.left = True
            self.in_flight -= 1

    def vet(self) -> None:
        """At the end of a run that nothing stopped. Raises InputError if a proof neither came out nor failed."""
        lost = [proof for proof in self.proofs if proof.completed_s is None and proof.failure is None]
        if lost:
            name, sets = self.program.pipeline.name, sum(proof.sets - proof.completed for proof in lost)
            what = f"{sets} sets end without `complete`" if sets else "no worker starts with a partition or a proof"
            raise InputError(f"pipeline '{name}': {len(lost)} of {len(self.proofs)} proofs never come out: {what}")

    # -- failure ------------------------------------------------------------------------------------------

    def out_of_memory(self, oom: OutOfMemory, pset: PartitionSet | None, worker: str, *, by_driver: bool = False) -> None:
        """Memory ran out: note it, and fail what it concerns. This is the one rule of its scope.

        A device's memory fails the proof that asked; so does what a driver refuses (`by_driver`: VRAM, or pages to lock), for the
        system has no need to kill anybody. The host's memory ends the run: the kernel would end the process.
        """
        if self.oom is None:
            self.oom = (self._clock(), oom)
        self.journal.out_of_memory(oom, worker)
        if pset is not None and (by_driver or oom.pool.startswith("vram")):
            self.fail_proof(pset.run, oom)
        else:
            self.fail_run(oom)

    def met(self, error: BaseException, worker: str, pset: PartitionSet) -> OutOfMemory:
        """Memory that a body was refused in the middle of a step: a device's (OutOfMemoryError, with the pool's name if it is not
        VRAM), or the system's."""
        of_device = isinstance(error, OutOfMemoryError)
        pool = self.books.pools[getattr(error, "pool", f"vram:{pset.gpu}") if of_device else "ram"]
        oom = OutOfMemory(pool.name, worker, 0, pool.reserved, pool.capacity, pool.holders(), pset)
        why = f" ({error})" if str(error) else ""
        oom.args = (str(error) if of_device else f"ram: the system refused memory to {worker}{why}",)
        return oom

    def refused(self, want_buffer: str, pool_name: str, nbytes: int, pset: PartitionSet, error: BaseException) -> OutOfMemory:
        """The books had room and the device had none."""
        if isinstance(error, OutOfMemory):
            return error
        pool = self.books.pools[pool_name]
        oom = OutOfMemory(pool_name, want_buffer, nbytes, pool.reserved, pool.capacity, pool.holders(), pset)
        oom.args = (f"{oom} ({error})" if str(error) else f"{oom} (refused by the system)",)
        return oom

    def fail_proof(self, proof: ProofRun, error: BaseException) -> None:
        """A proof has failed alone: its waiters wake, its sets that lie in channels are let go."""
        if proof.failure is not None or self.failure is not None:
            return
        proof.failure = error
        self.failures.append((proof.number, error))
        self.journal.fail("proof", error, proof=proof.number)
        dropped = self.arbiter.fail("proof", proof.number, describe(error))
        self._mark(proof.members, dropped)

    def fail_device(self, error: DeviceLost, on_it: Iterable[ProofRun]) -> None:
        """A device is lost: the proofs that are on it fail, and all of them if it was the last one; then that is the end of the
        run, unless another process goes on."""
        if error.gpu in self.lost or self.failure is not None:
            return
        self.lost[error.gpu] = error
        none_left = len(self.lost) == self.program.gpus
        if none_left and not self._replaceable:
            self.fail_run(error)
            return
        self.journal.fail("device", error, gpu=error.gpu)
        if self._replaceable:
            self.arrivals.clear()
        concerned = set(map(id, on_it))
        for proof in self.proofs:
            if not proof.left and (none_left or id(proof) in concerned):
                self.fail_proof(proof, error)
        self._mark((), self.arbiter.fail("device", error.gpu, describe(error)))

    def fail_run(self, error: BaseException) -> None:
        """Nothing goes on."""
        if self.failure is not None:
            return
        self.failure = error
        self.journal.fail("run", error)
        dropped = self.arbiter.fail("run", reason=describe(error))
        self._mark([pset for proof in self.proofs for pset in proof.members], dropped)

    def _mark(self, psets: Iterable[PartitionSet], dropped: Iterable[PartitionSet]) -> None:
        alive = [pset for pset in psets if pset.attached]
        for pset in alive:
            pset.failed = True
        self._interpreter.wake_failed(alive)
        for pset in dropped:
            self._interpreter.let_go(pset)

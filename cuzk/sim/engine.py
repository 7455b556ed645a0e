"""The simulated run: SimPy gives the clock, the run core and the Arbiter decide, the prices say for how long.

An actor is a program counter over compiled steps (`compiler.py`), not a SimPy process: steps that do not wait cost no event.
SimPy's events are arrivals, wake latencies and one timer for the next end of all work in progress (`rates.py`).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

from simpy import Environment
from simpy.events import Event as SimEvent
from simpy.events import Timeout

from cuzk.errors import InputError
from cuzk.pipeline import ops
from cuzk.pipeline.arbiter import FAILED, RETRY
from cuzk.pipeline.core import RunCore
from cuzk.pipeline.faults import InjectedFault
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.program import Program, Resident, limit_permit
from cuzk.pipeline.sets import PartitionSet
from cuzk.sim.actors import Actor, Handle, SetFailed, SimSet
from cuzk.sim.compiler import Code
from cuzk.sim.costs import Costs
from cuzk.sim.devices import Devices
from cuzk.sim.jitter import factors
from cuzk.sim.ledger import Ledger
from cuzk.sim.options import Options
from cuzk.sim.rates import Group, SharedRates
from cuzk.sim.stuck import deadlock
from cuzk.trace.event import Event

TIME_SLICE_S = 0.004
"""For so long another thread may have the processor."""


class Engine:
    """One run of `program`. Used once: `run()`, then read the attributes."""

    def __init__(self, program: Program, seed: int, options: Options) -> None:
        """Raises ScenarioError for a program without prices."""
        program.require_prices()
        calibration = program.scenario.calibration
        assert calibration is not None
        self.program, self.seed, self.options, self.calibration = program, seed, options, calibration
        self.durations, self.traced = options.durations, options.trace
        self.env = Environment()
        self.now = 0.0
        """SimPy's clock, as of the event under way."""
        self.events: list[Event] | None = [] if options.trace else None
        sink = self.events.append if self.events is not None else None
        self.core = RunCore(
            program, self, lambda: self.now, sink, seed=seed, new_set=SimSet, resident=lambda pool: self.ledger.level_of(pool)
        )
        self.books, self.arbiter = self.core.books, self.core.arbiter
        if options.unlimited_ram:
            for name in ("ram", "pinned"):
                self.books.pools[name].capacity = 1 << 62
        self.random = random.Random(seed)
        self.shuffle = random.Random(options.shuffle) if options.shuffle is not None else None
        self._wake_s = calibration.latency.lock_wake
        self._channel_wake_s = calibration.latency.channel_wake
        self._spawn_s = calibration.latency.spawn
        self.turnaround_s = calibration.latency.turnaround

        machine, law = program.scenario.machine, calibration.contention
        cores = machine.cores * (1.0 + law.smt_yield * (machine.smt - 1))
        self.cores = Group("cores", cores, law.cores_exponent)
        self.rates = SharedRates(self.env, law.dram_exponent, self.cores, self._ended)
        self.costs = Costs(calibration, self.cores, options.draw, self.durations is not None)
        self.ledger = Ledger(self)
        self.devices = Devices(self)
        self.code = Code(self)

        self.stopped = False
        self.waited: dict[str, float] = {}
        """Seconds that actors waited, by what for."""
        self.runnable: deque[tuple[Actor, Any]] = deque()
        workers = program.pipeline.workers
        self._limited = frozenset(name for name, worker in workers.items() if worker.limit is not None)
        self._finished = self.env.event()
        self._slots: dict[str, set[int]] = {}

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Returns when all is done or has failed. Raises InputError if the pipeline deadlocks, or a set leaks."""
        self._load_residents()
        if self.stopped:
            self.ledger.finish()
            return
        self._start_pools()
        for arrival in self.core.arrivals:
            if arrival.at_s is not None:
                timer = Timeout(self.env, arrival.at_s)
                timer.callbacks.append(self._arrive)
        self.admit()
        self.settled()
        try:
            self.env.run(until=self._finished)
        except RuntimeError as error:
            if "No scheduled events left" not in str(error):
                raise
            raise InputError(deadlock(self)) from None
        self.tick()
        for _, why in self.core.failures:
            if isinstance(why, InputError):  # a fault of the pipeline, not of the machine
                raise why
        if self.core.oom is None:
            self.core.vet()
        self.ledger.finish()

    def _load_residents(self) -> None:
        memory = self.calibration.memory
        rows = [Resident("process", "ram", memory.process_ram, 0, False)] if memory.process_ram else []
        for resident in [*rows, *self.program.residents]:
            try:
                self.core.load(resident)
            except OutOfMemory as error:
                self.run_out(error, None)
                return
        self.ledger.residents_loaded(memory.allocator_slack)

    def _start_pools(self) -> None:
        for name, worker in self.program.pipeline.workers.items():
            if worker.start != "pool":
                continue
            devices = range(self.program.gpus) if worker.per == "gpu" else [None]
            # one worker on each device before the second one on any: otherwise the first device takes all
            for index in range(self.program.worker_count(name)):
                for gpu in devices:
                    code = self.code.of(name, self.program.scenario.circuit.name, gpu or 0)
                    actor = Actor(name, code, None, gpu or 0, pool=True)
                    actor.name = f"{name}:{index}" if gpu is None else f"{name}:{gpu}.{index}"
                    self.runnable.append((actor, RETRY))

    # ---------------------------------------------------------------- admission

    def _arrive(self, timer: SimEvent) -> None:
        self.tick()
        self.admit()
        self.settled()

    def admit(self) -> None:
        """All that has arrived and may start, starts."""
        if self.stopped:
            return
        for worker, pset in self.core.admit_due(self.now):
            assert isinstance(pset, SimSet)
            partitions = self.program.circuits[pset.circuit].partitions
            pset.spread = factors(self.seed, pset.proof, partitions, self.costs.spread)[pset.partition]
            self.begin(Actor(worker, self.code.of(worker, pset.circuit, 0), pset, 0))

    def complete(self, actor: Actor) -> None:
        """One partition (or the whole proof) is out."""
        if self.core.complete(actor.pset, actor.name) is not None:
            self.ledger.proof_done()
            self.admit()

    # ----------------------------------------------------------------- stepping

    def begin(self, actor: Actor) -> None:
        """Start a task or spawned worker, or let it wait if as many of its kind run as may."""
        if actor.kind in self._limited:
            limit = limit_permit(actor.kind)
            granted = self.arbiter.acquire(actor, actor.pset, limit)
            if granted is False:
                actor.pc = -1  # woken with its permit, it goes on at its first step
                self.block(actor, limit)
                return
            if granted is True:
                self.ledger.held[limit] -= self.now
        if self._spawn_s:
            self._delay(self._spawn_s, actor, RETRY)
        else:
            self.runnable.append((actor, RETRY))

    def settled(self) -> None:
        """Everything that can happen at this instant happens; then speeds and the next timer are set."""
        runnable, woken = self.runnable, self.arbiter.woken
        while not self.stopped:
            if woken:
                self._deliver(woken)
            elif runnable:
                if self.shuffle is not None and len(runnable) > 1:
                    runnable.rotate(self.shuffle.randrange(len(runnable)))
                actor, value = runnable.popleft()
                self._resume(actor, value)
            else:
                break
        self.rates.settle()
        ram = self.ledger.ram
        if ram.live + ram.cached > ram.capacity or self.ledger.watched is not None:
            self.ledger.watch_ramps()
        if not self.core.open_sets and self.core.is_over:
            self._stop()

    def _deliver(self, woken: list[tuple[Actor, Any]]) -> None:
        for actor, value in woken:
            delay = 0.0
            if value is FAILED:
                pass
            elif value is RETRY:
                # which of them is first decides who gets a barging lock, and no two wake-ups take equally long
                delay = self._wake_s * self.random.expovariate(1.0)
            elif value is not True:
                delay = self._channel_wake_s
            elif actor.waits_for in self.ledger.held:
                self.ledger.held[actor.waits_for] -= self.now
                delay = self._wake_s if actor.waits_for in self.program.lock_instances else 0.0
            else:
                actor.owns = False  # a channel took the set
            if actor.asked is not None and value is not FAILED and value is not RETRY:
                self.granted(actor)
            if self.shuffle is not None and delay:
                delay *= 2.0 * self.shuffle.random()
            if delay > 0.0:
                self._delay(delay, actor, value)
            else:
                self.runnable.append((actor, value))
        woken.clear()

    def _delay(self, delay_s: float, actor: Actor, value: Any) -> None:
        timer = Timeout(self.env, delay_s, value=(actor, value))
        timer.callbacks.append(self._late)

    def _late(self, timer: SimEvent) -> None:
        if self.stopped:
            return
        self.tick()
        assert timer.value is not None
        self.runnable.append(timer.value)
        self.settled()

    def _ended(self, owner: Any, others: list[Any]) -> None:
        """Some work is done: its owners go on."""
        self.now = self.books.now = self.rates.now
        if type(owner) is Actor and self.shuffle is None:
            self._resume(owner, True)
        else:
            self._end_of_work(owner)
        for other in others:
            self._end_of_work(other)
        self.settled()

    def _end_of_work(self, owner: Any) -> None:
        if type(owner) is not Actor:
            self.devices.done(owner)
        elif self.shuffle is not None and self.shuffle.random() < 0.25:
            self._delay(2.0 * self._wake_s * self.shuffle.random(), owner, True)
        else:
            self.runnable.append((owner, True))

    def go_on(self, actor: Actor) -> bool:
        """Another legal order: whoever has woken somebody may lose the processor before its next step."""
        assert self.shuffle is not None
        if self.shuffle.random() < 0.75:
            return True
        self._delay(TIME_SLICE_S * self.shuffle.random(), actor, True)
        return False

    def tick(self) -> None:
        """SimPy's clock has moved: so do all others."""
        self.now = self.books.now = self.rates.now = self.env.now

    def _resume(self, actor: Actor, value: Any) -> None:
        if actor.waits_for is not None:
            self._waited(actor)
        if value is FAILED or (actor.owns and actor.pset.failed):
            self.abandon(actor)
            return
        if value is RETRY:
            pc = actor.pc
        elif value is True:
            pc = actor.pc + 1
        else:
            self.take(actor, value)
            if value.failed:
                self.abandon(actor)
                return
            pc = actor.pc + 1
        code = actor.code
        try:
            while True:
                result = code[pc](actor)
                if result is True:
                    pc += 1
                elif result is False:
                    actor.pc = pc
                    return
                else:
                    pc = result
                    code = actor.code
        except SetFailed:
            self.abandon(actor)
        except OutOfMemory as error:
            self.run_out(error, actor)
        except (KeyError, ValueError) as error:  # the books' and the arbiter's: freed twice, released and not held, …
            raise self.program.error(self.code.place(actor, pc), f"{error.args[0]} (at {self.now:.3f} s)") from error

    def block(self, actor: Actor, what: str) -> bool:
        """The actor waits for a claim from now on. Returns False, as a compiled step does then."""
        if self.traced and actor.asked is None:
            actor.asked = what
            self.core.journal.wait(what, actor.name, actor.pset if actor.owns else None)
        return self.sleep(actor, what)

    def sleep(self, actor: Actor, what: str) -> bool:
        """The same as `block`, for an event of a stream or a device: that is no claim, and no event of the journal."""
        actor.waits_for, actor.since = what, self.now
        return False

    def granted(self, actor: Actor) -> None:
        """The claim whose wait is in the journal is granted."""
        assert actor.asked is not None
        self.core.journal.grant(actor.asked, actor.name, actor.pset if actor.pset is not None else None)
        actor.asked = None

    def _waited(self, actor: Actor) -> None:
        what = actor.waits_for
        assert what is not None
        actor.waits_for = None
        self.waited[what] = self.waited.get(what, 0.0) + self.now - actor.since

    def take(self, actor: Actor, pset: SimSet) -> None:
        """A pool worker has got a set: it leaves the one before and binds itself to this one."""
        self.leave(actor)
        actor.pset, actor.owns = pset, True
        actor.code = self.code.of(actor.kind, pset.circuit, actor.gpu)
        pset.taken_s = self.now

    # ------------------------------------------------------------ ends of actors

    def leave(self, actor: Actor) -> None:
        """The actor lets go of its set."""
        pset = actor.pset
        if pset is None:
            return
        actor.pset = None
        if not actor.owns:
            return
        actor.owns = False
        if actor.pool:
            pset.run.gpu_call_s += self.now - pset.taken_s
        if actor.handle is not None:
            self._end_handle(actor.handle)
        self.detach(pset, actor.name)

    def detach(self, pset: PartitionSet, worker: str) -> None:
        """One holder less; the last one ends the set, and gives back what a failed one still has."""
        if not self.core.detach(pset):
            return
        if pset.buffers:
            self.ledger.before_free()
        for name, _ in pset.claims:
            self.ledger.held[name] += self.now
        self.core.end(pset, worker)
        self.admit()

    def _end_handle(self, handle: Handle) -> None:
        handle.ended = True
        for waiter in handle.waiters:
            if waiter.asked is not None:
                self.granted(waiter)
            self.runnable.append((waiter, True))
        handle.waiters.clear()

    def end(self, actor: Actor) -> Any:
        """The end of a program: a pool worker begins again, others are done."""
        pset = actor.pset
        if actor.kind in self._limited and pset is not None and not pset.failed:
            limit = limit_permit(actor.kind)
            self.arbiter.release(pset, limit)
            self.ledger.held[limit] += self.now
        self.leave(actor)
        if actor.pool:
            return 0
        if actor.slot is not None:
            self._slots[actor.kind].discard(actor.slot)
        return False

    def turn_around(self, actor: Actor) -> bool:
        """A pool worker is through with its set, and takes a moment before it claims the next one."""
        self.leave(actor)
        self._delay(self.turnaround_s, actor, True)
        return False

    def name_lane(self, actor: Actor) -> None:
        """The lowest number that no running worker of its kind has: a lane in the trace."""
        used = self._slots.setdefault(actor.kind, set())
        actor.slot = next(i for i in range(len(used) + 1) if i not in used)
        used.add(actor.slot)
        actor.name = f"{actor.kind}:{actor.slot}"

    def _stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self._finished.succeed()

    # ------------------------------------------------------------------ failure

    def run_out(self, error: OutOfMemory, actor: Actor | None) -> None:
        """Memory ran out: the core says whom that concerns."""
        self.core.out_of_memory(error, actor.pset if actor else None, actor.name if actor else "load")
        if self.core.failure is not None:
            self.runnable.clear()
            self._stop()  # the kernel ends the process
        elif actor is not None:
            self.abandon(actor)

    def planted(self, pset: PartitionSet, op: ops.Run | ops.Copy) -> InjectedFault | None:
        """The error of a step that a plan lets fail."""
        faults = self.options.faults
        return faults.step_done(pset, op.name) if faults is not None and isinstance(op, ops.Run) else None

    def wake_failed(self, psets: Iterable[PartitionSet]) -> None:
        """For the core: sets have failed, and whoever joins a worker of theirs learns of it."""
        if self.core.failure is not None:
            return
        for pset in psets:
            assert isinstance(pset, SimSet)
            for handle in pset.handles.values():
                self.runnable.extend((waiter, FAILED) for waiter in handle.waiters)
                handle.waiters.clear()

    def let_go(self, pset: PartitionSet) -> None:
        """For the core: a set that lay in a channel has failed."""
        if self.core.failure is None:
            self.detach(pset, "channel")

    def abandon(self, actor: Actor) -> None:
        """The set of this actor has failed: leave it, once its streams are still, and begin or end."""
        actor.asked = None
        if actor.at_end is not None:
            actor.at_end(actor)
        for stream in (actor.streams or {}).values():
            if stream.busy:
                stream.on_idle.append(actor)
                return
        if self.end(actor) is False:
            return
        actor.pc = 0
        self.runnable.append((actor, RETRY))

"""The simulated run: SimPy gives the clock, the Arbiter decides who goes on, the cost laws say for how long.

An actor is a program counter over compiled steps (`programs.py`), not a SimPy process: steps that do not wait cost no event.
SimPy's events are arrivals, wake latencies and one timer for the next end of all work in progress (`rates.py`).
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

from simpy import Environment
from simpy.events import Event as SimEvent
from simpy.events import Timeout

from cuzk.errors import InputError
from cuzk.pipeline.arbiter import FAILED, RETRY, OutOfMemory, Token
from cuzk.pipeline.plan import Plan, limit_permit
from cuzk.sim.actors import Actor, Handle, SimToken
from cuzk.sim.admission import Admission
from cuzk.sim.devices import Devices
from cuzk.sim.ledger import Ledger
from cuzk.sim.programs import Programs
from cuzk.sim.rates import Group, SharedRates
from cuzk.trace.event import Event

Durations = dict[tuple[int, int, str], list[float]]
"""(proof, partition, step) -> seconds of its runs in order: measured ones, for a replay."""

TIME_SLICE_S = 0.004
"""For so long another thread may have the processor."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run does beside the plain one."""

    trace: bool = False
    """Keep every event."""
    shuffle: int | None = None
    """Seed of another legal order: of actors that can go on at one instant, and of how long wake-ups take."""
    durations: Durations | None = None
    """Step times of a measured run instead of the cost laws."""
    unlimited_ram: bool = False
    """Go on beyond the host's memory: for bands of peaks."""
    errors: int | None = None
    """Seed of a draw of each cost law within its stated error."""
    extra_error: float = 0.0
    """Relative error of every cost law beside its stated one."""


class Engine:
    """One run of `plan`. Used once: `run()`, then read the attributes."""

    def __init__(self, plan: Plan, seed: int, options: Options) -> None:
        durations, shuffle, trace = options.durations, options.shuffle, options.trace
        self.options = options
        self.plan, self.seed, self.durations = plan, seed, durations
        for name, spec in plan.pipeline.buffers.items():
            for pool in [spec.pool.replace("$gpu", str(gpu)) for gpu in range(max(1, plan.gpus))]:
                if pool not in plan.pools:
                    raise plan.scenario.error(("pipeline", "buffers", name, "pool"), _no_pool(pool, plan))
        for name, lock in plan.pipeline.locks.items():
            if lock.per == "gpu" and not plan.gpus:
                raise plan.scenario.error(("pipeline", "locks", name), "a lock of each GPU, and the machine has none")
        calibration = plan.scenario.calibration
        if calibration is None:
            hint = "name one, such as calibrations/reference.yaml, or make one with `cuzk calibrate`"
            raise plan.scenario.error(("calibration",), f"a simulation needs the costs of the steps: {hint}")
        self.calibration = calibration
        self.env = Environment()
        self.now = 0.0
        """SimPy's clock, as of the event under way."""
        self.arbiter = plan.arbiter(seed)
        if options.unlimited_ram:
            for name in ("ram", "pinned"):
                self.arbiter.pools[name].capacity = 1 << 62
        self.events: list[Event] | None = [] if trace else None
        self.random = random.Random(seed)
        self.shuffle = random.Random(shuffle) if shuffle is not None else None
        self._wake_s = calibration.latency.lock_wake
        self._channel_wake_s = calibration.latency.channel_wake
        self._spawn_s = calibration.latency.spawn
        self.turnaround_s = calibration.latency.turnaround

        machine, law = plan.scenario.machine, calibration.contention
        cores = machine.cores * (1.0 + law.smt_yield * (machine.smt - 1))
        self.cores = Group("cores", cores, law.cores_exponent)
        self.rates = SharedRates(self.env, law.dram_exponent, self.cores, self._ended)
        self.ledger = Ledger(self)
        self.programs = Programs(self)
        self.devices = Devices(self)
        self.admission = Admission(self)

        self.deallocations: dict[str, int] = {}
        self.oom: tuple[float, OutOfMemory] | None = None
        self.stopped = False
        self.waited: dict[str, float] = {}
        """Seconds that actors waited, by what for."""
        self.wakes = 0
        self.runnable: deque[tuple[Actor, Any]] = deque()
        self._limited = frozenset(name for name, worker in plan.pipeline.workers.items() if worker.limit is not None)
        self._finished = self.env.event()
        self._slots: dict[str, set[int]] = {}

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Returns when all is done or has failed. Raises InputError if the pipeline deadlocks."""
        self._load_residents()
        if self.stopped:
            self.ledger.finish()
            return
        self._start_pools()
        self.admission.open()
        self.settled()
        try:
            self.env.run(until=self._finished)
        except RuntimeError as error:
            if "No scheduled events left" not in str(error):
                raise
            raise InputError(self._deadlock()) from None
        self.tick()
        if self.oom is None:
            self.admission.vet()
        self.ledger.finish()

    def _deadlock(self) -> str:
        stuck = [f"{a.name} waits for {a.waits_for}" for a in self._waiting() if a.token is not None and a.waits_for]
        counted = {text: stuck.count(text) for text in dict.fromkeys(stuck)}
        told = [text + (f" ({n} sets)" if n > 1 else "") for text, n in counted.items()]
        channels = self.arbiter._channels.items()
        told += [f"{len(channel.items)} sets lie in {name}, and nobody takes them" for name, channel in channels if channel.items]
        shown = "; ".join(told) or "nothing can go on"
        return f"the pipeline '{self.plan.pipeline.name}' deadlocks at {self.now:.3f} s: {shown}"

    def _waiting(self) -> list[Actor]:
        arbiter = self.arbiter
        actors = [w[0] for claim in arbiter._claims.values() for w in claim.waiters]
        actors += [p[0] for channel in arbiter._channels.values() for p in channel.putters]
        handles = [h for proof in self.admission.proofs for token in proof.members for h in token.handles.values()]
        return actors + [a for handle in handles for a in handle.waiters]

    def _load_residents(self) -> None:
        memory = self.calibration.memory
        rows = [("process", "ram", memory.process_ram)] if memory.process_ram else []
        for buffer, pool, nbytes in rows + self.plan.residents():
            gpu = int(pool.partition(":")[2] or 0)
            token = Token(-1, -1, gpu=gpu)
            try:
                self.arbiter.alloc(token, buffer, pool, nbytes)
            except OutOfMemory as error:
                self.run_out(error, None)
                return
            if self.events is not None:
                self.ledger.emit("alloc", token, buffer, pool, nbytes, "load")
        self.ledger.residents_loaded(memory.allocator_slack)

    def _start_pools(self) -> None:
        for name, worker in self.plan.pipeline.workers.items():
            if worker.start != "pool":
                continue
            devices = range(self.plan.gpus) if worker.per == "gpu" else [None]
            # one worker on each device before the second one on any: otherwise the first device takes all
            for index in range(self.plan.worker_count(name)):
                for gpu in devices:
                    program = self.programs.of(name, self.plan.scenario.circuit.name, gpu or 0)
                    actor = Actor(name, program, None, gpu or 0, pool=True)
                    actor.name = f"{name}:{index}" if gpu is None else f"{name}:{gpu}.{index}"
                    self.runnable.append((actor, RETRY))

    # ----------------------------------------------------------------- stepping

    def begin(self, actor: Actor) -> None:
        """Start a task or spawned worker, or let it wait if as many of its kind run as may."""
        if actor.kind in self._limited:
            limit = limit_permit(actor.kind)
            granted = self.arbiter.acquire(actor, actor.token, limit)
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
        if not self.admission.open_sets and self.admission.is_over:
            self._stop()

    def _deliver(self, woken: list[tuple[Actor, Any]]) -> None:
        for actor, value in woken:
            self.wakes += 1
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
                delay = self._wake_s if self.programs.is_lock(actor.waits_for) else 0.0
            else:
                actor.owns = False  # a channel took the set
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
        self.runnable.append(timer.value)
        self.settled()

    def _ended(self, owner: Any, others: list[Any]) -> None:
        """Some work is done: its owners go on."""
        self.now = self.arbiter.now = self.rates.now
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
        self.now = self.arbiter.now = self.rates.now = self.env.now

    def _resume(self, actor: Actor, value: Any) -> None:
        if actor.waits_for is not None:
            self._waited(actor)
        if value is FAILED or (actor.owns and actor.token.failed):
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
        program = actor.program
        try:
            while True:
                result = program[pc](actor)
                if result is True:
                    pc += 1
                elif result is False:
                    actor.pc = pc
                    return
                else:
                    pc = result
                    program = actor.program
        except OutOfMemory as error:
            self.run_out(error, actor)
        except (KeyError, ValueError) as error:  # the arbiter's: freed twice, released and not held, …
            loc = ("pipeline", *self.programs.place(actor, pc))
            raise self.plan.scenario.error(loc, f"{error.args[0]} (at {self.now:.3f} s)") from error

    def block(self, actor: Actor, what: str) -> bool:
        """The actor waits from now on. Returns False, as a compiled step does then."""
        actor.waits_for, actor.since = what, self.now
        if self.events is not None:
            self.event("wait", actor, what)
        return False

    def _waited(self, actor: Actor) -> None:
        what = actor.waits_for
        actor.waits_for = None
        self.waited[what] = self.waited.get(what, 0.0) + self.now - actor.since
        if self.events is not None:
            self.event("grant", actor, what)

    def event(self, kind: Any, actor: Actor, name: str, **more: Any) -> None:
        token = actor.token if actor.owns or actor.token is not None else None
        where = {} if token is None else {"proof": token.proof, "partition": token.partition}
        gpu = actor.gpu if actor.pool else None
        self.events.append(Event(self.now, kind, name, actor.name, gpu=gpu, **where, **more))

    def take(self, actor: Actor, token: SimToken) -> None:
        """A pool worker has got a set: it leaves the one before and binds itself to this one."""
        self.leave(actor)
        actor.token, actor.owns = token, True
        actor.program = self.programs.of(actor.kind, token.circuit, actor.gpu)
        token.taken_s = self.now

    # ------------------------------------------------------------ ends of actors

    def leave(self, actor: Actor) -> None:
        """The actor lets go of its set."""
        token = actor.token
        if token is None:
            return
        actor.token = None
        if not actor.owns:
            return
        actor.owns = False
        if actor.pool:
            token.owner.gpu_call_s += self.now - token.taken_s
        if actor.handle is not None:
            self._end_handle(actor.handle)
        self.admission.detach(token)

    def _end_handle(self, handle: Handle) -> None:
        handle.ended = True
        for waiter in handle.waiters:
            self.runnable.append((waiter, True))
        handle.waiters.clear()

    def end(self, actor: Actor) -> Any:
        """The end of a program: a pool worker begins again, others are done."""
        token = actor.token
        if actor.kind in self._limited and token is not None and not token.failed:
            limit = limit_permit(actor.kind)
            self.arbiter.release(token, limit)
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
        now = self.now
        if self.oom is None:
            self.oom = (now, error)
        if self.events is not None:
            where = {} if actor is None else {"proof": actor.token.proof, "partition": actor.token.partition}
            self.events.append(Event(
                now, "oom", error.buffer, actor.name if actor else "load", pool=error.pool, bytes=error.request_bytes,
                live=error.level_bytes, capacity=error.capacity_bytes, holders=error.holders, **where,
            ))  # fmt: skip
        if actor is None or not error.pool.startswith("vram"):
            self.stop_run(error)
        else:
            self.admission.fail(actor.token.owner, str(error))
            self.abandon(actor)

    def stop_run(self, error: OutOfMemory) -> None:
        """Host memory ran out: the kernel ends the process."""
        if self.events is not None:
            self.events.append(Event(self.now, "fail", reason=str(error)))
        self.runnable.clear()
        self._stop()

    def abandon(self, actor: Actor) -> None:
        """The set of this actor has failed: leave it, once its streams are still, and begin or end."""
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


def _no_pool(pool: str, plan: Plan) -> str:
    if pool == "vram:0":
        return "the machine has no GPU, and this pipeline needs one"
    return f"there is no pool {pool!r}; there are {', '.join(plan.pools)}"

"""The most that a pool can hold under any legal order, from the step lists alone.

A set that holds a permit or a lock is one of few; one that holds neither can be any of the j × partitions in flight. So the
bound of a pool is: for each stage (a stretch of steps under the same claims), the number of sets that can be in it times
what a set holds there; sets go to the stages where they hold most, as far as the claims allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.model.circuit import Circuit
from cuzk.pipeline.plan import GPU, Plan
from cuzk.pipeline.steps import Acquire, Alloc, Free, Get, Put, Release, Spawn, StepBase, TryAlloc


@dataclass(frozen=True)
class Bound:
    pool: str
    at_most_bytes: int
    capacity_bytes: int
    why: str


@dataclass
class _Stage:
    """What a set holds in a pool (largest over the stretch), and the claims that limit how many sets can be here."""

    claims: frozenset[str]
    worker: str
    nbytes: int


def bounds(plan: Plan) -> list[Bound]:
    """One bound a pool, the largest circuit of the workload taken throughout."""
    return [_bound(plan, pool, capacity) for pool, capacity in plan.pools.items()]


def _bound(plan: Plan, pool: str, capacity: int) -> Bound:
    parts = {"ram": {"ram", "pinned"}}.get(pool, {pool})
    residents = sum(nbytes for _, where, nbytes in plan.residents() if where in parts)
    circuit = max(plan.circuits.values(), key=lambda c: c.constraints)
    stages = _Walk(plan, circuit, pool, parts).stages()
    left = (plan.policy.j or 1) * (1 if _whole(plan) else circuit.partitions)
    total, used = residents, dict.fromkeys(_units(plan), 0)
    notes: list[str] = []
    for stage in sorted(stages, key=lambda s: -s.nbytes):
        room = min([units - used[name] for name, units in _units(plan).items() if name in stage.claims], default=left)
        count = max(0, min(room, left))
        if count and stage.nbytes:
            total += count * stage.nbytes
            left -= count
            for name in stage.claims & used.keys():
                used[name] += count
            notes.append(f"{count} × {stage.nbytes / 2**30:.1f} GiB in {stage.worker}")
    why = " + ".join([f"{residents / 2**30:.1f} GiB resident", *notes])
    return Bound(pool, total, capacity, why)


def _whole(plan: Plan) -> bool:
    return any(worker.start == "proof" for worker in plan.pipeline.workers.values())


def _units(plan: Plan) -> dict[str, int]:
    """How many sets can hold each claim (of one GPU) at once; `worker NAME`: sets in the hands of a pool worker."""
    names = plan.names(plan.scenario.circuit)
    units = dict.fromkeys(plan.pipeline.locks, 1)
    units |= {name: plan.number(spec.count, names, "permits", name, "count") for name, spec in plan.pipeline.permits.items()}
    for name, worker in plan.pipeline.workers.items():
        if worker.start == "pool":
            units[f"worker {name}"] = plan.worker_count(name) * (plan.gpus if worker.per == "gpu" else 1)
    for name, channel in plan.pipeline.channels.items():
        if channel.capacity is not None:
            units[f"channel {name}"] = plan.number(channel.capacity, names, "channels", name, "capacity")
    return units


class _Walk:
    """Follows one set from its start to its end and notes what it holds in one pool."""

    def __init__(self, plan: Plan, circuit: Circuit, pool: str, parts: set[str]) -> None:
        self.plan, self.circuit, self.parts = plan, circuit, parts
        self.gpu = int(pool.rpartition(":")[2]) if ":" in pool else 0
        self.live: dict[str, int] = {}
        self.claims: set[str] = set()
        self.out: list[_Stage] = []
        self.depth = 0

    def stages(self) -> list[_Stage]:
        for name, worker in self.plan.pipeline.workers.items():
            if worker.start in ("partition", "proof"):
                self.worker(name)
        return self.out

    def worker(self, name: str) -> None:
        self.depth += 1
        if self.depth < 32:
            steps = self.plan.pipeline.workers[name].steps
            for index, step in enumerate(steps):
                if isinstance(step, Put):
                    self.put(name, step.put, {s.release for s in steps[index:] if isinstance(s, Release)})
                else:
                    self.step(name, step)
                self.out.append(_Stage(frozenset(self.claims), name, sum(self.live.values())))
        self.depth -= 1

    def step(self, worker: str, step: StepBase) -> None:
        match step:
            case TryAlloc(then=then, otherwise=otherwise):
                live, claims = dict(self.live), set(self.claims)
                self.arm(worker, otherwise)
                self.live, self.claims = live, claims
                self.step(worker, Alloc(alloc=step.try_alloc))
                self.arm(worker, then)
            case Alloc(alloc=names):
                for name in names:
                    pool = self.plan.pipeline.buffers[name].pool.replace(GPU, str(self.gpu))
                    if pool in self.parts:
                        self.live[name] = self.plan.size(name, self.circuit, self.gpu)
            case Free(free=names):
                for name in names:
                    self.live.pop(name, None)
            case Acquire(acquire=name):
                self.claims.add(name)
            case Release(release=name):
                self.claims.discard(name)
            case Spawn(spawn=child, moves=moves):
                mine = {claim for claim in self.claims if moves and claim.startswith("worker ")}
                self.claims -= mine
                self.worker(child)
                self.claims |= mine

    def arm(self, worker: str, steps: tuple[StepBase, ...]) -> None:
        """One way through a branch; locks may change hands in it."""
        self.out.append(_Stage(frozenset(self.claims), worker, sum(self.live.values())))
        for step in steps:
            self.step(worker, step)
            self.out.append(_Stage(frozenset(self.claims), worker, sum(self.live.values())))

    def put(self, worker: str, channel: str, released: set[str]) -> None:
        """A set at a channel: waiting for room (its claims still held), lying in it, then in the hands of a taker."""
        nbytes = sum(self.live.values())
        self.out.append(_Stage(frozenset(self.claims), f"{worker}, waiting for room in {channel}", nbytes))
        self.claims -= released
        self.out.append(_Stage(frozenset({*self.claims, f"channel {channel}"}), channel, nbytes))
        for taker, spec in self.plan.pipeline.workers.items():
            if any(isinstance(step, Get) and step.get == channel for step in spec.steps):
                self.claims.add(f"worker {taker}")
                self.worker(taker)
                self.claims.discard(f"worker {taker}")

"""The most that a pool can hold under any legal order, from the step lists alone.

A set that holds a permit or a lock is one of few; one that holds neither can be any of the j × partitions in flight. So the
bound of a pool is: for each stage (a stretch of steps under the same claims), the number of sets that can be in it times
what a set holds there; sets go to the stages where they hold most, as far as the claims allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.pipeline import ops
from cuzk.pipeline.check import takes
from cuzk.pipeline.program import Program


@dataclass(frozen=True)
class Bound:
    pool: str
    at_most_bytes: int
    capacity_bytes: int
    why: str
    needs_bytes: int
    """One set alone beside the residents, on its slowest path: with less nothing comes out."""

    @property
    def verdict(self) -> str:
        """Whether the pool can hold it, in words."""
        if self.at_most_bytes <= self.capacity_bytes:
            return "always fits"
        return "cannot fit" if self.needs_bytes > self.capacity_bytes else "may not fit"


@dataclass
class _Stage:
    """The bytes that a set holds in a pool (largest over the stretch), and the claims that limit how many sets can be here."""

    claims: frozenset[str]
    worker: str
    nbytes: int


def bounds(program: Program) -> list[Bound]:
    """One bound a pool, the largest circuit of the workload taken throughout."""
    return [_bound(program, pool, capacity) for pool, capacity in program.pools.items()]


def _bound(program: Program, pool: str, capacity: int) -> Bound:
    parts = {"ram": {"ram", "pinned"}}.get(pool, {pool})
    residents = sum(resident.nbytes for resident in program.residents if resident.pool in parts)
    circuit = program.largest
    stages = _Walk(program, pool, parts).stages()
    left = (program.policy.j or 1) * (1 if program.whole else circuit.partitions)
    units = _units(program)
    total, used = residents, dict.fromkeys(units, 0)
    notes: list[str] = []
    for stage in sorted(stages, key=lambda s: -s.nbytes):
        room = min([most - used[name] for name, most in units.items() if name in stage.claims], default=left)
        count = max(0, min(room, left))
        if count and stage.nbytes:
            total += count * stage.nbytes
            left -= count
            for name in stage.claims & used.keys():
                used[name] += count
            notes.append(f"{count} × {stage.nbytes / 2**30:.1f} GiB in {stage.worker}")
    why = " + ".join([f"{residents / 2**30:.1f} GiB resident", *notes])
    alone = max((stage.nbytes for stage in _Walk(program, pool, parts, slow_only=True).stages()), default=0)
    return Bound(pool, total, capacity, why, residents + alone)


def _units(program: Program) -> dict[str, int]:
    """The sets that can hold each claim (of one GPU) at once; `worker NAME`: sets in the hands of a pool worker."""
    units = dict.fromkeys(program.pipeline.locks, 1)
    units |= {name: count for name, (count, _) in program.permits.items() if name in program.pipeline.permits}
    units |= {f"worker {name}": count for name, count in program.pool_workers.items()}
    units |= {f"channel {name}": capacity for name, capacity in program.channels.items() if capacity is not None}
    return units


class _Walk(ops.Visitor[None]):
    """Follows one set from its start to its end and notes what it holds in one pool."""

    def __init__(self, program: Program, pool: str, parts: set[str], slow_only: bool = False) -> None:
        """`slow_only`: of a branch the arm that is taken when there is no room."""
        self.program, self.circuit, self.parts = program, program.largest.name, parts
        self.gpu = int(pool.rpartition(":")[2]) if ":" in pool else 0
        self.live: dict[str, int] = {}
        self.claims: set[str] = set()
        self.out: list[_Stage] = []
        self.depth = 0
        self.slow_only = slow_only
        self.name = ""
        self.behind: tuple[ops.Op, ...] = ()
        """Steps of this worker behind the one that is visited."""

    def stages(self) -> list[_Stage]:
        for name in self.program.starts:
            self.worker(name)
        return self.out

    def worker(self, name: str) -> None:
        before = self.name, self.behind
        self.name, self.depth = name, self.depth + 1
        if self.depth < 32:
            self.walk(self.program.code(name, self.circuit, self.gpu))
        self.depth -= 1
        self.name, self.behind = before

    def walk(self, code: tuple[ops.Op, ...]) -> None:
        for index, op in enumerate(code):
            self.behind = code[index:]
            self.visit(op)
            self.note()

    def note(self, where: str = "") -> None:
        self.out.append(_Stage(frozenset(self.claims), where or self.name, sum(self.live.values())))

    def put(self, op: ops.Put) -> None:
        """A set at a channel: waiting for room (its claims still held), lying in it, then in the hands of a taker."""
        released = {later.name for later in self.behind if isinstance(later, ops.Release)}
        self.note(f"{self.name}, waiting for room in {op.channel}")
        self.claims -= released
        self.claims.add(f"channel {op.channel}")
        self.note(op.channel)
        self.claims.discard(f"channel {op.channel}")
        for taker in self.program.pipeline.workers:
            if takes(self.program, taker, op.channel):
                self.claims.add(f"worker {taker}")
                self.worker(taker)
                self.claims.discard(f"worker {taker}")

    def try_alloc(self, op: ops.TryAlloc) -> None:
        live, claims = dict(self.live), set(self.claims)
        self.arm(op.otherwise)
        if self.slow_only:
            return
        self.live, self.claims = live, claims
        self.hold(op.wants)
        self.arm(op.then)

    def arm(self, code: tuple[ops.Op, ...]) -> None:
        """One way through a branch; locks may change hands in it."""
        self.note()
        self.walk(code)

    def hold(self, wants: tuple[ops.Want, ...]) -> None:
        self.live |= {want.buffer: want.nbytes for want in wants if want.pool in self.parts}

    def alloc(self, op: ops.Alloc) -> None:
        self.hold(op.wants)

    def free(self, op: ops.Free) -> None:
        for name in op.buffers:
            self.live.pop(name, None)

    def acquire(self, op: ops.Acquire) -> None:
        self.claims.add(op.name)

    def release(self, op: ops.Release) -> None:
        self.claims.discard(op.name)

    def spawn(self, op: ops.Spawn) -> None:
        mine = {claim for claim in self.claims if op.moves and claim.startswith("worker ")}
        self.claims -= mine
        self.worker(op.worker)
        self.claims |= mine

    def get(self, op: ops.Get) -> None:
        pass

    def trim(self, op: ops.Trim) -> None:
        pass

    def run(self, op: ops.Run) -> None:
        pass

    def copy(self, op: ops.Copy) -> None:
        pass

    def record(self, op: ops.Record) -> None:
        pass

    def wait(self, op: ops.Wait) -> None:
        pass

    def stream_wait(self, op: ops.StreamWait) -> None:
        pass

    def join(self, op: ops.Join) -> None:
        pass

    def complete(self, op: ops.Complete) -> None:
        pass

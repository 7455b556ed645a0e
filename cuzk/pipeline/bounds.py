"""The most that a pool can hold under any legal order, from the bound steps alone.

A set that holds a permit or a lock is one of few; one that holds neither can be any of the j × partitions in flight. So the
bound of a pool is: for each stage (a stretch of steps under the same claims), the number of sets that can be in it times
the bytes that a set holds there; sets go to the stages where they hold most, as far as the claims allow.

A set that is out no longer counts for j, and may still hold memory: its deallocation can lag behind. If nothing bounds how many
do (no limit, no worker of a pool), only the workload does. So there are two figures: `settled_bytes`, if what is out is given
back before another set takes its place, and `at_most_bytes`, whatever happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cuzk.pipeline import ops
from cuzk.pipeline.check import takes
from cuzk.pipeline.program import Program


@dataclass(frozen=True)
class Bound:
    pool: str
    at_most_bytes: int
    settled_bytes: int
    capacity_bytes: int
    why: str
    needs_bytes: int
    """One set alone beside the residents, on its slowest path: with less nothing comes out."""

    @property
    def verdict(self) -> str:
        """Whether the pool can hold it, in words."""
        if self.at_most_bytes <= self.capacity_bytes:
            return "always fits"
        if self.settled_bytes <= self.capacity_bytes:
            return "fits unless deallocation lags"
        return "cannot fit" if self.needs_bytes > self.capacity_bytes else "may not fit"


@dataclass
class _Stage:
    """The bytes that a set holds in a pool (largest over the stretch), and the claims that limit how many sets can be here."""

    claims: frozenset[str]
    worker: str
    nbytes: int
    out: bool
    """Its proof is out: it no longer counts for j."""


def bounds(program: Program) -> list[Bound]:
    """One bound a pool, the largest circuit of the workload taken throughout."""
    return [_bound(program, pool, capacity) for pool, capacity in program.pools.items()]


def _bound(program: Program, pool: str, capacity: int) -> Bound:
    parts = {"ram": {"ram", "pinned"}}.get(pool, {pool})
    residents = sum(resident.nbytes for resident in program.residents if resident.pool in parts)
    if pool == "ram" and program.scenario.calibration is not None:
        residents += program.scenario.calibration.memory.process_ram
    stages = _Walk(program, pool, parts).stages()
    open_stages = [stage for stage in stages if not stage.out]
    a_proof = 1 if program.whole else program.largest.partitions
    everything = program.scenario.workload.proofs * a_proof
    in_flight = min(everything, (program.in_flight or program.scenario.workload.proofs) * a_proof)
    settled, _ = _fill(program, open_stages, in_flight, 0)
    most, notes = _fill(program, stages, in_flight, everything)
    why = " + ".join([f"{residents / 2**30:.1f} GiB resident", *notes])
    alone = max((stage.nbytes for stage in _Walk(program, pool, parts, slow_only=True).stages()), default=0)
    return Bound(pool, residents + most, residents + settled, capacity, why, residents + alone)


def _fill(program: Program, stages: list[_Stage], in_flight: int, out: int) -> tuple[int, list[str]]:
    """The most bytes of `in_flight` sets that are not out and `out` that may be, and where they are.

    A linear program: as many sets in each stage as its claims and j allow, most bytes. Fractions of sets only make it larger.
    """
    best: dict[tuple[frozenset[str], bool], _Stage] = {}
    units = _units(program)
    for stage in stages:
        key = (frozenset(stage.claims & units.keys()), stage.out)
        if stage.nbytes and (key not in best or stage.nbytes > best[key].nbytes):
            best[key] = stage
    if not best:
        return 0, []
    counts = _most(list(best), [stage.nbytes for stage in best.values()], units, in_flight, out)
    total, notes = 0.0, []
    for stage, count in sorted(zip(best.values(), counts, strict=True), key=lambda row: -row[0].nbytes):
        if count > 1e-6:
            total += count * stage.nbytes
            notes.append(f"{count:g} × {stage.nbytes / 2**30:.1f} GiB in {stage.worker}{', out already' if stage.out else ''}")
    return math.ceil(total * (1 + 1e-12)), notes


def _most(
    kinds: list[tuple[frozenset[str], bool]], nbytes: list[int], units: dict[str, int], in_flight: int, out: int
) -> list[float]:
    """Sets in each kind of stage at the most bytes."""
    from scipy.optimize import linprog

    names = sorted({name for claims, _ in kinds for name in claims})
    rows = [[float(name in claims) for claims, _ in kinds] for name in names]
    rows += [[float(not is_out) for _, is_out in kinds], [float(is_out) for _, is_out in kinds]]
    limits = [*(units[name] for name in names), in_flight, out]
    found = linprog([-n / 2**30 for n in nbytes], A_ub=rows, b_ub=limits, method="highs")
    return [round(float(count), 9) for count in found.x]


def _units(program: Program) -> dict[str, int]:
    """The sets that can hold each claim (of one GPU) at once; `worker NAME`: sets in the hands of a pool worker."""
    units = dict.fromkeys(program.pipeline.locks, 1)
    units |= {name: count for name, (count, _) in program.permits.items()}
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
        self.is_out = False
        self.beside: dict[str, int] = {}
        """Bytes that spawned workers which are not joined yet may hold beside what they leave: they run at their own pace."""
        self.name = ""
        self.behind: tuple[ops.Op, ...] = ()
        """Steps of this worker behind the one that is visited."""

    def stages(self) -> list[_Stage]:
        for name in self.program.starts:
            self.is_out, self.beside = False, {}
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
        self.out.append(
            _Stage(frozenset(self.claims), where or self.name, sum(self.live.values()) + sum(self.beside.values()), self.is_out)
        )

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
        limited = self.program.pipeline.workers[op.worker].limit is not None
        if limited:
            self.note(f"{op.worker}, waiting to begin")
            self.claims.add(f"limit:{op.worker}")
        first = len(self.out)
        self.worker(op.worker)
        self.claims.discard(f"limit:{op.worker}")
        self.claims |= mine
        most = max((stage.nbytes for stage in self.out[first:]), default=0)
        left = sum(self.live.values()) + sum(self.beside.values())
        self.beside[op.handle or op.worker] = max(0, most - left)

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
        self.beside.pop(op.handle, None)

    def complete(self, op: ops.Complete) -> None:
        self.is_out = True

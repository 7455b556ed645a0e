"""The static check: walks a program's bound steps without a clock.

Finds what no run needs to be made for: buffers freed twice, never, or while a stream may still use them; arms of a
branch that end differently; lifetimes that reach past a lock's release; waits under a lock; lock orders that can
deadlock. Names that do not exist are refused before, by `bind`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from cuzk.pipeline import ops
from cuzk.pipeline.program import Program, every_op

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """A fault at `place`, the keys of a step or worker in the pipeline."""

    severity: Severity
    place: ops.Place
    message: str

    @property
    def path(self) -> str:
        """`workers.gpu.steps[12]`."""
        return path_of(self.place)


def path_of(place: ops.Place) -> str:
    """Keys of the pipeline as one word: `workers.gpu.steps[12].then[0]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).removeprefix(".")


@dataclass
class _State:
    """The holdings of a set at one line of the walk."""

    live: dict[str, ops.Place] = field(default_factory=dict)  # buffer -> place of its alloc
    locks_at_alloc: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    handles: set[str] = field(default_factory=set)
    uses: dict[str, set[str]] = field(default_factory=dict)  # stream -> buffers that queued work on it may touch
    covered: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # event -> (stream, buffer) it stands behind
    completed: int = 0

    def copy(self) -> _State:
        return replace(
            self,
            live=dict(self.live),
            locks_at_alloc=dict(self.locks_at_alloc),
            claims=list(self.claims),
            handles=set(self.handles),
            uses={s: set(b) for s, b in self.uses.items()},
            covered=dict(self.covered),
        )


class _Walk(ops.Visitor[None]):
    """Follows one set through every worker that handles it."""

    def __init__(self, program: Program) -> None:
        self.program, self.pipeline, self.circuit = program, program.pipeline, program.largest.name
        self.findings: dict[Finding, None] = {}
        self.order: dict[tuple[str, str], ops.Place] = {}  # (held, acquired) -> place
        self.visited: set[str] = set()
        self.state = _State()

    def say(self, severity: Severity, place: ops.Place, message: str) -> None:
        self.findings[Finding(severity, place, message)] = None

    def worker(self, name: str) -> None:
        self.visited.add(name)
        self.walk(self.program.code(name, self.circuit))

    def walk(self, code: Iterable[ops.Op]) -> None:
        for op in code:
            self.visit(op)

    # -- verbs --------------------------------------------------------------------------------------------

    def get(self, op: ops.Get) -> None:
        pass

    def put(self, op: ops.Put) -> None:
        self.waits_under_lock(op.place, f"waits for room in {op.channel}")
        taker = next((name for name in self.pipeline.workers if takes(self.program, name, op.channel)), None)
        if taker is None:
            self.say("error", op.place, f"nobody takes from {op.channel}")
        else:
            self.worker(taker)

    def acquire(self, op: ops.Acquire) -> None:
        state, name, locks = self.state, op.name, self.pipeline.locks
        for held in state.claims:
            if held in locks and name in locks:
                self.order.setdefault((held, name), op.place)
        if name in self.pipeline.permits:
            self.waits_under_lock(op.place, f"waits for the permit {name}")
        if name in state.claims and name in locks:
            self.say("error", op.place, f"{name} is held already: this deadlocks")
        state.claims.append(name)

    def release(self, op: ops.Release) -> None:
        if op.name not in self.state.claims:
            self.say("error", op.place, f"releases {op.name}, which is not held here")
            return
        self.state.claims.remove(op.name)
        if op.name in self.pipeline.locks:
            self.outlives(op.place, op.name)

    def alloc(self, op: ops.Alloc) -> None:
        for want in op.wants:
            self.take(op.place, want)

    def try_alloc(self, op: ops.TryAlloc) -> None:
        fast, slow = self.state.copy(), self.state.copy()
        self.state = fast
        for want in op.wants:
            self.take(op.place, want)
        self.walk(op.then)
        self.state = slow
        self.walk(op.otherwise)
        self.state = fast
        if set(fast.live) != set(slow.live):
            differ = ", ".join(sorted(set(fast.live) ^ set(slow.live)))
            self.say("error", op.place, f"the arms end with different live buffers: {differ}")
        if sorted(fast.claims) != sorted(slow.claims):
            self.say("error", op.place, "the arms end with different locks or permits")

    def free(self, op: ops.Free) -> None:
        state = self.state
        for name in op.buffers:
            if name not in state.live:
                self.say("error", op.place, f"frees {name}, which is not live here")
                continue
            covered = state.covered.get(op.after, set()) if op.after else set()
            for stream, buffers in state.uses.items():
                if name in buffers and (stream, name) not in covered:
                    why = f"frees {name} while work on stream {stream} may still use it: wait for an event behind it"
                    self.say("error", op.place, why)
            for buffers in state.uses.values():
                buffers.discard(name)
            del state.live[name]

    def trim(self, op: ops.Trim) -> None:
        pass

    def run(self, op: ops.Run) -> None:
        if op.stream is not None:
            self.state.uses.setdefault(op.stream, set()).update(op.uses)

    def copy(self, op: ops.Copy) -> None:
        names = (op.target, *op.source)
        for name in names:
            if not self.is_live(name):
                self.say("error", op.place, f"copies {name}, which is not live here")
        if op.stream is not None:
            self.state.uses.setdefault(op.stream, set()).update(names)

    def record(self, op: ops.Record) -> None:
        state, stream = self.state, op.stream
        before = {(stream, buffer) for buffer in state.uses.get(stream, ())}
        state.covered[op.event] = before | state.covered.get(f"@{stream}", set())

    def wait(self, op: ops.Wait) -> None:
        if op.event not in self.state.covered:
            self.say("error", op.place, f"waits for {op.event}, which is not recorded before")
        for stream, buffer in self.state.covered.get(op.event, ()):
            self.state.uses[stream].discard(buffer)

    def stream_wait(self, op: ops.StreamWait) -> None:
        covered, stream = self.state.covered, f"@{op.stream}"
        covered[stream] = covered.get(stream, set()) | covered.get(op.event, set())

    def spawn(self, op: ops.Spawn) -> None:
        self.worker(op.worker)
        if op.handle:
            self.state.handles.add(op.handle)

    def join(self, op: ops.Join) -> None:
        if op.handle not in self.state.handles:
            self.say("error", op.place, f"joins {op.handle}, which is not spawned before")

    def complete(self, op: ops.Complete) -> None:
        self.state.completed += 1

    # -- rules --------------------------------------------------------------------------------------------

    def is_live(self, name: str) -> bool:
        return name in self.state.live or self.pipeline.buffers[name].scope != "set"

    def take(self, place: ops.Place, want: ops.Want) -> None:
        if want.kept:
            return
        state, name = self.state, want.buffer
        if name in state.live:
            self.say("error", place, f"allocates {name}, which is live since {path_of(state.live[name])}")
        state.live[name] = place
        state.locks_at_alloc[name] = tuple(c for c in state.claims if c in self.pipeline.locks)

    def waits_under_lock(self, place: ops.Place, what: str) -> None:
        for lock in self.state.claims:
            if lock in self.pipeline.locks:
                self.say("warning", place, f"{what} while {lock} is held")

    def outlives(self, place: ops.Place, lock: str) -> None:
        if self.pipeline.locks[lock].per != "gpu":
            return
        for name, where in self.state.live.items():
            at = self.state.locks_at_alloc.get(name, ())
            if not self.on_device(name):
                continue
            if lock in at:
                where_text = f"{name} (allocated at {path_of(where)} under {lock})"
                why = f"{where_text} outlives its release: each GPU worker can hold one at once"
                self.say("warning", place, why)
            elif at:
                self.say("warning", place, f"{name} (allocated at {path_of(where)} under {', '.join(at)}) is held across {lock}")

    def on_device(self, name: str) -> bool:
        return self.pipeline.buffers[name].pool.startswith("vram:")

    def before_lock(self, name: str) -> None:
        """Device memory that a pool worker takes before it holds any lock of the device."""
        if not any(lock.per == "gpu" for lock in self.pipeline.locks.values()):
            return
        held: list[str] = []
        for op in self.program.code(name, self.circuit):
            if isinstance(op, ops.Acquire) and op.name in self.pipeline.locks:
                held.append(op.name)
            if isinstance(op, ops.Release) and op.name in held:
                held.remove(op.name)
            wants = op.wants if isinstance(op, (ops.Alloc, ops.TryAlloc)) else ()
            device = [want.buffer for want in wants if want.pool.startswith("vram:")]
            if device and not held:
                why = f"{', '.join(device)} are allocated outside every lock of the GPU: each GPU worker can hold one set at once"
                self.say("warning", op.place, why)

    def cycles(self) -> None:
        after: dict[str, set[str]] = {}
        for held, acquired in self.order:
            after.setdefault(held, set()).add(acquired)
        for (held, acquired), place in self.order.items():
            if held in _reachable(after, acquired):
                self.say("error", place, f"{acquired} is taken under {held} here, the other way round elsewhere: deadlock")


def takes(program: Program, worker: str, channel: str) -> bool:
    """Whether a worker takes sets from a channel."""
    code = program.code(worker, program.largest.name)
    return any(isinstance(op, ops.Get) and op.channel == channel for op in every_op(code))


def _reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        node = todo.pop()
        for following in edges.get(node, ()):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def check(program: Program) -> list[Finding]:
    """All findings, errors first. An empty list: nothing wrong that can be seen without a clock."""
    walk = _Walk(program)
    if not program.starts:
        walk.say("error", ("workers",), "no worker starts with a partition or a proof")
    for name in program.starts:
        walk.state = _State()
        walk.worker(name)
        for buffer, place in walk.state.live.items():
            walk.say("error", place, f"{buffer} is never freed")
        for claim in walk.state.claims:
            walk.say("error", ("workers", name), f"{claim} is never released")
        if walk.state.completed != 1:
            walk.say("error", ("workers", name), f"a set completes {walk.state.completed} times on its way, not once")
    for name, worker in program.pipeline.workers.items():
        if name not in walk.visited:
            walk.say("warning", ("workers", name), "never reached")
        if worker.start == "pool":
            walk.before_lock(name)
    walk.cycles()
    return sorted(walk.findings, key=lambda finding: (finding.severity, finding.path))

"""The static check: walks the step lists without a clock.

Finds what no run needs to be made for: buffers freed twice, never, or while a stream may still use them; arms of a
branch that end differently; lifetimes that reach past a lock's release; waits under a lock; lock orders that can
deadlock; unknown names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from cuzk.pipeline.steps import (
    HOST,
    Acquire,
    Alloc,
    Complete,
    Copy,
    Free,
    Get,
    Join,
    Pipeline,
    Put,
    Record,
    Release,
    Run,
    Spawn,
    StepBase,
    StreamWait,
    Trim,
    TryAlloc,
    Wait,
)  # fmt: skip

Severity = Literal["error", "warning"]
MOST_WALKS = 10_000


@dataclass(frozen=True)
class Finding:
    """`path` is where it stands: `workers.gpu.steps[12]`."""

    severity: Severity
    path: str
    message: str


@dataclass
class _State:
    """What a set holds at one line of the walk."""

    live: dict[str, str] = field(default_factory=dict)  # buffer -> path of its alloc
    locks_at_alloc: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)
    handles: set[str] = field(default_factory=set)
    uses: dict[str, set[str]] = field(default_factory=dict)  # stream -> buffers that queued work on it may touch
    covered: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # event -> (stream, buffer) it stands behind
    completed: int = 0

    def copy(self) -> _State:
        return replace(
            self, live=dict(self.live), locks_at_alloc=dict(self.locks_at_alloc), claims=list(self.claims),
            handles=set(self.handles), uses={s: set(b) for s, b in self.uses.items()}, covered=dict(self.covered),
        )  # fmt: skip


class _Walk:
    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.findings: dict[Finding, None] = {}
        self.order: dict[tuple[str, str], str] = {}  # (held, acquired) -> path
        self.visited: set[str] = set()

    def say(self, severity: Severity, path: str, message: str) -> None:
        self.findings[Finding(severity, path, message)] = None

    def known(self, path: str, what: str, name: str, table: object) -> bool:
        if name in table:  # type: ignore[operator]
            return True
        self.say("error", path, f"there is no {what} {name!r}")
        return False

    # -- walking ------------------------------------------------------------------------------------------

    def worker(self, name: str, state: _State) -> _State:
        self.visited.add(name)
        for path, step in _paths(self.pipeline.workers[name].steps, f"workers.{name}.steps"):
            self.step(path, step, state)
        return state

    def step(self, path: str, step: StepBase, state: _State) -> None:
        locks = self.pipeline.locks
        match step:
            case Get(get=channel):
                self.known(path, "channel", channel, self.pipeline.channels)
            case Put(put=channel):
                self.waits_under_lock(path, state, f"waits for room in {channel}")
                if self.known(path, "channel", channel, self.pipeline.channels):
                    self.follow(path, channel, state)
            case Acquire(acquire=name):
                if self.known(path, "lock or permit", name, {**locks, **self.pipeline.permits}):
                    for held in state.claims:
                        if held in locks and name in locks:
                            self.order.setdefault((held, name), path)
                    if name in self.pipeline.permits:
                        self.waits_under_lock(path, state, f"waits for the permit {name}")
                    if name in state.claims and name in locks:
                        self.say("error", path, f"{name} is held already: this deadlocks")
                    state.claims.append(name)
            case Release(release=name):
                if name not in state.claims:
                    self.say("error", path, f"releases {name}, which is not held here")
                else:
                    state.claims.remove(name)
                    if name in locks:
                        self.outlives(path, name, state)
            case Alloc(alloc=names):
                for name in names:
                    self.alloc(path, name, state)
            case TryAlloc():
                fast, slow = state.copy(), state.copy()
                for name in step.try_alloc:
                    self.alloc(path, name, fast)
                for inner, line in _paths(step.then, f"{path}.then"):
                    self.step(inner, line, fast)
                for inner, line in _paths(step.otherwise, f"{path}.else"):
                    self.step(inner, line, slow)
                if set(fast.live) != set(slow.live):
                    differ = ", ".join(sorted(set(fast.live) ^ set(slow.live)))
                    self.say("error", path, f"the arms end with different live buffers: {differ}")
                if sorted(fast.claims) != sorted(slow.claims):
                    self.say("error", path, "the arms end with different locks or permits")
                state.__dict__.update(fast.__dict__)
            case Free(free=names, after=event):
                for name in names:
                    self.free(path, name, event, state)
            case Run(on=on, uses=uses) if on != HOST:
                state.uses.setdefault(on, set()).update(uses)
            case Copy(copy_=device, source=sources, on=on):
                for name in (device, *sources):
                    if self.known(path, "buffer", name, self.pipeline.buffers) and not self.is_live(name, state):
                        self.say("error", path, f"copies {name}, which is not live here")
                if on != HOST:
                    state.uses.setdefault(on, set()).update((device, *sources))
            case Record(record=event, on=on):
                before = {(on, buffer) for buffer in state.uses.get(on, ())}
                state.covered[event] = before | state.covered.get(f"@{on}", set())
            case StreamWait(stream_wait=event, on=on):
                state.covered[f"@{on}"] = state.covered.get(f"@{on}", set()) | state.covered.get(event, set())
            case Wait(wait=event):
                if event not in state.covered:
                    self.say("error", path, f"waits for {event}, which is not recorded before")
                for stream, buffer in state.covered.get(event, ()):
                    state.uses[stream].discard(buffer)
            case Spawn(spawn=worker, handle=handle):
                if self.known(path, "worker", worker, self.pipeline.workers):
                    if self.pipeline.workers[worker].start != "spawned":
                        self.say("error", path, f"{worker} is not a spawned worker")
                    self.worker(worker, state)
                if handle:
                    state.handles.add(handle)
            case Join(join=handle):
                if handle not in state.handles:
                    self.say("error", path, f"joins {handle}, which is not spawned before")
            case Complete():
                state.completed += 1
            case Run() | Trim():
                pass

    def follow(self, path: str, channel: str, state: _State) -> None:
        def takes(step: StepBase) -> bool:
            return isinstance(step, Get) and step.get == channel

        takers = [name for name, worker in self.pipeline.workers.items() if any(map(takes, _all_steps(worker.steps)))]
        if not takers:
            self.say("error", path, f"nobody takes from {channel}")
        for taker in takers[:1]:
            self.worker(taker, state)

    # -- rules --------------------------------------------------------------------------------------------

    def is_live(self, name: str, state: _State) -> bool:
        return name in state.live or self.pipeline.buffers[name].scope != "token"

    def alloc(self, path: str, name: str, state: _State) -> None:
        if not self.known(path, "buffer", name, self.pipeline.buffers):
            return
        if self.pipeline.buffers[name].scope != "token":  # made once, and kept
            return
        if name in state.live:
            self.say("error", path, f"allocates {name}, which is live since {state.live[name]}")
        state.live[name] = path
        state.locks_at_alloc[name] = tuple(c for c in state.claims if c in self.pipeline.locks)

    def free(self, path: str, name: str, event: str | None, state: _State) -> None:
        if not self.known(path, "buffer", name, self.pipeline.buffers):
            return
        if name not in state.live:
            self.say("error", path, f"frees {name}, which is not live here")
            return
        covered = state.covered.get(event, set()) if event else set()
        for stream, buffers in state.uses.items():
            if name in buffers and (stream, name) not in covered:
                self.say("error", path, f"frees {name} while work on stream {stream} may still use it: "
                         "wait for an event behind it")  # fmt: skip
        for buffers in state.uses.values():
            buffers.discard(name)
        del state.live[name]

    def waits_under_lock(self, path: str, state: _State, what: str) -> None:
        for lock in state.claims:
            if lock in self.pipeline.locks:
                self.say("warning", path, f"{what} while {lock} is held")

    def outlives(self, path: str, lock: str, state: _State) -> None:
        if self.pipeline.locks[lock].per != "gpu":
            return
        for name, where in state.live.items():
            if self.on_device(name) and lock in state.locks_at_alloc.get(name, ()):
                self.say("warning", path, f"{name} (allocated at {where} under {lock}) outlives its release: "
                         "each GPU worker can hold one at once")  # fmt: skip
        for name, where in state.live.items():
            at = state.locks_at_alloc.get(name, ())
            if self.on_device(name) and lock not in at and at:
                self.say("warning", path, f"{name} (allocated at {where} under {', '.join(at)}) is held across {lock}")

    def on_device(self, name: str) -> bool:
        spec = self.pipeline.buffers.get(name)
        return spec is not None and spec.pool.startswith("vram:")

    def before_lock(self, name: str) -> None:
        """Device memory that a pool worker takes before it holds any lock of the device."""
        held: list[str] = []
        for path, step in _paths(self.pipeline.workers[name].steps, f"workers.{name}.steps"):
            if isinstance(step, Acquire) and step.acquire in self.pipeline.locks:
                held.append(step.acquire)
            if isinstance(step, Release) and step.release in held:
                held.remove(step.release)
            names = step.alloc if isinstance(step, Alloc) else step.try_alloc if isinstance(step, TryAlloc) else ()
            device = [n for n in names if self.on_device(n)]
            if device and not held and any(lock.per == "gpu" for lock in self.pipeline.locks.values()):
                self.say("warning", path, f"{', '.join(device)} are allocated outside every lock of the GPU: "
                         "each GPU worker can hold one set at once")  # fmt: skip

    def cycles(self) -> None:
        after: dict[str, set[str]] = {}
        for held, acquired in self.order:
            after.setdefault(held, set()).add(acquired)
        for (held, acquired), path in self.order.items():
            if held in _reachable(after, acquired):
                self.say("error", path, f"{acquired} is taken under {held} here, the other way round elsewhere: deadlock")


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


def _paths(steps: tuple[StepBase, ...], base: str) -> Iterator[tuple[str, StepBase]]:
    return ((f"{base}[{index}]", step) for index, step in enumerate(steps))


def endless(pipeline: Pipeline) -> tuple[str, str] | None:
    """(worker, why) if sets of this pipeline could be walked for ever: workers that feed or spawn each other in a circle, or
    that multiply beyond reason. None: every set comes to an end."""
    takers: dict[str, list[str]] = {}
    for name, worker in pipeline.workers.items():
        for step in _all_steps(worker.steps):
            if isinstance(step, Get):
                takers.setdefault(step.get, []).append(name)
    feeds: dict[str, list[str]] = {name: [] for name in pipeline.workers}
    for name, worker in pipeline.workers.items():
        for step in _all_steps(worker.steps):
            if isinstance(step, Put):
                feeds[name] += takers.get(step.put, [])[:1]
            elif isinstance(step, Spawn) and step.spawn in feeds:
                feeds[name].append(step.spawn)
    walks = dict.fromkeys(feeds, 0)
    """How many walks one walk of a worker leads to, itself included; 0: not known yet."""
    for start in feeds:
        path: list[tuple[str, Iterator[str]]] = [(start, iter(feeds[start]))]
        while path:
            name, children = path[-1]
            child = next((c for c in children if not walks[c]), None)
            if child is None:
                walks[name] = 1 + sum(walks[c] for c in feeds[name])
                if walks[name] > MOST_WALKS:
                    return name, f"leads to more than {MOST_WALKS:,} walks of other workers"
                path.pop()
            elif any(child == above for above, _ in path):
                names = [above for above, _ in path]
                circle = " → ".join([*names[names.index(child) :], child])
                return name, f"feeds or spawns workers in a circle, so a set never ends: {circle}"
            else:
                path.append((child, iter(feeds[child])))
    return None


def _all_steps(steps: Iterable[StepBase]) -> Iterator[StepBase]:
    for step in steps:
        yield step
        if isinstance(step, TryAlloc):
            yield from _all_steps(step.then)
            yield from _all_steps(step.otherwise)


def check(pipeline: Pipeline) -> list[Finding]:
    """All findings, errors first. An empty list: nothing wrong that can be seen without a clock."""
    if (found := endless(pipeline)) is not None:
        return [Finding("error", f"workers.{found[0]}", found[1])]
    walk = _Walk(pipeline)
    starts = [name for name, worker in pipeline.workers.items() if worker.start in ("partition", "proof")]
    if not starts:
        walk.say("error", "workers", "no worker starts with a partition or a proof")
    for name in starts:
        state = walk.worker(name, _State())
        for buffer, path in state.live.items():
            walk.say("error", path, f"{buffer} is never freed")
        for claim in state.claims:
            walk.say("error", f"workers.{name}", f"{claim} is never released")
        if state.completed != 1:
            walk.say("error", f"workers.{name}", f"a set completes {state.completed} times on its way, not once")
    for name, worker in pipeline.workers.items():
        if name not in walk.visited:
            walk.say("warning", f"workers.{name}", "never reached")
        if worker.start == "pool":
            walk.before_lock(name)
    walk.cycles()
    return sorted(walk.findings, key=lambda f: (f.severity, f.path))

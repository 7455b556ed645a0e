"""Shared rates in virtual time: cores, DRAM, multiprocessors and PCIe links that concurrent work divides.

Every piece of work belongs to a *slowdown class*: all of a class progress at one common speed, so they share one virtual
clock, and a piece of `work_s` seconds ends when the clock has advanced by that much. A change of the load touches a few
clocks instead of every piece of work, and one SimPy timer stands for the next end of all.

Laws (calibration):
    D = Σ DRAM demands, S = (1 + D^q)^(1/q)                       one memory domain per machine
    F = max(1, load / capacity)^exponent                          cores, multiprocessors of a device, a link's direction
    speed of a class with memory-bound share m = 1 / (((1 - m) + m·S) · F)
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from simpy import Environment
from simpy.events import NORMAL, Event

UNIT = float(1 << 32)
"""Loads are summed as whole numbers of 1/UNIT, so that what is taken away is exactly what was added."""


NEVER = 1e300


class Group:
    """One resource that slows all its users alike when `load` exceeds `capacity` (in units of 1/UNIT)."""

    __slots__ = ("area", "capacity", "exponent", "load", "name")

    def __init__(self, name: str, capacity: float, exponent: float = 1.0) -> None:
        self.name, self.capacity, self.exponent = name, capacity * UNIT, exponent
        self.load = 0
        self.area = 0.0
        """Integral of the load over time, less load now times now."""

    def busy(self, now: float) -> float:
        """Seconds of full load so far."""
        return (self.area + self.load * now) / UNIT

    def slowdown(self) -> float:
        if self.load <= self.capacity:
            return 1.0
        slower: float = (self.load / self.capacity) ** self.exponent
        return slower


class SlowdownClass:
    """Work of one group with one memory-bound share: one virtual clock (seconds of work) and the ends on it, in order.

    The clock stood at `v` at the time `since` and has run at 1/`slowdown` from then on, if there is work.
    """

    __slots__ = ("due", "ends", "group", "m", "since", "slowdown", "v")

    def __init__(self, group: Group, m: float) -> None:
        self.group, self.m = group, m
        self.v = self.since = 0.0
        self.due = NEVER
        """When the first of its ends is due."""
        self.slowdown = 1.0
        self.ends: list[Work] = []

    def at(self, now: float) -> float:
        """The time that the clock shows."""
        return self.v + (now - self.since) / self.slowdown if self.ends else self.v


class Cost:
    """The demands of one step of one circuit: class, loads (1/UNIT), seconds of work alone, place of its jitter."""

    __slots__ = ("cls", "cores", "demand", "device", "jitter", "load", "name", "seconds")

    def __init__(self, name: str, cls: SlowdownClass, seconds: float, demand: float, cores: float, load: float,
                 device: int | None, jitter: int | None) -> None:  # fmt: skip
        self.name, self.cls, self.seconds, self.device, self.jitter = name, cls, seconds, device, jitter
        self.demand, self.cores, self.load = round(demand * UNIT), round(cores * UNIT), round(load * UNIT)


Work = tuple[float, int, Cost, Any]
"""One piece in progress: its end on the clock of its class, number, cost, owner."""


class Ramp:
    """Pages of some buffers that become resident while work of one class progresses: `v·a - b` bytes in all, of each
    buffer in proportion to its size."""

    __slots__ = ("a", "b", "cls", "n", "nbytes", "sizes")

    def __init__(self, sizes: dict[str, int], cls: SlowdownClass) -> None:
        self.sizes, self.cls = sizes, cls
        self.nbytes = sum(sizes.values())
        self.n, self.a, self.b = 0, 0.0, 0.0

    def start(self, work_s: float, v: float) -> None:
        """`v`: what the clock shows at the start."""
        slope = self.nbytes / work_s
        self.n += 1
        self.a += slope
        self.b += slope * v

    def stop(self, work_s: float, started_v: float) -> None:
        self.n -= 1
        if self.n:
            slope = self.nbytes / work_s
            self.a -= slope
            self.b -= slope * started_v
        else:
            self.a = self.b = 0.0

    def touched(self, now: float) -> float:
        return self.cls.at(now) * self.a - self.b


class SharedRates:
    """All work in progress. `ended(owner, others)` is told whose work is done; `others` ended with it to the bit."""

    def __init__(self, env: Environment, exponent: float, cores: Group, ended: Callable[[Any, list[Any]], None]) -> None:
        self.env, self.q, self.cores = env, exponent, cores
        self._ended = ended
        self._active: list[SlowdownClass] = []
        self._next: SlowdownClass | None = None
        self._timer: Event | None = None
        self._fired: list[Callable[[Any], None]] = [self._fire]
        self._changed = self._speeds_changed = False
        self._slowdowns: dict[int, float] = {}
        """S by demand."""
        self.started = 0
        self.now = 0.0
        """The time of the event under way, set by whoever handles it."""
        self.demand = 0
        self.slowdown = 1.0
        self._counted_to, self._cores_then = 0.0, 0
        self.slowdown_time = self.cores_time = 0.0
        """Integrals over time of S and of the cores asked for, for the report of what binds."""

    def count(self) -> None:
        """Bring the integrals up to now."""
        dt = self.now - self._counted_to
        self.slowdown_time += dt * self.slowdown
        self.cores_time += dt * self._cores_then
        self._counted_to = self.now

    def start(self, cost: Cost, work_s: float, owner: Any) -> None:
        """Begin a piece of work."""
        cls, now = cost.cls, self.now
        ends, group, load = cls.ends, cls.group, cost.load
        if cost.demand:
            self.demand += cost.demand
            self._speeds_changed = True
        cores = self.cores
        cores.load += cost.cores
        if cores.load > cores.capacity:
            self._speeds_changed = True
        if load:
            group.load += load
            group.area -= load * now
            if group.load > group.capacity:
                self._speeds_changed = True
        if ends:
            cls.v += (now - cls.since) / cls.slowdown
        else:
            self._active.append(cls)
            if cls.m or group.load > group.capacity:
                cls.slowdown = (1.0 - cls.m + cls.m * self.slowdown) * group.slowdown()
            else:
                cls.slowdown = 1.0
        cls.since = now
        self.started = number = self.started + 1
        heappush(ends, (cls.v + work_s, number, cost, owner))
        cls.due = now + (ends[0][0] - cls.v) * cls.slowdown
        self._changed = True

    def settle(self) -> None:
        """New speeds and the next timer, after all that happens at this instant has happened."""
        if not self._changed:
            return
        self._changed = False
        now = self.now
        dt = now - self._counted_to
        self.slowdown_time += dt * self.slowdown
        self.cores_time += dt * self._cores_then
        self._counted_to, self._cores_then = now, self.cores.load
        if self._speeds_changed:
            self._new_speeds(now)
        soonest, due = NEVER, None
        for cls in self._active:
            if cls.due < soonest:
                soonest, due = cls.due, cls
        self._next = due
        if due is None:
            self._timer = None
            return
        timer = self._timer
        if timer is None or timer.callbacks is not None:  # none, or one that still waits in SimPy's queue
            timer = self._timer = Event(self.env)
            timer._ok, timer._value = True, None
        timer.callbacks = self._fired
        self.env.schedule(timer, NORMAL, soonest - now if soonest > now else 0.0)

    def _new_speeds(self, now: float) -> None:
        self._speeds_changed = False
        demand = self.demand
        s = self._slowdowns.get(demand)
        if s is None:
            s = self._slowdowns[demand] = (1.0 + (demand / UNIT) ** self.q) ** (1.0 / self.q)
        self.slowdown = s
        for cls in self._active:
            m, group = cls.m, cls.group
            slow = 1.0 - m + m * s if m else 1.0
            if group.load > group.capacity:
                slow *= group.slowdown()
            if slow != cls.slowdown:
                cls.v += (now - cls.since) / cls.slowdown
                cls.since, cls.slowdown = now, slow
                cls.due = now + (cls.ends[0][0] - cls.v) * slow

    def _fire(self, timer: Event) -> None:
        if timer is not self._timer:
            return  # the loads changed after it was set: a newer timer is under way
        now = self.now = self.env.now
        cls = self._next
        assert cls is not None
        ends = cls.ends
        work = heappop(ends)
        v = cls.v = work[0]  # exactly its end, whatever rounding the clock has
        cls.since = now
        group = cls.group
        if self.cores.load > self.cores.capacity or group.load > group.capacity:
            self._speeds_changed = True
        self._changed = True
        self._take_off(work[2], now)
        others: list[Any] = []
        while ends and ends[0][0] <= v:
            work_too = heappop(ends)
            self._take_off(work_too[2], now)
            others.append(work_too[3])
        if ends:
            cls.due = now + (ends[0][0] - v) * cls.slowdown
        else:
            self._active.remove(cls)
        self._ended(work[3], others)

    def _take_off(self, cost: Cost, now: float) -> None:
        if cost.demand:
            self.demand -= cost.demand
            self._speeds_changed = True
        self.cores.load -= cost.cores
        load = cost.load
        if load:
            group = cost.cls.group
            group.load -= load
            group.area += load * now

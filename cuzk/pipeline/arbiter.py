"""The one object that decides all waiting.

Both interpreters call it: SimPy gives it time, threads give it parallelism, neither decides who goes next. It knows no
clock, starts no thread and allocates nothing real; a caller with threads holds one mutex around each call.

Invariants (each has a law test): units of a permit conserved; no waiter is served before one that its order puts first; a failed
scope leaves no waiter asleep.

A *claim* (`acquire`, `put`, `get`) returns at once: granted, or the actor is queued and woken later by somebody else's
call. Wake-ups are appended to `woken` as `(actor, value)`; the caller delivers and clears them. `value` is what the claim
would have returned, `RETRY` (a barging lock is free: claim again) or `FAILED` (the scope of the waiter has failed).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable
from typing import Any, Literal

from cuzk.pipeline.sets import PartitionSet

RETRY = "retry"
FAILED = "failed"
Order = Literal["fifo", "by-proof", "random"]


class _Claimable:
    """A lock (one unit) or a permit (many)."""

    __slots__ = ("barging", "free", "held", "most", "name", "order", "units", "waiters")

    def __init__(self, name: str, units: int, order: Order, barging: bool) -> None:
        self.name, self.units, self.free, self.order, self.barging = name, units, units, order, barging
        self.waiters: deque[tuple[Any, PartitionSet, int]] = deque()
        self.held = self.most = 0
        """Claims held now, and the most at once."""

    def grant(self, pset: PartitionSet, n: int) -> None:
        self.free -= n
        self.held += 1
        if self.held > self.most:
            self.most = self.held
        pset.claims.append((self.name, n))


class _Channel:
    __slots__ = ("capacity", "getters", "items", "name", "putters")

    def __init__(self, name: str, capacity: int | None) -> None:
        self.name, self.capacity = name, capacity
        self.items: deque[PartitionSet] = deque()
        self.getters: deque[tuple[Any, int]] = deque()
        self.putters: deque[tuple[Any, PartitionSet]] = deque()


def _by_proof(pset: PartitionSet) -> tuple[int, int, int]:
    return -pset.priority, pset.proof, pset.partition


class Arbiter:
    """Locks, permits and channels of one run, by instance name (`gpu_mutex:0`)."""

    def __init__(
        self, locks: dict[str, bool], permits: dict[str, tuple[int, Order]], channels: dict[str, int | None], seed: int = 0
    ) -> None:
        """`locks`: barging or not; `permits`: (units, order); `channels`: capacity (None: unbounded)."""
        self._claims = {name: _Claimable(name, 1, "fifo", barging) for name, barging in locks.items()}
        self._claims |= {name: _Claimable(name, units, order, False) for name, (units, order) in permits.items()}
        self._channels = {name: _Channel(name, capacity) for name, capacity in channels.items()}
        self._random = random.Random(seed)
        self._stopped: str | None = None
        self._failed_devices: set[int] = set()
        self.failed_proofs: dict[int, str] = {}
        self.woken: list[tuple[Any, Any]] = []

    def units(self, name: str) -> int:
        """The units of a lock (one) or permit."""
        return self._claims[name].units

    # ------------------------------------------------------------------ claims

    def acquire(self, actor: Hashable, pset: PartitionSet, name: str, n: int = 1) -> bool | str:
        """Claim `n` units: True, False (queued) or FAILED. Raises ValueError if more is asked than exists."""
        claim = self._claims[name]
        if self.is_failed(pset):
            self._serve(claim)  # it may have been woken to retry: the next waiter must not sleep on
            return FAILED
        if n > claim.units:
            raise ValueError(f"{name}: {n} units asked, {claim.units} exist")
        if claim.free >= n and (claim.barging or not claim.waiters):
            claim.grant(pset, n)
            return True
        claim.waiters.append((actor, pset, n))
        return False

    def release(self, pset: PartitionSet, name: str) -> None:
        """Give back what `pset` claimed of `name`. Raises KeyError if it holds none."""
        for index in range(len(pset.claims) - 1, -1, -1):
            if pset.claims[index][0] == name:
                _, n = pset.claims.pop(index)
                break
        else:
            raise KeyError(f"{pset} releases {name}, which it does not hold")
        claim = self._claims[name]
        claim.free += n
        claim.held -= 1
        self._serve(claim)

    def _serve(self, claim: _Claimable) -> None:
        while claim.waiters:
            index = self._next(claim)
            actor, pset, n = claim.waiters[index]
            if n > claim.free:
                return
            del claim.waiters[index]
            if claim.barging:
                self.woken.append((actor, RETRY))
                return
            claim.grant(pset, n)
            self.woken.append((actor, True))

    def _next(self, claim: _Claimable) -> int:
        if claim.order == "fifo":
            return 0
        if claim.order == "random":
            return self._random.randrange(len(claim.waiters))
        return min(range(len(claim.waiters)), key=lambda i: _by_proof(claim.waiters[i][1]))

    def put(self, actor: Hashable, pset: PartitionSet, name: str) -> bool | str:
        """Hand `pset` over to a channel: True, False (queued while it is full) or FAILED."""
        if self.is_failed(pset):
            return FAILED
        channel = self._channels[name]
        if channel.getters:
            getter, gpu = channel.getters.popleft()
            pset.gpu = gpu
            self.woken.append((getter, pset))
            return True
        if channel.capacity is None or len(channel.items) < channel.capacity:
            channel.items.append(pset)
            return True
        channel.putters.append((actor, pset))
        return False

    def get(self, actor: Hashable, name: str, gpu: int = 0) -> PartitionSet | str | None:
        """The next set of a channel (bound to device `gpu` from now on), None (queued) or FAILED."""
        if self._stopped is not None or gpu in self._failed_devices:
            return FAILED
        channel = self._channels[name]
        if channel.items:
            pset = channel.items.popleft()
            pset.gpu = gpu
            self._refill(channel)
            return pset
        channel.getters.append((actor, gpu))
        return None

    def _refill(self, channel: _Channel) -> None:
        while channel.putters and (channel.capacity is None or len(channel.items) < channel.capacity):
            actor, pset = channel.putters.popleft()
            channel.items.append(pset)
            self.woken.append((actor, True))

    # ----------------------------------------------------------------- failure

    def fail(self, scope: Literal["proof", "device", "run"], which: int = 0, reason: str = "") -> list[PartitionSet]:
        """A proof, a device or the whole run has failed.

        Every waiter concerned is woken with FAILED; its sets that lay in a channel are returned, for the caller to unwind.
        Whatever is still running learns of it at its next claim.
        """
        if scope == "proof":
            self.failed_proofs.setdefault(which, reason)
        elif scope == "device":
            self._failed_devices.add(which)
        else:
            self._stopped = reason or "stopped"

        def concerned(pset: PartitionSet) -> bool:
            return scope == "run" or (scope == "proof" and pset.proof == which)

        for claim in self._claims.values():
            dead = self._is_on_dead_device(claim)
            gone = [(actor, pset) for actor, pset, _ in claim.waiters if dead or concerned(pset)]
            claim.waiters = deque(w for w in claim.waiters if not (dead or concerned(w[1])))
            self._wake_failed(gone)
            self._serve(claim)
        dropped: list[PartitionSet] = []
        for channel in self._channels.values():
            dropped += [pset for pset in channel.items if concerned(pset)]
            channel.items = deque(pset for pset in channel.items if not concerned(pset))
            gone = [(actor, pset) for actor, pset in channel.putters if concerned(pset)]
            channel.putters = deque(p for p in channel.putters if not concerned(p[1]))
            self._wake_failed(gone)
            stranded = [g for g in channel.getters if scope == "run" or g[1] in self._failed_devices]
            channel.getters = deque(g for g in channel.getters if g not in stranded)
            self.woken += [(actor, FAILED) for actor, _ in stranded]
            self._refill(channel)
        for pset in dropped:
            pset.failed = True
        return dropped

    def _is_on_dead_device(self, claim: _Claimable) -> bool:
        return claim.name.rpartition(":")[2] in {str(device) for device in self._failed_devices}

    def _wake_failed(self, gone: list[tuple[Any, PartitionSet]]) -> None:
        for actor, pset in gone:
            pset.failed = True
            self.woken.append((actor, FAILED))

    def is_failed(self, pset: PartitionSet) -> bool:
        """True once the proof of `pset`, its device or the run has failed."""
        if not pset.failed:
            pset.failed = self._stopped is not None or pset.proof in self.failed_proofs
        return pset.failed

    def release_all(self, pset: PartitionSet) -> list[str]:
        """Give back every claim of a failed set, in reverse order; returns their names."""
        given = [name for name, _ in reversed(pset.claims)]
        for name in given:
            self.release(pset, name)
        return given

    # ------------------------------------------------------------------- looks

    @property
    def claims(self) -> tuple[str, ...]:
        """Every lock and permit, by instance name."""
        return tuple(self._claims)

    def held(self, name: str) -> int:
        """Claims of a lock or permit that are held now."""
        return self._claims[name].held

    def most_held(self, name: str) -> int:
        """The most claims of it that were held at once."""
        return self._claims[name].most

    def waiting(self) -> list[Any]:
        """Actors that wait for a lock, a permit, or room in a channel."""
        actors = [waiter[0] for claim in self._claims.values() for waiter in claim.waiters]
        return actors + [putter[0] for channel in self._channels.values() for putter in channel.putters]

    def lying(self) -> dict[str, int]:
        """Sets that lie in each channel."""
        return {name: len(channel.items) for name, channel in self._channels.items() if channel.items}

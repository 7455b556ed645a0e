"""The one object that decides all waiting and all accounting.

Both interpreters call it: SimPy gives it time, threads give it parallelism, neither decides who goes next. It knows no
clock, starts no thread and allocates nothing real; a caller with threads holds one mutex around each call.

Invariants (each has a law test): levels never negative; every buffer freed once; units of a permit conserved;
no waiter is served before one that its order puts first; a failed scope leaves no waiter asleep.

A *claim* (`acquire`, `put`, `get`) returns at once: granted, or the actor is queued and woken later by somebody else's
call. Wake-ups are appended to `woken` as `(actor, value)`; the caller delivers and clears them. `value` is what the claim
would have returned, `RETRY` (a barging lock is free: claim again) or `FAILED` (the scope of the waiter has failed).

An *allocation* (`alloc`, `try_alloc`) never waits: it fits, or `OutOfMemory` names pool, request, level and holders.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Literal

from cuzk.pipeline.pools import CACHE, OutOfMemory, Pool, Token

__all__ = ["CACHE", "FAILED", "RETRY", "Arbiter", "Order", "OutOfMemory", "Pool", "Token"]

RETRY = "retry"
FAILED = "failed"
Order = Literal["fifo", "by-proof", "random"]


class _Claimable:
    """A lock (one unit) or a permit (many)."""

    __slots__ = ("barging", "free", "held", "most", "name", "order", "units", "waiters")

    def __init__(self, name: str, units: int, order: Order, barging: bool) -> None:
        self.name, self.units, self.free, self.order, self.barging = name, units, units, order, barging
        self.waiters: deque[tuple[Any, Token, int]] = deque()
        self.held = self.most = 0
        """Claims held now, and the most at once."""

    def grant(self, token: Token, n: int) -> None:
        self.free -= n
        self.held += 1
        if self.held > self.most:
            self.most = self.held
        token.claims.append((self.name, n))


class _Channel:
    __slots__ = ("capacity", "getters", "items", "name", "putters")

    def __init__(self, name: str, capacity: int | None) -> None:
        self.name, self.capacity = name, capacity
        self.items: deque[Token] = deque()
        self.getters: deque[tuple[Any, int]] = deque()
        self.putters: deque[tuple[Any, Token]] = deque()


def _by_proof(token: Token) -> tuple[int, int, int]:
    return -token.priority, token.proof, token.partition


class Arbiter:
    """Pools, locks, permits and channels of one run, by instance name (`gpu_mutex:0`, `vram:1`, `ram`)."""

    def __init__(self, pools: dict[str, int], locks: dict[str, bool], permits: dict[str, tuple[int, Order]],
                 channels: dict[str, int | None], parents: dict[str, str] | None = None,
                 seed: int = 0, reclaiming: Iterable[str] = ()) -> None:  # fmt: skip
        """`pools`: bytes; `locks`: barging or not; `permits`: (units, order); `channels`: capacity (None: unbounded);
        `parents`: a pool that is part of another (`pinned` → `ram`): charged to both; `reclaiming`: pools whose cache
        gives way to an allocation that would not fit beside it."""
        kept = set(reclaiming)
        self.pools = {name: Pool(name, capacity, name in kept) for name, capacity in pools.items()}
        self._chains = {name: self._chain(name, parents or {}) for name in pools}
        self.now = 0.0
        """Stamped on peaks; whoever has a clock sets it before it calls."""
        self._claims = {name: _Claimable(name, 1, "fifo", barging) for name, barging in locks.items()}
        self._claims |= {name: _Claimable(name, units, order, False) for name, (units, order) in permits.items()}
        self._channels = {name: _Channel(name, capacity) for name, capacity in channels.items()}
        self._random = random.Random(seed)
        self._stopped: str | None = None
        self._failed_devices: set[int] = set()
        self.failed_proofs: dict[int, str] = {}
        self.woken: list[tuple[Any, Any]] = []

    def _chain(self, name: str, parents: dict[str, str]) -> tuple[Pool, ...]:
        chain = [self.pools[name]]
        while name in parents:
            name = parents[name]
            chain.append(self.pools[name])
        return tuple(chain)

    def chain(self, pool: str) -> tuple[str, ...]:
        """The pools that are charged for `pool`: itself and what it is a part of."""
        return tuple(target.name for target in self._chains[pool])

    def known_claim(self, name: str) -> None:
        """Raises KeyError if there is no such lock or permit."""
        self._claims[name]

    def units(self, name: str) -> int:
        """How many there are of a lock (one) or permit."""
        return self._claims[name].units

    def known_channel(self, name: str) -> None:
        """Raises KeyError if there is no such channel."""
        self._channels[name]

    # ------------------------------------------------------------------ claims

    def acquire(self, actor: Hashable, token: Token, name: str, n: int = 1) -> bool | str:
        """Claim `n` units: True, False (queued) or FAILED. Raises ValueError if more is asked than exists."""
        claim = self._claims[name]
        if self.is_failed(token):
            self._serve(claim)  # it may have been woken to retry: the next waiter must not sleep on
            return FAILED
        if n > claim.units:
            raise ValueError(f"{name}: {n} units asked, {claim.units} exist")
        if claim.free >= n and (claim.barging or not claim.waiters):
            claim.grant(token, n)
            return True
        claim.waiters.append((actor, token, n))
        return False

    def release(self, token: Token, name: str) -> None:
        """Give back what `token` claimed of `name`. Raises KeyError if it holds none."""
        for index in range(len(token.claims) - 1, -1, -1):
            if token.claims[index][0] == name:
                _, n = token.claims.pop(index)
                break
        else:
            raise KeyError(f"{token} releases {name}, which it does not hold")
        claim = self._claims[name]
        claim.free += n
        claim.held -= 1
        self._serve(claim)

    def _serve(self, claim: _Claimable) -> None:
        while claim.waiters:
            index = self._next(claim)
            actor, token, n = claim.waiters[index]
            if n > claim.free:
                return
            del claim.waiters[index]
            if claim.barging:
                self.woken.append((actor, RETRY))
                return
            claim.grant(token, n)
            self.woken.append((actor, True))

    def _next(self, claim: _Claimable) -> int:
        if claim.order == "fifo":
            return 0
        if claim.order == "random":
            return self._random.randrange(len(claim.waiters))
        return min(range(len(claim.waiters)), key=lambda i: _by_proof(claim.waiters[i][1]))

    def put(self, actor: Hashable, token: Token, name: str) -> bool | str:
        """Hand `token` over to a channel: True, False (queued while it is full) or FAILED."""
        if self.is_failed(token):
            return FAILED
        channel = self._channels[name]
        if channel.getters:
            getter, gpu = channel.getters.popleft()
            token.gpu = gpu
            self.woken.append((getter, token))
            return True
        if channel.capacity is None or len(channel.items) < channel.capacity:
            channel.items.append(token)
            return True
        channel.putters.append((actor, token))
        return False

    def get(self, actor: Hashable, name: str, gpu: int = 0) -> Token | str | None:
        """The next set of a channel (bound to device `gpu` from now on), None (queued) or FAILED."""
        if self._stopped is not None or gpu in self._failed_devices:
            return FAILED
        channel = self._channels[name]
        if channel.items:
            token = channel.items.popleft()
            token.gpu = gpu
            self._refill(channel)
            return token
        channel.getters.append((actor, gpu))
        return None

    def _refill(self, channel: _Channel) -> None:
        while channel.putters and (channel.capacity is None or len(channel.items) < channel.capacity):
            actor, token = channel.putters.popleft()
            channel.items.append(token)
            self.woken.append((actor, True))

    # ------------------------------------------------------------- allocations

    def alloc(self, token: Token, buffer: str, pool: str, nbytes: int, cached: bool = False, lazy: bool = False) -> None:
        """Account for a buffer of `token`. Raises OutOfMemory; then nothing has changed.

        `lazy`: its pages become resident later, by `touch`; until then it cannot run out of memory (the kernel overcommits).
        """
        if buffer in token.buffers:
            raise ValueError(f"{token} allocates {buffer} twice")
        chain = self._chains[pool]
        if lazy:
            token.untouched.add(buffer)
        else:
            for target in chain:
                if target.live + target.cached + nbytes > target.capacity and not target.fits(nbytes, cached):
                    raise OutOfMemory(target.name, buffer, nbytes, target.resident, target.capacity, target.holders(), token)
        token.buffers[buffer] = (pool, nbytes, cached)
        for target in chain:
            if cached:
                target.cached -= min(target.cached, nbytes)
            if target.reclaims and target.live + target.cached + nbytes > target.capacity:
                target.cached = max(0, target.capacity - target.live - nbytes)
            row = target.held.get(buffer)
            if row is None:
                row = target.held[buffer] = [0, 0, 0]
            row[0] += 1
            row[1] += nbytes
            if lazy:
                row[2] += nbytes
                target.untouched += nbytes
            live = target.live = target.live + nbytes
            if live > target.peak_live:
                target.peak_live, target.peak_live_at = live, self.now
            if live + target.cached > target.peak_reserved:
                target.peak_reserved, target.peak_reserved_at = live + target.cached, self.now
                if target.keeps_holders:
                    target.peak_held = {name: (held[0], held[1]) for name, held in target.held.items() if held[0]}
                    if target.cached:
                        target.peak_held[CACHE] = (1, target.cached)

    def touch(self, token: Token, buffer: str) -> None:
        """The pages of a lazy buffer are resident now. Raises OutOfMemory if that is more than there is."""
        if buffer not in token.untouched:
            return
        pool, nbytes, _ = token.buffers[buffer]
        for target in self._chains[pool]:
            if target.live + target.cached > target.capacity and target.resident + nbytes > target.capacity:
                raise OutOfMemory(target.name, buffer, nbytes, target.resident, target.capacity, target.holders(), token)
        self.touched(token, buffer)

    def touched(self, token: Token, buffer: str) -> None:
        """As `touch`, for a caller that has watched the level while the pages came."""
        pool, nbytes, _ = token.buffers[buffer]
        token.untouched.discard(buffer)
        for target in self._chains[pool]:
            target.untouched -= nbytes
            target.held[buffer][2] -= nbytes

    def try_alloc(self, token: Token, wants: Iterable[tuple[str, str, int, bool]], guard: int = 0) -> bool:
        """All of `wants` (buffer, pool, bytes, cached), if `guard` bytes stay free in each pool; else nothing."""
        wants = tuple(wants)
        need: dict[str, int] = {}
        for _, pool, nbytes, cached in wants:
            if cached and pool not in need:
                nbytes = max(0, nbytes - self.pools[pool].cached)
            need[pool] = need.get(pool, 0) + nbytes
        for pool, nbytes in need.items():
            for target in self._chains[pool]:
                if not target.fits(nbytes + guard):
                    return False
        for buffer, pool, nbytes, cached in wants:
            self.alloc(token, buffer, pool, nbytes, cached)
        return True

    def free(self, token: Token, buffer: str) -> None:
        """Raises KeyError if `token` does not hold `buffer`."""
        if buffer not in token.buffers:
            raise KeyError(f"{token} frees {buffer}, which it does not hold")
        if buffer in token.untouched:
            self.touched(token, buffer)
        pool, nbytes, cached = token.buffers.pop(buffer)
        for target in self._chains[pool]:
            target.live -= nbytes
            if cached:
                target.cached += nbytes
            row = target.held[buffer]
            row[0] -= 1
            row[1] -= nbytes

    def trim(self, pool: str) -> int:
        """Give the cache of a pool back; returns its bytes."""
        given = self.pools[pool].cached
        self.pools[pool].cached = 0
        return given

    # ----------------------------------------------------------------- failure

    def fail(self, scope: Literal["proof", "device", "run"], which: int = 0, reason: str = "") -> list[Token]:
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

        def concerned(token: Token) -> bool:
            return scope == "run" or (scope == "proof" and token.proof == which)

        for claim in self._claims.values():
            dead = self._is_on_dead_device(claim)
            gone = [(actor, token) for actor, token, _ in claim.waiters if dead or concerned(token)]
            claim.waiters = deque(w for w in claim.waiters if not (dead or concerned(w[1])))
            self._wake_failed(gone)
            self._serve(claim)
        dropped: list[Token] = []
        for channel in self._channels.values():
            dropped += [token for token in channel.items if concerned(token)]
            channel.items = deque(token for token in channel.items if not concerned(token))
            gone = [(actor, token) for actor, token in channel.putters if concerned(token)]
            channel.putters = deque(p for p in channel.putters if not concerned(p[1]))
            self._wake_failed(gone)
            stranded = [g for g in channel.getters if scope == "run" or g[1] in self._failed_devices]
            channel.getters = deque(g for g in channel.getters if g not in stranded)
            self.woken += [(actor, FAILED) for actor, _ in stranded]
            self._refill(channel)
        for token in dropped:
            token.failed = True
        return dropped

    def _is_on_dead_device(self, claim: _Claimable) -> bool:
        return claim.name.rpartition(":")[2] in {str(device) for device in self._failed_devices}

    def _wake_failed(self, gone: list[tuple[Any, Token]]) -> None:
        for actor, token in gone:
            token.failed = True
            self.woken.append((actor, FAILED))

    def is_failed(self, token: Token) -> bool:
        """True once the proof of `token`, its device or the run has failed."""
        if not token.failed:
            token.failed = self._stopped is not None or token.proof in self.failed_proofs
        return token.failed

    def unwind(self, token: Token) -> list[str]:
        """Give back all that a failed set holds, in reverse order: buffers, then locks and permits.

        Returns their names. The caller has synchronised the set's streams first.
        """
        token.failed = True
        given = list(reversed(token.buffers))
        for buffer in given:
            self.free(token, buffer)
        for name, _ in reversed(list(token.claims)):
            self.release(token, name)
            given.append(name)
        return given

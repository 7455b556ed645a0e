"""Levels over time: resident peaks while pages are being touched, and what was busy when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import Event as SimEvent
from simpy.events import Timeout

from cuzk.pipeline.pools import OutOfMemory
from cuzk.sim.rates import UNIT, Ramp

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Ledger:
    """Watches the host's memory. What is live is in the books; what of it is resident depends on time.

    Between two frees the resident level only rises, so its peaks lie just before frees.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ram = engine.core.books.pools["ram"]
        self.ram.touching = self.touched
        self.ram.keeps_holders = False  # `peak_holders` are those of the resident peak
        self.ramps: list[Ramp] = []
        self.peak_resident = 0
        self.peak_resident_at = 0.0
        self.peak_holders: list[tuple[str, int, int]] = []
        self.held = dict.fromkeys(engine.core.arbiter.claims, 0.0)
        """Integral over time of the claims held, less what is held now times now."""
        self.marks: list[dict[str, Any]] = []
        """The integrals at each completed proof."""
        self.base, self.slack = 0, 0.0
        self.watched: SimEvent | None = None

    def residents_loaded(self, slack: float) -> None:
        """`slack`: by how much the allocator's pages exceed what sets hold; the residents are allocated once, without."""
        self.base, self.slack = self.ram.live, slack
        self.ram.capacity = int((self.ram.capacity + slack * self.base) / (1.0 + slack))

    def with_slack(self, nbytes: int) -> int:
        """A level of RAM as the operating system reports it."""
        return int(nbytes + self.slack * max(0, nbytes - self.base)) if self.slack else nbytes

    # ------------------------------------------------------------------- levels

    def touched(self) -> dict[str, int]:
        """Resident bytes of buffers whose pages are being touched just now."""
        out: dict[str, int] = {}
        for ramp in self.ramps:
            if ramp.n:
                share = ramp.touched(self.engine.now) / max(1, ramp.nbytes)
                for buffer, nbytes in ramp.sizes.items():
                    out[buffer] = out.get(buffer, 0) + int(share * nbytes)
        return out

    def resident(self) -> int:
        ram = self.ram
        level = ram.live - ram.untouched + ram.cached
        for ramp in self.ramps:
            if ramp.n:
                level += int(ramp.touched(self.engine.now))
        return level

    def before_free(self) -> None:
        """Memory is about to be given back: what is resident now may be the peak."""
        level = self.resident()
        if level > self.peak_resident:
            self.peak_resident, self.peak_resident_at = level, self.engine.now
            self.peak_holders = self.ram.holders()

    def watch_ramps(self) -> None:
        """If the pages being touched can exceed the RAM, run out of it when they do."""
        ram = self.ram
        if ram.live + ram.cached <= ram.capacity:
            self.watched = None
            return
        if self.engine.stopped:
            return
        self.watched = None
        level = self.resident()
        if level > ram.capacity:
            self._run_out()
            return
        slope = sum(ramp.a / ramp.cls.slowdown for ramp in self.ramps if ramp.n)
        if slope > 0.0:
            self.watched = Timeout(self.engine.env, (ram.capacity - level + 1) / slope)
            self.watched.callbacks.append(self._full)

    def _full(self, timer: SimEvent) -> None:
        if timer is self.watched and not self.engine.stopped:  # nothing has changed since it was set
            self.engine.tick()
            self._run_out()

    def _run_out(self) -> None:
        ram, engine = self.ram, self.engine
        self.sample()  # the curve ends at the limit
        rising = [ramp for ramp in self.ramps if ramp.n]
        fastest = max(rising, key=lambda ramp: ramp.a, default=None)
        buffer = next(iter(fastest.sizes)) if fastest else "pages"
        held = ram.held.get(buffer, [1, 0, 0])
        each = held[1] // max(1, held[0])
        error = OutOfMemory("ram", buffer, each, self.resident(), ram.capacity, ram.holders())
        engine.run_out(error, None)

    def finish(self) -> None:
        self.before_free()
        self.proof_done()

    # ------------------------------------------------------------------- report

    def proof_done(self) -> None:
        engine, rates = self.engine, self.engine.rates
        now = engine.now
        rates.count()
        arbiter = engine.core.arbiter
        self.marks.append({
            "t": now,
            "slowdown": rates.slowdown_time,
            "cores": rates.cores_time / UNIT,
            "busy": {name: group.busy(now) for name, group in engine.costs.groups.items()},
            "held": {name: acc + now * arbiter.held(name) for name, acc in self.held.items()},
            "waited": dict(engine.waited),
        })  # fmt: skip

    def level_of(self, pool: str) -> int:
        """A pool's resident level, for the journal."""
        return self.resident() if pool == "ram" else self.engine.core.books.pools[pool].reserved

    def sample(self) -> None:
        """The resident level of the host's memory, where its slope changes."""
        if self.engine.traced:
            self.engine.core.journal.sample("ram", self.resident())

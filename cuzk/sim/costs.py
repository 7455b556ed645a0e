"""The prices of a program as the shared rates need them: classes of work that share a speed, and errors drawn for a run."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from cuzk.model.calibration import Calibration
from cuzk.pipeline import ops
from cuzk.pipeline.prices import Price
from cuzk.sim.rates import Cost, Group, Ramp, SlowdownClass

GPU_PATH = frozenset(("gpu_sync", "gpu_overhead", "prep_msm", "device_free", "prestage_setup"))
"""Steps of a GPU worker's turn that run on the host."""
SYNTHESIS = frozenset(("witness", "matvec", "synthesis"))


@dataclass(frozen=True, slots=True)
class Draw:
    """The drawing of the cost laws of one run within their errors."""

    seed: int | None = None
    """None: as they are stated."""
    extra_error: float = 0.0
    """Relative error of every cost law beside its stated one."""
    gpu_pace: float = 1.0
    """Factor on the time of every step of the GPU's path: what is wrong with one of them is wrong with all."""
    synthesis_pace: float = 1.0
    """The same on witness, matvec and synthesis."""


class Costs:
    """The numbers of one run, each made when first needed."""

    def __init__(self, calibration: Calibration, cores: Group, draw: Draw, replayed: bool) -> None:
        """`replayed`: step times are measured ones, which contain what slowed them."""
        self._calibration, self._draw, self._replayed = calibration, draw, replayed
        self.groups: dict[str, Group] = {"cores": cores}
        self._classes: dict[tuple[str, float], SlowdownClass] = {}
        self._ramps: dict[tuple[SlowdownClass, tuple[tuple[str, int], ...]], Ramp] = {}
        laws = calibration.costs
        jittered = sorted(name for name, law in laws.items() if law.jitter or law.group_jitter)
        self._place = {name: index for index, name in enumerate(jittered)}
        self.spread = tuple((laws[name].jitter, laws[name].group_jitter) for name in jittered)
        """Own and group's coefficient of variation of each jittered law."""

    def _class(self, group: str, capacity: float, exponent: float, m: float) -> SlowdownClass:
        key = (group, m)
        if key not in self._classes:
            if group not in self.groups:
                self.groups[group] = Group(group, capacity, exponent)
            self._classes[key] = SlowdownClass(self.groups[group], m)
        return self._classes[key]

    def ramp(self, sizes: dict[str, int], cls: SlowdownClass) -> tuple[Ramp, bool]:
        """The ramp of these buffers in that class, and whether it is new."""
        key = (cls, tuple(sizes.items()))
        new = key not in self._ramps
        if new:
            self._ramps[key] = Ramp(sizes, cls)
        return self._ramps[key], new

    def of(self, op: ops.Run | ops.Copy, gpu: int) -> Cost:
        """The cost of a step that has a price."""
        price = op.price
        assert price is not None
        load, device = 0.0, None
        if price.link is not None:
            cls, load, device = self._class(f"{price.link}:{gpu}", 1.0, 1.0, price.dram), price.link_share, gpu
        elif price.gpu > 0.0:
            exponent = self._calibration.contention.gpu_exponent
            cls, load, device = self._class(f"gpu:{gpu}", 1.0, exponent, price.dram), price.gpu, gpu
        else:
            cls = self._class("cores", 0.0, 1.0, price.dram)
        name, jitter = op.name if isinstance(op, ops.Run) else "copy", self._place.get(price.law)
        seconds = max(0.0, price.seconds * self._drawn(price, "seconds") * self._pace(price))
        if self._replayed:
            return Cost(name, self._class("replay", 1.0, 1.0, 0.0), seconds, 0.0, 0.0, 0.0, device, jitter)
        demand = price.demand * self._drawn(price, "dram_demand")
        return Cost(name, cls, seconds, demand, price.cores, load, device, jitter)

    def _pace(self, price: Price) -> float:
        """The error that the step shares with its kind: a pile-up integrates the difference of the two paces."""
        if price.gpu > 0.0 or price.law in GPU_PATH:
            return self._draw.gpu_pace
        return self._draw.synthesis_pace if price.law in SYNTHESIS else 1.0

    def _drawn(self, price: Price, field: str) -> float:
        """A factor for one figure within its standard error, the same throughout a run."""
        if self._draw.seed is None:
            return 1.0
        law = self._calibration.costs.get(price.law)
        stated = law.origin(field).error if law is not None else None
        error = math.hypot(stated or 0.0, self._draw.extra_error)
        if not error:
            return 1.0
        z = random.Random(f"{self._draw.seed} {price.law} {field}").gauss(0.0, 1.0)
        return max(0.2, 1.0 + error * max(-2.5, min(2.5, z)))

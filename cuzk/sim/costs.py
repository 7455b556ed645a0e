"""Cost laws evaluated for a circuit on a machine: what each step asks for, and the classes of work that share a speed."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from cuzk.model.calibration import CostLaw
from cuzk.model.transfer import calibrated_on, factor, rates_of
from cuzk.sim.rates import Cost, Group, Ramp, SlowdownClass

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Costs:
    """The numbers of one run, each made when first needed."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.plan, self.calibration = engine, engine.plan, engine.calibration
        self.groups: dict[str, Group] = {"cores": engine.cores}
        self._names: dict[tuple[str, int], dict[str, Any]] = {}
        self._classes: dict[tuple[str, float], SlowdownClass] = {}
        self._ramps: dict[Any, Ramp] = {}
        laws = self.calibration.costs
        jittered = sorted(name for name, law in laws.items() if law.jitter or law.group_jitter)
        self._place = {name: index for index, name in enumerate(jittered)}
        self.spread = tuple((laws[name].jitter, laws[name].group_jitter) for name in jittered)
        """Of each jittered law: its own and its group's coefficient of variation."""

    def names(self, circuit: str, gpu: int) -> dict[str, Any]:
        key = (circuit, gpu)
        if key not in self._names:
            plan = self.plan
            self._names[key] = plan.names(plan.circuits[circuit], gpu) | self.calibration.parameters
        return self._names[key]

    def size(self, buffer: str, circuit: str, gpu: int) -> int:
        formula = self.plan.pipeline.buffers[buffer].size
        return self.plan.number(formula, self.names(circuit, gpu), "buffers", buffer, "size")

    def cls(self, group: str, capacity: float, exponent: float, m: float) -> SlowdownClass:
        key = (group, m)
        if key not in self._classes:
            if group not in self.groups:
                self.groups[group] = Group(group, capacity, exponent)
            self._classes[key] = SlowdownClass(self.groups[group], m)
        return self._classes[key]

    def ramp(self, sizes: dict[str, int], cls: SlowdownClass) -> Ramp:
        key = (id(cls), tuple(sizes.items()))
        if key not in self._ramps:
            self._ramps[key] = Ramp(sizes, cls)
            self.engine.ledger.ramps.append(self._ramps[key])
        return self._ramps[key]

    def cost(self, name: str, law_name: str, circuit: str, gpu: int) -> Cost:
        """The cost of a host or device step."""
        law = self.calibration.law(law_name)
        names = self.names(circuit, gpu)
        if law.gpu > 0.0:
            exponent = self.calibration.contention.gpu_exponent
            cls, load, device = self.cls(f"gpu:{gpu}", 1.0, exponent, law.dram), law.gpu, gpu
        elif law.link is not None:
            return self.copy_cost(name, law_name, law.link, 0, circuit, gpu)
        else:
            cls, load, device = self.cls("cores", 0.0, 1.0, law.dram), 0.0, None
        seconds = law.seconds.evaluate(names)
        if device is not None:
            seconds *= factor(name, law, calibrated_on(self.calibration), rates_of(self.plan.scenario.machine.gpus[gpu]))
        return self._make(name, law_name, law, names, cls, seconds, 0.0, load, device)

    def copy_cost(self, name: str, law_name: str, direction: str, nbytes: int, circuit: str, gpu: int) -> Cost:
        """The cost of moving `nbytes` over PCIe, unless the law says how many."""
        law = self.calibration.law(law_name)
        names = self.names(circuit, gpu)
        device = self.plan.scenario.machine.gpus[gpu]
        link = device.pcie_h2d if (law.link or direction) == "h2d" else device.pcie_d2h
        rate = min(link, law.rate) if law.rate is not None else link
        moved = law.bytes.evaluate(names) if law.bytes is not None else float(nbytes)
        cls = self.cls(f"{law.link or direction}:{gpu}", 1.0, 1.0, law.dram)
        share = rate / link
        extra = self.calibration.contention.pcie_dram * share
        return self._make(name, law_name, law, names, cls, law.seconds.evaluate(names) + moved / rate, extra, share, gpu)

    def _make(self, name: str, law_name: str, law: CostLaw, names: dict[str, Any], cls: SlowdownClass, seconds: float,
              extra_demand: float, load: float, device: int | None) -> Cost:  # fmt: skip
        jitter = self._place.get(law_name)
        demand = law.dram_demand.evaluate(names) + extra_demand
        if self.engine.options.errors is not None:
            seconds *= self._drawn(law_name, law, "seconds")
            demand *= self._drawn(law_name, law, "dram_demand")
        if self.engine.durations is not None:  # measured times contain what slowed them
            return Cost(name, self.cls("replay", 1.0, 1.0, 0.0), max(0.0, seconds), 0.0, 0.0, 0.0, device, jitter)
        return Cost(name, cls, max(0.0, seconds), demand, law.cores.evaluate(names), load, device, jitter)

    def _drawn(self, law_name: str, law: CostLaw, field: str) -> float:
        """A factor for one figure within its standard error, the same throughout a run."""
        error = math.hypot(law.origin(field).error or 0.0, self.engine.options.extra_error)
        if not error:
            return 1.0
        z = random.Random(f"{self.engine.options.errors} {law_name} {field}").gauss(0.0, 1.0)
        return max(0.2, 1.0 + error * max(-2.5, min(2.5, z)))

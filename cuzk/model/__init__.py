"""The nouns as data: machine, circuit, policy, workload, calibration, scenario; units, formulas, YAML positions."""

from cuzk.model.calibration import Calibration, Contention, CostLaw, Origin
from cuzk.model.circuit import Circuit
from cuzk.model.formula import DurationFormula, Formula, SizeFormula
from cuzk.model.machine import Gpu, Machine
from cuzk.model.policy import Policy
from cuzk.model.scenario import Checks, Scenario, load_part, load_scenario
from cuzk.model.units import Bytes, Frequency, Rate, Seconds, fmt_gib, fmt_s
from cuzk.model.workload import Arrival, Interval, MixEntry, Poisson, Workload

__all__ = [
    "Arrival",
    "Bytes",
    "Calibration",
    "Checks",
    "Circuit",
    "Contention",
    "CostLaw",
    "DurationFormula",
    "Formula",
    "Frequency",
    "Gpu",
    "Interval",
    "Machine",
    "MixEntry",
    "Origin",
    "Poisson",
    "Policy",
    "Rate",
    "Scenario",
    "Seconds",
    "SizeFormula",
    "Workload",
    "fmt_gib",
    "fmt_s",
    "load_part",
    "load_scenario",
]  # fmt: skip

"""Calibration: what each step costs on a machine, how concurrent work slows each other, and where every number is from.

No number stands here without provenance: each model below has `provenance`, a mapping from field name to `Origin`
(or `'*'` for all the others), and refuses figures that it does not cover.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cuzk.errors import InputError
from cuzk.model.base import AsTuple, Model, Name, NonNegative, Real, Share, Source
from cuzk.model.formula import DurationFormula, Formula, SizeFormula, suggestion
from cuzk.model.policy import Placement
from cuzk.model.units import Bytes, Rate, Seconds


class Origin(Model):
    """The source of a number. In a file also short: `document: step table`, or the word alone."""

    source: Source
    note: str = ""
    error: Share | None = None
    """Relative standard error, if it is known: what `--seeds` spreads over."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        if isinstance(data, str):
            source, _, note = data.partition(":")
            return {"source": source.strip(), "note": note.strip()}
        return data


class Sourced(Model):
    """A model whose figures all have a provenance."""

    provenance: dict[str, Origin]
    _free: ClassVar[frozenset[str]] = frozenset({"provenance", "note", "range"})
    """Fields that are no figures."""

    @model_validator(mode="before")
    @classmethod
    def _one_for_all(cls, data: Any) -> Any:
        if isinstance(data, dict):
            given = data.get("provenance")
            if isinstance(given, (str, Origin)) or (isinstance(given, dict) and "source" in given):
                return data | {"provenance": {"*": given}}
        return data

    @model_validator(mode="after")
    def _covered(self) -> Self:
        fields = set(type(self).model_fields) - self._free
        for name in self.provenance:
            if name != "*" and name not in fields:
                raise ValueError(f"provenance of '{name}', which is no figure here{suggestion(name, fields)}")
        changed = {n for n in fields if getattr(self, n) != type(self).model_fields[n].get_default()}
        bare = sorted(changed - self.provenance.keys())
        if bare and "*" not in self.provenance:
            raise ValueError(f"no provenance for {', '.join(bare)}: say document, fit, measured, derived or assumed")
        return self

    def origin(self, field: str) -> Origin:
        """The source of `field`; a default that nobody set is assumed."""
        found = self.provenance.get(field) or self.provenance.get("*")
        return found if found is not None else Origin(source="assumed", note="default of the model")


def _pair(value: Any) -> Any:
    value = tuple(value) if isinstance(value, list) else value
    if isinstance(value, tuple) and len(value) != 2:
        raise ValueError("a range is [lowest, highest]")
    return value


def _ordered(value: tuple[float, float]) -> tuple[float, float]:
    if value[0] > value[1]:
        raise ValueError(f"ends ({value[1]:g}) below its beginning ({value[0]:g})")
    return value


Range = Annotated[tuple[Real, Real], BeforeValidator(_pair), AfterValidator(_ordered)]
"""[lowest, highest], both included."""

Ranges = Annotated[dict[str, Range], Field(default_factory=dict)]
"""Name of a count or a policy number -> where the calibration holds."""


class CostLaw(Sourced):
    """The cost of one step, running alone. Formulas may use circuit counts, policy numbers and flags, machine figures.

    A step that is memory-bound for a share `dram` of its time and asks for `dram_demand` of the machine's bandwidth
    slows itself and others as `Contention` says.
    """

    seconds: DurationFormula = Formula(0)
    """Seconds of work. A copy takes this as a fixed part beside its bytes."""
    cores: Formula = Formula(1)
    """Cores that it keeps busy."""
    dram: Share = 0.0
    """m: share of its time that is bound by memory bandwidth."""
    dram_demand: Formula = Formula(0)
    """Share of the machine's DRAM bandwidth that it asks for at full speed."""
    gpu: Share = 0.0
    """Share of the device's multiprocessors."""
    link: Literal["h2d", "d2h"] | None = None
    """The PCIe direction that it copies over."""
    bytes: SizeFormula | None = None
    """The bytes that it moves over the link; None: the buffers that the step names."""
    rate: Rate | None = None
    """Limit of this copy below the link's own, such as pageable memory's."""
    jitter: Share = 0.0
    """Coefficient of variation of each run."""
    group_jitter: Share = 0.0
    """Coefficient of variation common to all partitions of a proof: 0.01 with jitter 0 is perfect lockstep."""
    note: str = ""
    range: Ranges


class Contention(Sourced):
    """The laws by which concurrent work slows each other. The DRAM law: D = Σ demands; S = (1 + D^q)^(1/q), a smooth knee;
    a step whose share m is memory-bound runs at 1/((1 - m) + m·S) of its speed."""

    dram_exponent: Annotated[Real, Field(gt=0, le=64)] = 4.0
    """q: large is a sharp knee."""
    pcie_dram: NonNegative = 0.0
    """DRAM demand of a link at its full rate, as a share of the machine's bandwidth."""
    smt_yield: Share = 0.0
    """The work that a second hardware thread adds, as a share of a core."""
    cores_exponent: Annotated[Real, Field(ge=0, le=8)] = 1.0
    """Above the cores' number work slows as (asked / there are)^exponent; 0: cores do not bind."""
    gpu_exponent: Annotated[Real, Field(ge=0, le=8)] = 1.0
    """The same for the multiprocessors of a device."""

    def dram_slowdown(self, demand: float) -> float:
        """S at the summed demand D."""
        return float((1.0 + demand**self.dram_exponent) ** (1.0 / self.dram_exponent))

    @staticmethod
    def speed(memory_share: float, slowdown: float) -> float:
        """Relative speed of a step with memory-bound share m under slowdown S."""
        return 1.0 / ((1.0 - memory_share) + memory_share * slowdown)


class Latency(Sourced):
    """Small times that no step carries."""

    lock_wake: Seconds = 0.0
    """The time from the release of a lock to the start of the waiter that gets it."""
    channel_wake: Seconds = 0.0
    spawn: Seconds = 0.0
    turnaround: Seconds = 0.0
    """The time from the end of a set to the next claim of the same pool worker: its work for neither."""


class Memory(Sourced):
    """Bytes that are resident beyond the buffers."""

    process_ram: Bytes = 0
    """Resident before keys, matrices and sets: code, runtime, allocator."""
    allocator_slack: Share = 0.0
    """Share by which resident exceeds live."""
    vram_context: Bytes | None = None
    """The bytes of one process's context; None: the machine's figure."""


class Calibration(Model):
    name: Name
    description: str = ""
    software: Name
    """The prover and its version."""
    phases: Annotated[tuple[str, ...], AsTuple] = ()
    """Presets that it was made for; empty: any."""
    machine: Name
    """The machine on which it was measured."""
    gpu: str = ""
    residents: Annotated[dict[str, Placement], Field(default_factory=dict)]
    """Placement of the key (`srs`) and the matrices (`pce`) when the laws were measured: what a step read of them over a link
    then is in its law. What is not named counts as measured wherever it lies."""
    costs: dict[str, CostLaw]
    contention: Annotated[Contention, Field(default_factory=lambda: Contention(provenance={}))]
    latency: Annotated[Latency, Field(default_factory=lambda: Latency(provenance={}))]
    memory: Annotated[Memory, Field(default_factory=lambda: Memory(provenance={}))]
    range: Ranges
    """The range in which the calibration as a whole holds."""
    parameters: Annotated[dict[str, Real], Field(default_factory=dict)]
    """Fitted parameters by name, for the report; formulas may use them."""
    points: Annotated[tuple[str, ...], AsTuple] = ()
    """Ids of the measured points that the fit used."""

    def law(self, step: str) -> CostLaw:
        """The cost of `step`. Raises InputError, with a suggestion, if the calibration has none."""
        try:
            return self.costs[step]
        except KeyError:
            raise InputError(f"calibration '{self.name}' has no cost of '{step}'{suggestion(step, self.costs)}") from None

    def outside(self, names: dict[str, float]) -> list[str]:
        """The values that lie outside the calibrated range, in words; empty: all inside."""
        return [
            f"{name} = {names[name]:g} is outside {low:g}…{high:g}"
            for name, (low, high) in sorted(self.range.items())
            if name in names and not low <= names[name] <= high
        ]

"""Workload: how many proofs of which circuits arrive when."""

from __future__ import annotations

import itertools
import random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from cuzk.model.base import AsTuple, Model, Real
from cuzk.model.circuit import Circuit
from cuzk.model.units import Frequency, Seconds

Priority = Annotated[int, Field(strict=True, ge=-1000, le=1000)]


class Poisson(Model):
    """Independent arrivals at a mean rate."""

    poisson: Frequency


class Interval(Model):
    """One proof every `interval`, the first at 0."""

    interval: Seconds
    jitter: Seconds = 0.0
    """Each arrival is late by up to this much, uniformly."""


def _form(value: Any) -> str | None:
    if value == "closed":
        return "closed"
    if isinstance(value, (list, tuple)):
        return "times"
    if isinstance(value, Poisson) or (isinstance(value, dict) and "poisson" in value):
        return "poisson"
    if isinstance(value, Interval) or (isinstance(value, dict) and "interval" in value):
        return "interval"
    return None


Arrivals = Annotated[
    Annotated[Literal["closed"], Tag("closed")]
    | Annotated[Poisson, Tag("poisson")]
    | Annotated[Interval, Tag("interval")]
    | Annotated[tuple[Seconds, ...], AsTuple, Tag("times")],
    Discriminator(
        _form,
        custom_error_type="arrivals",
        custom_error_message="must be 'closed', {poisson: 1.5/min}, {interval: 40s} or times such as [0s, 40s]",
    ),
]


class MixEntry(Model):
    """One circuit of a mixed workload."""

    circuit: Circuit
    weight: Annotated[Real, Field(gt=0, le=1e9)] = 1.0
    """Share of the proofs, relative to the other entries."""
    priority: Priority = 0
    """Higher goes first, where the pipeline's order looks at it."""


class Arrival(NamedTuple):
    """One proof of the plan: its entry in the mix (0 without a mix), and when it arrives (None: closed loop)."""

    entry: int
    at_s: float | None
    priority: int


class Workload(Model):
    proofs: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    arrivals: Arrivals = "closed"
    """'closed': a new proof as soon as one of the j in flight is done."""
    circuits: Annotated[tuple[MixEntry, ...], AsTuple] = ()
    """A mix; empty: the scenario's circuit alone."""
    mix: Literal["random", "rotate"] = "random"
    """Draw each proof's circuit by weight, or deal them out evenly in that proportion."""
    priority: Priority = 0

    @model_validator(mode="before")
    @classmethod
    def _proofs_from_times(cls, data: Any) -> Any:
        if isinstance(data, dict) and "proofs" not in data and isinstance(data.get("arrivals"), (list, tuple)):
            data = data | {"proofs": len(data["arrivals"])}
        return data

    @field_validator("circuits")
    @classmethod
    def _names_differ(cls, entries: tuple[MixEntry, ...]) -> tuple[MixEntry, ...]:
        named: dict[str, Circuit] = {}
        for entry in entries:
            if named.setdefault(entry.circuit.name, entry.circuit) != entry.circuit:
                raise ValueError(f"two different circuits are named '{entry.circuit.name}'")
        return entries

    @field_validator("arrivals")
    @classmethod
    def _times(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, Interval) and value.interval == 0 and value.jitter == 0:
            raise ValueError("an interval of zero: write [0s, 0s, …] or 'closed'")
        if isinstance(value, tuple):
            if any(later < earlier for earlier, later in itertools.pairwise(value)):
                raise ValueError("the times must not go backwards")
            if info.data.get("proofs", len(value)) != len(value):
                raise ValueError(f"{len(value)} times for {info.data['proofs']} proofs")
        return value

    def plan(self, seed: int) -> list[Arrival]:
        """Every proof in order of arrival; the same seed gives the same plan."""
        times = self._arrival_times(random.Random(f"arrivals {seed}"))
        entries = self._entries(random.Random(f"mix {seed}"))
        priorities = [entry.priority for entry in self.circuits] or [self.priority]
        return [Arrival(e, t, priorities[e]) for e, t in zip(entries, times, strict=True)]

    def _arrival_times(self, rng: random.Random) -> list[float | None]:
        arrivals = self.arrivals
        if isinstance(arrivals, tuple):
            return list(arrivals)
        if isinstance(arrivals, Interval):
            late = [rng.random() * arrivals.jitter for _ in range(self.proofs)]
            return [*sorted(i * arrivals.interval + late[i] for i in range(self.proofs))]
        if isinstance(arrivals, Poisson):
            now, times = 0.0, []
            for _ in range(self.proofs):
                now += rng.expovariate(arrivals.poisson)
                times.append(now)
            return list(times)
        return [None] * self.proofs

    def _entries(self, rng: random.Random) -> list[int]:
        if not self.circuits:
            return [0] * self.proofs
        weights = [entry.weight for entry in self.circuits]
        if self.mix == "random":
            return rng.choices(range(len(weights)), weights, k=self.proofs)
        total, dealt, entries = sum(weights), [0] * len(weights), []
        for n in range(1, self.proofs + 1):
            # The entry that is furthest behind its share goes next.
            entry = max(range(len(weights)), key=lambda i: (n * weights[i] / total - dealt[i], -i))
            dealt[entry] += 1
            entries.append(entry)
        return entries

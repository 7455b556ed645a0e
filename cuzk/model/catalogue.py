"""Catalogue: cards and hosts that can be bought, with what they cost; and the lookup of a card by its name."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cuzk.errors import InputError
from cuzk.model.base import AsTuple, Model, Name, Positive, Provenance, Real, Source
from cuzk.model.formula import suggestion
from cuzk.model.units import Bytes, Rate, bytes_text, rate_text

LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Payload of one PCIe lane in one direction by generation, after line coding."""
LINK_SHARE = 0.8
"""Copies' share of the lanes' payload, from page-locked memory: 50 of 63 GB/s on one measured machine, 55 on another."""
PAGEABLE_SHARE = 0.06
"""Copies' share of the link, from pageable memory, staged by one thread: 3 of 50 GB/s on one measured machine, 6.7 of 55 on
another; the lower share."""
FILE = "catalogue/catalogue.yaml"

Usd = Annotated[Real, Field(ge=0, le=1e9)]
Watts = Annotated[Real, Field(ge=0, le=1e6)]


class Card(Model):
    name: Name
    aliases: Annotated[tuple[Name, ...], AsTuple] = ()
    """Other names, such as the driver's."""
    capability: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]
    """Compute capability."""
    sms: Annotated[int, Field(strict=True, ge=1, le=4096)]
    clock_mhz: Annotated[Real, Field(gt=0, le=10_000)]
    """Boost clock."""
    imad: Annotated[Real, Field(gt=0, le=1024)] = 64.0
    """32-bit integer multiply-adds a clock and multiprocessor: what field multiplications are made of."""
    vram: Bytes
    memory_bandwidth: Rate
    link_generation: Annotated[int, Field(strict=True, ge=1, le=6)]
    link_width: Literal[1, 2, 4, 8, 16]
    power_w: Watts
    price_usd: Usd
    price_source: Source = "assumed"

    @property
    def link_bytes_per_s(self) -> float:
        """The rate that copies from page-locked memory reach, one direction."""
        return LANE_BYTES_PER_S[self.link_generation] * self.link_width * LINK_SHARE

    @property
    def multiplies_per_s(self) -> float:
        """32-bit multiply-adds per second at the boost clock."""
        return self.sms * self.clock_mhz * 1e6 * self.imad

    def gpu(self) -> dict[str, object]:
        """The fields of a `Gpu` that follow from the card, as a file would give them."""
        link = rate_text(self.link_bytes_per_s)
        return {
            "name": self.name,
            "vram": bytes_text(self.vram),
            "sms": self.sms,
            "clock_mhz": self.clock_mhz,
            "imad": self.imad,
            "context": "300MiB",
            "pcie_h2d": link,
            "pcie_d2h": link,
            "pcie_h2d_pageable": rate_text(self.link_bytes_per_s * PAGEABLE_SHARE),
            "memory_bandwidth": rate_text(self.memory_bandwidth),
        }


class Host(Model):
    """A machine without its cards and its memory."""

    name: Name
    note: str = ""
    cores: Positive
    smt: Annotated[int, Field(strict=True, ge=1, le=8)] = 1
    dram_bandwidth: Rate
    ram_most: Bytes
    gpus_most: Annotated[int, Field(strict=True, ge=1, le=64)]
    price_usd: Usd = 0.0
    ram_usd_per_gib: Usd = 0.0
    usd_per_hour: Usd = 0.0
    """Rent, beside the price."""
    power_w: Watts = 0.0
    """Power at work, without cards."""


class Catalogue(Model):
    cards: Annotated[tuple[Card, ...], AsTuple]
    hosts: Annotated[tuple[Host, ...], AsTuple] = ()
    electricity_usd_per_kwh: Usd = 0.0
    years: Annotated[Real, Field(gt=0, le=100)] = 3.0
    """The time over which the price of a machine is spread."""
    provenance: Provenance = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_differ(self) -> Catalogue:
        seen: dict[str, str] = {}
        for card in self.cards:
            for name in (card.name, *card.aliases):
                if _key(name) in seen:
                    raise ValueError(f"two cards are named '{name}'")
                seen[_key(name)] = name
        if len({host.name for host in self.hosts}) < len(self.hosts):
            raise ValueError("two hosts have one name")
        return self

    def find(self, name: str) -> Card | None:
        """The card of a name or alias, whatever its case, blanks and maker's words; None: there is none."""
        key = _key(name)
        return next((card for card in self.cards if key in map(_key, (card.name, *card.aliases))), None)

    def card(self, name: str) -> Card:
        """The card that `find` finds. Raises InputError, with a suggestion: another card's figures are never taken instead."""
        found = self.find(name)
        if found is None:
            raise InputError(f"no card '{name}' in the catalogue{suggestion(name, [card.name for card in self.cards])}")
        return found

    def host(self, name: str) -> Host:
        """Raises InputError, with a suggestion."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise InputError(f"no host '{name}' in the catalogue{suggestion(name, [host.name for host in self.hosts])}")


def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", " ", name.lower()).split()
    return "".join(word for word in words if word not in ("nvidia", "geforce", "tesla", "graphics"))


def load_catalogue(path: str | os.PathLike[str]) -> Catalogue:
    """A catalogue file. Raises ScenarioError with positions."""
    from cuzk.model.scenario import load_part

    return load_part(path, "catalogue", Catalogue)


@cache
def default_catalogue() -> Catalogue:
    """The one that ships with cuzk."""
    from cuzk.model.files import library

    place = library()
    if place is None or not (place / FILE).is_file():
        raise InputError(f"the catalogue of cards is missing ({FILE} beside the scenarios)")
    return load_catalogue(place / FILE)

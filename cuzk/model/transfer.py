"""Laws of one card on another: a GPU step's time scaled by what the cards multiply and move in a second.

Compute goes with multiprocessors × clock × multiply-adds a clock, memory with the bandwidth. The same prover on two cards
shows how far that carries (docs/plan.md): within a factor of 1.8, which is the band of every prediction of another card.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cuzk.errors import InputError
from cuzk.model.calibration import Calibration, CostLaw
from cuzk.model.catalogue import default_catalogue
from cuzk.model.machine import Gpu, Machine

MEMORY_SHARE = {"batch_add": 0.25, "matvec_gpu": 0.5, "prep_msm_gpu": 0.5}
"""Weight of the memory's rate in a step's time on a GPU; the rest is multiplications. Assumed; batch additions bear it out."""
BAND = 1.8
"""Factor by which a GPU step's time on another card may be off, to either side (P5 and P95)."""


@dataclass(frozen=True)
class Rates:
    """A card as far as its speed goes; None: not known."""

    name: str
    sms: int
    clock_mhz: float | None
    imad: float | None
    memory_bandwidth: float | None

    def multiplies(self, other: Rates) -> float:
        """Multiply-adds a second; a figure that one of the two lacks counts as the other's."""
        both = self.clock_mhz is not None and other.clock_mhz is not None
        clock = self.clock_mhz if both and self.clock_mhz else 1.0
        wide = self.imad if self.imad is not None and other.imad is not None else 1.0
        return self.sms * clock * wide


def rates_of(gpu: Gpu) -> Rates:
    """The rates of a machine's card, what it leaves open filled from the catalogue where its name is there."""
    card = default_catalogue().find(gpu.card or gpu.name)
    same = card is not None and card.sms == gpu.sms
    return Rates(
        gpu.name,
        gpu.sms,
        gpu.clock_mhz if gpu.clock_mhz is not None else card.clock_mhz if card is not None and same else None,
        gpu.imad if gpu.imad is not None else card.imad if card is not None and same else None,
        gpu.memory_bandwidth
        if gpu.memory_bandwidth is not None
        else card.memory_bandwidth
        if card is not None and same
        else None,
    )


@lru_cache(maxsize=64)
def _named(gpu: str, machine: str) -> Rates | None:
    card = default_catalogue().find(gpu) if gpu else None
    if card is not None:
        return Rates(card.name, card.sms, card.clock_mhz, card.imad, card.memory_bandwidth)
    from cuzk.model.files import library
    from cuzk.model.scenario import load_part

    place = library()
    if place is None or not (place / "machines" / f"{machine}.yaml").is_file():
        return None
    try:
        found = load_part(place / "machines" / f"{machine}.yaml", "machine", Machine)
    except InputError:
        return None
    return rates_of(found.gpus[0]) if found.gpus else None


def calibrated_on(calibration: Calibration) -> Rates | None:
    """The card that a calibration was measured on, by its name or its machine's in the library; None: not known."""
    return _named(calibration.gpu, calibration.machine)


def same_card(a: Rates, b: Rates) -> bool:
    """Whether two cards are equally fast as far as is known; VRAM and name do not count."""
    return a.sms == b.sms and all(
        x is None or y is None or abs(x - y) <= 0.15 * max(x, y)
        for x, y in ((a.clock_mhz, b.clock_mhz), (a.memory_bandwidth, b.memory_bandwidth))
    )


def factor(step: str, law: CostLaw, there: Rates | None, here: Rates) -> float:
    """The time of a GPU step on the card `here` over that on `there`, where it was measured; 1 for all other work."""
    if not law.gpu or there is None or same_card(there, here):
        return 1.0
    compute = there.multiplies(here) / here.multiplies(there)
    memory = compute
    if there.memory_bandwidth and here.memory_bandwidth:
        memory = there.memory_bandwidth / here.memory_bandwidth
    share = MEMORY_SHARE.get(step, 0.0)
    return float(compute ** (1.0 - share) * memory**share)

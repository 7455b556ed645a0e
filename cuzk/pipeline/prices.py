"""The price of a step: its cost law evaluated for a circuit, where it runs and from where it reads.

A law was measured with the key and the matrices in some place (`residents` of the calibration). Where they lie elsewhere now, the
bytes that a step reads of them are priced over the link between. A step whose placement nobody measured is priced from its work
(cuzk.model.work). Both say so in `unmeasured`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from cuzk.model.calibration import Calibration
from cuzk.model.machine import Gpu, Machine
from cuzk.model.policy import Processor
from cuzk.model.transfer import calibrated_on, factor, rates_of
from cuzk.model.work import CORE, MULTIPROCESSOR, NATURAL, WORK

if TYPE_CHECKING:
    from cuzk.pipeline.ops import Read

Direction = Literal["h2d", "d2h"]
Names = dict[str, float]
RING_SHARE = 0.8
"""The share of the page-locked rate: 43 to 51 of 55 GB/s by eight threads (docs/cards.md)."""
STAGED_SHARE = 0.125
"""The share of the page-locked rate, where the pageable one of a link is not known: one thread's copy through staging buffers."""


@dataclass(frozen=True, slots=True)
class Price:
    """The demands of a step, alone. Times in seconds, loads as shares of what there is."""

    law: str
    seconds: float
    """Seconds of work, those on a link included."""
    cores: float
    dram: float
    """Share of the time that is bound by memory bandwidth."""
    demand: float
    """Share of the machine's DRAM bandwidth."""
    gpu: float = 0.0
    """Share of the device's multiprocessors; 0: not the device's work."""
    link: Direction | None = None
    link_share: float = 0.0
    """The share of the link's rate, while it copies."""
    unmeasured: str = ""
    """Why this is no measured price; empty: it is."""


def step_price(calibration: Calibration, machine: Machine, names: Names, step: str, law_name: str, at: Processor, gpu: int,
               reads: tuple[Read, ...], overlaps: bool = False) -> Price:  # fmt: skip
    """The price of a `run`; `overlaps`: it works while it reads. Raises InputError if there is neither a law nor a count of its
    work."""
    law = calibration.costs.get(law_name)
    if law is None and step in WORK and NATURAL.get(step, at) != at:
        return _read_over(calibration, machine, gpu, at, reads, _from_work(machine, names, step, law_name, at, gpu), overlaps)
    law = calibration.law(law_name)
    if law.link is not None:
        return copy_price(calibration, machine, names, law_name, law.link, 0, gpu)
    demand, cores = law.dram_demand.evaluate(names), law.cores.evaluate(names)
    seconds = law.seconds.evaluate(names)
    if law.gpu > 0.0:
        seconds *= factor(step, law, calibrated_on(calibration), rates_of(machine.gpus[gpu]))
    price = Price(law_name, seconds, cores, law.dram, demand, gpu=law.gpu)
    return _read_over(calibration, machine, gpu, at, reads, price, overlaps)


def copy_price(calibration: Calibration, machine: Machine, names: Names, law_name: str, direction: Direction, nbytes: int,
               gpu: int) -> Price:  # fmt: skip
    """The price of moving `nbytes` over PCIe, unless the law says how many."""
    law = calibration.law(law_name)
    device = machine.gpus[gpu]
    way: Direction = law.link or direction
    link = device.pcie_h2d if way == "h2d" else device.pcie_d2h
    rate = min(link, law.rate) if law.rate is not None else link
    moved = law.bytes.evaluate(names) if law.bytes is not None else float(nbytes)
    share = rate / link
    demand = law.dram_demand.evaluate(names) + calibration.contention.pcie_dram * share
    seconds = law.seconds.evaluate(names) + moved / rate
    return Price(law_name, seconds, law.cores.evaluate(names), law.dram, demand, link=way, link_share=share)


def _from_work(machine: Machine, names: Names, step: str, law_name: str, at: Processor, gpu: int) -> Price:
    why = f"{step} on the {at.upper()} was never measured: priced from its work"
    if at == "cpu":
        cores = float(machine.cores)
        return Price(law_name, CORE.seconds(WORK[step], names, cores), cores, 0.5, 0.0, unmeasured=why)
    seconds = MULTIPROCESSOR.seconds(WORK[step], names, machine.gpus[gpu].sms)
    return Price(law_name, seconds, 0.0, 0.0, 0.0, gpu=1.0, unmeasured=why)


def _read_over(
    calibration: Calibration, machine: Machine, gpu: int, at: Processor, reads: tuple[Read, ...], price: Price, overlaps: bool
) -> Price:
    """The same with what it reads over a link that it did not read over when it was measured. What comes beside the work costs
    nothing where the work takes longer; else the link is what is loaded."""
    seconds, told = 0.0, [price.unmeasured] if price.unmeasured else []
    for read in reads:
        measured = calibration.residents.get(read.resident)
        rate = link_rate(machine.gpus[gpu], at, read.pool, ring=overlaps) if machine.gpus else None
        if measured is None or rate is None or _kind(read.pool) == measured:
            continue
        seconds += read.nbytes / rate
        told.append(
            f"{price.law} was measured with {read.resident} in {measured}: what it reads from {read.pool} is priced by bytes"
        )
    if not told:
        return price
    why = "; ".join(told)
    if not overlaps:
        return replace(price, seconds=price.seconds + seconds, unmeasured=why)
    if seconds <= price.seconds:
        return replace(price, unmeasured=why)
    return replace(price, seconds=seconds, gpu=0.0, link="h2d", link_share=1.0, unmeasured=why)


def _kind(pool: str) -> str:
    """The placement that a pool stands for, as the policy names it; `mmap` lies in the same memory as `pageable`."""
    return "vram" if pool.startswith("vram") else {"ram": "pageable"}.get(pool, pool)


def link_rate(device: Gpu, at: Processor, pool: str, ring: bool = False) -> float | None:
    """Bytes a second from `pool` to where the work is done; None where no link lies between. `ring`: threads copy through blocks
    that are page-locked, where `pool` is not."""
    on_device = pool.startswith("vram")
    if at == "cpu":
        return device.pcie_d2h if on_device else None
    if on_device:
        return None
    if pool == "pinned":
        return device.pcie_h2d
    if ring:
        return RING_SHARE * device.pcie_h2d
    return device.pcie_h2d_pageable if device.pcie_h2d_pageable is not None else STAGED_SHARE * device.pcie_h2d

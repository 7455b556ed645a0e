"""This machine as a `Machine` of the model, each figure with where it comes from."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzk.host.cpu import Cpu, cpu
from cuzk.host.gpus import FoundGpu, gpus
from cuzk.host.memory import ROOT, ControlGroup, Memory, control_groups, memory
from cuzk.model.catalogue import PAGEABLE_SHARE, default_catalogue
from cuzk.model.machine import Gpu, Machine
from cuzk.model.units import fmt_gib

CONTEXT_BYTES = 300 << 20
"""The bytes of one CUDA context where nothing measured says more: documented as 0.1 to 0.5 GiB a process."""
LEAST_LINK = 1e9


@dataclass
class Found:
    """All that was read of the machine, and what was measured on it."""

    memory: Memory
    groups: list[ControlGroup]
    cpu: Cpu
    gpus: list[FoundGpu]
    dram_bytes_per_s: float | None = None
    links: dict[int, Any] = field(default_factory=dict)
    """By GPU: `LinkRates`."""
    refused: list[str] = field(default_factory=list)
    """The figures that were to be measured and could not be."""


def look(root: Path = ROOT) -> Found:
    """Read everything; milliseconds, and a second where there is a driver to ask."""
    return Found(memory(root), control_groups(root), cpu(root), gpus())


def measure(found: Found) -> None:
    """Measure the DRAM and the links of each GPU, a few seconds; what cannot be measured is noted."""
    from cuzk.host.dram import BLOCK_BYTES, dram_bandwidth

    threads = found.cpu.cores_usable
    room = min([found.memory.available_bytes, *(group.available_bytes for group in found.groups)])
    block = min(BLOCK_BYTES, room // (4 * threads))
    if block < 8 << 20:
        found.refused.append(f"DRAM: {fmt_gib(room)} of free RAM are too few to measure it with {threads} threads")
    else:
        found.dram_bytes_per_s = dram_bandwidth(threads, block)
    for gpu in found.gpus:
        try:
            from cuzk.gpu.bandwidth import link_rates

            found.links[gpu.index] = link_rates(gpu.index)
        except ImportError:
            found.refused.append(
                f"links of GPU {gpu.index}: CuPy is not installed (pip install 'cuzk[cuda13]' or 'cuzk[cuda12]')"
            )
        except Exception as error:  # whatever CUDA raises: the rest of the machine is worth saying
            found.refused.append(f"links of GPU {gpu.index}: {type(error).__name__}: {error}")


def machine_of(found: Found, name: str | None = None) -> Machine:
    """The model of what was found. RAM and VRAM that others hold now count as reserved: the file says what is free today."""
    there, notes = found.memory, {}
    held = max(0, there.total_bytes - there.available_bytes - there.hugepages_bytes)
    notes["ram"] = "total memory that the system reports"
    notes["reserved"] = "measured: held by the system and by other programs when this was written, page cache not counted"
    tightest = min(found.groups, key=lambda group: group.available_bytes, default=None)
    limit = None
    if tightest is not None and tightest.limit_bytes < there.total_bytes:
        limit = max(1, tightest.available_bytes)
        notes["cgroup_limit"] = (
            f"control group {tightest.path}: limit {fmt_gib(tightest.limit_bytes)} less {fmt_gib(tightest.held_bytes)} "
            f"held in it ({fmt_gib(tightest.reclaimable_bytes)} of page cache count as free)"
        )
    if there.hugepages_bytes:
        notes["hugepages"] = "set aside for huge pages, which the prover does not use"
    notes["cores"] = _cores_note(found.cpu)
    if found.dram_bytes_per_s is not None:
        notes["dram_bandwidth"] = "measured: bytes read and written while every core copies"
    if len(found.cpu.nodes) > 1:
        nodes = ", ".join(f"{n.number}: {n.threads} threads, {fmt_gib(n.memory_bytes)}" for n in found.cpu.nodes)
        notes["numa"] = f"{len(found.cpu.nodes)} nodes ({nodes}); the model takes the memory as one"
    cards = [_gpu(gpu, found, notes) for gpu in found.gpus]
    return Machine(
        name=name or _slug(socket.gethostname()),
        ram=there.total_bytes,
        reserved=min(held, there.total_bytes - there.hugepages_bytes - 1),
        hugepages=there.hugepages_bytes,
        cgroup_limit=limit,
        cores=found.cpu.cores_usable,
        smt=min(8, found.cpu.smt),
        dram_bandwidth=_round(found.dram_bytes_per_s),
        gpus=tuple(cards),
        provenance=notes,
    )


def _cores_note(found: Cpu) -> str:
    note = f"{found.model}: {found.cores} physical cores, {found.threads} hardware threads that this process may use"
    if found.cores_usable < found.cores:
        note += f"; the control group grants the time of {found.quota:g} threads"
    return note


def _gpu(gpu: FoundGpu, found: Found, notes: dict[str, str]) -> Gpu:
    """One GPU; what the driver does not tell comes from the catalogue, and the note says which."""
    card = default_catalogue().find(gpu.name)
    links = found.links.get(gpu.index)
    says: list[str] = []

    def first(what: str, *choices: tuple[Any, str]) -> Any:
        value, source = next(((v, s) for v, s in choices if v is not None), (None, "not known"))
        says.append(f"{what} {source}")
        return value

    known = "of the catalogue"
    link = first(
        "link",
        (links.h2d if links else None, "measured"),
        (gpu.link_bytes_per_s, "from its width and generation"),
        (card.link_bytes_per_s if card else None, known),
        (LEAST_LINK, "not known: 1 GB/s assumed"),
    )
    sms = first("multiprocessors", (gpu.sms, "from the driver"), (card.sms if card else None, known), (1, "not known: 1 assumed"))
    bandwidth = first(
        "memory bandwidth",
        (links.memory if links else None, "measured"),
        (gpu.memory_bytes_per_s, "from clock and bus width"),
        (card.memory_bandwidth if card else None, known),
    )
    if gpu.holders or gpu.used_bytes:
        who = ", ".join(_holder(h.pid, h.name, h.bytes) for h in gpu.holders) or "no process that the driver would name"
        says.append(f"{fmt_gib(gpu.used_bytes)} held now by {who}")
    notes[f"gpus.{gpu.index}"] = f"{gpu.name}, driver {gpu.driver}: " + "; ".join(says)
    return Gpu(
        name=gpu.name,
        vram=gpu.vram_bytes,
        reserved=min(gpu.used_bytes, max(0, gpu.vram_bytes - CONTEXT_BYTES - 1)),
        context=CONTEXT_BYTES,
        sms=sms,
        clock_mhz=gpu.clock_hz / 1e6 if gpu.clock_hz else None,
        imad=card.imad if card else None,
        pcie_h2d=_round(link) or link,
        pcie_d2h=_round(links.d2h if links else link) or link,
        pcie_h2d_pageable=_round(links.h2d_pageable if links else link * PAGEABLE_SHARE),
        memory_bandwidth=_round(bandwidth),
    )


def _round(rate: float | None) -> float | None:
    """To three digits: no measurement of a rate is better."""
    return None if rate is None else float(f"{rate:.3g}")


def _holder(pid: int, name: str, nbytes: int | None) -> str:
    return f"{name} (pid {pid}, {fmt_gib(nbytes) if nbytes is not None else 'size not told'})"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "machine"

"""Cores that this process may use: its affinity, its control group's quota, hardware threads, NUMA nodes."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from cuzk.host.memory import ROOT, read_number
from cuzk.model.units import KIB


@dataclass(frozen=True)
class NumaNode:
    number: int
    threads: int
    memory_bytes: int


@dataclass(frozen=True)
class Cpu:
    model: str
    cores: int
    """Physical cores among the threads that this process may run on."""
    threads: int
    """Hardware threads that this process may run on."""
    quota: float | None
    """Threads' worth of time that the control group grants; None: all."""
    nodes: tuple[NumaNode, ...]

    @property
    def cores_usable(self) -> int:
        """Physical cores within the quota, at least one."""
        if self.quota is None:
            return self.cores
        return max(1, min(self.cores, int(self.quota * self.cores / self.threads + 0.5)))

    @property
    def smt(self) -> int:
        """Hardware threads a core."""
        return max(1, round(self.threads / self.cores))


def cpu(root: Path = ROOT, affinity: set[int] | None = None) -> Cpu:
    """The processors that this process may use. `affinity`: the hardware threads; None: ask the system."""
    mine = affinity if affinity is not None else _affinity()
    cores = set()
    for thread in mine:
        topology = root / f"sys/devices/system/cpu/cpu{thread}/topology"
        package, core = read_number(topology / "physical_package_id"), read_number(topology / "core_id")
        cores.add((package, core) if core is not None else (None, -1 - thread))
    return Cpu(_model(root), max(1, len(cores)), max(1, len(mine)), _quota(root), _nodes(root, mine))


def _affinity() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _model(root: Path) -> str:
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _quota(root: Path) -> float | None:
    """The limit of the control group of version 2 or 1; None without one."""
    place = root / "sys/fs/cgroup"
    for path in (place / "cpu.max", place / "unified/cpu.max"):
        try:
            quota, period = path.read_text().split()[:2]
        except (OSError, ValueError):
            continue
        if quota.isdigit() and period.isdigit() and int(period):
            return int(quota) / int(period)
    for name in ("cpu", "cpu,cpuacct"):
        quota_us, period_us = read_number(place / name / "cpu.cfs_quota_us"), read_number(place / name / "cpu.cfs_period_us")
        if quota_us and period_us:
            return quota_us / period_us
    return None


def _nodes(root: Path, mine: set[int]) -> tuple[NumaNode, ...]:
    found = []
    for place in (root / "sys/devices/system/node").glob("node[0-9]*"):
        number = int(place.name.removeprefix("node"))
        try:
            threads = _listed((place / "cpulist").read_text()) & mine
            rows = [line.split() for line in (place / "meminfo").read_text().splitlines()]
        except OSError:
            continue
        total = next((int(row[3]) for row in rows if len(row) > 3 and row[2] == "MemTotal:" and row[3].isdigit()), 0)
        found.append(NumaNode(number, len(threads), total * KIB))
    return tuple(sorted(found, key=lambda node: node.number))


def _listed(text: str) -> set[int]:
    """`0-3,8` as the system writes sets of threads."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found

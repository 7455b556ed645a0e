"""Memory that this process may take of its host: the system's, within the limits of its control groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuzk.model.units import KIB

ROOT = Path("/")
UNLIMITED_BYTES = 1 << 60
"""Control groups of version 1 write a number near 2^63 where there is no limit."""


@dataclass(frozen=True)
class ControlGroup:
    """One group around this process that limits its memory."""

    path: str
    limit_bytes: int
    usage_bytes: int
    """All that is charged to the group, page cache included."""
    reclaimable_bytes: int
    """The part of the usage that the kernel gives back when it is asked: file cache and reclaimable slabs."""

    @property
    def held_bytes(self) -> int:
        """Usage that cannot be reclaimed."""
        return max(0, self.usage_bytes - self.reclaimable_bytes)

    @property
    def available_bytes(self) -> int:
        return max(0, self.limit_bytes - self.held_bytes)


@dataclass(frozen=True)
class Memory:
    total_bytes: int
    available_bytes: int
    """The memory that can be had without swapping: the kernel's own estimate, which counts the page cache as free."""
    hugepages_bytes: int
    """Set aside for huge pages, used or not: nothing else can have it."""
    swap_bytes: int


def control_groups(root: Path = ROOT) -> list[ControlGroup]:
    """Every control group around this process that has a limit, of either version, from the process's own to the topmost."""
    found: dict[str, ControlGroup] = {}
    for directory, version in _directories(root):
        group = _read_v2(directory) if version == 2 else _read_v1(directory)
        if group is not None:
            found.setdefault(group.path, group)
    return list(found.values())


def _directories(root: Path) -> Iterator[tuple[Path, int]]:
    """(directory, version) of the groups: the process's own and all above it."""
    place = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in [*lines, "0::/", "0:memory:/"]:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            bases, version = [place, place / "unified"], 2
        elif "memory" in controllers.split(","):
            bases, version = [place / "memory"], 1
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for base in bases:
            for depth in range(len(parts), -1, -1):
                yield base.joinpath(*parts[:depth]), version


def _read_v2(directory: Path) -> ControlGroup | None:
    limit, usage = read_number(directory / "memory.max"), read_number(directory / "memory.current")
    if limit is None or usage is None:
        return None
    stat = _stat(directory / "memory.stat")
    reclaimable = sum(stat.get(name, 0) for name in ("inactive_file", "active_file", "slab_reclaimable"))
    return ControlGroup(str(directory), limit, usage, min(usage, reclaimable))


def _read_v1(directory: Path) -> ControlGroup | None:
    limit, usage = read_number(directory / "memory.limit_in_bytes"), read_number(directory / "memory.usage_in_bytes")
    if limit is None or usage is None or limit >= UNLIMITED_BYTES:
        return None
    stat = _stat(directory / "memory.stat")
    reclaimable = sum(stat.get(f"total_{name}", stat.get(name, 0)) for name in ("inactive_file", "active_file"))
    return ControlGroup(str(directory), limit, usage, min(usage, reclaimable))


def read_number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _stat(path: Path) -> dict[str, int]:
    """Pairs of name and number, a line each; what is none is left out."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) >= 2 and row[1].isdigit()}


def memory(root: Path = ROOT) -> Memory:
    """The whole host's memory, whatever limits stand around this process."""
    info = {name: value * KIB for name, value in _stat(root / "proc/meminfo").items()}
    if "MemTotal" not in info:
        import psutil

        there = psutil.virtual_memory()
        return Memory(int(there.total), int(there.available), 0, int(psutil.swap_memory().total))
    available = info.get("MemAvailable", info.get("MemFree", 0) + info.get("Cached", 0))
    return Memory(info["MemTotal"], available, _hugepages(root), info.get("SwapTotal", 0))


def _hugepages(root: Path) -> int:
    total = 0
    for place in sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size_kib = place.name.removeprefix("hugepages-").removesuffix("kB")
        total += int(size_kib) * KIB * (read_number(place / "nr_hugepages") or 0) if size_kib.isdigit() else 0
    return total


def memory_limit_bytes(root: Path = ROOT) -> int | None:
    """The tightest limit of the control groups; None without one."""
    return min((group.limit_bytes for group in control_groups(root)), default=None)


def available_bytes(root: Path = ROOT) -> int:
    """Memory that this process may still take: the system's, or its control groups' if that is less.

    Page cache counts as free on both sides: the kernel drops it when a program asks.
    """
    return min([memory(root).available_bytes, *(group.available_bytes for group in control_groups(root))])

"""The driver's report of each GPU: its memory, who holds it now, its link, its clocks. No CUDA context is made."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

from cuzk.model.catalogue import LANE_BYTES_PER_S, LINK_SHARE
from cuzk.model.units import MIB

QUERY = (
    "index,uuid,name,memory.total,memory.used,driver_version,compute_cap,pcie.link.gen.max,pcie.link.width.max,"
    "clocks.max.sm,power.limit"
)
APPS_QUERY = "gpu_uuid,pid,process_name,used_memory"
_SMS, _CLOCK_KHZ, _MEMORY_CLOCK_KHZ, _BUS_BITS = 16, 13, 36, 37  # CUdevice_attribute of the driver API


@dataclass(frozen=True)
class Holder:
    """A process on a GPU."""

    pid: int
    name: str
    bytes: int | None
    """None: the driver does not tell (as inside a container)."""


@dataclass(frozen=True)
class FoundGpu:
    index: int
    name: str
    vram_bytes: int
    used_bytes: int
    driver: str = ""
    compute_capability: str = ""
    link_generation: int | None = None
    link_width: int | None = None
    power_w: float | None = None
    sms: int | None = None
    clock_hz: float | None = None
    memory_bytes_per_s: float | None = None
    """The bandwidth by the memory's clock and bus width, both of the driver."""
    holders: tuple[Holder, ...] = field(default=())

    @property
    def link_bytes_per_s(self) -> float | None:
        """The rate that copies from pinned memory reach on such a link, one direction; an estimate."""
        lane = LANE_BYTES_PER_S.get(self.link_generation or 0)
        return lane * self.link_width * LINK_SHARE if lane and self.link_width else None


def gpus() -> list[FoundGpu]:
    """Every GPU that the driver shows; empty without a driver."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = _ask(f"--query-gpu={QUERY}")
    apps = _ask(f"--query-compute-apps={APPS_QUERY}")
    attributes = _driver_attributes()
    return [parsed(line, apps, attributes) for line in listed]


def _ask(query: str) -> list[list[str]]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def parsed(cells: list[str], apps: list[list[str]], attributes: dict[str, dict[str, int]]) -> FoundGpu:
    """One line of the driver's list, with its processes and attributes by the GPU's UUID."""
    row = dict(zip(QUERY.split(","), cells, strict=False))
    uuid = row.get("uuid", "")
    mine = [app for app in apps if len(app) >= 4 and app[0] == uuid]
    holders = tuple(Holder(int(app[1]) if app[1].isdigit() else 0, ",".join(app[2:-1]), _mib(app[-1])) for app in mine)
    known = attributes.get(uuid.removeprefix("GPU-").replace("-", ""), {})
    clock, bus = known.get("memory_clock_khz", 0), known.get("bus_bits", 0)
    mhz = _number(row.get("clocks.max.sm", ""))
    return FoundGpu(
        index=int(row.get("index") or 0),
        name=row.get("name", "?"),
        vram_bytes=_mib(row.get("memory.total", "")) or 0,
        used_bytes=_mib(row.get("memory.used", "")) or 0,
        driver=row.get("driver_version", ""),
        compute_capability=row.get("compute_cap", ""),
        link_generation=_whole(row.get("pcie.link.gen.max", "")),
        link_width=_whole(row.get("pcie.link.width.max", "")),
        power_w=_number(row.get("power.limit", "")),
        sms=known.get("sms"),
        clock_hz=known["clock_khz"] * 1e3 if known.get("clock_khz") else mhz * 1e6 if mhz else None,
        memory_bytes_per_s=2e3 * clock * bus / 8 if clock and bus else None,
        holders=holders,
    )


def _number(text: str) -> float | None:
    """None for `[N/A]` and the like."""
    try:
        return float(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _mib(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value * MIB)


def _driver_attributes() -> dict[str, dict[str, int]]:
    """Figures that only the driver's library tells, by UUID in hex. Empty where it is missing or refuses."""
    try:
        cuda: Any = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int()
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return {}
        found = {}
        for number in range(count.value):
            device, uuid = ctypes.c_int(), ctypes.create_string_buffer(16)
            if cuda.cuDeviceGet(ctypes.byref(device), number) or cuda.cuDeviceGetUuid(uuid, device):
                continue
            wanted = {"sms": _SMS, "clock_khz": _CLOCK_KHZ, "memory_clock_khz": _MEMORY_CLOCK_KHZ, "bus_bits": _BUS_BITS}
            figures = {name: _attribute(cuda, device, code) for name, code in wanted.items()}
            found[uuid.raw.hex()] = {name: value for name, value in figures.items() if value}
    except (OSError, AttributeError):
        return {}
    return found


def _attribute(cuda: Any, device: ctypes.c_int, code: int) -> int:
    value = ctypes.c_int()
    return 0 if cuda.cuDeviceGetAttribute(ctypes.byref(value), code, device) else value.value

"""Machine: RAM and the limits under it, CPU cores, DRAM bandwidth, GPUs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from cuzk.model.base import AsTuple, Model, Name, Provenance, Real
from cuzk.model.units import Bytes, Rate, fmt_gib

Small = Annotated[int, Field(strict=True, ge=1, le=4096)]


class Gpu(Model):
    """One device. In a file `count: 3` stands for three equal ones; `Machine.gpus` holds them expanded.

    `card: RTX 4090` takes every figure that is not given beside it from the catalogue.
    """

    name: Name
    card: Name | None = None
    """Its name in the catalogue."""
    vram: Bytes
    reserved: Bytes = 0
    """Held by others and by the driver before the prover starts."""
    context: Bytes = 0
    """The bytes that one process's CUDA context takes."""
    sms: Small
    clock_mhz: Annotated[Real, Field(gt=0, le=10_000)] | None = None
    """Boost clock of the multiprocessors; None: not known."""
    imad: Annotated[Real, Field(gt=0, le=1024)] | None = None
    """32-bit integer multiply-adds a clock and multiprocessor; None: not known."""
    pcie_h2d: Rate
    """Host to device from pinned memory, one direction."""
    pcie_d2h: Rate
    pcie_h2d_pageable: Rate | None = None
    """Host to device from pageable memory, staged by one thread; None: not known."""
    memory_bandwidth: Rate | None = None
    reported: Bytes | None = None
    """Total memory that the driver tells programs, where that is not the card's own."""
    count: Annotated[int, Field(strict=True, ge=1, le=64)] = 1

    @model_validator(mode="before")
    @classmethod
    def _from_catalogue(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("card"), str):
            from cuzk.errors import InputError
            from cuzk.model.catalogue import default_catalogue

            try:
                return default_catalogue().card(data["card"]).gpu() | data
            except InputError as error:
                raise ValueError(str(error)) from None
        return data

    @field_validator("vram")
    @classmethod
    def _some(cls, value: int) -> int:
        if value == 0:
            raise ValueError("a GPU with no memory")
        return value

    @field_validator("reserved", "context")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        vram = info.data.get("vram")
        if vram is not None and value + info.data.get("reserved", 0) * (info.field_name == "context") >= vram:
            raise ValueError(f"nothing is left of {fmt_gib(vram)} VRAM: {info.field_name} is {fmt_gib(value)}")
        return value

    @property
    def visible_vram(self) -> int:
        """The card's total memory as programs see it."""
        return self.vram if self.reported is None else self.reported

    @property
    def usable_vram(self) -> int:
        """Bytes that buffers can take, the context already off."""
        return self.vram - self.reserved - self.context


class Machine(Model):
    name: Name
    ram: Bytes
    reserved: Bytes = 0
    """RAM that the system keeps: verdicts use the difference."""
    hugepages: Bytes = 0
    """RAM set aside for huge pages, used or not: the prover's buffers cannot have it."""
    cgroup_limit: Bytes | None = None
    """Limit of the container or service, if it is below the RAM."""
    cores: Small
    """Physical cores."""
    smt: Annotated[int, Field(strict=True, ge=1, le=8)] = 1
    """Hardware threads a core."""
    dram_bandwidth: Rate | None = None
    gpus: Annotated[tuple[Gpu, ...], AsTuple] = ()
    provenance: Provenance = Field(default_factory=dict)

    @field_validator("reserved", "hugepages")
    @classmethod
    def _below_ram(cls, value: int, info: ValidationInfo) -> int:
        ram = info.data.get("ram")
        taken = value + info.data.get("reserved", 0) * (info.field_name == "hugepages")
        if ram is not None and taken >= ram:
            raise ValueError(f"nothing is left: {fmt_gib(taken)} reserved of {fmt_gib(ram)} RAM")
        return value

    @field_validator("ram", "cgroup_limit")
    @classmethod
    def _some(cls, value: int | None) -> int | None:
        if value == 0:
            raise ValueError("must be above zero")
        return value

    @field_validator("gpus")
    @classmethod
    def _expand(cls, gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
        return tuple(gpu.model_copy(update={"count": 1}) for gpu in gpus for _ in range(gpu.count))

    @property
    def threads(self) -> int:
        return self.cores * self.smt

    def names(self, gpu: int = 0) -> dict[str, float]:
        """Figures for formulas; those of device `gpu` are 0 where there is none."""
        device = self.gpus[gpu] if gpu < len(self.gpus) else None
        return {
            "ram": self.usable_ram, "cores": self.cores, "threads": self.threads, "gpus": len(self.gpus),
            "vram": device.visible_vram if device else 0, "gpu_context": device.context if device else 0,
            "sms": device.sms if device else 0,
        }  # fmt: skip

    @property
    def usable_ram(self) -> int:
        """Bytes that resident memory may reach: min(ram - reserved - hugepages, cgroup limit)."""
        free = self.ram - self.reserved - self.hugepages
        return free if self.cgroup_limit is None else min(free, self.cgroup_limit)

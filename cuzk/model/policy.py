"""Policy: how many of everything, and *where* each order-sensitive thing happens.

An option that is None takes the value of the pipeline's preset. `Policy.over(preset)` fills them in.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from cuzk.model.base import Model
from cuzk.model.units import Bytes

Prestage = Literal["off", "before-mutex", "inside-mutex"]
FreeDBC = Literal["after-unlock", "before-unlock", "after-ntt"]
Unpin = Literal["before-unlock", "after-unlock"]
PermitReturns = Literal["after-synthesis", "after-send", "after-pickup", "after-gpu-start"]
FreeABC = Literal["after-start", "after-finish"]
ProveApi = Literal["monolithic", "split"]
Dealloc = Literal["inline", "async", "async-serialised"]
GpuLocks = Literal["one", "compute+memory"]
Admission = Literal["permits", "byte-budget", "queue-target"]
Order = Literal["fifo", "by-proof", "random"]
MsmSync = Literal["each-batch", "deferred"]
Placement = Literal["vram", "pinned", "pageable", "mmap", "split"]
Processor = Literal["cpu", "gpu"]
LockOrder = Literal["fifo", "barging"]
Quotient = Literal["bellman", "odd-coset", "c-free"]
Matrices = Literal["csr", "template"]
Witness = Literal["field", "bits"]
KeyTables = Literal["none", "pair-sums"]

MAX_CAPACITY = 1 << 20


def _capacity(value: Any) -> Any:
    if value is None or (value == "pw" and isinstance(value, str)):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number or 'pw', not {value!r}")
    if not 1 <= value <= MAX_CAPACITY:
        raise ValueError(f"must be 1 to {MAX_CAPACITY}, or 'pw', not {value}")
    return value


Capacity = Annotated[
    int | Literal["pw"] | None,
    BeforeValidator(_capacity),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CAPACITY}, {"enum": ["pw", None]}]}),
]


class Policy(Model):
    pw: Annotated[int, Field(strict=True, ge=1, le=4096)] | None = None
    """Permits of synthesis: partition workers."""
    gw: Annotated[int, Field(strict=True, ge=1, le=64)] | None = None
    """GPU workers a device."""
    j: Annotated[int, Field(strict=True, ge=1, le=65536)] | None = None
    """Proofs in flight; the only j there is."""
    gt: Annotated[int, Field(strict=True, ge=1, le=4096)] | None = None
    """Threads of prep_msm and b_g2_msm."""

    prestage: Prestage | None = None
    prestage_guard: Bytes | None = None
    """Free VRAM that must remain; with less, the slow path."""
    free_d_bc: FreeDBC | None = None
    unpin: Unpin | None = None
    permit_returns: PermitReturns | None = None
    channel_capacity: Capacity = None
    free_abc: FreeABC | None = None
    prove_api: ProveApi | None = None
    dealloc: Dealloc | None = None
    """Both deallocation paths at once: read `dealloc_native` and `dealloc_host`, which it fills."""
    dealloc_native: Dealloc | None = None
    dealloc_host: Dealloc | None = None
    gpu_locks: GpuLocks | None = None
    admission: Admission | None = None
    budget_margin: Bytes | None = None
    """RAM that `admission: byte-budget` keeps back."""
    budget_partition: Bytes | None = None
    """Settled size of a partition that the byte budget counts with."""
    queue_target: Annotated[int, Field(strict=True, ge=1, le=4096)] | None = None
    """Finished sets that `admission: queue-target` keeps waiting for the GPU."""
    order: Order | None = None
    msm_sync: MsmSync | None = None
    srs: Placement | None = None
    pce: Placement | None = None
    b_g2_msm: Processor | None = None
    lock_order: LockOrder | None = None
    quotient: Quotient | None = None
    matrices: Matrices | None = None
    witness: Witness | None = None
    matvec: Processor | None = None
    prep_msm: Processor | None = None
    key_tables: KeyTables | None = None
    """Tables that are made of the key's points once and kept behind them in VRAM: the sums of neighbours, for batch additions."""

    @model_validator(mode="before")
    @classmethod
    def _both_paths(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("dealloc") in get_args(Dealloc):
            data = dict(data)
            for path in ("dealloc_native", "dealloc_host"):
                if data.get(path) is None:
                    data[path] = data["dealloc"]
        return data

    def with_(self, **changes: Any) -> Self:
        if "dealloc" in changes:
            changes = {"dealloc_native": changes["dealloc"], "dealloc_host": changes["dealloc"]} | changes
        return super().with_(**changes)

    def over(self, preset: Policy) -> Self:
        """This policy with every option that it leaves open taken from `preset`."""
        filled = {k: v for k, v in preset.__dict__.items() if self.__dict__[k] is None and v is not None}
        return self.model_copy(update=filled)

    def numbers(self) -> dict[str, float]:
        """The options that are set, for formulas: numbers by their name, each option's values as flags of 0 and 1.

        `prestage: inside-mutex` gives prestage_inside_mutex = 1, prestage_off = 0, prestage_before_mutex = 0.
        """
        values: dict[str, float] = {k: v for k, v in self.__dict__.items() if isinstance(v, int)}
        if self.channel_capacity == "pw" and self.pw is not None:
            values["channel_capacity"] = self.pw
        for option, choices in _choices().items():
            chosen = getattr(self, option)
            if chosen is not None:
                values |= {flag: float(choice == chosen) for choice, flag in choices}
        return values

    @staticmethod
    def number_names() -> set[str]:
        """Every name that `numbers` can give."""
        flags = {flag for choices in _choices().values() for _, flag in choices}
        return flags | (Policy.model_fields.keys() - _choices().keys())


@cache
def _choices() -> dict[str, list[tuple[str, str]]]:
    """option -> (value, name of its flag)"""
    options: dict[str, list[tuple[str, str]]] = {}
    for option, field in Policy.model_fields.items():
        literal = next((a for a in get_args(field.annotation) if get_origin(a) is Literal), None)
        if literal is not None and option != "channel_capacity":
            options[option] = [(v, f"{option}_{v}".replace("-", "_").replace("+", "_")) for v in get_args(literal)]
    return options

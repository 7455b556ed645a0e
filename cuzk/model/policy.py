"""Policy: how many of everything, and *where* each order-sensitive thing happens.

An option that is None takes the value of the pipeline's preset. `Policy.over(preset)` fills them in.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

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
Placement = Literal["vram", "pinned", "pageable", "mmap"]
Processor = Literal["cpu", "gpu"]
LockOrder = Literal["fifo", "barging"]
Quotient = Literal["bellman", "odd-coset", "c-free"]
Matrices = Literal["csr", "template"]
Witness = Literal["field", "bits"]

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
    batch_size: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """Proofs a GPU call, where a preset batches whole proofs."""
    synthesis_threads: Annotated[int, Field(strict=True, ge=1, le=4096)] | None = None

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
    """Both deallocation paths, where they are not named apart."""
    dealloc_native: Dealloc | None = None
    dealloc_host: Dealloc | None = None
    gpu_locks: GpuLocks | None = None
    admission: Admission | None = None
    budget: Bytes | None = None
    """RAM that `admission: byte-budget` hands out; None: the machine's limit less the residents."""
    budget_margin: Bytes | None = None
    partition_bytes: Bytes | None = None
    """Settled size of a partition that the budget counts with; None: from the counts."""
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

    @model_validator(mode="before")
    @classmethod
    def _both_paths(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("dealloc") in get_args(Dealloc):
            data = {"dealloc_native": data["dealloc"], "dealloc_host": data["dealloc"]} | {
                key: value for key, value in data.items() if value is not None
            }
            del data["dealloc"]
        return data

    def over(self, preset: Policy) -> Self:
        """This policy with every option that it leaves open taken from `preset`."""
        filled = {k: v for k, v in preset.__dict__.items() if self.__dict__[k] is None and v is not None}
        return self.model_copy(update=filled)

    def names(self) -> dict[str, float | str]:
        """What is set, for formulas; options are text: `0.7 if prestage != 'off' else 2.4`."""
        return {k: v for k, v in self.__dict__.items() if v is not None}

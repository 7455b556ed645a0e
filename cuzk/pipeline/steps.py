"""The lines of a worker: one small frozen model per step.

In YAML a step is a mapping whose first key is its verb, so that a worker reads top to bottom:

    - get: synthesized
    - acquire: gpu_mutex
    - try_alloc: [d_a, d_bc]
      guard: 512MiB
      then: [{copy: d_a, from: [a], on: copy}]
      else: [{alloc: [d_a, d_bc]}]
    - run: ntt_h
      at: gpu
      on: compute
    - record: ntt_done
      on: compute
    - free: [d_bc]
      after: ntt_done
    - release: gpu_mutex

A claim (`get put acquire join wait`) may wait. An allocation never does: it fits, or it is an out-of-memory event.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from cuzk.model.formula import Formula, SizeFormula
from cuzk.model.policy import Processor
from cuzk.model.units import Bytes
from cuzk.model.work import NATURAL, law_name

HOST = "host"


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)]


class StepBase(BaseModel):
    """Common behaviour of all steps. `verb` is the YAML key that names the step."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @property
    def verb(self) -> str:
        return VERB_OF[type(self)]


class Get(StepBase):
    """Take the next set (token) from a channel; waits while it is empty. The set now belongs to this worker."""

    get: str


class Put(StepBase):
    """Hand this set over to a channel; waits while it is full. The set no longer belongs to this worker."""

    put: str


class Acquire(StepBase):
    """Claim `n` units of a lock or permit; waits. What was claimed travels with the set until released."""

    acquire: str
    n: Formula | None = None


class Release(StepBase):
    """Give back what `acquire` claimed (all units)."""

    release: str


class Alloc(StepBase):
    """Allocate buffers of this set. Never waits: what does not fit raises an out-of-memory event."""

    alloc: Names


class TryAlloc(StepBase):
    """Allocate all buffers if that leaves `guard` bytes free in each pool; else take the other arm.

    The only branch. Both arms must end with the same live buffers.
    """

    try_alloc: Names
    guard: Bytes = 0
    then: tuple[Step, ...] = ()
    otherwise: Annotated[tuple[Step, ...], Field(alias="else")] = ()


class Free(StepBase):
    """Free buffers; with `after`, only once that event is reached (their last use on a stream)."""

    free: Names
    after: str | None = None


class Trim(StepBase):
    """Give what a pool's allocator caches back to the device (cudaMemPoolTrimTo)."""

    trim: str


class Run(StepBase):
    """Do named work on a processor: `at` the CPU, or the GPU that the set is bound to; `on` says who waits for it.

    `at` left out: the GPU for what is queued on a stream, else where the step runs by nature (cuzk.model.work).
    `on: host`: the worker itself, also for work that it launches on the GPU and waits for; else a stream of the GPU.
    `reads`: what it reads of a buffer that is there for the whole run (the key, the matrices), in bytes: from where that lies
    to where the work is done these bytes go over a link, before the work or (`overlaps`) beside it. `uses`: the buffers it
    touches on its stream, which may be freed only after an event behind it. `cost` names its law in the calibration; without it
    the law's name is the step's, with the processor behind it where the step runs on the other one than it does by nature
    (`matvec_gpu`, `batch_add_cpu`).
    """

    run: str
    at: Processor | None = None
    on: str = HOST
    cost: str | None = None
    reads: dict[str, SizeFormula] = {}
    overlaps: bool = False
    uses: tuple[str, ...] = ()

    @property
    def law(self) -> str:
        """The cost law's name in the calibration."""
        return self.cost or law_name(self.run, self.processor)

    @property
    def processor(self) -> Processor:
        """The processor on which it runs."""
        return self.at or ("gpu" if self.on != HOST else NATURAL.get(self.run, "cpu"))


class Copy(StepBase):
    """Move buffers over PCIe: `copy` is the device buffer, `source` the host buffers whose bytes are moved."""

    copy_: Annotated[str, Field(alias="copy")]
    source: Annotated[Names, Field(alias="from")]
    direction: Literal["h2d", "d2h"] = "h2d"
    on: str = HOST
    cost: str | None = None

    @property
    def law(self) -> str:
        """The cost law's name in the calibration."""
        return self.cost or ("upload" if self.direction == "h2d" else "download")


class Record(StepBase):
    """Record an event on a stream: reached when all work queued before it is done."""

    record: str
    on: str


class Wait(StepBase):
    """The worker waits for an event."""

    wait: str


class StreamWait(StepBase):
    """A stream waits for an event of another one; the worker goes on."""

    stream_wait: str
    on: str


class Spawn(StepBase):
    """Start a worker of a spawned kind on this set. `moves`: the set goes with it; else both share it until joined."""

    spawn: str
    handle: Annotated[str | None, Field(alias="as")] = None
    moves: bool = False


class Join(StepBase):
    """Wait until a spawned worker ends."""

    join: str


class Complete(StepBase):
    """The partition's proof is out. A proof ends, and admits the next one, when all its partitions completed."""

    complete: Literal["partition"]  # no default: a dump that leaves defaults out must name the step


_STEPS: dict[str, type[StepBase]] = {
    "get": Get, "put": Put, "acquire": Acquire, "release": Release, "alloc": Alloc, "try_alloc": TryAlloc,
    "free": Free, "trim": Trim, "run": Run, "copy": Copy, "record": Record, "wait": Wait,
    "stream_wait": StreamWait, "spawn": Spawn, "join": Join, "complete": Complete,
}  # fmt: skip
VERB_OF: dict[type[StepBase], str] = {cls: verb for verb, cls in _STEPS.items()}


def _verb(value: Any) -> str | None:
    if isinstance(value, StepBase):
        return value.verb
    if isinstance(value, dict):
        for key in value:
            if key in _STEPS:
                return str(key)
    return None


Step = Annotated[
    Annotated[Get, Tag("get")]
    | Annotated[Put, Tag("put")]
    | Annotated[Acquire, Tag("acquire")]
    | Annotated[Release, Tag("release")]
    | Annotated[Alloc, Tag("alloc")]
    | Annotated[TryAlloc, Tag("try_alloc")]
    | Annotated[Free, Tag("free")]
    | Annotated[Trim, Tag("trim")]
    | Annotated[Run, Tag("run")]
    | Annotated[Copy, Tag("copy")]
    | Annotated[Record, Tag("record")]
    | Annotated[Wait, Tag("wait")]
    | Annotated[StreamWait, Tag("stream_wait")]
    | Annotated[Spawn, Tag("spawn")]
    | Annotated[Join, Tag("join")]
    | Annotated[Complete, Tag("complete")],
    Discriminator(
        _verb,
        custom_error_type="unknown_step",
        custom_error_message="a step needs one verb: " + ", ".join(_STEPS),
    ),
]
TryAlloc.model_rebuild()


class BufferSpec(BaseModel):
    """A named allocation. `size` is a formula over the circuit's counts; `$gpu` in `pool` is the device's number.

    `scope`: a set's own (`set`), one per device made at first use and kept (`gpu`), there before the start (`run`).
    `allocator: cached` keeps freed bytes reserved for later allocations of the same allocator until a `trim`.
    `touched_by`: pages become resident while that step runs (else at once).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    pool: str
    size: Formula
    scope: Literal["set", "gpu", "run"] = "set"
    allocator: Literal["direct", "cached"] = "direct"
    touched_by: str | None = None
    holder: str | None = None


class LockSpec(BaseModel):
    """A mutex per GPU or per host. `barging`: a woken waiter must compete again with whoever arrives meanwhile."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    per: Literal["gpu", "host"] = "gpu"
    order: Literal["fifo", "barging"] = "fifo"


class PermitSpec(BaseModel):
    """`count` units, claimed and given back. `order` is the order in which waiters are served."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    count: Formula
    order: Literal["fifo", "by-proof", "random"] = "fifo"


class ChannelSpec(BaseModel):
    """A queue of sets: `capacity` of them, or unbounded."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    capacity: Formula | None = None


class Worker(BaseModel):
    """An ordered list of steps.

    `start`: `partition` (one task for each partition of an admitted proof), `proof` (one for the whole proof),
    `pool` (`count` loops per GPU or host that run until the work ends), or `spawned` (started by a `spawn` step;
    at most `limit` at once).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    start: Literal["partition", "proof", "pool", "spawned"]
    per: Literal["gpu", "host"] = "host"
    count: Formula = Formula("1")
    limit: Annotated[int, Field(ge=1)] | None = None
    steps: tuple[Step, ...]


class Pipeline(BaseModel):
    """The data that a machine executes: workers, and what they share."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    preset: str = "phase12"
    """The preset whose values the options take that the policy leaves open (`pw`, `gw`, … in formulas)."""
    buffers: dict[str, BufferSpec]
    locks: dict[str, LockSpec] = {}
    permits: dict[str, PermitSpec] = {}
    channels: dict[str, ChannelSpec] = {}
    reclaims: tuple[str, ...] = ()
    """Pools whose caches the driver takes back for an allocation that would not fit beside them."""
    workers: dict[str, Worker]

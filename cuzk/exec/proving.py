"""The part that all devices that prove share: the sets' states, the host's bodies of the steps, the check of each proof.

A device that proves says where device memory lies and who works on it (cpu.py, cuda.py); what the host does for it is here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.errors import ProofInvalid
from cuzk.exec.device import Allocation, Fence, HostStream, Stream, Work, timed_ops
from cuzk.exec.sets import RealSet
from cuzk.groth16.assignments import Assignments
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import check
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.verify import Verifier
from cuzk.native.memory import PAGE, process_resident_bytes
from cuzk.pipeline import ops
from cuzk.pipeline.program import Program

_M_MMAP_THRESHOLD = -3
_MMAP_FROM_BYTES = 1 << 18


@dataclass
class SetState:
    """The state that the bodies keep for one set: a state for each circuit in it, and its device buffers."""

    circuits: list[ProofState]
    partitions: list[int]
    """The partition of each."""
    device: dict[str, Any] = field(default_factory=dict)
    """d_a, d_bc as `(n, 4)` views of the buffers that the interpreter allocated; on a GPU blocks of its memory."""
    registered: dict[str, tuple[Any, list[int]]] = field(default_factory=dict)
    """Vectors whose pages a GPU's driver has locked: (its device, addresses)."""
    device_splits: dict[str, Any] = field(default_factory=dict)
    """Query -> its split, where a GPU has made it; scalars are Montgomery if `tails_mont`, else canonical."""
    tails_mont: bool = False
    ride: Any = None
    """A round of a streamed key, once it has passed by (cuzk.groth16.gpu.key_pass.Ride)."""


@dataclass(frozen=True)
class Real:
    """The reality of an allocation whose arrays the bodies make."""

    name: str
    pool: str
    pset: RealSet | None


class ProvingDevice:
    """Proves with `key` what the assignments give it. A subclass has the bodies of `ntt_h` and `msm_h`, and the copies."""

    name = ""
    known_steps: tuple[str, ...] = ()
    """Those that it has bodies for."""
    time_scale = 1.0
    one_thread = False
    in_worker = False
    """Whether it proves in a process of its own unless told otherwise."""

    def __init__(self, key: ProvingKey, assignments: Assignments, quotient_name: str, idle_bytes: int,
                 threads: int | None = None, blinding: Callable[[], Blinding] = Blinding.random) -> None:  # fmt: skip
        """`idle_bytes`: resident before the key was opened."""
        self.key, self.assignments, self.quotient = key, assignments, quotient_name
        self._threads, self._blinding, self._idle_bytes = threads, blinding, idle_bytes
        self._verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")
        self._verified: dict[int, dict[int, tuple[Proof, list[int]]]] = {}

    # -- life --------------------------------------------------------------------------------------------

    def open(self, program: Program) -> None:
        for op in timed_ops(program):
            if isinstance(op, ops.Run) and op.name not in self.known_steps:
                message = f"the {self.name} device has no body for step '{op.name}'; it has {', '.join(self.known_steps)}"
                raise program.error(op.place, message)
            if isinstance(op, ops.Copy) and op.target not in ("d_a", "d_bc", "d_w"):
                raise program.error(op.place, f"this device cannot copy to '{op.target}'; it knows d_a, d_bc and d_w")
        self._program = program
        self._whole = program.whole
        self._fences = [Fence() for _ in range(max(1, program.gpus))]
        # numpy's large arrays become mappings of their own, which free() gives back to the system at once
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)

    def close(self) -> None:
        pass

    def begin(self, pset: RealSet) -> None:
        parts = list(range(self._program.circuits[pset.circuit].partitions)) if self._whole else [pset.partition]
        states = [ProofState(self.key, self.quotient, self._blinding(), self._threads) for _ in parts]
        pset.state = SetState(states, parts)

    def take_proof(self, number: int) -> dict[int, tuple[Proof, list[int]]]:
        """Partition -> its verified proof and public signals, of a proof that is complete or has failed. Kept here no longer."""
        self.assignments.done(number)
        return self._verified.pop(number, {})

    def open_stream(self, gpu: int, name: str) -> Stream:
        return HostStream(self.perform, name, self._fences[gpu])

    # -- memory ------------------------------------------------------------------------------------------

    def allocate(self, request: Allocation) -> Any:
        if request.pset is None:
            self._reside(request.buffer.partition(" ")[0])
        # the bodies make a set's arrays; the books hold their size from now on
        return Real(request.buffer, request.pool, request.pset)

    def _reside(self, what: str) -> None:
        if what == "pce":
            _ = self.key.system
        if what == "srs":
            queries = (self.key.a_query, self.key.b_g1_query, self.key.b_g2_query, self.key.l_query, self.key.l_c_free_query)
            lists = [q.points for q in queries if q is not None] + [self.key.h_odd, self.key.h_monomial]
            for points in lists:
                if points is not None and points.size:
                    points.view(np.uint8).reshape(-1)[::PAGE].sum()  # read a byte of every page: mapped files load then

    def free(self, real: Real) -> None:
        if real.pset is not None and real.pset.state is not None:
            for circuit in real.pset.state.circuits:
                if real.name in _FIELD_OF:
                    circuit.free(_FIELD_OF[real.name])

    def trim(self, pool: str) -> None:
        if pool.startswith("vram:"):
            self._fences[int(pool.partition(":")[2])].wait()

    def resident(self) -> dict[str, int]:
        return {"ram": max(0, process_resident_bytes() - self._idle_bytes)}

    # -- work --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        HOST_BODIES[work.name](self, work.pset.state, work)

    def _each(self, state: SetState, work: Work, body: Callable[[ProofState], Any]) -> None:
        for circuit in state.circuits:
            if work.cancelled():
                return
            body(circuit)

    def _witness(self, state: SetState, work: Work) -> None:
        for circuit, partition in zip(state.circuits, state.partitions, strict=True):
            if work.cancelled():
                return
            steps.witness(circuit, self.assignments.witness(work.pset.proof, partition))

    def _matvec(self, state: SetState, work: Work) -> None:
        self._each(state, work, steps.matvec)

    def _synthesis(self, state: SetState, work: Work) -> None:
        self._witness(state, work)
        self._each(state, work, steps.matvec)

    def _epilogue(self, state: SetState, work: Work) -> None:
        number = work.pset.proof
        for circuit, partition in zip(state.circuits, state.partitions, strict=True):
            steps.epilogue(circuit)
            check(circuit, self._verifier)
            assert circuit.proof is not None
            public = self.assignments.public_inputs(number, partition)
            if public is not None and public != circuit.public:
                raise ProofInvalid(f"partition {partition}: its witness has other public inputs than its statement")
            self._verified.setdefault(number, {})[partition] = circuit.proof, circuit.public

    def _nothing(self, state: SetState, work: Work) -> None:
        """Work of a GPU's driver, or of an allocator: here the interpreter's own allocations do it."""


def _body(step: Callable[[ProofState], Any]) -> Callable[[ProvingDevice, SetState, Work], None]:
    return lambda device, state, work: device._each(state, work, step)


HOST_BODIES: dict[str, Callable[[ProvingDevice, SetState, Work], None]] = {
    "witness": ProvingDevice._witness,
    "matvec": ProvingDevice._matvec,
    "synthesis": ProvingDevice._synthesis,
    "prep_msm": _body(steps.prep_msm),
    "batch_add": _body(steps.batch_add),
    "tail_msm": _body(steps.tail_msm),
    "b_g2_msm": _body(steps.b_g2_msm),
    "epilogue": ProvingDevice._epilogue,
    **dict.fromkeys(
        ("pin_pages", "unpin_pages", "prestage_setup", "device_free", "gpu_overhead", "dealloc_native", "dealloc_host"),
        ProvingDevice._nothing,
    ),
}
"""Step -> its body on the host."""

_FIELD_OF = {name: name for name in ("aux", "a", "b", "c", "d_a", "d_bc")} | {"tails": "splits"}
"""Buffer of the pipeline -> field of the prover's state that goes with it."""

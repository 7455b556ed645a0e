"""The device that proves: step bodies by the host library, through the prover's named steps.

"VRAM" is this process's memory too, in memory files, so that its pages are told apart from the host's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.errors import InputError, ProofInvalid
from cuzk.exec.device import Allocation, Fence, HostStream, Stream, Work, timed_ops
from cuzk.exec.sets import RealSet
from cuzk.groth16.assignments import Assignments
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover import quotient, steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import check
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.verify import Verifier
from cuzk.native.memory import PAGE, HostBuffer, process_resident_bytes
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
class _Real:
    """The reality of an allocation: memory of its own, or arrays that the bodies make (then `memory` is None)."""

    name: str
    pool: str
    pset: RealSet | None
    memory: HostBuffer | None


class CpuDevice:
    """Proves with `key` what the assignments give it."""

    name = "cpu"
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
        self._mutex = threading.Lock()
        self._device_buffers: dict[str, set[HostBuffer]] = {}
        self._verified: dict[int, dict[int, tuple[Proof, list[int]]]] = {}

    # -- life --------------------------------------------------------------------------------------------

    def open(self, program: Program) -> None:
        for op in timed_ops(program):
            if isinstance(op, ops.Run) and op.name not in BODIES:
                message = f"the {self.name} device has no body for step '{op.name}'; it has {', '.join(BODIES)}"
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
            return _Real(request.buffer, request.pool, None, None)
        if request.pool.startswith("vram") and request.buffer in ("d_a", "d_bc"):
            rows = self.key.domain * (2 if request.buffer == "d_bc" and quotient.NEEDS_C[self.quotient] else 1)
            memory = HostBuffer(32 * rows, device_like=True)
            with self._mutex:
                self._device_buffers.setdefault(request.pool, set()).add(memory)
            state: SetState = request.pset.state
            state.device[request.buffer] = memory.array(np.uint64).reshape(rows, 4)
            return _Real(request.buffer, request.pool, request.pset, memory)
        # the bodies make these arrays; the books hold their size from now on
        return _Real(request.buffer, request.pool, request.pset, None)

    def _reside(self, what: str) -> None:
        if what == "pce":
            _ = self.key.system
        if what == "srs":
            queries = (self.key.a_query, self.key.b_g1_query, self.key.b_g2_query, self.key.l_query, self.key.l_c_free_query)
            lists = [q.points for q in queries if q is not None] + [self.key.h_odd, self.key.h_monomial]
            for points in lists:
                if points is not None and points.size:
                    points.view(np.uint8).reshape(-1)[::PAGE].sum()  # read a byte of every page: mapped files load then

    def free(self, real: _Real) -> None:
        state: SetState | None = real.pset.state if real.pset is not None else None
        if state is not None:
            state.device.pop(real.name, None)
            for circuit in state.circuits:
                if real.name in _FIELD_OF:
                    circuit.free(_FIELD_OF[real.name])
        if real.memory is not None:
            with self._mutex:
                self._device_buffers[real.pool].discard(real.memory)
            real.memory.close()

    def trim(self, pool: str) -> None:
        if pool.startswith("vram:"):
            self._fences[int(pool.partition(":")[2])].wait()

    def resident(self) -> dict[str, int]:
        with self._mutex:
            pools = {pool: sum(b.resident() for b in buffers) for pool, buffers in self._device_buffers.items()}
        pools["ram"] = max(0, process_resident_bytes() - self._idle_bytes)
        return pools

    # -- work --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        state: SetState = work.pset.state
        if work.is_copy:
            if len(state.circuits) == 1 and state.circuits[0].a is not None:
                _lay_out(state.circuits[0], state.device, work.source)
            return  # matvec on the device, or several circuits: whoever fills d_a and d_bc lays out (below)
        BODIES[work.name](self, state, work)

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
        if work.op.stream is not None:  # on the device the rows are made where they are used
            circuit = state.circuits[0]
            _lay_out(circuit, state.device, ("a", "b", "c"))
            circuit.free("a", "b", "c")

    def _synthesis(self, state: SetState, work: Work) -> None:
        self._witness(state, work)
        self._each(state, work, steps.matvec)

    def _ntt_h(self, state: SetState, work: Work) -> None:
        if len(state.circuits) == 1:
            steps.ntt_h(state.circuits[0])
            return

        # circuits of one call share d_a and d_bc, so each goes through to its sum before the next one
        def through(circuit: ProofState) -> None:
            for buffer in state.device.values():
                buffer[:] = 0
            _lay_out(circuit, state.device, ("a", "b", "c"))
            steps.ntt_h(circuit)
            steps.msm_h(circuit)
            circuit.free("d_a", "d_bc")

        self._each(state, work, through)

    def _msm_h(self, state: SetState, work: Work) -> None:
        self._each(state, work, lambda circuit: None if "h" in circuit.sums else steps.msm_h(circuit))

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


def _lay_out(circuit: ProofState, device: dict[str, np.ndarray], vectors: Sequence[str]) -> None:
    """Rows on the domain, zeros behind them: a in d_a; b, and c behind it, in d_bc."""
    m = circuit.key.domain
    for vector in vectors:
        rows = getattr(circuit, vector)
        if rows is None:  # the quotient needs no c
            continue
        target = device["d_a" if vector == "a" else "d_bc"]
        start = m if vector == "c" else 0
        if len(rows) > m:
            raise InputError(f"{circuit.key.path}: {len(rows)} rows do not fit the key's domain of {m}")
        target[start : start + len(rows)] = rows
    circuit.d_a, circuit.d_bc = device.get("d_a"), device.get("d_bc")


def _body(step: Callable[[ProofState], Any]) -> Callable[[CpuDevice, SetState, Work], None]:
    return lambda device, state, work: device._each(state, work, step)


BODIES: dict[str, Callable[[CpuDevice, SetState, Work], None]] = {
    "witness": CpuDevice._witness,
    "matvec": CpuDevice._matvec,
    "synthesis": CpuDevice._synthesis,
    "ntt_h": CpuDevice._ntt_h,
    "msm_h": CpuDevice._msm_h,
    "prep_msm": _body(steps.prep_msm),
    "batch_add": _body(steps.batch_add),
    "tail_msm": _body(steps.tail_msm),
    "b_g2_msm": _body(steps.b_g2_msm),
    "epilogue": CpuDevice._epilogue,
    **dict.fromkeys(
        ("pin_pages", "unpin_pages", "prestage_setup", "device_free", "gpu_overhead", "dealloc_native", "dealloc_host"),
        CpuDevice._nothing,
    ),
}
"""Step -> its body."""

_FIELD_OF = {name: name for name in ("aux", "a", "b", "c", "d_a", "d_bc")} | {"tails": "splits"}
"""Buffer of the pipeline -> field of the prover's state that goes with it."""

"""The device that proves on the host alone: step bodies by the host library, through the prover's named steps.

"VRAM" is this process's memory too, in memory files, so that its pages are told apart from the host's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import InputError
from cuzk.exec.device import Allocation, Work
from cuzk.exec.proving import HOST_BODIES, ProvingDevice, Real, SetState
from cuzk.groth16.prover import quotient, steps
from cuzk.groth16.prover.state import ProofState
from cuzk.native.memory import HostBuffer


@dataclass(frozen=True)
class _Block(Real):
    """Memory of a set's buffer on the device."""

    memory: HostBuffer


class CpuDevice(ProvingDevice):
    """Proves on the host, what is a GPU's part too."""

    name = "cpu"
    known_steps = (*HOST_BODIES, "ntt_h", "msm_h")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments are those of ProvingDevice."""
        super().__init__(*args, **kwargs)
        self._mutex = threading.Lock()
        self._device_buffers: dict[str, set[HostBuffer]] = {}

    # -- memory ------------------------------------------------------------------------------------------

    def allocate(self, request: Allocation) -> Any:
        if request.pset is None or not request.pool.startswith("vram") or request.buffer not in ("d_a", "d_bc"):
            return super().allocate(request)
        rows = self.key.domain * (2 if request.buffer == "d_bc" and quotient.NEEDS_C[self.quotient] else 1)
        memory = HostBuffer(32 * rows, device_like=True)
        with self._mutex:
            self._device_buffers.setdefault(request.pool, set()).add(memory)
        state: SetState = request.pset.state
        state.device[request.buffer] = memory.array(np.uint64).reshape(rows, 4)
        return _Block(request.buffer, request.pool, request.pset, memory)

    def free(self, real: Real) -> None:
        if isinstance(real, _Block) and real.pset is not None and real.pset.state is not None:
            real.pset.state.device.pop(real.name, None)
        super().free(real)
        if isinstance(real, _Block):
            with self._mutex:
                self._device_buffers[real.pool].discard(real.memory)
            real.memory.close()

    def resident(self) -> dict[str, int]:
        with self._mutex:
            pools = {pool: sum(b.resident() for b in buffers) for pool, buffers in self._device_buffers.items()}
        return pools | super().resident()

    # -- work --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        state: SetState = work.pset.state
        if not work.is_copy:
            BODIES[work.name](self, state, work)
        elif len(state.circuits) == 1 and state.circuits[0].a is not None:
            _lay_out(state.circuits[0], state.device, work.source)
        # else matvec on the device, or several circuits: whoever fills d_a and d_bc lays out (below)

    def _matvec(self, state: SetState, work: Work) -> None:
        super()._matvec(state, work)
        if work.op.stream is not None:  # on the device the rows are made where they are used
            circuit = state.circuits[0]
            _lay_out(circuit, state.device, ("a", "b", "c"))
            circuit.free("a", "b", "c")

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


BODIES: dict[str, Callable[[CpuDevice, SetState, Work], None]] = {
    **HOST_BODIES,
    "matvec": CpuDevice._matvec,
    "ntt_h": CpuDevice._ntt_h,
    "msm_h": CpuDevice._msm_h,
}
"""Step -> its body."""

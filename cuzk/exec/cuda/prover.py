"""The device that proves on GPUs: transforms, MSMs and batch additions by the kernels, the rest by the host library.

Device memory is what the interpreter allocates, buffer by buffer; an operation's temporaries lie in the pipeline's own
`*_temps` buffers and are cut to fit them (chunks, streamed points), so the books and the driver tell the same story. Tables of
the transforms, modules and a resident key are there before the first proof starts.

Work on a stream is queued by that stream's thread on a CUDA stream of its own, which then waits for the work's event: a step has
ended when the GPU has done it. Nothing else synchronises, except giving device memory back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk import native
from cuzk.errors import InputError, OutOfMemoryError
from cuzk.exec.cpu import CpuDevice, SetState
from cuzk.exec.cuda.batch_add import BatchAdd, plan_batch_add
from cuzk.exec.cuda.batch_add import plan_bytes as batch_add_bytes
from cuzk.exec.cuda.matvec import CsrMatrix
from cuzk.exec.cuda.msm import Msm
from cuzk.exec.cuda.msm_plan import POINT_BYTES, Group, plan_msm
from cuzk.exec.cuda.quotient import Quotient
from cuzk.exec.device import Allocation, DeviceLost, Work
from cuzk.exec.sets import Set
from cuzk.groth16.prover import quotient as host_quotient
from cuzk.groth16.prover.state import ProofState, Split
from cuzk.groth16.prover.steps import G1_QUERIES
from cuzk.pipeline.plan import Plan

FR_BYTES = 32
HOST_SOURCES = ("a", "b", "c", "aux")
"""Host vectors that are copied to a device."""
CHUNK_STEP = 32
"""Chunks of a bitmap begin at a word."""
_SET_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


@dataclass
class _Gpu:
    """What one GPU holds for the whole run."""

    device: Any
    quotient: Any = None
    points: dict[str, int] = field(default_factory=dict)
    """List of the key -> address: device memory, page-locked or plain host memory, as the policy says."""
    owned: list[Any] = field(default_factory=list)
    matrices: dict[str, Any] = field(default_factory=dict)
    """Matrix a, b (and c) on the device, where the device multiplies."""
    on_device: bool = False


@dataclass
class _Block:
    """Device memory of one buffer of a set."""

    buffer: str
    set: Set | None
    memory: Any


class CudaProver(CpuDevice):
    """Proves with `key` on the GPUs of the scenario's machine, in order of their index."""

    name = "cuda"
    in_worker = True

    def __init__(self, *args: Any, open_gpu: Callable[[int], Any] | None = None, **kwargs: Any) -> None:
        """As CpuDevice; `open_gpu` makes the device of an index (tests put an emulation there)."""
        super().__init__(*args, **kwargs)
        self._open_gpu = open_gpu or _cuda_device
        self._gpus: list[_Gpu] = []
        self._local = threading.local()

    # -- life --------------------------------------------------------------------------------------------

    def open(self, plan: Plan) -> None:
        """Raises HardwareMissing without a usable GPU, InputError for a pipeline that it cannot walk."""
        self._multiplies = plan.policy.matvec == "gpu"
        if self._multiplies and plan.policy.pce != "vram":
            raise InputError("policy.matvec: gpu needs the matrices there too (policy.pce: vram)")
        super().open(plan)
        if self._whole:
            raise InputError("the cuda device proves partition by partition; this pipeline hands it whole proofs")
        self._gpus = [_Gpu(self._open_gpu(index)) for index in range(max(1, plan.gpus))]
        for gpu in self._gpus:
            # rows that the GPU makes from a canonical witness are canonical, those of the host Montgomery
            gpu.quotient = Quotient(
                gpu.device, self.quotient, self.key.log_domain, root=self.key.root, mont=not self._multiplies
            )

    def close(self) -> None:
        for gpu in self._gpus:
            if gpu.quotient is not None:
                gpu.quotient.free()
            for memory in (*gpu.owned, *gpu.matrices.values()):
                memory.free()
        self._gpus = []
        super().close()

    def _reside(self, what: str) -> None:
        super()._reside(what)
        if what == "srs":
            for gpu in self._gpus:
                self._place_key(gpu, str(self._plan.policy.srs))
        if what == "pce" and self._multiplies:
            self._place_matrices()

    def _place_matrices(self) -> None:
        system = self.key.system
        wanted = {"a": system.a, "b": system.b} | ({"c": system.c} if host_quotient.NEEDS_C[self.quotient] else {})
        for gpu in self._gpus:
            for name, matrix in wanted.items():
                if matrix is None:
                    raise InputError(f"{self.key.path}: the key holds no matrix C: quotient c-free, or matvec: cpu")
                parts = (matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont)
                gpu.matrices[name] = CsrMatrix(gpu.device, *parts)

    def _place_key(self, gpu: _Gpu, where: str) -> None:
        """The key's lists where the policy wants them: in VRAM, page-locked, or left in the file's pages."""
        gpu.on_device = where == "vram"
        for name, points in self._lists().items():
            if where == "vram":
                memory = gpu.device.upload(points, f"the key's {name} points")
            elif where == "pinned":
                memory = gpu.device.pinned(points.nbytes)
                memory.array[:] = points.view(np.uint8).reshape(-1)
            else:
                gpu.points[name] = points.ctypes.data
                continue
            gpu.owned.append(memory)
            gpu.points[name] = memory.address

    def _lists(self) -> dict[str, np.ndarray]:
        key = self.key
        lists = {"h": key.h_points(self.quotient), **{name: self.key.query(name, self.quotient).points for name in G1_QUERIES}}
        if self._plan.policy.b_g2_msm == "gpu":
            lists["b_g2"] = key.b_g2_query.points
        return {name: np.ascontiguousarray(points) for name, points in lists.items()}

    # -- memory ------------------------------------------------------------------------------------------

    def allocate(self, request: Allocation) -> Any:
        if request.set is None or not request.pool.startswith("vram"):
            return super().allocate(request)
        gpu = self._gpus[request.gpu]
        gpu.device.use()
        memory = gpu.device.allocate(request.nbytes, f"{request.buffer} of {request.set.token}")
        state: SetState = request.set.state
        state.device[request.buffer] = memory
        return _Block(request.buffer, request.set, memory)

    def free(self, real: Any) -> None:
        if not isinstance(real, _Block):
            state: SetState | None = real.set.state if real.set is not None else None
            if state is not None and real.name in HOST_SOURCES:
                self._unpin(state, [real.name])
            super().free(real)
            return
        if real.set is not None and real.set.state is not None:
            real.set.state.device.pop(real.buffer, None)
        real.memory.free()

    def resident(self) -> dict[str, int]:
        pools = super().resident()
        for index, gpu in enumerate(self._gpus):
            try:
                gpu.device.use()
                free, total = gpu.device.memory_info()
            except DeviceLost:  # whoever works on it says so
                continue
            pools[f"vram:{index}"] = total - free
        return pools

    # -- work --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        self._gpus[work.gpu].device.use()
        if work.is_copy:
            self._copy(work)
        elif work.name in GPU_BODIES:
            GPU_BODIES[work.name](self, work.set.state, work)
        elif work.name == "b_g2_msm" and self._plan.policy.b_g2_msm == "gpu":
            self._b_g2_msm(work.set.state, work)
        else:
            super().perform(work)

    def _stream(self, gpu: int) -> Any:
        """This thread's CUDA stream on a GPU."""
        streams = self._local.__dict__.setdefault("streams", {})
        if gpu not in streams:
            streams[gpu] = self._gpus[gpu].device.stream()
        return streams[gpu]

    def _finish(self, gpu: int) -> None:
        """Until this thread's stream has done all that was queued on it."""
        device = self._gpus[gpu].device
        event = device.event()
        device.record(event, self._stream(gpu))
        device.wait(event)

    def _copy(self, work: Work) -> None:
        """Rows onto the domain, zeros behind them: a in d_a; b, and c behind it, in d_bc. The witness as it is, into d_w."""
        state: SetState = work.set.state
        circuit, device, stream = state.circuits[0], self._gpus[work.gpu].device, self._stream(work.gpu)
        if work.source == ("aux",):
            values = circuit.take("aux")
            device.copy(self._address(state, "d_w"), values.ctypes.data, values.nbytes, stream)
            self._finish(work.gpu)
            return
        domain_bytes = FR_BYTES * self.key.domain
        for vector in work.source:
            rows = getattr(circuit, vector)
            if rows is None:  # the quotient needs no c
                continue
            if rows.nbytes > domain_bytes:
                raise InputError(f"{self.key.path}: {len(rows)} rows do not fit the key's domain of {self.key.domain}")
            target = self._address(state, "d_a" if vector == "a" else "d_bc") + (domain_bytes if vector == "c" else 0)
            device.copy(target, rows.ctypes.data, rows.nbytes, stream)
            device.fill(target + rows.nbytes, 0, domain_bytes - rows.nbytes, stream)
        self._finish(work.gpu)

    @staticmethod
    def _address(state: SetState, buffer: str) -> int:
        return int(state.device[buffer].address)

    def _pin_pages(self, state: SetState, work: Work) -> None:
        circuit, device = state.circuits[0], self._gpus[work.gpu].device
        for name in ("aux",) if self._multiplies else ("a", "b", "c"):
            rows = getattr(circuit, name)
            if rows is not None and name not in state.registered:
                device.register(rows.ctypes.data, rows.nbytes)
                state.registered[name] = (device, rows.ctypes.data)

    def _unpin_pages(self, state: SetState, work: Work) -> None:
        self._unpin(state, list(state.registered))

    @staticmethod
    def _unpin(state: SetState, names: Sequence[str]) -> None:
        for name in names:
            device, address = state.registered.pop(name, (None, 0))
            if device is not None:
                device.unregister(address)

    def _matvec(self, state: SetState, work: Work) -> None:
        if work.on == "host":
            super()._matvec(state, work)
            return
        gpu, stream, domain_bytes = self._gpus[work.gpu], self._stream(work.gpu), FR_BYTES * self.key.domain
        for name, matrix in gpu.matrices.items():
            out = self._address(state, "d_a" if name == "a" else "d_bc") + (domain_bytes if name == "c" else 0)
            if matrix.rows > self.key.domain:
                raise InputError(f"{self.key.path}: {matrix.rows} rows do not fit the key's domain of {self.key.domain}")
            matrix.multiply(self._address(state, "d_w"), out, stream)
            used = FR_BYTES * matrix.rows
            gpu.device.fill(out + used, 0, domain_bytes - used, stream)
        self._finish(work.gpu)

    def _ntt_h(self, state: SetState, work: Work) -> None:
        gpu = self._gpus[work.gpu]
        d_a, d_bc = self._address(state, "d_a"), self._address(state, "d_bc")
        c = d_bc + FR_BYTES * self.key.domain if host_quotient.NEEDS_C[self.quotient] else 0
        gpu.quotient.run(d_a, d_bc, c, self._stream(work.gpu))
        self._finish(work.gpu)

    def _msm_h(self, state: SetState, work: Work) -> None:
        n = self.key.domain - (self.quotient == "bellman")
        points, scalars = self._gpus[work.gpu].points["h"], self._address(state, "d_a")
        state.circuits[0].sums["h"] = self._msm(state, work, "msm_h_temps", "g1", n, points, scalars, self._residency(work))

    def _residency(self, work: Work) -> str:
        return "device" if self._gpus[work.gpu].on_device else "pinned"

    def _msm(self, state: SetState, work: Work, temps: str, group: Group, n: int, points: int, scalars: int,
             residency: Any) -> np.ndarray:  # fmt: skip
        """Σ scalar·point with temporaries inside the buffer `temps`."""
        block, device = state.device[temps], self._gpus[work.gpu].device
        plan = plan_msm(n, group, block.size_bytes, residency=residency, multiprocessors=device.multiprocessors)
        msm = Msm(device, plan, workspace=block.address)
        try:
            copies = self._copy_stream(work.gpu) if residency == "pinned" else None
            return msm.run(points, scalars, self._stream(work.gpu), copy_stream=copies).result()
        finally:
            msm.free()

    def _copy_stream(self, gpu: int) -> Any:
        """A second stream of this thread, for points on their way while others are worked on."""
        streams = self._local.__dict__.setdefault("copy_streams", {})
        if gpu not in streams:
            streams[gpu] = self._gpus[gpu].device.stream()
        return streams[gpu]

    def _batch_add(self, state: SetState, work: Work) -> None:
        circuit = state.circuits[0]
        for name in G1_QUERIES:
            circuit.sums[f"{name}_ones"] = self._ones(state, work, "batch_add_temps", name, "g1")

    def _tail_msm(self, state: SetState, work: Work) -> None:
        circuit = state.circuits[0]
        for name in G1_QUERIES:
            circuit.sums[f"{name}_tail"] = self._tail(state, work, "tail_temps", name, "g1")

    def _b_g2_msm(self, state: SetState, work: Work) -> None:
        ones = self._ones(state, work, "b_g2_temps", "b_g2", "g2")
        state.circuits[0].sums["b_g2"] = native.g2_add(ones, self._tail(state, work, "b_g2_temps", "b_g2", "g2"))

    def _split(self, circuit: ProofState, name: str) -> Split:
        if circuit.splits is None:
            raise RuntimeError("step out of order: prep_msm has not run")
        return circuit.splits[name]

    def _ones(self, state: SetState, work: Work, temps: str, name: str, group: Group) -> np.ndarray:
        """The sum of the points whose scalar is one, chunk by chunk through the buffer `temps`."""
        gpu, split = self._gpus[work.gpu], self._split(state.circuits[0], name)
        device, stream, block = gpu.device, self._stream(work.gpu), state.device[temps]
        n, size = len(self.key.query(name, self.quotient)), POINT_BYTES[group]
        add = native.g1_add if group == "g1" else native.g2_add
        total = np.zeros((1, size // 8), dtype=np.uint64)
        chunk = self._chunk(n, group, block.size_bytes, device.multiprocessors, gpu.on_device)
        for first in range(0, n, chunk):
            count = min(chunk, n - first)
            bits = split.ones[first // 8 : -(-(first + count) // 8)]
            selected = int(_SET_BITS[bits].sum())
            if selected == 0:
                continue
            bitmap, points, workspace = self._cut(block.address, count, size, gpu.on_device)
            device.copy(bitmap, bits.ctypes.data, bits.nbytes, stream)
            if gpu.on_device:
                points = gpu.points[name] + first * size
            else:
                device.copy(points, gpu.points[name] + first * size, count * size, stream)
            room = block.size_bytes - (workspace - block.address)
            plan = plan_batch_add(count, group, room, selected=selected, multiprocessors=device.multiprocessors)
            addition = BatchAdd(device, plan, workspace=workspace)
            try:
                total = add(total, addition.run(points, bitmap, stream).result())
            finally:
                addition.free()
        return total

    @staticmethod
    def _cut(base: int, count: int, point_bytes: int, on_device: bool) -> tuple[int, int, int]:
        """Addresses of a chunk's bitmap, its points and the rest of the block."""
        points = base + _aligned(-(-count // 8) + 4)
        return base, points, points + (0 if on_device else _aligned(count * point_bytes))

    def _chunk(self, n: int, group: Group, room: int, multiprocessors: int, on_device: bool) -> int:
        """Points of the largest chunk whose temporaries fit, all of its bits set. Raises OutOfMemoryError."""
        chunk = max(CHUNK_STEP, -(-n // CHUNK_STEP) * CHUNK_STEP)
        while True:
            _, _, used = self._cut(0, chunk, POINT_BYTES[group], on_device)
            need = used + batch_add_bytes(chunk, group, selected=chunk, multiprocessors=multiprocessors)
            if need <= room:
                return chunk
            if chunk == CHUNK_STEP:
                raise OutOfMemoryError(f"VRAM: batch addition needs {need} bytes of temporaries, {room} are granted")
            chunk = max(CHUNK_STEP, chunk // 2 // CHUNK_STEP * CHUNK_STEP)

    def _tail(self, state: SetState, work: Work, temps: str, name: str, group: Group) -> np.ndarray:
        """The MSM over the scalars that are neither zero nor one; its points are gathered on the host."""
        split, query = self._split(state.circuits[0], name), self.key.query(name, self.quotient)
        bases = np.ascontiguousarray(query.points[split.tail_rows])
        scalars = np.ascontiguousarray(split.tail_scalars)
        return self._msm(state, work, temps, group, len(bases), bases.ctypes.data, scalars.ctypes.data, "pinned")


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // 256) * 256


def _cuda_device(index: int) -> Any:
    from cuzk.exec.cuda.device import CudaDevice

    return CudaDevice(index)


GPU_BODIES: dict[str, Callable[[CudaProver, SetState, Work], None]] = {
    "pin_pages": CudaProver._pin_pages,
    "unpin_pages": CudaProver._unpin_pages,
    "matvec": CudaProver._matvec,
    "ntt_h": CudaProver._ntt_h,
    "msm_h": CudaProver._msm_h,
    "batch_add": CudaProver._batch_add,
    "tail_msm": CudaProver._tail_msm,
}
"""Steps whose work the GPU does; all others are the host's (CpuDevice)."""

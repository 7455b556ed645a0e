"""One GPU as the operations see it: launches, copies, events and memory, all on explicit streams.

Addresses are plain integers. The methods of `CudaDevice` are the whole seam between the orchestration (msm.py,
batch_add.py, ...) and CUDA; the tests put an emulation of the same methods in its place, which runs the same kernels
on the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from cuzk.errors import CuzkError, DeviceLost, HardwareMissing, OutOfMemoryError
from cuzk.gpu import module
from cuzk.gpu.faults import MEMORY_ALLOCATION, CudaError, HostMemoryRefused, spoils
from cuzk.gpu.staging import STAGED_FROM, copy_staged

KEEP_ALL = (1 << 63) - 1
"""Bytes that a pool may keep."""
NOT_READY = 600
"""cudaErrorNotReady."""
REGISTER_READ_ONLY = 8
"""cudaHostRegisterReadOnly."""
PINNED_BLOCK = 1 << 14
"""Bytes of the blocks of pinned memory that are kept; smaller ones take as much."""

P = ParamSpec("P")
R = TypeVar("R")


class Memory:
    """A block of device memory. Freed explicitly, after the event that ends its last use; never by the collector alone."""

    def __init__(self, device: CudaDevice, address: int, size_bytes: int, pooled: bool = False) -> None:
        self._device, self.address, self.size_bytes, self._pooled = device, address, size_bytes, pooled

    def free(self) -> None:
        """Gives the block back: to the pool, or to the driver, which synchronises the device."""
        address, self.address = self.address, 0
        if address:
            self._device.release(address, self._pooled)


class PinnedArray:
    """Page-locked host memory of an exact size, seen as a uint8 array."""

    def __init__(self, device: CudaDevice, address: int, size_bytes: int) -> None:
        self._device, self.address = device, address
        view = (ctypes.c_uint8 * max(size_bytes, 1)).from_address(address)
        self.array = np.ctypeslib.as_array(view)[:size_bytes]

    def free(self) -> None:
        address, self.address = self.address, 0
        if address:
            self._device.release_pinned(address, self.array.nbytes)


def _checked(call: str) -> Callable[[Callable[Concatenate[CudaDevice, P], R]], Callable[Concatenate[CudaDevice, P], R]]:
    """A method that talks to the driver: its errors become ours, and a lost device is not asked again."""

    def around(method: Callable[Concatenate[CudaDevice, P], R]) -> Callable[Concatenate[CudaDevice, P], R]:
        @functools.wraps(method)
        def checked(self: CudaDevice, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if self.lost is not None:
                raise DeviceLost(self.device_id, self.lost)
            try:
                return method(self, *args, **kwargs)
            except self.errors as fault:
                raise self.error_of(call, fault) from fault

        return checked

    return around


def _ending_quietly(kind: type, device: CudaDevice) -> type:
    """CuPy's stream or event, which is not destroyed once the device is lost: that could only fail, with a traceback."""

    def end(self: Any) -> None:
        if device.lost is None:
            kind.__del__(self)  # type: ignore[attr-defined]

    return type(kind.__name__, (kind,), {"__del__": end})


class CudaDevice:
    """The device with the given index. Creating it initialises the context; HardwareMissing if that is impossible.

    Every method raises DeviceLost for an error that spoils the context, OutOfMemoryError where memory ran out (VRAM, or RAM that
    was to be page-locked), and CudaError for a call that was only refused.

    Blocks that come and go in a pipeline (`pooled`) are taken from the driver's stream-ordered pool, which keeps what is freed:
    to free 8 GiB takes the driver 3 ms and stops the device, the pool 5 us. What it keeps serves every later block, and goes back
    to the driver when an allocation would fail otherwise, and on `trim`.
    """

    def __init__(self, device_id: int = 0) -> None:
        self.arch = module.require_device_arch(device_id)
        import cupy

        self.cupy = cupy
        self.device_id = device_id
        self.errors = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
        self.lost: str | None = None
        """Why this process cannot use the device any more."""
        try:
            cupy.cuda.Device(device_id).use()
            self.multiprocessors: int = cupy.cuda.runtime.deviceGetAttribute(16, device_id)  # cudaDevAttrMultiProcessorCount
            self._pool = self._open_pool()
            self._pool_stream = cupy.cuda.Stream(non_blocking=True)
        except self.errors as fault:
            if int(fault.status) == MEMORY_ALLOCATION:
                raise OutOfMemoryError(f"VRAM: device {device_id} has no room for a context: {fault}") from fault
            raise HardwareMissing(f"CUDA device {device_id} cannot be used: {fault}") from fault
        self.limit_bytes: int | None = None
        """Bytes of VRAM that this process may hold beside its context. Before it is passed, what the pool keeps goes back."""
        self._others_bytes = self._used_bytes()
        self._modules: dict[str, Any] = {}
        self._kernels: dict[tuple[str, str], Any] = {}
        self._shared_bytes: dict[int, int] = {}
        """Kernel (by id: they live as long as this does) -> dynamic shared memory that it was allowed."""
        self._pinned: list[int] = []
        self._mutex = threading.Lock()

    def _open_pool(self) -> int:
        """The device's pool; 0 where the driver has none."""
        runtime = self.cupy.cuda.runtime
        if not runtime.deviceGetAttribute(runtime.cudaDevAttrMemoryPoolsSupported, self.device_id):
            return 0
        pool = runtime.deviceGetDefaultMemPool(self.device_id)
        runtime.memPoolSetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold, KEEP_ALL)
        return int(pool)

    # errors

    def error_of(self, call: str, fault: Any) -> CuzkError:
        """The error of our own that stands for one of the runtime or the driver."""
        status = int(fault.status)
        spoiled = spoils(status)
        if spoiled or (spoiled is None and not self._answers()):
            self.lost = f"{call}: {fault}"
            return DeviceLost(self.device_id, self.lost)
        if status == MEMORY_ALLOCATION:
            return OutOfMemoryError(f"VRAM: {call}: {fault}")
        return CudaError(f"device {self.device_id} refused {call}: {fault}")

    def _answers(self) -> bool:
        """Whether the context still takes calls: after a sticky error none succeeds."""
        try:
            self.cupy.cuda.runtime.memGetInfo()
        except self.errors:
            return False
        return True

    # kernels

    def compile(self, modules: Sequence[str]) -> None:
        """Compiles the modules that the cache lacks, side by side: each takes seconds, some a minute."""
        with ThreadPoolExecutor(max_workers=max(1, len(modules))) as pool:
            list(pool.map(lambda name: module.cubin(name, self.arch), modules))

    @_checked("loading a kernel")
    def kernel(self, module_name: str, name: str) -> Any:
        """The kernel `name` of `kernels/<module_name>.cu`, compiled and loaded on first use."""
        key = (module_name, name)
        if key not in self._kernels:
            if module_name not in self._modules:
                path = module.cubin(module_name, self.arch)
                self._modules[module_name] = self.cupy.RawModule(path=str(path))
            self._kernels[key] = self._modules[module_name].get_function(name)
        return self._kernels[key]

    @_checked("a kernel launch")
    def launch(
        self, kernel: Any, blocks: int | tuple[int, ...], threads: int, args: tuple[Any, ...], stream: Any, shared_bytes: int = 0
    ) -> None:
        """Enqueues a kernel. `args` are numpy scalars, or ints, which are addresses (64 bits)."""
        grid = (blocks,) if isinstance(blocks, int) else blocks
        packed = tuple(np.uint64(a) if isinstance(a, int) else a for a in args)
        if shared_bytes > 40 * 1024:  # 48 KiB with the static part; more must be asked for
            self._allow_shared(kernel, shared_bytes)
        with stream:
            kernel(grid, (threads,), packed, shared_mem=shared_bytes)

    def _allow_shared(self, kernel: Any, shared_bytes: int) -> None:
        """Raises what a kernel may take; never lowers it: another thread may be about to launch it with more."""
        with self._mutex:
            if shared_bytes > self._shared_bytes.get(id(kernel), 0):
                kernel.max_dynamic_shared_size_bytes = shared_bytes
                self._shared_bytes[id(kernel)] = shared_bytes

    # memory

    @_checked("cudaMemGetInfo")
    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of VRAM, as the driver sees them."""
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(free), int(total)

    @_checked("cudaMalloc")
    def allocate(self, size_bytes: int, what: str, pooled: bool = False) -> Memory:
        """Device memory, usable on any stream at once; OutOfMemoryError names `what`, the need and the level. `pooled`: it comes
        and goes often."""
        pooled = pooled and bool(self._pool)
        take = self._take_from_pool if pooled else self.cupy.cuda.runtime.malloc
        try:
            try:
                address = take(max(size_bytes, 1))
            except self.errors as fault:
                if int(fault.status) != MEMORY_ALLOCATION:
                    raise
                self._trim()
                address = take(max(size_bytes, 1))
        except self.errors as fault:
            if int(fault.status) != MEMORY_ALLOCATION:
                raise
            free, total = self.memory_info()
            raise OutOfMemoryError(
                f"VRAM: {what} needs {size_bytes / 2**30:.1f} GiB, {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free"
            ) from fault
        if self.limit_bytes is not None and self._used_bytes() - self._others_bytes > self.limit_bytes:
            self._trim()
        return Memory(self, int(address), size_bytes, pooled)

    def _used_bytes(self) -> int:
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(total - free)

    def _take_from_pool(self, size_bytes: int) -> int:
        address: int = self.cupy.cuda.runtime.mallocAsync(size_bytes, self._pool_stream.ptr)
        self._pool_stream.synchronize()  # from now on it is there for all streams; nothing else is queued on this one
        return address

    def release(self, address: int, pooled: bool) -> None:
        """A `Memory`'s block goes back. With a lost device nothing does: its memory goes with the process."""
        if self.lost is None:
            self._free(address, pooled)

    @_checked("cudaFree")
    def _free(self, address: int, pooled: bool) -> None:
        if pooled:
            self.cupy.cuda.runtime.freeAsync(address, self._pool_stream.ptr)
        else:
            self.cupy.cuda.runtime.free(address)

    @_checked("cudaMemPoolTrimTo")
    def trim(self) -> None:
        """The pool's unused memory back to the driver."""
        self._trim()

    def _trim(self) -> None:
        if self._pool:
            self._pool_stream.synchronize()
            self.cupy.cuda.runtime.memPoolTrimTo(self._pool, 0)

    def close(self) -> None:
        """Everything that is kept for later goes back to the system."""
        if self.lost is None:
            self.trim()
            with self._mutex:
                while self._pinned:
                    self._free_pinned(self._pinned.pop())

    @_checked("cudaHostAlloc")
    def pinned(self, size_bytes: int) -> PinnedArray:
        """Page-locked memory; HostMemoryRefused if the driver has none to give. Small blocks are kept for the next: to lock pages
        stops the device."""
        if size_bytes <= PINNED_BLOCK:
            with self._mutex:
                if self._pinned:
                    return PinnedArray(self, self._pinned.pop(), size_bytes)
        room = max(PINNED_BLOCK, size_bytes)
        return PinnedArray(self, self._page_lock(room, self.cupy.cuda.runtime.hostAlloc, room, 0), size_bytes)

    def release_pinned(self, address: int, size_bytes: int) -> None:
        """A `PinnedArray`'s pages go back."""
        if self.lost is not None:
            return
        if size_bytes > PINNED_BLOCK:
            self._free_pinned(address)
            return
        with self._mutex:
            self._pinned.append(address)

    @_checked("cudaFreeHost")
    def _free_pinned(self, address: int) -> None:
        self.cupy.cuda.runtime.freeHost(address)

    def use(self) -> None:
        """Makes this the calling thread's device: every thread starts with device 0. Silent about a lost one: the thread may
        have nothing to do on it."""
        if self.lost is None:
            try:
                self.cupy.cuda.Device(self.device_id).use()
            except self.errors as fault:
                error = self.error_of("cudaSetDevice", fault)
                if self.lost is None:
                    raise error from fault

    @_checked("cudaHostRegister")
    def register(self, address: int, size_bytes: int, read_only: bool = False) -> None:
        """Locks the pages of host memory, so that copies from it are DMA. HostMemoryRefused if they cannot be locked.

        `read_only`: pages that this process may not write, of a mapped file say (CudaError where the system cannot lock such)."""
        flags = REGISTER_READ_ONLY if read_only else 0
        self._page_lock(size_bytes, self.cupy.cuda.runtime.hostRegister, address, size_bytes, flags)

    def _page_lock(self, size_bytes: int, call: Callable[..., Any], *args: int) -> Any:
        try:
            return call(*args)
        except self.errors as fault:
            if int(fault.status) != MEMORY_ALLOCATION:
                raise
            raise HostMemoryRefused(f"RAM: the driver cannot page-lock {size_bytes / 2**30:.1f} GiB: {fault}") from fault

    def unregister(self, address: int) -> None:
        if self.lost is None:
            self._unregister(address)

    @_checked("cudaHostUnregister")
    def _unregister(self, address: int) -> None:
        self.cupy.cuda.runtime.hostUnregister(address)

    @_checked("cudaMemsetAsync")
    def fill(self, address: int, byte: int, size_bytes: int, stream: Any) -> None:
        if size_bytes:
            self.cupy.cuda.runtime.memsetAsync(address, byte, size_bytes, stream.ptr)

    @_checked("cudaMemcpyAsync")
    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        """Copies between any two addresses (the driver knows which are device memory). Host memory must be pinned to overlap."""
        if size_bytes:
            self.cupy.cuda.runtime.memcpyAsync(target, source, size_bytes, 4, stream.ptr)  # cudaMemcpyDefault

    def upload(self, array: np.ndarray, what: str = "an array", behind_bytes: int = 0) -> Memory:
        """A device copy of a contiguous array, with room behind it; waits for it. For preparation, not for pipelines."""
        memory = self.allocate(array.nbytes + behind_bytes, what)
        try:
            if array.nbytes < STAGED_FROM or not copy_staged(self, memory.address, array):
                self._copy_from_host(memory.address, array)
        except BaseException:
            memory.free()
            raise
        return memory

    @_checked("an upload")
    def _copy_from_host(self, target: int, array: np.ndarray) -> None:
        if array.nbytes:
            runtime = self.cupy.cuda.runtime
            runtime.memcpy(target, array.ctypes.data, array.nbytes, 1)
            # from pageable memory the call returns once the bytes are staged, and other streams do not wait for the default one
            runtime.streamSynchronize(0)

    @_checked("a download")
    def download(self, address: int, array: np.ndarray) -> np.ndarray:
        """Fills `array` from device memory; waits for it."""
        if array.nbytes:
            self.cupy.cuda.runtime.memcpy(array.ctypes.data, address, array.nbytes, 2)
        return array

    # streams and events

    @functools.cached_property
    def _stream_type(self) -> type:
        return _ending_quietly(self.cupy.cuda.Stream, self)

    @functools.cached_property
    def _event_type(self) -> type:
        return _ending_quietly(self.cupy.cuda.Event, self)

    @_checked("cudaStreamCreate")
    def stream(self) -> Any:
        return self._stream_type(non_blocking=True)

    @_checked("capturing a graph")
    def capture(self, stream: Any, queue: Callable[[], None]) -> Any:
        """A graph of what `queue` queues on `stream`, and on streams that wait for it and that it waits for again: nothing runs
        before `launch_graph`. Its kernels must have run once before: to load one is no work of a stream."""
        runtime = self.cupy.cuda.runtime
        stream.begin_capture(runtime.streamCaptureModeRelaxed)
        try:
            queue()
        finally:
            graph = stream.end_capture()
        return graph

    @_checked("cudaGraphLaunch")
    def launch_graph(self, graph: Any, stream: Any) -> None:
        """Enqueues all of a graph's work at once."""
        graph.launch(stream)

    @_checked("cudaEventCreate")
    def event(self, timing: bool = False) -> Any:
        return self._event_type(block=True, disable_timing=not timing)

    @_checked("cudaEventRecord")
    def record(self, event: Any, stream: Any) -> None:
        event.record(stream)

    @_checked("cudaStreamWaitEvent")
    def stream_wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    @_checked("cudaEventQuery")
    def reached(self, event: Any) -> bool:
        """Whether everything before the event is done; does not wait. Faults of earlier launches surface here."""
        runtime = self.cupy.cuda.runtime
        try:
            status = int(runtime.eventQuery(event.ptr))
        except self.errors as fault:
            status = int(fault.status)
        if status not in (0, NOT_READY):
            raise runtime.CUDARuntimeError(status)
        return status == 0

    @_checked("cudaEventSynchronize")
    def wait(self, event: Any) -> None:
        """Blocks the host until the event; faults of earlier launches surface here."""
        event.synchronize()

"""One GPU as the operations see it: launches, copies, events and memory, all on explicit streams.

Addresses are plain integers. The methods of `CudaDevice` are the whole seam between the orchestration (msm.py,
batch_add.py, ...) and CUDA; the tests put an emulation of the same methods in its place, which runs the same kernels
on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.errors import CuzkError, OutOfMemoryError

from . import module


class DeviceFault(CuzkError):
    """A CUDA call failed with an error that may have spoiled the context; the device needs a fresh process."""


class Memory:
    """A block of device memory. Freed explicitly, after the event that ends its last use; never by the collector alone."""

    def __init__(self, device: CudaDevice, size_bytes: int, what: str) -> None:
        runtime = device.cupy.cuda.runtime
        self.size_bytes = size_bytes
        self._runtime = runtime
        try:
            self.address: int = runtime.malloc(max(size_bytes, 1))
        except runtime.CUDARuntimeError as fault:
            if fault.status != 2:  # cudaErrorMemoryAllocation
                raise DeviceFault(f"cudaMalloc of {what}: {fault}") from fault
            free, total = device.memory_info()
            raise OutOfMemoryError(
                f"VRAM: {what} needs {size_bytes / 2**30:.1f} GiB, {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free"
            ) from fault

    def free(self) -> None:
        """Gives the block back. Synchronises the device (cudaFree): not for the middle of a pipeline."""
        if self.address:
            self._runtime.free(self.address)
            self.address = 0


class PinnedArray:
    """Page-locked host memory of an exact size, seen as a uint8 array."""

    def __init__(self, device: CudaDevice, size_bytes: int) -> None:
        import ctypes

        self._runtime = device.cupy.cuda.runtime
        self.address: int = self._runtime.hostAlloc(max(size_bytes, 1), 0)
        view = (ctypes.c_uint8 * max(size_bytes, 1)).from_address(self.address)
        self.array = np.frombuffer(view, dtype=np.uint8)[:size_bytes]

    def free(self) -> None:
        if self.address:
            self._runtime.freeHost(self.address)
            self.address = 0


class CudaDevice:
    """The device with the given index. Creating it initialises the context; HardwareMissing if that is impossible."""

    def __init__(self, device_id: int = 0) -> None:
        self.arch = module.require_device_arch(device_id)
        import cupy

        self.cupy = cupy
        self.device_id = device_id
        cupy.cuda.Device(device_id).use()
        self.multiprocessors: int = cupy.cuda.runtime.deviceGetAttribute(16, device_id)  # cudaDevAttrMultiProcessorCount
        self._modules: dict[str, Any] = {}
        self._kernels: dict[tuple[str, str], Any] = {}

    # kernels

    def kernel(self, module_name: str, name: str) -> Any:
        """The kernel `name` of `kernels/<module_name>.cu`, compiled and loaded on first use."""
        key = (module_name, name)
        if key not in self._kernels:
            if module_name not in self._modules:
                path = module.cubin(module_name, self.arch)
                self._modules[module_name] = self.cupy.RawModule(path=str(path))
            self._kernels[key] = self._modules[module_name].get_function(name)
        return self._kernels[key]

    def launch(
        self, kernel: Any, blocks: int | tuple[int, ...], threads: int, args: tuple[Any, ...], stream: Any, shared_bytes: int = 0
    ) -> None:
        """Enqueues a kernel. `args` are numpy scalars, or ints, which are addresses (64 bits)."""
        grid = (blocks,) if isinstance(blocks, int) else blocks
        packed = tuple(np.uint64(a) if isinstance(a, int) else a for a in args)
        if shared_bytes > 40 * 1024:  # 48 KiB with the static part; more must be asked for
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        with stream:
            kernel(grid, (threads,), packed, shared_mem=shared_bytes)

    # memory

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of VRAM, as the driver sees them."""
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(free), int(total)

    def allocate(self, size_bytes: int, what: str) -> Memory:
        """Device memory; OutOfMemoryError names `what`, the need and the level."""
        return Memory(self, size_bytes, what)

    def pinned(self, size_bytes: int) -> PinnedArray:
        return PinnedArray(self, size_bytes)

    def use(self) -> None:
        """Makes this the calling thread's device: every thread starts with device 0."""
        self.cupy.cuda.Device(self.device_id).use()

    def register(self, address: int, size_bytes: int) -> None:
        """Locks the pages of host memory, so that copies from it are DMA."""
        self.cupy.cuda.runtime.hostRegister(address, size_bytes, 0)

    def unregister(self, address: int) -> None:
        self.cupy.cuda.runtime.hostUnregister(address)

    def fill(self, address: int, byte: int, size_bytes: int, stream: Any) -> None:
        if size_bytes:
            self.cupy.cuda.runtime.memsetAsync(address, byte, size_bytes, stream.ptr)

    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        """Copies between any two addresses (the driver knows which are device memory). Host memory must be pinned to overlap."""
        if size_bytes:
            self.cupy.cuda.runtime.memcpyAsync(target, source, size_bytes, 4, stream.ptr)  # cudaMemcpyDefault

    def upload(self, array: np.ndarray, what: str = "an array") -> Memory:
        """A device copy of a contiguous array; waits for it. For preparation, not for pipelines."""
        memory = self.allocate(array.nbytes, what)
        if array.nbytes:
            runtime = self.cupy.cuda.runtime
            runtime.memcpy(memory.address, array.ctypes.data, array.nbytes, 1)
            # from pageable memory the call returns once the bytes are staged, and other streams do not wait for the default one
            runtime.streamSynchronize(0)
        return memory

    def download(self, address: int, array: np.ndarray) -> np.ndarray:
        """Fills `array` from device memory; waits for it."""
        if array.nbytes:
            self.cupy.cuda.runtime.memcpy(array.ctypes.data, address, array.nbytes, 2)
        return array

    # streams and events

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def event(self, timing: bool = False) -> Any:
        return self.cupy.cuda.Event(block=True, disable_timing=not timing)

    def record(self, event: Any, stream: Any) -> None:
        event.record(stream)

    def stream_wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def wait(self, event: Any) -> None:
        """Blocks the host until the event; faults of earlier launches surface here."""
        try:
            event.synchronize()
        except self.cupy.cuda.runtime.CUDARuntimeError as fault:
            raise DeviceFault(f"a kernel failed: {fault}") from fault

"""The methods of cuzk.gpu.device.CudaDevice on the CPU: the same kernels, their threads run as fibers by emulation.hpp."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuzk.gpu.module import kernel_root

HERE = Path(__file__).resolve().parent


def build(name: str, directory: Path, *, emulate32: bool = True) -> Path:
    """Compiles `kernels/<name>.cu` for the CPU; with `emulate32` on the device's carry chains, else on host arithmetic."""
    out = directory / f"{name.replace('/', '_')}{'32' if emulate32 else '64'}.so"
    if not out.exists():
        subprocess.run(
            ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", "-Wno-unknown-pragmas", "-x", "c++"]
            + (["-DCUZK_EMULATE32"] if emulate32 else [])
            + [f"-I{kernel_root()}", "-include", str(HERE / "emulation.hpp"), str(kernel_root() / f"{name}.cu")]
            + ["-o", str(out)],
            check=True,
        )
    return out


class Block:
    """`Memory` and `PinnedArray`: 16-byte aligned, poisoned, with a guard after the end."""

    GUARD = 256

    def __init__(self, size_bytes: int, live: dict[int, int]) -> None:
        self._live = live
        self._raw = np.full(size_bytes + self.GUARD + 256, 0xA5, dtype=np.uint8)
        shift = -self._raw.ctypes.data % 256
        self.array = self._raw[shift : shift + size_bytes]
        self._guard = self._raw[shift + size_bytes :]
        self.address = self._raw.ctypes.data + shift
        self.size_bytes = size_bytes
        live[self.address] = size_bytes

    def free(self) -> None:
        self._live.pop(self.address, None)
        assert (self._guard == 0xA5).all(), "a kernel wrote past the end of its block"
        self.address = 0


class EmulatedDevice:
    """Few multiprocessors, so that small inputs still fill several batches. Streams run at once; events are always past."""

    def __init__(self, directory: Path, multiprocessors: int = 1, *, emulate32: bool = True) -> None:
        self._directory, self._emulate32 = directory, emulate32
        self._modules: dict[str, ctypes.CDLL] = {}
        self.multiprocessors = multiprocessors
        self._one_at_a_time = threading.Lock()
        self.limit_bytes: int | None = None
        self._captured: list[Any] | None = None
        self.launches = 0
        self.registered: set[int] = set()
        self.live: dict[int, int] = {}

    def compile(self, modules: Sequence[str]) -> None: ...

    def kernel(self, module_name: str, name: str) -> Any:
        if module_name not in self._modules:
            path = build(module_name, self._directory, emulate32=self._emulate32)
            self._modules[module_name] = ctypes.CDLL(str(path))
        return self._modules[module_name], ctypes.cast(getattr(self._modules[module_name], name), ctypes.c_void_p)

    def capture(self, stream: Any, queue: Any) -> list[Any]:
        """Calls that `launch_graph` repeats."""
        self._captured = []
        try:
            queue()
            return self._captured
        finally:
            self._captured = None

    def launch_graph(self, graph: list[Any], stream: Any) -> None:
        for call, *args in graph:
            call(*args)

    def launch(self, kernel: Any, blocks: Any, threads: int, args: tuple[Any, ...], stream: Any, shared_bytes: int = 0) -> None:
        if self._captured is not None:
            self._captured.append((self.launch, kernel, blocks, threads, args, stream, shared_bytes))
            return
        library, function = kernel
        x, y = (blocks, 1) if isinstance(blocks, int) else blocks
        packed = (ctypes.c_ulonglong * 16)(*[int(a) for a in args])
        with self._one_at_a_time:  # a block's threads are fibers that share what the library keeps
            lost = library.emulation_launch(function, x, y, threads, shared_bytes, packed)
        assert lost == 0, f"{lost} carries were lost"
        self.launches += 1

    def allocate(self, size_bytes: int, what: str, pooled: bool = False) -> Block:
        return self._block(size_bytes)

    def trim(self) -> None: ...

    def close(self) -> None: ...

    def _block(self, size_bytes: int) -> Block:
        return Block(size_bytes, self.live)

    def live_bytes(self) -> int:
        """Of all blocks, pinned ones too, that have not been freed."""
        return sum(self.live.values())

    def memory_info(self) -> tuple[int, int]:
        return 1 << 34, 1 << 34

    def pinned(self, size_bytes: int) -> Block:
        return self._block(size_bytes)

    def use(self) -> None: ...

    def register(self, address: int, size_bytes: int, read_only: bool = False) -> None:
        assert address not in self.registered, "registered twice"
        self.registered.add(address)

    def unregister(self, address: int) -> None:
        self.registered.remove(address)

    def fill(self, address: int, byte: int, size_bytes: int, stream: Any) -> None:
        if self._captured is not None:
            self._captured.append((self.fill, address, byte, size_bytes, stream))
            return
        ctypes.memset(address, byte, size_bytes)

    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        if self._captured is not None:
            self._captured.append((self.copy, target, source, size_bytes, stream))
            return
        ctypes.memmove(target, source, size_bytes)

    def upload(self, array: np.ndarray, what: str = "an array", behind_bytes: int = 0) -> Block:
        block = self._block(array.nbytes + behind_bytes)
        ctypes.memmove(block.address, array.ctypes.data, array.nbytes)
        return block

    def download(self, address: int, array: np.ndarray) -> np.ndarray:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)
        return array

    def stream(self) -> object:
        return object()

    def event(self, timing: bool = False) -> None:
        return None

    def record(self, event: Any, stream: Any) -> None: ...

    def stream_wait(self, stream: Any, event: Any) -> None: ...

    def wait(self, event: Any) -> None: ...

    def reached(self, event: Any) -> bool:
        return True

"""Which CUDA errors end a context, and what every call makes of them. CuPy is played by a few objects that raise on demand."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.errors import DeviceLost, OutOfMemoryError
from cuzk.gpu.device import CudaDevice
from cuzk.gpu.faults import GONE, REFUSED, STICKY, CudaError, HostMemoryRefused, spoils

HEADERS = [Path(p) for p in ("/usr/local/cuda/include/driver_types.h", "/opt/cuda/include/driver_types.h")]


class RuntimeFault(Exception):
    """CUDARuntimeError."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"cudaError {status}")


class DriverFault(RuntimeFault):
    """CUDADriverError."""


class Runtime:
    """Every function raises `fault`, if there is one; `calls` are those that were made."""

    CUDARuntimeError = RuntimeFault

    def __init__(self) -> None:
        self.fault: RuntimeFault | None = None
        self.answers = True
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.calls.append(name)
            if name == "memGetInfo" and self.answers:
                return 1 << 30, 2 << 30
            if self.fault is not None:
                raise self.fault
            return np.zeros(4096, dtype=np.uint8).ctypes.data

        return call


class Called:
    """A stream, an event or a kernel: whatever is done with it is a call of the runtime."""

    ptr = 0

    def __init__(self, runtime: Runtime) -> None:
        self._call = runtime.anything

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._call()

    def __enter__(self) -> None: ...

    def __exit__(self, *args: Any) -> None: ...

    record = wait_event = synchronize = use = __call__


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    monkeypatch.setattr("cuzk.gpu.module.cubin", lambda name, arch: tmp_path / "x.cubin")
    runtime = Runtime()

    def make(*args: Any, **kwargs: Any) -> Called:
        runtime.anything()
        return Called(runtime)

    class Owned(Called):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(runtime)
            runtime.anything()

        def __del__(self) -> None:
            runtime.calls.append("destroy")

    made = CudaDevice.__new__(CudaDevice)
    made.cupy = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, driver=SimpleNamespace(CUDADriverError=DriverFault), Stream=Owned, Event=Owned,
                             Device=lambda index: Called(runtime)),
        RawModule=make,
    )  # fmt: skip
    made.errors, made.device_id, made.lost, made.arch = (RuntimeFault, DriverFault), 1, None, "sm_90"
    made._modules, made._kernels, made._shared_bytes = {}, {}, {}
    made.limit_bytes, made._others_bytes = None, 0
    made._pool, made._pool_stream, made._pinned, made._mutex = 1, Called(runtime), [], threading.Lock()
    return made


def runtime_of(device: CudaDevice) -> Runtime:
    return device.cupy.cuda.runtime


ARRAY = np.zeros(8, dtype=np.uint64)
CALLS: dict[str, Any] = {
    "allocate": lambda d, s: d.allocate(64, "d_a"),
    "allocate from the pool": lambda d, s: d.allocate(64, "d_a", pooled=True),
    "trim": lambda d, s: d.trim(),
    "pinned": lambda d, s: d.pinned(64),
    "register": lambda d, s: d.register(4096, 64),
    "unregister": lambda d, s: d.unregister(4096),
    "release": lambda d, s: d.release(4096, False),
    "release to the pool": lambda d, s: d.release(4096, True),
    "release_pinned": lambda d, s: d.release_pinned(4096, 1 << 20),
    "fill": lambda d, s: d.fill(4096, 0, 64, s),
    "copy": lambda d, s: d.copy(4096, 8192, 64, s),
    "upload": lambda d, s: d.upload(ARRAY),
    "download": lambda d, s: d.download(4096, ARRAY.copy()),
    "kernel": lambda d, s: d.kernel("ntt/ntt", "pass"),
    "launch": lambda d, s: d.launch(s, 1, 32, (4096, np.uint32(1)), s),
    "stream": lambda d, s: d.stream(),
    "event": lambda d, s: d.event(),
    "record": lambda d, s: d.record(s, s),
    "stream_wait": lambda d, s: d.stream_wait(s, s),
    "wait": lambda d, s: d.wait(s),
    "memory_info": lambda d, s: d.memory_info(),
}
GIVES_BACK = ("unregister", "release", "release to the pool", "release_pinned")


def strike(device: CudaDevice, call: str, fault: RuntimeFault, answers: bool = True) -> Any:
    """What a call raises when the driver answers it with this."""
    runtime = runtime_of(device)
    runtime.fault, runtime.answers = fault, answers and call != "memory_info"
    with pytest.raises(Exception) as caught:
        CALLS[call](device, Called(runtime))
    return caught.value


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [RuntimeFault, DriverFault])
@pytest.mark.parametrize("status", [700, 719, 716, 714, 715, 717, 718, 214, 702, 710, 46, 802, 709, 220])
def test_a_sticky_error_loses_the_device_whatever_call_meets_it(status: int, kind: Any, call: str, device: CudaDevice) -> None:
    error = strike(device, call, kind(status))
    assert isinstance(error, DeviceLost) and error.gpu == 1
    assert f"cudaError {status}" in str(error) and device.lost is not None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [1, 701, 400, 209, 712, 713])
def test_a_refused_call_leaves_the_device_at_work(status: int, call: str, device: CudaDevice) -> None:
    error = strike(device, call, RuntimeFault(status))
    assert type(error) is CudaError and f"cudaError {status}" in str(error)
    assert device.lost is None
    runtime_of(device).fault = None
    device.allocate(64, "d_a").free()


@pytest.mark.parametrize("call", [call for call in CALLS if call != "memory_info"])
def test_memory_that_runs_out(call: str, device: CudaDevice) -> None:
    error = strike(device, call, RuntimeFault(2))
    assert isinstance(error, OutOfMemoryError) and device.lost is None
    if call in ("pinned", "register"):
        assert type(error) is HostMemoryRefused and str(error).startswith("RAM: the driver cannot page-lock 0.0 GiB")
    else:
        assert type(error) is OutOfMemoryError and str(error).startswith("VRAM: ")
    if call.startswith("allocate"):
        assert str(error) == "VRAM: d_a needs 0.0 GiB, 1.0 of 2.0 GiB are free"


@pytest.mark.parametrize("status", [999, 304, 4711])
@pytest.mark.parametrize("answers", [True, False])
def test_an_error_without_a_meaning_is_judged_by_the_next_call(status: int, answers: bool, device: CudaDevice) -> None:
    assert spoils(status) is None
    error = strike(device, "wait", RuntimeFault(status), answers)
    assert isinstance(error, CudaError if answers else DeviceLost)


# INV-12
def test_a_lost_device_is_not_asked_again(device: CudaDevice) -> None:
    runtime = runtime_of(device)
    memory, pinned, handle = device.allocate(64, "d_a"), device.pinned(64), Called(runtime)
    strike(device, "wait", RuntimeFault(700))
    runtime.calls.clear()
    memory.free()
    pinned.free()
    device.unregister(4096)
    device.use()
    for call in CALLS:
        if call not in GIVES_BACK:
            with pytest.raises(DeviceLost, match="cudaEventSynchronize: cudaError 700"):
                CALLS[call](device, handle)
    assert runtime.calls == []


def test_a_block_is_given_back_once(device: CudaDevice) -> None:
    memory = device.allocate(64, "d_a")
    memory.free()
    memory.free()
    assert runtime_of(device).calls.count("free") == 1


def test_a_thread_that_chooses_a_lost_device_may_go_on(device: CudaDevice) -> None:
    """Its work may be the host's; the next call to the device says what there is to say."""
    runtime_of(device).fault = RuntimeFault(719)
    device.use()
    assert device.lost is not None
    runtime_of(device).fault, device.lost = RuntimeFault(1), None
    with pytest.raises(CudaError):
        device.use()


def test_the_table_is_what_the_headers_say() -> None:
    """The runtime's own header tells of each error whether the process can go on."""
    header = next((path for path in HEADERS if path.exists()), None)
    if header is None:
        pytest.skip("no CUDA headers here")
    text = header.read_text()
    enum = text[text.index("enum __device_builtin__ cudaError\n") : text.index("cudaErrorApiFailureBase")]
    rows = [(m[1], m[2], int(m[3])) for m in re.finditer(r"/\*\*(.*?)\*/\s*cudaError(\w+)\s*=\s*(\d+)", enum, re.DOTALL)]
    names = {status: name for _, name, status in rows}
    assert len(names) > 100
    final = {status for comment, _, status in rows if "terminated and" in " ".join(comment.replace("*", " ").split())}
    assert len(final) >= 10
    assert final | {214, 220} == {status for status in STICKY if status in names}
    for status, name in (STICKY | GONE).items():
        assert names.get(status, name) == name
    assert not final & REFUSED and not GONE.keys() & REFUSED


@pytest.mark.parametrize("make", ["stream", "event"])
def test_streams_and_events_of_a_lost_device_are_left_alone(make: str, device: CudaDevice) -> None:
    destroyed = runtime_of(device).calls
    held = getattr(device, make)()
    del held
    assert destroyed.count("destroy") == 1
    held = getattr(device, make)()
    strike(device, "memory_info", RuntimeFault(700))
    del held
    assert destroyed.count("destroy") == 1

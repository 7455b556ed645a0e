"""Large uploads through page-locked blocks, on a device whose copies happen when somebody waits for them, as late as they may."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from cuzk.errors import CuzkError, DeviceLost
from cuzk.gpu import staging
from cuzk.gpu.device import CudaDevice
from cuzk.gpu.faults import CudaError, HostMemoryRefused
from tests.unit.kernels.emulated import EmulatedDevice


class LateDevice(EmulatedDevice):
    """A copy that nobody awaits never happens. The copy with number `fails_at` raises `fault`."""

    def __init__(self, fails_at: int = -1, fault: CuzkError | None = None) -> None:
        super().__init__(None)
        self.queues: dict[int, list] = {}
        self.copies, self.fails_at, self.fault = 0, fails_at, fault
        self.threads: set[int] = set()
        self.mutex = threading.Lock()

    def use(self):
        self.threads.add(threading.get_ident())

    def stream(self):
        return SimpleNamespace(queue=[])

    def event(self, timing=False):
        return SimpleNamespace(stream=None, upto=0)

    def copy(self, target, source, size_bytes, stream):
        assert threading.get_ident() in self.threads, "another device may be current here"
        with self.mutex:
            self.copies += 1
            if self.copies == self.fails_at:
                raise self.fault
        assert any(start <= source < start + 2**30 for start in self.registered)
        stream.queue.append((target, source, size_bytes))

    def record(self, event, stream):
        event.stream, event.upto = stream, len(stream.queue)

    def wait(self, event):
        for index, work in enumerate(event.stream.queue[: event.upto]):
            if work is not None:
                super().copy(*work, None)
                event.stream.queue[index] = None


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(staging, "BLOCK", 1 << 12)


def random_array(nbytes: int) -> np.ndarray:
    return np.random.default_rng(nbytes).integers(0, 256, nbytes, dtype=np.uint8)


@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.parametrize("nbytes", [1, 1 << 12, (1 << 12) * 16, (1 << 12) * 16 + 1, 999_999])
def test_every_byte_arrives(nbytes, cores, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    device, array = LateDevice(), random_array(nbytes)
    block = device.allocate(nbytes, "points")
    assert staging.copy_staged(device, block.address, array)
    assert np.array_equal(block.array, array)
    block.free()
    assert not device.registered and device.live_bytes() == 0
    assert device.copies == -(-nbytes // staging.BLOCK)


def test_a_mapped_file_of_points(tmp_path):
    values = random_array(96 * 3001).view(np.uint64).reshape(-1, 12)
    values.tofile(tmp_path / "points")
    mapped = np.memmap(tmp_path / "points", np.uint64, "r", shape=(3001, 12))[1:]
    device = LateDevice()
    block = device.allocate(mapped.nbytes, "points")
    assert staging.copy_staged(device, block.address, mapped)
    assert np.array_equal(block.array.view(np.uint64).reshape(-1, 12), values[1:])
    block.free()


@pytest.mark.parametrize("fault", [DeviceLost(0, "gone"), CudaError("refused")])
def test_a_failed_copy_ends_the_others_and_unlocks_the_blocks(fault):
    nbytes = 4000 * staging.BLOCK
    device = LateDevice(5, fault)
    block = device.allocate(nbytes, "points")
    with pytest.raises(type(fault)) as raised:
        staging.copy_staged(device, block.address, np.zeros(nbytes, np.uint8))
    assert raised.value is fault
    assert not device.registered and device.copies < 4000
    block.free()


@pytest.mark.parametrize("refusal", [HostMemoryRefused("no"), CudaError("no")])
def test_where_memory_cannot_be_locked_nothing_is_copied(refusal, monkeypatch):
    device = LateDevice()

    def refuse(*_):
        raise refusal

    monkeypatch.setattr(device, "register", refuse)
    assert not staging.copy_staged(device, 0, random_array(10_000))
    assert device.copies == 0


def test_a_system_without_memory_for_the_blocks(monkeypatch):
    def refuse(nbytes):
        raise MemoryError

    monkeypatch.setattr(staging, "HostBuffer", refuse)
    assert not staging.copy_staged(LateDevice(), 0, random_array(10_000))


class Uploading(CudaDevice):
    """The upload of a CudaDevice, on late memory, with the driver's own copy noted."""

    def __init__(self, locks: bool) -> None:
        self.late, self.lost, self.errors, self.plain = LateDevice(), None, (), 0
        self.locks = locks
        runtime = SimpleNamespace(memcpy=self._plain, streamSynchronize=lambda stream: None)
        self.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
        self.allocate = self.late.allocate
        for name in ("use", "stream", "event", "copy", "record", "wait", "unregister"):
            setattr(self, name, getattr(self.late, name))

    def register(self, address, size_bytes):
        if not self.locks:
            raise HostMemoryRefused("no")
        self.late.register(address, size_bytes)

    def _plain(self, target, source, nbytes, kind):
        self.plain += 1
        EmulatedDevice.copy(self.late, target, source, nbytes, None)


@pytest.mark.parametrize(
    ("nbytes", "locks", "plain"), [(9_999, True, 1), (10_000, True, 0), (50_001, True, 0), (50_001, False, 1)]
)
def test_large_uploads_are_staged_unless_refused(nbytes, locks, plain, monkeypatch):
    monkeypatch.setattr("cuzk.gpu.device.STAGED_FROM", 10_000)
    device, array = Uploading(locks), random_array(nbytes)
    memory = device.upload(array, "points", behind_bytes=48)
    assert device.plain == plain
    assert memory.size_bytes == nbytes + 48 and np.array_equal(memory.array[:nbytes], array)
    memory.free()


def test_an_upload_that_fails_keeps_no_memory(monkeypatch):
    monkeypatch.setattr("cuzk.gpu.device.STAGED_FROM", 10_000)
    device = Uploading(True)
    device.late.fails_at, device.late.fault = 2, CudaError("refused")
    with pytest.raises(CudaError):
        device.upload(random_array(50_000))
    assert device.late.live_bytes() == 0

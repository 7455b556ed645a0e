"""Parts of the cuda device on an emulated GPU: sums cut to fit their buffer, splits that do not fit, memory that is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cuzk import native
from cuzk.errors import DeviceLost, OutOfMemoryError
from cuzk.gpu.arena import aligned
from cuzk.gpu.batch_add import BatchAdd
from cuzk.gpu.batch_add import plan_bytes as batch_add_bytes
from cuzk.gpu.device import KEEP_ALL, PINNED_BLOCK, CudaDevice
from cuzk.gpu.msm_plan import plan_msm
from cuzk.gpu.split import RowSplit, SplitPlan
from cuzk.groth16.gpu import assignment
from cuzk.groth16.gpu.proving_gpu import ProvingGpu
from cuzk.groth16.gpu.sums import Sums
from cuzk.groth16.load import load_key
from tests.unit.kernels.emulated import EmulatedDevice

FIXTURE = Path(__file__).parents[2] / "fixtures" / "chain1k"


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    return EmulatedDevice(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def key():
    return load_key(FIXTURE / "chain1k.zkey")


class Listed:
    """Some points of a key on a GPU, and a split of them."""

    def __init__(self, device: EmulatedDevice, points: np.ndarray, tail: int) -> None:
        rng = np.random.default_rng(len(points))
        kind = rng.permutation(len(points))
        self.rows = np.sort(kind[:tail]).astype(np.uint32)
        ones = np.zeros(len(points), bool)
        ones[kind[tail:][: len(points) // 2]] = True
        self.scalars = rng.integers(2, 2**62, (tail, 4), dtype=np.uint64)
        bitmap = np.packbits(ones, bitorder="little")
        bitmap = np.pad(bitmap, (0, -len(bitmap) % 4))
        self.gpu = ProvingGpu(device)
        self.blocks = [device.upload(a) for a in (points, bitmap, self.rows, self.scalars)]
        at = [block.address for block in self.blocks]
        self.gpu.points["a"] = at[0]
        self.split = RowSplit(at[1], int(ones.sum()), at[2], at[3], tail)
        self.ones_sum = native.batch_add_g1(points, bitmap)
        self.tail_sum = native.msm_g1(points[self.rows], self.scalars)

    def free(self) -> None:
        for block in self.blocks:
            block.free()


def least_bytes(n: int) -> int:
    """Of any MSM of n points in G1."""
    low, high = 0, 1 << 30
    while low < high:
        middle = (low + high) // 2
        try:
            plan_msm(n, "g1", middle, multiprocessors=1)
            high = middle
        except OutOfMemoryError:
            low = middle + 1
    return low


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_tail_in_pieces_and_ones_in_chunks(device, key, pieces):
    points = np.ascontiguousarray(key.a_query.points[:300])
    listed = Listed(device, points, 100)
    fewer = -(-100 // pieces)
    block = device.allocate(aligned(96 * fewer) + least_bytes(fewer), "temps")
    with Sums(listed.gpu, block) as sums:
        assert (sums._piece("g1", 100)[0] == 100) == (pieces == 1)
        assert np.array_equal(sums.tail("a", "g1", listed.split, len(points), mont=False)(), listed.tail_sum)
    block.free()
    whole = batch_add_bytes(320, "g1", selected=listed.split.n_ones, multiprocessors=1)
    block = device.allocate(whole if pieces == 1 else batch_add_bytes(160, "g1", selected=150, multiprocessors=1), "temps")
    with Sums(listed.gpu, block) as sums:
        assert np.array_equal(sums.ones("a", "g1", listed.split, len(points))(), listed.ones_sum)
    block.free()
    listed.free()


def test_a_tail_of_everything_is_used_where_it_lies(device, key):
    points = np.ascontiguousarray(key.a_query.points[:50])
    listed = Listed(device, points, 50)
    need = plan_msm(50, "g1", 1 << 30, multiprocessors=1).workspace_bytes
    block = device.allocate(need, "temps")  # no room to gather
    with Sums(listed.gpu, block) as sums:
        assert np.array_equal(sums.tail("a", "g1", listed.split, 50, mont=False)(), listed.tail_sum)
        assert not sums.ones("a", "g1", RowSplit(0, 0, 0, 0, 0), 50)().any()
    block.free()
    listed.free()


def test_sums_that_cannot_fit_say_so(device, key):
    listed = Listed(device, np.ascontiguousarray(key.a_query.points[:64]), 40)
    block = device.allocate(1000, "temps")
    with Sums(listed.gpu, block) as sums:
        with pytest.raises(OutOfMemoryError, match=r"MSM of .* needs at least"):
            sums.tail("a", "g1", listed.split, 64, mont=False)
        with pytest.raises(OutOfMemoryError, match="batch addition needs"):
            sums.ones("a", "g1", listed.split, 64)
    block.free()
    listed.free()


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("chunk", [320, 160, 32])
@pytest.mark.parametrize("on_host", [False, True])
def test_sums_of_neighbours_serve_a_list_and_its_chunks(device, key, group, chunk, on_host, monkeypatch):
    """Every chunk is handed the sums of its own pairs: they are taken, and are those of the whole list."""
    monkeypatch.setattr("cuzk.gpu.batch_add.FINISH_AT", 32)
    gpu, name = ProvingGpu(device), "a" if group == "g1" else "b_g2"
    query = key.query(name, "odd-coset")
    rows = min(301, len(query))  # the last chunk has an odd number of points
    few = dataclasses.replace(query, points=query.points[:rows])
    monkeypatch.setattr(type(key), "query", lambda self, wanted, quotient: few)
    monkeypatch.setattr(type(key), "h_points", lambda self, quotient: query.points[:3])
    monkeypatch.setattr(key, "b_g2_query", few)
    gpu.place_key(key, "odd-coset", "vram", with_b_g2=group == "g2", splits=False, pair_sums=True)
    assert gpu.first_sum == dict.fromkeys(("l", "a", "b_g1") + (("b_g2",) if group == "g2" else ()), rows)
    chosen = np.random.default_rng(rows).random(rows) < 0.7
    packed = np.packbits(chosen, bitorder="little")
    want = (native.batch_add_g1 if group == "g1" else native.batch_add_g2)(few.points, packed)
    bitmap = device.upload(np.pad(packed, (0, -len(packed) % 4)))
    shape = {"multiprocessors": 1, "pair_sums": True}
    need = batch_add_bytes(chunk, group, selected=min(chunk, chosen.sum() if not on_host else chunk), **shape)
    block = device.allocate(need + (aligned(-(-chunk // 8) + 4) if on_host else 0), "temps")
    launches = []
    monkeypatch.setattr("cuzk.groth16.gpu.sums.BatchAdd.run", noting(launches, BatchAdd.run))
    with Sums(gpu, block) as sums:
        if on_host:
            found = sums.ones_from_host(name, group, SimpleNamespace(ones=packed), rows)()
        else:
            found = sums.ones(name, group, RowSplit(bitmap.address, int(chosen.sum()), 0, 0, 0), rows)()
    assert np.array_equal(found, want)
    assert launches == [rows - first // 2 for first in range(0, rows, chunk)]
    block.free(), bitmap.free(), gpu.free()


def noting(sums, run):
    """`run` of a batch addition, which notes where the sums begin that it is given."""

    def noted(self, points, bitmap, stream, first_sum=None):
        assert self.plan.pair_sums
        sums.append(first_sum)
        return run(self, points, bitmap, stream, first_sum)

    return noted


def gpu_with_rows(device, key) -> ProvingGpu:
    gpu = ProvingGpu(device)
    gpu.place_key(key, "odd-coset", "vram", with_b_g2=True, splits=True)
    return gpu


def test_a_witness_of_field_elements_is_split_as_the_host_does(device, key):
    from cuzk.groth16.formats.wtns import WtnsFile
    from cuzk.groth16.prover import steps
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.groth16.prover.state import ProofState

    values = np.array(WtnsFile(FIXTURE / "chain1k.wtns").values)
    state = ProofState(key, "odd-coset", Blinding.from_seed(1), aux=values)
    steps.prep_msm(state)
    gpu, d_w = gpu_with_rows(device, key), device.upload(values)
    assert gpu.rows["b_g2"] is gpu.rows["b_g1"]  # one split serves both
    d_splits = device.allocate(4 * len(values) + 200 * (len(values) + 1024) + 2**17, "splits")
    found = assignment.prepare(gpu, values, d_w, d_splits)
    for name, split in found.items():
        want = state.split(name)
        assert (split.n_ones, split.n_tail) == (want.n_ones, len(want.tail_rows))
        bitmap = device.download(split.ones, np.empty(len(want.ones), np.uint8))
        assert np.array_equal(bitmap, want.ones)
        assert np.array_equal(device.download(split.tail_rows, np.empty(split.n_tail, np.uint32)), want.tail_rows)
        assert np.array_equal(device.download(split.tail_scalars, np.empty((split.n_tail, 4), np.uint64)), want.tail_scalars)
    d_splits.free()
    small = device.allocate(SplitPlan((len(values),) * 3, 0).total_bytes + 4096, "splits")
    with pytest.raises(OutOfMemoryError, match=r"neither 0 nor 1|the split of a witness needs"):
        assignment.prepare(gpu, values, d_w, small)
    small.free(), d_w.free(), gpu.free()


class Refusal(Exception):
    status = 2


class FakeRuntime:
    """The driver's allocator with `room` bytes; freed blocks of the pool stay in it until it is trimmed."""

    CUDARuntimeError = Refusal
    cudaMemPoolAttrReleaseThreshold, cudaDevAttrMemoryPoolsSupported = 4, 115

    def __init__(self, room: int) -> None:
        self.room, self.live, self.kept, self.locked = room, {}, 0, 0
        self.next = 0

    def malloc(self, size: int) -> int:
        if sum(self.live.values()) + self.kept + size > self.room:
            raise Refusal
        self.next += 1 << 40
        self.live[self.next] = size
        return self.next

    def mallocAsync(self, size: int, stream: int) -> int:
        if size <= self.kept:
            self.kept -= size
        return self.malloc(size)

    def free(self, address: int) -> None:
        del self.live[address]

    def freeAsync(self, address: int, stream: int) -> None:
        self.kept += self.live.pop(address)

    def memPoolTrimTo(self, pool: int, size: int) -> None:
        self.kept = 0

    def deviceGetDefaultMemPool(self, device: int) -> int:
        return 1

    def memPoolSetAttribute(self, pool: int, attribute: int, value: int) -> None:
        assert (attribute, value) == (4, KEEP_ALL)

    def memGetInfo(self) -> tuple[int, int]:
        return self.room - sum(self.live.values()) - self.kept, self.room

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        return 132

    def hostAlloc(self, size: int, flags: int) -> int:
        self.locked += size
        self._array = np.zeros(size, np.uint8)
        return self._array.ctypes.data

    def freeHost(self, address: int) -> None:
        self.locked -= PINNED_BLOCK


@pytest.fixture
def driver(monkeypatch):
    runtime = FakeRuntime(1000)
    stream = SimpleNamespace(ptr=0, synchronize=lambda: None)
    cuda = SimpleNamespace(
        runtime=runtime,
        driver=SimpleNamespace(CUDADriverError=Refusal),
        Stream=lambda non_blocking: stream,
        Device=lambda index: SimpleNamespace(use=lambda: None),
    )
    monkeypatch.setitem(__import__("sys").modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr("cuzk.gpu.device.module.require_device_arch", lambda index: "sm_90")
    return runtime, CudaDevice()


def test_freed_blocks_serve_the_next_and_go_back_before_an_allocation_fails(driver):
    runtime, device = driver
    first = device.allocate(600, "d_a", pooled=True)
    first.free()
    assert runtime.kept == 600  # kept for the next
    device.allocate(600, "d_a", pooled=True).free()
    assert runtime.kept == 600
    other = device.allocate(900, "a table")  # the pool's memory goes back for it
    assert runtime.kept == 0
    other.free()
    assert runtime.live == {}


def test_what_does_not_fit_names_need_and_level(driver):
    runtime, device = driver
    held = device.allocate(700, "d_a", pooled=True)
    for pooled in (True, False):
        with pytest.raises(OutOfMemoryError, match=r"VRAM: d_bc needs .* are free"):
            device.allocate(400, "d_bc", pooled=pooled)
    held.free()
    device.close()
    assert runtime.live == {} and runtime.kept == 0


def test_small_pinned_blocks_are_kept_until_the_device_closes(driver):
    runtime, device = driver
    for size in (8, 4000):
        block = device.pinned(size)
        assert block.array.nbytes == size
        block.free()
    assert runtime.locked == PINNED_BLOCK
    device.close()
    assert runtime.locked == 0


def test_modules_are_compiled_before_a_run(driver, monkeypatch):
    from cuzk.exec.cuda import _modules
    from cuzk.gpu.module import kernel_root
    from cuzk.model.scenario import load_scenario
    from cuzk.pipeline.program import bind

    base = load_scenario(kernel_root().parent / "scenarios" / "own-h200.yaml")

    def run_with(**policy):
        return bind(base.with_policy(**policy))

    compiled: list[tuple[str, str]] = []
    monkeypatch.setattr("cuzk.gpu.device.module.cubin", lambda name, arch: compiled.append((name, arch)))
    driver[1].compile(_modules(run_with(witness="field")))
    assert len(compiled) == 9 and all((kernel_root() / f"{name}.cu").exists() and arch == "sm_90" for name, arch in compiled)
    less = _modules(run_with(b_g2_msm="cpu", matvec="cpu", prep_msm="cpu", witness="field"))
    assert set(less) < {name for name, _ in compiled} and not any("g2" in name or "r1cs" in name for name in less)


def test_what_the_pool_keeps_goes_back_before_the_limit_is_passed(driver):
    runtime, device = driver
    device.limit_bytes = 700
    device.allocate(600, "a buffer", pooled=True).free()
    assert runtime.kept == 600  # the next may use it
    small = device.allocate(300, "another", pooled=False)
    assert runtime.kept == 0 and runtime.live
    small.free()


def test_an_event_is_reached_or_not_or_tells_a_fault(driver):
    runtime, device = driver

    class Fault(Refusal):
        def __init__(self, status):
            self.status = status

    runtime.CUDARuntimeError = Fault
    device.errors = (Fault,)
    answers = {1: 0, 2: 600}
    runtime.eventQuery = lambda event: answers[event]
    assert device.reached(SimpleNamespace(ptr=1)) and not device.reached(SimpleNamespace(ptr=2))
    answers[1] = 700  # an illegal address: the context is gone
    with pytest.raises(DeviceLost):
        device.reached(SimpleNamespace(ptr=1))
    with pytest.raises(DeviceLost):  # and is not asked again
        device.reached(SimpleNamespace(ptr=2))


def test_what_a_kernel_may_take_is_never_lowered(driver):
    _, device = driver
    given = []

    class Kernel:
        def __setattr__(self, name, value):
            given.append((name, value))

    kernel = Kernel()
    for shared_bytes in (60_000, 90_000, 70_000, 90_000):
        device._allow_shared(kernel, shared_bytes)
    assert given == [("max_dynamic_shared_size_bytes", 60_000), ("max_dynamic_shared_size_bytes", 90_000)]

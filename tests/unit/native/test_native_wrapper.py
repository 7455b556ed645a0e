"""The wrapper: which arrays cross, which are refused; loading of the library."""

import os
import subprocess
import sys

import numpy as np
import pytest

from cuzk import native
from cuzk.errors import HardwareMissing
from cuzk.native import _library
from tests.unit.native import native_reference as ref

VARIANTS = "best"

FR = ref.fr_mont(range(1, 9))


def unaligned(array):
    """The same values at an odd address, read-only."""
    raw = np.empty(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    view.flags.writeable = False
    assert view.ctypes.data % 2 == 1
    return view


def test_unaligned_read_only_inputs(group):
    points = group.array([*ref.multiples(group.field, 20), None])
    scalars = ref.ints_to_array(range(21))
    for op in (group.msm, group.scale):
        assert np.array_equal(op(unaligned(points), unaligned(scalars)), op(points, scalars))
    assert np.array_equal(group.compress(unaligned(points)), group.compress(points))
    assert np.array_equal(group.add(unaligned(points), points), group.add(points, points))
    assert group.check(unaligned(points)) == -1
    assert np.array_equal(native.fr_mul(unaligned(FR), unaligned(FR)), native.fr_mul(FR, FR))
    big = np.tile(FR, (16, 1))
    want = native.ntt(big.copy())
    odd = unaligned(big)
    odd.flags.writeable = True
    assert np.array_equal(native.ntt(odd), want)


def test_memory_mapped_input(tmp_path, group):
    points = group.array(ref.multiples(group.field, 30))
    file = tmp_path / "points"
    file.write_bytes(b"abc" + points.tobytes())
    mapped = np.memmap(file, np.uint8, "r")[3:].view(np.uint64).reshape(points.shape)
    scalars = ref.ints_to_array(range(30))
    assert np.array_equal(group.msm(mapped, scalars), group.msm(points, scalars))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (FR.astype(np.int64), TypeError),
        (FR.astype(">u8"), TypeError),
        (FR.tolist(), TypeError),
        (FR.view(np.uint8), TypeError),
        (FR.reshape(-1), ValueError),
        (FR.reshape(-1, 8), ValueError),
        (FR[::2], ValueError),
        (np.asfortranarray(FR), ValueError),
    ],
)
def test_wrong_arrays_are_refused(bad, error):
    with pytest.raises(error, match=r"^a"):
        native.fr_mul(bad, FR)
    with pytest.raises(error, match=r"^a_mont"):
        native.ntt(bad)
    with pytest.raises(error, match=r"^scalars_std"):
        native.msm_g1(np.zeros((8, 12), np.uint64), bad)


def test_wrong_sizes_are_refused(group):
    points = group.array(ref.multiples(group.field, 4))
    with pytest.raises(ValueError, match="4 rows"):
        group.msm(points, FR)
    with pytest.raises(ValueError, match="expected 4 rows or 1"):
        group.scale(points, FR)
    with pytest.raises(ValueError, match="too few"):
        group.batch_add(np.repeat(points, 3, axis=0), np.zeros(1, np.uint8))
    with pytest.raises(ValueError, match="power of two"):
        group.group_ntt(points[:3].copy())
    with pytest.raises(ValueError, match="shape"):
        group.msm(points[:, :6].copy(), FR[:4])
    with pytest.raises(ValueError, match="rows"):
        native.fr_mul(FR, FR[:3].copy())
    with pytest.raises(ValueError, match="power of two"):
        native.ntt(FR[:3].copy())
    with pytest.raises(ValueError, match="power of two"):
        native.ntt(np.empty((0, 4), np.uint64))
    with pytest.raises(ValueError, match="5 or 7"):
        native.ntt(FR.copy(), root=6)
    with pytest.raises(ValueError, match="threads"):
        native.fr_mul(FR, FR, threads=0)
    with pytest.raises(ValueError, match="read-only"):
        native.ntt(unaligned(FR))
    with pytest.raises(ValueError, match="out: read-only"):
        native.fr_mul(FR, FR, out=unaligned(FR))
    with pytest.raises(ValueError, match="out: expected 8 rows"):
        native.fr_mul(FR, FR, out=np.empty((7, 4), np.uint64))
    with pytest.raises(ValueError, match="row_ptr"):
        native.matvec_csr(np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32), FR, FR)


def test_info_names_the_variant(variant):
    found = native.info()
    assert found["variant"] == variant and found["abi_version"] == _library.ABI_VERSION
    assert found["threads"] == len(os.sched_getaffinity(0))


def test_unknown_variant_is_refused(monkeypatch):
    monkeypatch.setenv("CUZK_NATIVE_VARIANT", "sse9")
    _library.load.cache_clear()
    with pytest.raises(HardwareMissing, match="sse9"):
        native.fr_mul(FR, FR)


def test_missing_library_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(_library, "_directories", lambda: [tmp_path])
    _library.load.cache_clear()
    with pytest.raises(HardwareMissing, match=r"python -m cuzk\.native\.build"):
        native.fr_mul(FR, FR)


def test_broken_library_names_the_command(monkeypatch, tmp_path):
    (tmp_path / "libcuzk_portable.so").write_bytes(b"not a library")
    monkeypatch.setattr(_library, "_directories", lambda: [tmp_path])
    _library.load.cache_clear()
    with pytest.raises(HardwareMissing, match=r"python -m cuzk\.native\.build"):
        native.fr_mul(FR, FR)


def test_a_library_without_the_function_names_the_command():
    with pytest.raises(HardwareMissing, match=r"lacks fr_cube; .* python -m cuzk\.native\.build"):
        _library.call("fr_cube")


def test_import_does_not_load_the_library():
    code = "import cuzk.native, cuzk.native._library as l; raise SystemExit(l.load.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_gil_is_released():
    """Another Python thread runs while a call is in the library."""
    import threading

    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)

    n = 1 << 16
    array = np.tile(FR, (n // 8, 1))
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # on a busy machine the other thread may not get a processor during one call
        progressed = False
        for _ in range(200):
            before = len(ticks)
            native.ntt(array, threads=1)
            progressed = len(ticks) > before + 100
            if progressed:
                break
        assert progressed
    finally:
        stop.set()
        thread.join()

"""Sums of a key that passes by in chunks: the device's kernels, their streams in any order that events allow."""

from __future__ import annotations

import random
import shutil
import threading

import numpy as np
import pytest

native = pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import DeviceLost  # noqa: E402
from cuzk.gpu.feed import LockedFeed  # noqa: E402
from cuzk.gpu.key_ring import KeyRing, ListPass, cut  # noqa: E402
from cuzk.gpu.link import Link  # noqa: E402
from cuzk.gpu.matvec import mask_words  # noqa: E402
from cuzk.gpu.msm import Msm  # noqa: E402
from cuzk.gpu.msm_plan import plan_msm  # noqa: E402
from cuzk.gpu.split import RowSplit  # noqa: E402
from cuzk.gpu.turns import Turns  # noqa: E402
from cuzk.groth16.gpu.key_pass import KeyPass  # noqa: E402

from .queued import QueuedDevice  # noqa: E402
from .test_emulated_msm import R, host_msm, scalars, some_points  # noqa: E402

CHUNK = 32


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return tmp_path_factory.mktemp("emulated")


@pytest.mark.parametrize("eager", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "digit_bits"), [(20, 5), (32, 4), (150, 6)])
def test_an_msm_of_points_that_pass_by(kernels, n, digit_bits, eager):
    device = QueuedDevice(kernels, n, eager)
    rng = random.Random(n)
    points, values = some_points("g1", n, n), scalars([rng.randrange(R) for _ in range(n)])
    values[rng.randrange(n)] = 0
    places, held = device.allocate(2 * CHUNK * 96, "ring"), device.upload(values)
    ring, turns = KeyRing(device, LockedFeed(device), places.address, CHUNK * 96, 2), Turns(device)
    h = ListPass(ring, cut("h", points, CHUNK))
    plan = plan_msm(n, "g1", 1 << 30, residency="streamed", max_chunk=CHUNK, digit_bits=digit_bits, multiprocessors=1)
    for _ in range(2):
        msm = Msm(device, plan)
        with h.alone, turns.turn() as turn:
            handle = msm.run_streamed(h.walk(turn.stream, turn.aside), held.address, turn.stream, pause=turn.pause)
        assert np.array_equal(handle.result(), host_msm("g1", points, values))
        turns.finish()
        msm.free()
    for block in (places, held):
        block.free()
    assert device.idle()


class Set:
    """A witness of one list each in G1 and G2, split."""

    def __init__(self, device, lists, seed, ones=0.5, tail=0.1):
        rng = np.random.default_rng(seed)
        self.lists, self.splits, self.want, self.tails, self.blocks = lists, {}, {}, {}, []
        for name, points in lists.items():
            kind = rng.random(len(points))
            is_one, rows = kind < ones, np.flatnonzero(kind > 1 - tail).astype(np.uint32)
            bits, tail_rows = device.upload(mask_words(is_one)), device.upload(rows)
            self.blocks += [bits, tail_rows]
            self.splits[name] = RowSplit(bits.address, int(is_one.sum()), tail_rows.address, 0, len(rows))
            values = np.zeros((len(points), 4), np.uint64)
            values[is_one, 0] = 1
            self.want[name] = host_msm("g2" if name == "b_g2" else "g1", points, values)
            self.tails[name] = points[rows]

    def check(self, device, ride):
        for name, points in self.lists.items():
            assert np.array_equal(ride.sums[name], self.want[name]), name
            want = self.tails[name]
            got = device.download(ride.tails[name], np.empty((len(want), points.shape[1]), np.uint64))
            assert np.array_equal(got, want), name


class Case:
    def __init__(self, kernels, seed, eager=0.5, resident=False, **device):
        self.device = QueuedDevice(kernels, seed, eager, **device)
        self.lists = {"l": some_points("g1", 140, 1), "a": some_points("g1", 70, 2), "b_g2": some_points("g2", 50, 3)}
        sizes = {"g1": CHUNK, "g2": CHUNK}
        work = self.device.allocate(KeyPass.workspace_bytes(sizes, 1), "work")
        places = self.device.allocate(3 * CHUNK * 192, "ring")
        stays = self.device.upload(self.lists["a"])
        self.blocks = [work, places, stays]
        self.link = Link(self.device, LockedFeed(self.device))
        ring = KeyRing(self.device, self.link.lane(1), places.address, CHUNK * 192, 3)
        chunks = {n: cut(n, p, CHUNK, stays.address, len(p) if resident and n == "a" else 0) for n, p in self.lists.items()}
        self.ring, self.turns = ring, Turns(self.device)
        self.key_pass = KeyPass(self.turns, ring, chunks, work.address)

    def ride(self, one):
        block = self.device.allocate(self.key_pass.ride_bytes(one.splits), "a ride")
        try:
            one.check(self.device, self.key_pass.ride(one.splits, block.address))
        finally:
            self.turns.finish()
            block.free()

    def close(self):
        self.key_pass.close()
        self.link.close()
        for block in self.blocks:
            block.free()


@pytest.mark.parametrize("resident", [False, True])
def test_a_set_alone_and_again(kernels, resident):
    case = Case(kernels, 1, resident=resident)
    first, second = Set(case.device, case.lists, 1), Set(case.device, case.lists, 2)
    case.ride(first)
    whole = case.ring.fetched_bytes
    assert whole == sum(p.nbytes for n, p in case.lists.items() if not (resident and n == "a"))
    case.ride(second)
    assert case.ring.fetched_bytes - whole < whole  # it begins with what is there
    case.close()


@pytest.mark.parametrize(("ones", "tail"), [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)])
def test_lists_without_ones_or_without_a_tail(kernels, ones, tail):
    case = Case(kernels, 2)
    case.ride(Set(case.device, case.lists, 3, ones, tail))
    case.close()


@pytest.mark.parametrize("seed", range(3))
def test_sets_that_get_on_at_any_time_share_what_passes(kernels, seed):
    case = Case(kernels, seed, eager=seed / 2)
    sets, errors = [Set(case.device, case.lists, 10 * seed + i) for i in range(4)], []

    def go(one):
        try:
            case.ride(one)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=go, args=(one,)) for one in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and not any(thread.is_alive() for thread in threads)
    case.close()
    assert case.device.idle()


@pytest.mark.parametrize("fails_at", [1, 3, 6])
def test_a_copy_that_fails_fails_who_rides_and_the_next_one_is_served(kernels, fails_at):
    case = Case(kernels, 5, fails_at=fails_at, fault=DeviceLost(0, "a test"))
    one = Set(case.device, case.lists, 7)
    with pytest.raises(DeviceLost):
        case.ride(one)
    case.ride(one)
    case.close()

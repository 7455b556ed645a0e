"""Sums of a key that passes by in chunks on a GPU: several streams, several riders, from locked memory and any other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from cuzk.gpu.feed import LockedFeed, StagedFeed
from cuzk.gpu.key_ring import KeyRing, ListPass, cut
from cuzk.gpu.locking import lock_in_place, locked_copy
from cuzk.gpu.matvec import mask_words
from cuzk.gpu.msm import Msm
from cuzk.gpu.msm_plan import plan_msm
from cuzk.gpu.split import RowSplit
from cuzk.gpu.turns import Turns
from cuzk.groth16.gpu.key_pass import KeyPass

from .test_msm import host_msm, random_scalars, some_points

pytestmark = pytest.mark.gpu


def feed_of(device, kind, arrays):
    """The feed, what it reads, and what to free at the end."""
    if kind == "staged":
        return StagedFeed(device), arrays, []
    locked = (lock_in_place if kind == "in-place" else locked_copy)(device, arrays)
    if locked is None:
        pytest.skip("the driver does not lock these pages where they lie")
    return LockedFeed(device, locked.borders), locked.arrays, [locked]


@pytest.mark.parametrize("kind", ["staged", "in-place", "copy"])
@pytest.mark.parametrize(("n", "chunk"), [(3000, 4096), (5000, 1024), (150_000, 1 << 14)])
def test_an_msm_of_points_that_pass_by(device, kind, n, chunk):
    rng = np.random.default_rng()
    points, scalars = some_points("g1", n, rng), random_scalars(n, rng)
    want = host_msm("g1", points, scalars)
    feed, (points,), owned = feed_of(device, kind, [points])
    places, held = device.allocate(2 * chunk * 96, "ring"), device.upload(scalars)
    turns, h = Turns(device), ListPass(KeyRing(device, feed, places.address, chunk * 96, 2), cut("h", points, chunk))
    plan = plan_msm(n, "g1", 1 << 30, residency="streamed", max_chunk=chunk, multiprocessors=device.multiprocessors)
    for _ in range(3):
        msm = Msm(device, plan)
        with h.alone, turns.turn() as turn:
            handle = msm.run_streamed(h.walk(turn.stream, turn.aside), held.address, turn.stream, pause=turn.pause)
        assert np.array_equal(handle.result(), want)
        msm.free()
    feed.close()
    for block in (places, held, *owned):
        block.free()


class Set:
    """A witness of each list, split."""

    def __init__(self, device, lists, rng):
        self.lists, self.splits, self.want, self.tails, self.blocks = lists, {}, {}, {}, []
        for name, points in lists.items():
            kind = rng.random(len(points))
            is_one, rows = kind < 0.4, np.flatnonzero(kind > 0.98).astype(np.uint32)
            bits, tail_rows = device.upload(mask_words(is_one)), device.upload(rows)
            self.blocks += [bits, tail_rows]
            self.splits[name] = RowSplit(bits.address, int(is_one.sum()), tail_rows.address, 0, len(rows))
            values = np.zeros((len(points), 4), np.uint64)
            values[is_one, 0] = 1
            self.want[name] = host_msm("g2" if name == "b_g2" else "g1", points, values)
            self.tails[name] = points[rows]


@pytest.mark.parametrize("kind", ["staged", "copy"])
@pytest.mark.parametrize("n", [1500, 60_000])
def test_sets_that_get_on_at_any_time_share_what_passes(device, kind, n):
    rng, chunk = np.random.default_rng(), max(64, n // 10 // 64 * 64)
    lists = {"l": some_points("g1", n, rng), "a": some_points("g1", n // 2, rng), "b_g2": some_points("g2", n // 4, rng)}
    sets = [Set(device, lists, rng) for _ in range(4)]
    feed, arrays, owned = feed_of(device, kind, list(lists.values()))
    held = dict(zip(lists, arrays, strict=True))
    sizes = {"g1": chunk, "g2": chunk // 2}
    work = device.allocate(KeyPass.workspace_bytes(sizes, device.multiprocessors), "work")
    places = device.allocate(3 * chunk * 96, "ring")
    chunks = {name: cut(name, points, sizes["g2" if name == "b_g2" else "g1"]) for name, points in held.items()}
    turns = Turns(device)
    key_pass = KeyPass(turns, KeyRing(device, feed, places.address, chunk * 96, 3), chunks, work.address)
    errors = []

    def go(one):
        try:
            device.use()
            for _ in range(3):
                block = device.allocate(key_pass.ride_bytes(one.splits), "a ride")
                ride = key_pass.ride(one.splits, block.address)
                for name, want in one.want.items():
                    assert np.array_equal(ride.sums[name], want), name
                    got = device.download(ride.tails[name], np.empty_like(one.tails[name]))
                    assert np.array_equal(got, one.tails[name]), name
                block.free()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=go, args=(one,)) for one in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    key_pass.close()
    feed.close()
    for block in (work, places, *owned, *(b for one in sets for b in one.blocks)):
        block.free()

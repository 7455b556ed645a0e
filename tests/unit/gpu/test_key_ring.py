"""Chunks of a list through a few places of device memory, on a device whose streams run in any order that their events allow."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.errors import DeviceLost
from cuzk.gpu import feed as feeds
from cuzk.gpu.feed import LockedFeed, StagedFeed
from cuzk.gpu.key_ring import KeyRing, ListPass, cut
from cuzk.gpu.link import Link
from tests.unit.kernels.queued import QueuedDevice

POINT = 96


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(feeds, "BLOCK", 1 << 9)


def some_list(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 63, (n, 12), dtype=np.uint64)


def feed_of(device, kind, points):
    if kind == "link":
        return Whole(device, LockedFeed(device))
    if kind == "staged":
        return StagedFeed(device, threads=3)
    start = points.ctypes.data
    return LockedFeed(device, [start + 500, start + 1000, start + 1000 + 4096])


class Whole:
    """The first lane of a link, and all that is behind it."""

    def __init__(self, device, feed):
        self._link, self._feed = Link(device, feed), feed
        self.send = self._link.lane(0).send

    def close(self):
        self._link.close()
        self._feed.close()


def walk(device, stream, list_pass, chunk):
    """What arrives, copied on the stream that works, in the order in which it came."""
    out, came = device.allocate(200 * POINT, "copy"), []
    for first, count, address in list_pass.walk(stream):
        device.copy(out.address + first * POINT, address, count * POINT, stream)
        came.append(first // chunk)
    event = device.event()
    device.record(event, stream)
    device.wait(event)
    found = out.array.copy()
    out.free()
    return found, came


@pytest.mark.parametrize("kind", ["locked", "staged", "link"])
@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("eager", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("resident", [0, 64])
def test_every_pass_brings_every_point_once(kind, slots, eager, resident):
    for seed in range(4):
        device, points, chunk = QueuedDevice(None, seed, eager), some_list(200), 32
        feed = feed_of(device, kind, points)
        stays, places = device.upload(points[: max(resident, 1)]), device.allocate(slots * chunk * POINT, "ring")
        ring = KeyRing(device, feed, places.address, chunk * POINT, slots)
        chunks = cut("h", points, chunk, stays.address, resident)
        list_pass, stream = ListPass(ring, chunks), device.stream()
        fetched = []
        for _ in range(3):
            found, came = walk(device, stream, list_pass, chunk)
            assert np.array_equal(found[: points.nbytes], points.view(np.uint8).reshape(-1))
            fetched.append(ring.fetched_bytes)
            assert sorted(came) == list(range(7))
        assert came == [0, 1, 2, 3, 4, 5, 6]  # forwards, backwards, forwards
        # what a pass leaves is where the next one begins
        assert fetched[0] == points.nbytes - resident * POINT
        assert fetched[1] - fetched[0] < fetched[0]
        feed.close()
        for block in (stays, places):
            block.free()
        assert device.idle() and not device.registered and device.live_bytes() == 0


@pytest.mark.parametrize("kind", ["locked", "staged", "link"])
@pytest.mark.parametrize("fails_at", [1, 2, 5, 9, 40])
def test_a_copy_that_fails_fails_the_pass_and_the_next_one_is_whole(kind, fails_at):
    device, points, chunk = QueuedDevice(None, fails_at, fails_at=fails_at, fault=DeviceLost(0, "a test")), some_list(200), 32
    feed, places = feed_of(device, kind, points), device.allocate(2 * chunk * POINT, "ring")
    list_pass, stream = (
        ListPass(KeyRing(device, feed, places.address, chunk * POINT, 2), cut("h", points, chunk)),
        device.stream(),
    )
    failures = 0
    for _ in range(3):
        try:
            found, _ = walk(device, stream, list_pass, chunk)
            assert np.array_equal(found[: points.nbytes], points.view(np.uint8).reshape(-1))
        except DeviceLost:
            failures += 1
    assert failures == (device.copies >= fails_at)
    feed.close()
    assert not device.registered


def test_a_walk_that_is_left_gives_its_places_back():
    device, points, chunk = QueuedDevice(None), some_list(200), 32
    feed, places = LockedFeed(device), device.allocate(2 * chunk * POINT, "ring")
    list_pass, stream = (
        ListPass(KeyRing(device, feed, places.address, chunk * POINT, 2), cut("h", points, chunk)),
        device.stream(),
    )
    for left_after in range(4):
        steps = list_pass.walk(stream)
        for _ in range(left_after):
            next(steps)
        steps.close()
    found, _ = walk(device, stream, list_pass, chunk)
    assert np.array_equal(found[: points.nbytes], points.view(np.uint8).reshape(-1))


def test_the_first_lane_goes_before_the_second_and_nothing_before_its_place_is_free():
    """Copies are told apart by their sizes; the place of the one in lane 0 is free only later."""
    device, order = QueuedDevice(None, eager=0.0), []

    class Told(LockedFeed):
        def send(self, target, source, after):
            assert after is None
            order.append(source.nbytes)
            return super().send(target, source, after)

    feed, source, block = Told(device), some_list(64).reshape(-1).view(np.uint8), device.allocate(6144, "places")
    place = device.event()
    place.recorded = 1  # and not reached
    link = Link(device, feed)
    late = link.lane(0).send(block.address, source[:11], place)
    for sent in [link.lane(1).send(block.address + 64 * (i + 1), source[: 20 + i], None) for i in range(3)]:
        sent.wait()
    assert order == [20, 21, 22]  # they do not wait for the first lane's place
    place.reached = 1
    late.wait()
    assert order == [20, 21, 22, 11]
    link.close()
    feed.close()
    block.free()

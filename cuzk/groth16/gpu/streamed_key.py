"""A key whose lists lie in the host's memory, as far as there is no room for them on the GPU: its points come in chunks, ahead of
their use, while the GPU works on those before.

The list of h passes by once for every set, beside its own arithmetic; the lists that the witness multiplies pass by for all sets
that ride (key_pass.py). All work of the GPU is queued on one stream, in turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout
from cuzk.gpu.feed import Feed, LockedFeed, StagedFeed
from cuzk.gpu.key_ring import Chunk, KeyRing, ListPass, cut
from cuzk.gpu.link import Link
from cuzk.gpu.msm_plan import POINT_BYTES, Group
from cuzk.gpu.turns import Turns
from cuzk.groth16.gpu.key_pass import KeyPass

LARGEST_CHUNK, SMALLEST_CHUNK = 1 << 24, 32
"""Points of h. More at a time cost the MSM less, and more memory."""
H_SLOTS, PASS_SLOTS = 2, 3
"""One chunk of h is worked on for longer than the next one takes to come. One of the others is done long before: the third place
keeps the link busy while the GPU is at something else."""


LARGEST_RING = 6 << 30
"""Bytes of VRAM for the ring, at most: what there is beyond them holds points that stay."""


def max_chunk(longest: int) -> int:
    """Points of a chunk of h that are worth it for a list of so many: a quarter, in whole words of a bitmap."""
    return min(LARGEST_CHUNK, max(SMALLEST_CHUNK, longest // 4 // (2 * SMALLEST_CHUNK) * 2 * SMALLEST_CHUNK))


@dataclass(frozen=True)
class RingPlan:
    """Places in device memory for the chunks of a key, and the temporaries of those who ride."""

    h_points: int
    multiprocessors: int

    @property
    def pass_points(self) -> dict[Group, int]:
        """Points of a chunk of the other lists: half of the bytes of one of h."""
        g1 = whole(self.h_points // 2)
        return {"g1": g1, "g2": whole(g1 // 2)}

    @property
    def pass_slot_bytes(self) -> int:
        return max(POINT_BYTES[group] * n for group, n in self.pass_points.items())

    @property
    def layout(self) -> Layout:
        work = KeyPass.workspace_bytes(self.pass_points, self.multiprocessors)
        return Layout([
            ("h", H_SLOTS * POINT_BYTES["g1"] * self.h_points), ("pass", PASS_SLOTS * self.pass_slot_bytes), ("work", work)
        ])  # fmt: skip

    @property
    def total_bytes(self) -> int:
        return self.layout.total_bytes


def whole(points: int) -> int:
    """Points rounded down to whole words of a bitmap; one word at least."""
    return max(SMALLEST_CHUNK, points // SMALLEST_CHUNK * SMALLEST_CHUNK)


def plan_ring(room_bytes: int, multiprocessors: int, h_points: int = LARGEST_CHUNK) -> RingPlan:
    """The largest chunks, of `h_points` or halves of it, whose ring fits. OutOfMemoryError names the need of the smallest."""
    plan = RingPlan(max(SMALLEST_CHUNK, h_points), multiprocessors)
    while plan.total_bytes > room_bytes:
        if plan.h_points <= SMALLEST_CHUNK:
            raise OutOfMemoryError(
                f"VRAM: to stream a key takes {plan.total_bytes / 2**30:.2f} GiB, {room_bytes / 2**30:.2f} GiB are granted"
            )
        plan = RingPlan(whole(plan.h_points // 2), multiprocessors)
    return plan


def resident_points(lists: Mapping[str, np.ndarray], plan: RingPlan, room_bytes: int) -> dict[str, int]:
    """The number of points of each list that stay on the GPU, in whole chunks, where there is room for so many bytes.

    A byte that stays saves the same wherever it lies; h goes first, since it comes once a set, and not for several at a time.
    """
    found, left = {}, room_bytes
    for name, points in lists.items():
        chunk = plan.h_points if name == "h" else plan.pass_points["g2" if name == "b_g2" else "g1"]
        size = points.itemsize * points.shape[1]
        n = len(points) if len(points) * size <= left else left // size // chunk * chunk
        found[name] = n
        left -= n * size
    return found


class StreamedKey:
    """The lists of a key for one GPU. `free` once nobody proves any more."""

    def __init__(self, device: Any, turns: Turns, lists: Mapping[str, np.ndarray], plan: RingPlan, *, locked: bool,
                 borders: list[int] | None = None, room_bytes: int = 0) -> None:  # fmt: skip
        """`lists`: h, and those that the witness multiplies, in the host's memory; `locked`: page-locked there. `room_bytes` of
        device memory hold what can stay. OutOfMemoryError."""
        self.plan, self._owned = plan, list[Any]()
        self._feed: Feed | None = None
        self._link: Link | None = None
        self.resident_bytes = 0
        self.key_pass: KeyPass | None = None
        try:
            ring = device.allocate(plan.total_bytes, "the ring of a streamed key")
            self._owned.append(ring)
            at = plan.layout.at(ring.address)
            stay = resident_points(lists, plan, room_bytes)
            chunks = {name: self._cut(device, name, points, stay[name]) for name, points in lists.items()}
            self._feed = LockedFeed(device, borders or ()) if locked else StagedFeed(device)
            self._link = Link(device, self._feed)
            # the list of h is waited for by kernels, the others by whoever has time
            self._rings = [
                KeyRing(device, self._link.lane(0), at["h"], plan.h_points * POINT_BYTES["g1"], H_SLOTS),
                KeyRing(device, self._link.lane(1), at["pass"], plan.pass_slot_bytes, PASS_SLOTS),
            ]
            self.h = ListPass(self._rings[0], _joined(chunks.pop("h")))
            self.h_part = max(plan.h_points, stay["h"])
            self.key_pass = KeyPass(turns, self._rings[1], chunks, at["work"])
        except BaseException:
            self.free()
            raise

    def _cut(self, device: Any, name: str, points: np.ndarray, stay: int) -> Any:
        chunk = self.plan.h_points if name == "h" else self.plan.pass_points["g2" if name == "b_g2" else "g1"]
        address = 0
        if stay:
            memory = device.upload(points[:stay], f"a part of the key's {name} points")
            self._owned.append(memory)
            self.resident_bytes += memory.size_bytes
            address = memory.address
        return cut(name, points, chunk, address, stay)

    @property
    def fetched_bytes(self) -> int:
        """That came over the link so far."""
        return sum(ring.fetched_bytes for ring in self._rings)

    def free(self) -> None:
        if self.key_pass is not None:
            self.key_pass.close()
        if self._link is not None:
            self._link.close()
        if self._feed is not None:
            self._feed.close()
        for memory in self._owned:
            memory.free()
        self._owned, self._link, self._feed = [], None, None


def _joined(chunks: list[Chunk]) -> list[Chunk]:
    """The same with all that stays as one chunk: an MSM takes as many points at once as it can."""
    stay, pass_by = [c for c in chunks if c.resident], [c for c in chunks if not c.resident]
    if not stay:
        return pass_by
    return [Chunk(stay[0].list, stay[0].first, sum(c.count for c in stay), None, stay[0].resident), *pass_by]

"""MSM and batch addition, checked by a closed form: the points are (a + i d) G for secret random a and d.

So sum k_i P_i = (a sum k_i + d sum i k_i) G, which exact integer sums and one multiplication of the generator give.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cuzk import native
from cuzk.gpu.arena import Layout
from cuzk.gpu.batch_add import BatchAdd, plan_batch_add
from cuzk.gpu.msm import Msm
from cuzk.gpu.msm_plan import PAIR_BLOCKS_PER_SM, PAIR_THREADS, POINT_BYTES, plan_msm
from cuzk.gpu.segments import REF_POINT, add_pairs, list_pairs
from cuzk.gpu.tables import build_pair_sums, build_tables
from cuzk.groth16.field import FR_MODULUS as R

from . import Case

# Rates of one H200 (docs/performance.md): Fq multiplications and squarings, 10^9 a second.
MUL_RATE, SQR_RATE = 27.3e9, 33.8e9
# One affine addition with its share of Montgomery's trick: 5M + 1S. In Fq2 a multiplication is 3 and a squaring 2.
ADDITION_S = {"g1": 5 / MUL_RATE + 1 / SQR_RATE, "g2": 17 / MUL_RATE}
FIRST = 1024


def std(value: int) -> np.ndarray:
    return np.frombuffer((value % R).to_bytes(32, "little"), dtype=np.uint64).reshape(1, 4)


def multiple(group: str, value: int) -> np.ndarray:
    return (native.fixed_base_g1 if group == "g1" else native.fixed_base_g2)(std(value))


class Progression:
    """n distinct points (a + i d) G on the device, by doubling the filled part: P[m + i] = P[i] + m d G.

    `room`: the block is large enough for so many points."""

    def __init__(self, device: Any, group: str, n: int, rng: np.random.Generator, room: int = 0) -> None:
        self.a, self.d = (int.from_bytes(rng.bytes(40), "little") % R for _ in range(2))
        self.group, size = group, POINT_BYTES[group]
        self.memory = device.allocate(max(n + 1, room) * size, f"{n} points")
        base = self.memory.address
        self.pair_blocks, self.batch = device.multiprocessors * PAIR_BLOCKS_PER_SM, 64
        scratch = 48 * self.pair_blocks * PAIR_THREADS * self.batch
        layout = Layout([("pairs", 8 * max(n // 2, FIRST)), ("count", 4), ("ticket", 4), ("scratch", scratch)])
        work = device.allocate(layout.total_bytes, "making points")
        at, stream = layout.at(work.address), device.stream()
        done = device.event()

        first = np.concatenate([std(self.a + i * self.d) for i in range(min(n, FIRST))])
        points = (native.fixed_base_g1 if group == "g1" else native.fixed_base_g2)(first)
        device.copy(base, points.ctypes.data, points.nbytes, stream)
        filled = len(points)
        while filled < n:
            step = multiple(group, filled * self.d)
            device.copy(base + n * size, step.ctypes.data, size, stream)
            count = min(filled, n - filled)
            list_pairs(device, stream, at, count, at["count"], second=REF_POINT | n, step=0)
            add_pairs(device, stream, self, at, at["count"], points=base, pool=base + filled * size)
            filled += count
            device.record(done, stream)
            device.wait(done)
        work.free()

    def weighted(self, group: str, sum_k: int, sum_ik: int) -> np.ndarray:
        return multiple(group, self.a * sum_k + self.d * sum_ik)


def random_scalars(n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 4) uint64 below r, made by all cores."""
    out = np.empty((n, 4), dtype=np.uint64)
    parts = os.cpu_count() or 1

    def fill(part: int, source: np.random.Generator) -> None:
        rows = slice(n * part // parts, n * (part + 1) // parts)
        out[rows] = source.integers(0, 1 << 64, out[rows].shape, dtype=np.uint64)
        out[rows, 3] %= np.uint64(R >> 192)

    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(fill, range(parts), rng.spawn(parts)))
    return out


SKEWS = ("zeros", "ones", "r-1", "equal", "99_zero")


def skewed_scalars(n: int, rng: np.random.Generator, kind: str) -> np.ndarray:
    """All zero, all one, all r - 1, all the same random value, or 99 % zero and the rest random."""
    if kind == "99_zero":
        return random_scalars(n, rng) * (rng.random((n, 1), dtype=np.float32) < 0.01).astype(np.uint64)
    value = {"zeros": 0, "ones": 1, "r-1": R - 1, "equal": int.from_bytes(rng.bytes(40), "little")}[kind]
    return np.tile(std(value), (n, 1))


def sums(scalars: np.ndarray) -> tuple[int, int]:
    """Exact sum k_i and sum i k_i. i = row * width + column, so row and column sums of 32-bit words suffice."""
    n = len(scalars)
    words = scalars.view(np.uint32).reshape(n, 8)
    width = 1 << 12
    rows = -(-n // width)
    sum_k = sum_ik = 0
    column_sums = np.zeros((width, 8), dtype=np.uint64)
    for row in range(rows):
        part = words[row * width : (row + 1) * width]
        row_sum = sum(int(v) << 32 * j for j, v in enumerate(part.sum(axis=0, dtype=np.uint64)))
        sum_k += row_sum
        sum_ik += row * width * row_sum
        column_sums[: len(part)] += part
    for column in range(width):
        sum_ik += column * sum(int(v) << 32 * j for j, v in enumerate(column_sums[column]))
    return sum_k, sum_ik


class PreparedMsm:
    def __init__(
        self,
        device: Any,
        group: str,
        n: int,
        rng: np.random.Generator,
        tables: int = 1,
        digit_bits: int | None = None,
        skew: str = "",
        bytes_per_point: int | None = None,
    ) -> None:
        self.points = Progression(device, group, n, rng, n * tables)
        scalars = skewed_scalars(n, rng, skew) if skew else random_scalars(n, rng)
        self.expected = self.points.weighted(group, *sums(scalars))
        self.scalars = device.upload(scalars, "scalars")
        budget = device.memory_info()[0] - (2 << 30) if bytes_per_point is None else bytes_per_point * n
        shape = {"tables": tables, "digit_bits": digit_bits}
        plan = plan_msm(n, group, budget, multiprocessors=device.multiprocessors, **shape)
        stream, made = device.stream(), device.event()
        build_tables(device, plan, self.points.memory.address, stream)
        device.record(made, stream)
        device.wait(made)
        self.msm = Msm(device, plan)

    def start(self, stream: Any) -> None:
        self.handle = self.msm.run(self.points.memory.address, self.scalars.address, stream)

    def finish(self) -> None:
        self.result = self.handle.result()

    def check(self) -> bool:
        return np.array_equal(self.result, self.expected)

    def free(self) -> None:
        self.msm.free()
        self.scalars.free()
        self.points.memory.free()


class PreparedBatchAdd:
    def __init__(self, device: Any, group: Any, n: int, share: float, rng: np.random.Generator, pair_sums: bool = False) -> None:
        self.points = Progression(device, group, n, rng, n + n // 2 if pair_sums else n)
        if pair_sums:
            build_pair_sums(device, group, n, self.points.memory.address, device.stream())
        bits = rng.random(n, dtype=np.float32) < share
        chosen = np.flatnonzero(bits)
        self.expected = self.points.weighted(group, len(chosen), int(chosen.sum(dtype=np.uint64)))
        words = np.zeros(-(-n // 32) * 4, dtype=np.uint8)
        words[: -(-n // 8)] = np.packbits(bits, bitorder="little")
        self.bitmap = device.upload(words)
        budget = device.memory_info()[0] - (1 << 30)
        shape = {"selected": len(chosen), "multiprocessors": device.multiprocessors, "pair_sums": pair_sums}
        plan = plan_batch_add(n, group, budget, **shape)
        self.add = BatchAdd(device, plan)

    def start(self, stream: Any) -> None:
        self.handle = self.add.run(self.points.memory.address, self.bitmap.address, stream)

    def finish(self) -> None:
        self.result = self.handle.result()

    def check(self) -> bool:
        return np.array_equal(self.result, self.expected)

    def free(self) -> None:
        self.add.free()
        self.bitmap.free()
        self.points.memory.free()


# log2 n: the peer's time and the goal, ms
MSM_G1 = {20: (21.2, 10), 22: (54.3, 24), 24: (155, 75), 26: (558, 280), 27: (1097, 550)}
MSM_G2 = {20: (48, 24), 24: (447, 225)}


def msm_case(group: str, log_n: int, peer_ms: float, goal_ms: float) -> Case:
    n = 1 << log_n
    # The windows that perfect code could not avoid at this size without tables: the plan's own choice.
    windows = plan_msm(n, group, 1 << 40).windows  # type: ignore[arg-type]
    return Case(
        name=f"msm_{group}_2^{log_n}",
        prepare=lambda device, rng: PreparedMsm(device, group, n, rng),
        peer_ms=peer_ms,
        goal_ms=goal_ms,
        ceiling_ms=n * windows * ADDITION_S[group] * 1e3,
        note=f"{windows} windows, no tables",
    )


def skew_case(log_n: int, kind: str) -> Case:
    """Skewed scalars must be no slower than random ones: the goal is the random case's."""
    n = 1 << log_n
    return Case(
        name=f"msm_g1_2^{log_n}_{kind}",
        prepare=lambda device, rng: PreparedMsm(device, "g1", n, rng, skew=kind),
        peer_ms=None,
        goal_ms=MSM_G1[log_n][1],
        ceiling_ms=n * plan_msm(n, "g1", 1 << 40).windows * ADDITION_S["g1"] * 1e3,
        note="the ceiling is that of random scalars",
    )


def lean_case(log_n: int, bytes_per_point: int) -> Case:
    """Temporaries as on a card that the points nearly fill."""
    n = 1 << log_n
    plan = plan_msm(n, "g1", bytes_per_point * n)
    return Case(
        name=f"msm_g1_2^{log_n}_lean",
        prepare=lambda device, rng: PreparedMsm(device, "g1", n, rng, bytes_per_point=bytes_per_point),
        peer_ms=MSM_G1[log_n][0],
        goal_ms=None,
        ceiling_ms=n * plan.windows * ADDITION_S["g1"] * 1e3,
        note=f"{plan.windows} windows, {bytes_per_point * n / 2**30:.1f} GiB of temporaries",
    )


def tables_case(group: str, log_n: int, tables: int, digit_bits: int) -> Case:
    """The same with multiples of the fixed points made beforehand, one table a window: one set of buckets for all."""
    n = 1 << log_n
    gib = tables * n * POINT_BYTES[group] / 2**30
    peer_ms, goal_ms = (MSM_G1 if group == "g1" else MSM_G2)[log_n]
    return Case(
        name=f"msm_{group}_2^{log_n}_tables",
        prepare=lambda device, rng: PreparedMsm(device, group, n, rng, tables, digit_bits),
        peer_ms=peer_ms,
        goal_ms=goal_ms,
        ceiling_ms=n * tables * ADDITION_S[group] * 1e3,
        note=f"{tables} tables of the fixed points, {gib:.1f} GiB",
    )


def batch_add_case(pair_sums: bool) -> Case:
    """Half of 2^26 points; with the sums of neighbours made beforehand, three in four pairs of neighbours cost one addition."""
    n = 1 << 26
    return Case(
        name=f"batch_add_g1_2^26_50{'_tables' if pair_sums else ''}",
        prepare=lambda device, rng: PreparedBatchAdd(device, "g1", n, 0.5, rng, pair_sums),
        peer_ms=17.1,
        goal_ms=9,
        ceiling_ms=n * (0.375 if pair_sums else 0.5) * ADDITION_S["g1"] * 1e3,
        note=f"{n // 2 * 96 / 2**30:.1f} GiB of sums of neighbours" if pair_sums else "",
    )


def cases() -> list[Case]:
    found = [msm_case("g1", log_n, *figures) for log_n, figures in MSM_G1.items()]
    found += [msm_case("g2", log_n, *figures) for log_n, figures in MSM_G2.items()]
    found += [skew_case(22, kind) for kind in SKEWS]
    found += [lean_case(24, 120), lean_case(27, 76)]
    found += [tables_case("g1", 20, 13, 20), tables_case("g1", 24, 11, 24), tables_case("g2", 20, 13, 20)]
    return found + [batch_add_case(pair_sums) for pair_sums in (False, True)]

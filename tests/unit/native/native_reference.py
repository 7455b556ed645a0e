"""What the host library must compute, in plain Python integers, and conversions to and from its arrays."""

from __future__ import annotations

import random

import numpy as np

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
Q = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
R_MONT, Q_MONT = 1 << 256, 1 << 384
R_MONT_INV, Q_MONT_INV = pow(R_MONT, -1, R), pow(Q_MONT, -1, Q)

FR_EDGES = [0, 1, 2, 3, R - 1, R - 2, (R - 1) // 2, (R + 1) // 2, 1 << 32, (1 << 64) - 1, 1 << 64, 1 << 254, R >> 1]


def rng(seed: int) -> random.Random:
    return random.Random(seed)


# Fr -----------------------------------------------------------------------------------------------------------------------
def ints_to_array(values, words: int = 4) -> np.ndarray:
    raw = b"".join(int(v).to_bytes(8 * words, "little") for v in values)
    return np.frombuffer(raw, np.uint64).reshape(-1, words).copy()


def array_to_ints(array) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in array]


def fr_mont(values) -> np.ndarray:
    return ints_to_array([v * R_MONT % R for v in values])


def fr_unmont(array) -> list[int]:
    return [v * R_MONT_INV % R for v in array_to_ints(array)]


def root_of_unity(log_n: int, root: int) -> int:
    return pow(root, (R - 1) >> log_n, R)


# Curves: None is infinity; coordinates are ints (G1) or pairs (G2). One code over both fields. -----------------------------
class Fq:
    @staticmethod
    def add(a, b):
        return (a + b) % Q

    @staticmethod
    def sub(a, b):
        return (a - b) % Q

    @staticmethod
    def mul(a, b):
        return a * b % Q

    @staticmethod
    def inv(a):
        return pow(a, -1, Q)

    zero, b = 0, 4


class Fq2:
    @staticmethod
    def add(a, b):
        return (a[0] + b[0]) % Q, (a[1] + b[1]) % Q

    @staticmethod
    def sub(a, b):
        return (a[0] - b[0]) % Q, (a[1] - b[1]) % Q

    @staticmethod
    def mul(a, b):
        return (a[0] * b[0] - a[1] * b[1]) % Q, (a[0] * b[1] + a[1] * b[0]) % Q

    @staticmethod
    def inv(a):
        d = pow(a[0] * a[0] + a[1] * a[1], -1, Q)
        return a[0] * d % Q, -a[1] * d % Q

    zero, b = (0, 0), (4, 4)


def add(f, p, q):
    if p is None:
        return q
    if q is None:
        return p
    if p[0] == q[0]:
        if p[1] != q[1] or p[1] == f.zero:
            return None
        xx = f.mul(p[0], p[0])
        slope = f.mul(f.add(xx, f.add(xx, xx)), f.inv(f.add(p[1], p[1])))
    else:
        slope = f.mul(f.sub(q[1], p[1]), f.inv(f.sub(q[0], p[0])))
    x = f.sub(f.sub(f.mul(slope, slope), p[0]), q[0])
    return x, f.sub(f.mul(slope, f.sub(p[0], x)), p[1])


def neg(f, p):
    return None if p is None else (p[0], f.sub(f.zero, p[1]))


def mul(f, p, k: int):
    acc = None
    for bit in bin(k)[2:] if k else "":
        acc = add(f, acc, acc)
        if bit == "1":
            acc = add(f, acc, p)
    return acc


def msm(f, points, scalars):
    acc = None
    for p, s in zip(points, scalars, strict=True):
        acc = add(f, acc, mul(f, p, s))
    return acc


G1_GENERATOR = (
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
)
G2_GENERATOR = (
    (
        0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)


def sqrt_fq(a: int):
    s = pow(a, (Q + 1) // 4, Q)
    return s if s * s % Q == a % Q else None


def sqrt_fq2(a):
    if a[1] == 0:
        s = sqrt_fq(a[0])
        return (s, 0) if s is not None else (0, sqrt_fq(-a[0] % Q))
    n = sqrt_fq((a[0] * a[0] + a[1] * a[1]) % Q)
    if n is None:
        return None
    half = pow(2, -1, Q)
    for t in ((a[0] + n) * half % Q, (a[0] - n) * half % Q):
        x = sqrt_fq(t)
        if x:
            return x, a[1] * pow(2 * x, -1, Q) % Q
    return None


def curve_points_off_subgroup(f, count: int, seed: int):
    """Random points of the whole curve: almost surely outside the subgroup of order r."""
    r, out = rng(seed), []
    while len(out) < count:
        x = r.randrange(Q) if f is Fq else (r.randrange(Q), r.randrange(Q))
        rhs = f.add(f.mul(f.mul(x, x), x), f.b)
        y = sqrt_fq(rhs) if f is Fq else sqrt_fq2(rhs)
        if y is not None:
            out.append((x, y))
    return out


# Points as arrays -----------------------------------------------------------------------------------------------------------
def coordinates(f, p) -> list[int]:
    """Flat list of the coordinates in the library's order, std; infinity gives zeros."""
    if f is Fq:
        return [0, 0] if p is None else [p[0], p[1]]
    return [0] * 4 if p is None else [*p[0], *p[1]]


def points_to_array(f, points) -> np.ndarray:
    flat = [c * Q_MONT % Q for p in points for c in coordinates(f, p)]
    words = 12 if f is Fq else 24
    return ints_to_array(flat, 6).reshape(len(flat) * 6 // words, words)


def array_to_points(f, array) -> list:
    out = []
    for row in array:
        c = [v * Q_MONT_INV % Q for v in array_to_ints(row.reshape(-1, 6))]
        if not any(c):
            out.append(None)
        else:
            out.append((c[0], c[1]) if f is Fq else ((c[0], c[1]), (c[2], c[3])))
    return out


def multiples(f, count: int):
    """[G, 2G, 3G, ...]: distinct points with known logarithms."""
    g = G1_GENERATOR if f is Fq else G2_GENERATOR
    out, p = [], None
    for _ in range(count):
        p = add(f, p, g)
        out.append(p)
    return out

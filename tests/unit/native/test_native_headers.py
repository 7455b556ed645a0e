"""The shared headers with each back end of the field (portable, mulx/adx, the device's 32-bit chains on a CPU) against
Python integers."""

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from cuzk.native import _library
from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import Q, R

VARIANTS = "best"
HERE = Path(__file__).parent
KERNELS = HERE.parents[2] / "kernels"
BACK_ENDS = {"portable": [], "adx": ["-DCUZK_ADX"], "emulated": ["-DCUZK_EMULATE32"]}


@pytest.fixture(scope="module", params=BACK_ENDS)
def program(request, tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    if request.param == "adx" and not _library.load("portable").cuzk_cpu_features() & 1:
        pytest.skip("this CPU lacks BMI2 or ADX")
    out = tmp_path_factory.mktemp("headers") / f"field_ops_{request.param}"
    flags = ["-std=c++17", "-O1", "-Wno-unknown-pragmas", f"-I{KERNELS}", *BACK_ENDS[request.param]]
    subprocess.run([compiler, *flags, str(HERE / "field_ops.cpp"), "-o", str(out)], check=True)
    return out


def run(program, kind, data=b""):
    return subprocess.run([program, kind], input=data, capture_output=True, check=True).stdout


def edges(p, limb_bits=32):
    """Values whose limbs are all ones or zero, and those next to the ends of the range."""
    words = p.bit_length() // limb_bits + 1
    ones = [((1 << (limb_bits * k)) - 1) % p for k in range(1, words + 1)]
    return [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, *ones, *((p - v) % p for v in ones)]


@pytest.mark.parametrize(("kind", "p", "size"), [("fr", R, 32), ("fq", Q, 48)], ids=["fr", "fq"])
def test_prime_fields(program, kind, p, size):
    r, radix = ref.rng(11), 1 << (8 * size)
    pairs = [*itertools.product(edges(p), repeat=2), *((r.randrange(p), r.randrange(p)) for _ in range(2000))]
    out = run(program, kind, b"".join(v.to_bytes(size, "little") for pair in pairs for v in pair))
    values = [int.from_bytes(out[i : i + size], "little") for i in range(0, len(out), size)]
    inv = pow(radix, -1, p)
    want = []
    for a, b in pairs:  # raw Montgomery values
        inverse = pow(a, -1, p) * radix * radix % p if a else 0
        want += [a * b * inv % p, a * a * inv % p, (a + b) % p, (a - b) % p, -a % p, inverse]
    assert values == want


def test_quadratic_extension(program):
    r = ref.rng(12)
    some = [(x, y) for x in (0, 1, Q - 1, r.randrange(Q)) for y in (0, Q - 1, r.randrange(Q))]

    def random_element():
        return r.randrange(Q), r.randrange(Q)

    pairs = [*itertools.product(some, repeat=2), *((random_element(), random_element()) for _ in range(200))]

    def raw(v):
        return b"".join((c * ref.Q_MONT % Q).to_bytes(48, "little") for c in v)

    f = ref.Fq2
    out = run(program, "fq2", b"".join(raw(a) + raw(b) for a, b in pairs))
    want = b""
    for a, b in pairs:
        inverse = f.inv(a) if any(a) else (0, 0)
        want += b"".join(raw(v) for v in (f.mul(a, b), f.mul(a, a), f.add(a, b), f.sub(a, b), f.sub((0, 0), a), inverse))
    assert out == want


def test_point_formulas(program):
    out = run(program, "points")
    multiples, at = [2, 2, 3, 4, 5, 7, 14, 0, 4], 0
    for f, width in ((ref.Fq, 1), (ref.Fq2, 2)):
        g = ref.G1_GENERATOR if f is ref.Fq else ref.G2_GENERATOR
        for k in multiples:
            flat = [int.from_bytes(out[at + 48 * i : at + 48 * i + 48], "little") * ref.Q_MONT_INV % Q for i in range(4 * width)]
            at += 192 * width
            x, y, zz, zzz = flat if width == 1 else [tuple(flat[i : i + 2]) for i in range(0, 8, 2)]
            if k == 0:
                assert zz == f.zero
                continue
            assert f.mul(zz, f.mul(zz, zz)) == f.mul(zzz, zzz)
            assert (f.mul(x, f.inv(zz)), f.mul(y, f.inv(zzz))) == ref.mul(f, g, k)
    assert at == len(out)

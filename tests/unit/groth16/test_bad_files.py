"""Every reader on every kind of broken file: a clean error with the file's name, or a valid object; nothing else."""

import contextlib
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.groth16.field import BN254_FR, FR_MODULUS
from cuzk.groth16.formats import matrices
from cuzk.groth16.formats.ckey import CkeyFile
from cuzk.groth16.formats.container import Container
from cuzk.groth16.formats.params import ParamsFile
from cuzk.groth16.formats.proof import read_bundle, read_proofs, read_public
from cuzk.groth16.formats.ptau import PtauFile
from cuzk.groth16.formats.r1cs import R1csFile
from cuzk.groth16.formats.vk import read_vk
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.inspect import inspect
from cuzk.groth16.load import load_key, read_any_vk, read_r1cs_system
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.phase2 import setup_phase2
from cuzk.groth16.verify import Verifier, verify_bundle


def read_wtns(path):
    WtnsFile(path).check_values()


def read_zkey(path):
    file = ZkeyFile(path)
    file.constraints()
    file.contribution_names()


def read_ckey(path):
    key = CkeyFile(path).key()
    _ = key.system


def read_params(path):
    file = ParamsFile(path)
    file.verifying_key()
    for part in file.lists.values():
        part.mont(path)


def read_key_of_bundle(path):
    verify_bundle(read_bundle(path), str(path))


READERS = {
    "r1cs": lambda path: R1csFile(path).constraints(),
    "wtns": read_wtns,
    "zkey": read_zkey,
    "ckey": read_ckey,
    "pce": lambda path: matrices.read_pce(path),
    "params": read_params,
    "vk": lambda path: Verifier(read_vk(path)),
    "verification_key.json": lambda path: Verifier(read_vk(path)),
    "proof.json": read_proofs,
    "proof": read_proofs,
    "public.json": read_public,
    "prf": read_key_of_bundle,
    "ptau": lambda path: PtauFile(path),
}


def make_ptau(power: int) -> bytes:
    """A .ptau of the right sizes; its points are not those of any tau."""
    n = 1 << power
    prime = bytes.fromhex("abaafffffffffeb9ffff53b1feffab1e24f6b0f6a0d23067bf1285f3844b7764d7ac4b43b6a71b4b9ae67f39ea11011a")
    counts = {2: (2 * n - 1, 96), 3: (n, 192), 4: (n, 96), 5: (n, 96), 6: (1, 192), 12: (4 * n - 1, 96)}
    counts |= {13: (2 * n - 1, 192), 14: (2 * n - 1, 96), 15: (2 * n - 1, 96)}
    parts = [(1, struct.pack("<I", 48) + prime + struct.pack("<II", power, power)), (7, struct.pack("<I", 0))]
    parts += [(number, bytes(count * size)) for number, (count, size) in counts.items()]
    body = b"".join(struct.pack("<IQ", number, len(data)) + data for number, data in parts)
    return b"ptau" + struct.pack("<II", 1, len(parts)) + body


@pytest.fixture(scope="module")
def good(circuits, tmp_path_factory) -> dict[str, bytes]:
    """A small valid file of each kind."""
    folder, mul = tmp_path_factory.mktemp("good"), circuits["mul"]
    system = read_r1cs_system(mul.path("r1cs"))
    key = setup_development(system, folder / "key.ckey")
    matrices.write_pce(folder / "key.pce", system)
    proof = read_proofs(mul.file("proof.json"))[0].to_bytes()
    publics = read_public(mul.file("public.json"))[0]
    vk = key.to_bytes()
    bundle = struct.pack(">QQ", 1, 2) + vk + proof + b"".join(v.to_bytes(32, "big") for v in publics)
    files = {kind: mul.path(kind).read_bytes() for kind in ("r1cs", "wtns", "zkey", "params")}
    files |= {name: mul.file(name).read_bytes() for name in ("verification_key.json", "proof.json", "public.json")}
    files |= {kind: (folder / f"key.{kind}").read_bytes() for kind in ("ckey", "pce")}
    return {**files, "vk": vk, "proof": proof, "prf": bundle, "ptau": make_ptau(2)}


def outcome(kind, path):
    """Read; whatever is wrong must be an InputError that names the file, or a proof that does not verify."""
    try:
        READERS[kind](path)
    except ProofInvalid:
        return "invalid"
    except InputError as error:
        assert str(path) in str(error) or "the verifying key" in str(error)
        return "refused"
    return "read"


@pytest.mark.parametrize("kind", READERS)
def test_good_files_are_read_and_recognised(good, kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(good[kind])
    # The bundle here holds another key's proof: a good file of a false statement.
    assert outcome(kind, path) == ("invalid" if kind == "prf" else "read")
    assert inspect(path)["kind"] == kind


@pytest.mark.parametrize("kind", READERS)
def test_every_cut_is_refused(good, kind, tmp_path):
    """Cut at every byte (every 37th of larger files): at and inside each section."""
    path, data = tmp_path / "file", good[kind]
    cuts = range(len(data)) if len(data) < 3000 else [*range(0, len(data), 37), *range(len(data) - 200, len(data))]
    for cut in cuts:
        path.write_bytes(data[:cut])
        if kind in ("verification_key.json", "proof.json", "public.json") and data[cut:].isspace():
            continue
        assert outcome(kind, path) == "refused", f"cut at {cut}"


@pytest.mark.parametrize("kind", READERS)
def test_trailing_bytes_are_refused(good, kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(good[kind] + b"\x01")
    assert outcome(kind, path) == "refused"


def test_ceremony_tails_of_params_are_tolerated(good, tmp_path):
    path = tmp_path / "file.params"
    path.write_bytes(good["params"] + bytes(64) + struct.pack(">I", 1) + bytes(544))
    assert outcome("params", path) == "read"
    assert inspect(path)["tail_bytes"] == 64 + 4 + 544


@pytest.mark.parametrize("kind", READERS)
def test_zero_bytes_directories_and_absent_files(kind, tmp_path):
    path = tmp_path / "file"
    for make in (
        lambda: None,
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(bytes(1000)),
        path.unlink,
        path.mkdir,
    ):
        make()
        assert outcome(kind, path) == "refused"


@pytest.mark.parametrize("kind", READERS)
def test_files_of_another_kind_are_refused(good, kind, tmp_path):
    path = tmp_path / "file"
    for other, data in good.items():
        alike = {frozenset(("vk", "verification_key.json")), frozenset(("proof", "proof.json"))}
        if other == kind or frozenset((kind, other)) in alike:
            continue
        path.write_bytes(data)
        assert outcome(kind, path) in ("refused",), other


def test_a_verifying_key_and_parameters_are_told_apart(good, tmp_path):
    vk, params = tmp_path / "a.vk", tmp_path / "b.params"
    vk.write_bytes(good["vk"])
    params.write_bytes(good["params"])
    with pytest.raises(FormatError, match=r"\.vk file, not parameters"):
        ParamsFile(vk)
    with pytest.raises(FormatError, match=r"\.params file holds one"):
        read_vk(params)
    assert read_any_vk(params).n_public == 2
    with pytest.raises(FormatError, match=r"\.r1cs file, not a proving key"):
        vk.write_bytes(good["r1cs"])
        load_key(vk)


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def section_offset(path, magic, number):
    return Container(path, magic, {}).section(number).offset


def test_wrong_versions_primes_protocols_and_counts(good, tmp_path):
    def refused(kind, data, message):
        path = tmp_path / f"file.{kind}"
        path.write_bytes(data)
        with pytest.raises(FormatError, match=message):
            READERS[kind](path)

    path = tmp_path / "whole"
    bn254 = BN254_FR.to_bytes(32, "little")
    u32 = lambda n: struct.pack("<I", n)  # noqa: E731
    for kind in ("r1cs", "wtns", "zkey", "ptau"):
        path.write_bytes(good[kind])
        refused(kind, patched(good[kind], 4, u32(9)), "version 9")
        refused(kind, patched(good[kind], 8, u32(2**32 - 1)), "the file ends where section")
        head = section_offset(path, kind.encode(), 2 if kind == "zkey" else 1)
        refused(kind, patched(good[kind], head, u32(31)), "bytes an element|prime")
        refused(kind, patched(good[kind], head - 8, struct.pack("<Q", 2**63)), "claims")
        if kind in ("r1cs", "wtns"):
            refused(kind, patched(good[kind], head + 4, bn254), "BN254")
    path.write_bytes(good["zkey"])
    refused("zkey", patched(good["zkey"], section_offset(path, b"zkey", 1), u32(2)), "plonk")
    head = section_offset(path, b"zkey", 2)
    counts = head + 4 + 48 + 4 + 32
    refused("zkey", patched(good["zkey"], counts, u32(2**31)), "expected")
    refused("zkey", patched(good["zkey"], counts + 4, u32(77)), "77 public signals")
    refused("zkey", patched(good["zkey"], counts + 8, u32(6)), "power of two")
    entries = section_offset(path, b"zkey", 4) + 4
    refused("zkey", patched(good["zkey"], entries, u32(2)), "matrix 2")
    refused("zkey", patched(good["zkey"], entries + 4, u32(99)), "row 99")
    refused("zkey", patched(good["zkey"], entries + 8, u32(99)), "wire 99")
    refused("zkey", patched(good["zkey"], entries + 12, b"\xff" * 32), "not below")
    path.write_bytes(good["r1cs"])
    body = section_offset(path, b"r1cs", 2)
    refused("r1cs", patched(good["r1cs"], body, u32(2**32 - 1)), "combination")
    refused("r1cs", patched(good["r1cs"], body + 4, u32(4)), "wire 4 does not exist")
    refused("r1cs", patched(good["r1cs"], body + 8, FR_MODULUS.to_bytes(32, "little")), "not below")
    head = section_offset(path, b"r1cs", 1)
    refused("r1cs", patched(good["r1cs"], head + 36, u32(2**32 - 1)), "expected 8 for each|wires")
    refused("r1cs", patched(good["r1cs"], head + 36 + 24, u32(2**32 - 1)), "too few")
    path.write_bytes(good["wtns"])
    values = section_offset(path, b"wtns", 2)
    refused("wtns", patched(good["wtns"], values, u32(2)), "not one")
    refused("wtns", patched(good["wtns"], values + 32, FR_MODULUS.to_bytes(32, "little")), "value 1")


def test_duplicate_and_missing_sections(good, tmp_path):
    path = tmp_path / "file.wtns"
    data = good["wtns"]
    first = data[12 : 12 + 12 + 40]
    path.write_bytes(data[:8] + struct.pack("<I", 3) + data[12:] + first)
    with pytest.raises(FormatError, match="appears 2 times"):
        WtnsFile(path)
    path.write_bytes(data[:8] + struct.pack("<I", 1) + first)
    with pytest.raises(FormatError, match="missing"):
        WtnsFile(path)


def test_section_order_is_free(good, tmp_path):
    path = tmp_path / "file.zkey"
    path.write_bytes(good["zkey"])
    index = Container(path, b"zkey", {}).index
    parts = [struct.pack("<IQ", n, s[0].size) + s[0].data.tobytes() for n, s in sorted(index.items(), reverse=True)]
    path.write_bytes(good["zkey"][:12] + b"".join(parts))
    assert outcome("zkey", path) == "read"


def test_old_zkeys_without_contributions(good, tmp_path):
    path = tmp_path / "file.zkey"
    path.write_bytes(good["zkey"])
    index = Container(path, b"zkey", {}).index
    parts = [struct.pack("<IQ", n, s[0].size) + s[0].data.tobytes() for n, s in index.items() if n != 10]
    path.write_bytes(good["zkey"][:8] + struct.pack("<I", len(parts)) + b"".join(parts))
    assert outcome("zkey", path) == "read"
    assert not load_key(path).development


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fuzz(good, kind, tmp_path, data):
    """Change, cut, insert and repeat bytes anywhere: a clean error or a valid object, in bounded memory."""
    content = bytearray(good[kind])
    extremes = st.sampled_from([0, 1, 2, 3, 5, 127, 128, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        way = data.draw(st.sampled_from(["byte", "u32", "U32", "u64", "cut", "insert", "repeat"]))
        if way == "byte":
            content[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif way in ("u32", "U32"):
            content[at : at + 4] = struct.pack("<I" if way == "u32" else ">I", data.draw(extremes))
        elif way == "u64":
            content[at : at + 8] = struct.pack("<Q", data.draw(extremes) << data.draw(st.integers(0, 32)))
        elif way == "cut":
            del content[at : at + data.draw(st.integers(1, 64))]
        elif way == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=16))
        else:
            content[at:at] = content[at : at + data.draw(st.integers(1, 64))]
    path = tmp_path / "file"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        outcome(kind, path)
        with contextlib.suppress(InputError, ProofInvalid):
            inspect(path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def sparse(path, parts):
    """A file of (bytes or hole size) parts."""
    with open(path, "wb") as file:
        for part in parts:
            if isinstance(part, bytes):
                file.write(part)
            else:
                file.seek(part, 1)
        file.truncate(file.tell())


def test_sections_above_4_gib(tmp_path):
    """A witness of 2^27 + 1 values: more than 2^32 bytes in one section."""
    count = (1 << 27) + 1
    prime = struct.pack("<I", 32) + FR_MODULUS.to_bytes(32, "little")
    head = b"wtns" + struct.pack("<II", 2, 2) + struct.pack("<IQ", 1, 40) + prime + struct.pack("<I", count)
    path = tmp_path / "large.wtns"
    sparse(
        path,
        [head + struct.pack("<IQ", 2, 32 * count) + (1).to_bytes(32, "little"), 32 * (count - 2), b"\x05" + bytes(31)],
    )
    file = WtnsFile(path)
    assert file.count == count and file.values[-1].tolist() == [5, 0, 0, 0]
    assert inspect(path)["n_values"] == count


def test_inspect_of_a_huge_params_file_reads_only_headers(good, tmp_path):
    """The 44 GiB of a 32 GiB PoRep, sparse: counts and memory from five numbers."""
    counts = {"h": 2**27 - 1, "l": 130_169_893, "a": 129_753_620, "b_g1": 33_112_282, "b_g2": 33_112_282}
    parts = [good["params"][:864], struct.pack(">I", 328), 328 * 96]
    for name, count in counts.items():
        parts += [struct.pack(">I", count), count * (192 if name == "b_g2" else 96)]
    path = tmp_path / "porep.params"
    sparse(path, parts)
    assert path.stat().st_size == 47_373_928_632
    tracemalloc.start()
    found = inspect(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert found["circuit"]["n_aux"] == 130_169_893 and found["circuit"]["domain"] == 2**27
    assert found["proof"]["c-free"]["d_bc_vram_bytes"] == 2**32 and found["proof"]["bellman"]["d_bc_vram_bytes"] == 2**33


def test_values_not_below_the_modulus_are_found_anywhere():
    from cuzk.groth16.field import first_not_below, fr_array

    values = fr_array([0, 1, FR_MODULUS - 1, FR_MODULUS - 2, 2**255 - 1, FR_MODULUS, 5])
    assert first_not_below(values, FR_MODULUS) == 4
    assert first_not_below(values[:4], FR_MODULUS) == -1
    assert first_not_below(values[5:], FR_MODULUS) == 0
    assert first_not_below(np.zeros((0, 4), np.uint64), FR_MODULUS) == -1


def test_a_bad_point_of_params_is_named_with_its_place(good, tmp_path):
    path = tmp_path / "file.params"
    file = tmp_path / "good.params"
    file.write_bytes(good["params"])
    for name, part in ParamsFile(file).lists.items():
        size = 192 if name == "b_g2" else 96
        for row, change in (
            (part.count - 1, b"\xff" * 48),
            (0, b"\x80"),
            (0, bytes(size)),
            (0, b"\x40" + bytes(size - 1)),
        ):
            at = part.offset + size * row
            path.write_bytes(patched(good["params"], at, change))
            with pytest.raises(FormatError, match=f"section {name} at byte {at}: point {row}"):
                ParamsFile(path).lists[name].mont(path)


def test_a_huge_zkey_is_inspected_from_its_headers(good, tmp_path):
    """2^26 wires and rows: sections of 6 and 12 GiB, sparse."""
    path, small = tmp_path / "large.zkey", tmp_path / "small.zkey"
    small.write_bytes(good["zkey"])
    index = Container(small, b"zkey", {})
    n, head = 1 << 26, index.section(2).data.tobytes()
    counts = 4 + 48 + 4 + 32
    head = patched(head, counts, struct.pack("<III", n, 2, n))
    sizes = {4: 4, 5: 96 * n, 6: 96 * n, 7: 192 * n, 8: 96 * (n - 3), 9: 96 * n}
    parts = [good["zkey"][:8] + struct.pack("<I", 9), struct.pack("<IQ", 1, 4) + struct.pack("<I", 1)]
    parts += [struct.pack("<IQ", 2, len(head)) + head]
    parts += [struct.pack("<IQ", 3, 288) + index.section(3).data.tobytes()]
    for number, size in sizes.items():
        parts += [struct.pack("<IQ", number, size), size]
    sparse(path, parts)
    assert path.stat().st_size > 36 << 30
    tracemalloc.start()
    found = inspect(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20 and found["circuit"]["n_wires"] == n and found["points"]["bytes"] == 96 * (6 * n - 3)


def test_powers_of_tau_that_do_not_serve(good, circuits, tmp_path):
    mul, chain = (read_r1cs_system(circuits[name].path("r1cs")) for name in ("mul", "chain1k"))
    path = tmp_path / "p.ptau"
    path.write_bytes(good["ptau"])
    with pytest.raises(InputError, match=r"up to 2\^2; this circuit needs 2\^10"):
        setup_phase2(chain, path, tmp_path / "key.zkey")
    with pytest.raises(InputError, match=r"its keys are \.zkey"):
        setup_phase2(mul, path, tmp_path / "key.params")
    index = Container(path, b"ptau", {}).index
    parts = [struct.pack("<IQ", n, s[0].size) + s[0].data.tobytes() for n, s in index.items() if n < 12]
    path.write_bytes(b"ptau" + struct.pack("<II", 1, len(parts)) + b"".join(parts))
    with pytest.raises(InputError, match="not prepared"):
        setup_phase2(mul, path, tmp_path / "key.zkey")
    assert not (tmp_path / "key.zkey").exists()

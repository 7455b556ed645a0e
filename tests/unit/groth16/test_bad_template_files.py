"""Keys of a template and witnesses of bits, cut, lengthened and with wrong headers: a clean error with the file's name, or
arrays that the walkers can trust."""

import json
import random
import struct
from contextlib import suppress

import pytest

from cuzk.circuits.emitter import Library
from cuzk.circuits.gadgets.boolean import bit, xor
from cuzk.circuits.gadgets.number import pack_into_input
from cuzk.circuits.template import build_template
from cuzk.circuits.witness import build_witness
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.ckey import CkeyFile
from cuzk.groth16.formats.cwit import CwitFile, write_cwit
from cuzk.groth16.inspect import inspect
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.template.bits import ARRAYS
from cuzk.groth16.template.system import TemplateSystem


def tiny_prefix(cs):
    return bit(cs, None if cs.algebra is None else cs.ones)


def tiny_body(cs, shared):
    x = bit(cs, None if cs.algebra is None else 0)
    pack_into_input(cs, [xor(cs, x, shared), x])


@pytest.fixture(scope="module")
def library():
    return Library()


@pytest.fixture(scope="module")
def template(library):
    return build_template("tiny", 2, tiny_prefix, tiny_body, library)


@pytest.fixture(scope="module")
def good(library, template, tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    setup_development(TemplateSystem(template), folder / "file.ckey", quotients=("c-free",))
    write_cwit(folder / "file.cwit", build_witness(template, library, tiny_prefix, tiny_body))
    return {kind: (folder / f"file.{kind}").read_bytes() for kind in ("ckey", "cwit")}


def read(kind, path, template):
    """The file's arrays, as whoever walks them gets them."""
    if kind == "ckey":
        t = CkeyFile(path).key().system.template
        columns = t.body_aux_column + t.body.aux
        assert all(m.fault(columns, len(t.coefficients_mont)) is None for p in (t.prefix, t.body) for m in p.matrices)
        return
    witness = CwitFile(path).witness(template, "key")
    assert witness.first_not_below_r() is None
    assert [getattr(witness, name).shape[0] for name in ARRAYS] == [template.n_inputs, 1, 1, 2, 2]


def with_header(data, change):
    length = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    assert len(text) <= 4096 - 16, "the header's page has room"
    return data[:12] + struct.pack("<I", len(text)) + (text + bytes(4080 - len(text)))[:4080] + data[4096:]


@pytest.mark.parametrize("kind", ("ckey", "cwit"))
def test_good_files_are_read(good, template, tmp_path, kind):
    path = tmp_path / "file"
    for data in (good[kind], with_header(good[kind], lambda header: None)):
        path.write_bytes(data)
        read(kind, path, template)
        assert inspect(path)["kind"] == kind


@pytest.mark.parametrize("kind", ("ckey", "cwit"))
def test_every_cut_is_refused(good, template, tmp_path, kind):
    path, data = tmp_path / "file", good[kind]
    for cut in [*range(0, len(data), 97), *range(len(data) - 50, len(data))]:
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match="file"):
            read(kind, path, template)
    path.write_bytes(data + b"\1")
    with pytest.raises(FormatError, match="after the last array"):
        read(kind, path, template)


@pytest.mark.parametrize("kind", ("ckey", "cwit"))
def test_flipped_bytes_are_refused_or_stay_in_range(good, template, tmp_path, kind):
    path, rng, refused = tmp_path / "file", random.Random(4), 0
    for _ in range(300):
        broken = bytearray(good[kind])
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            read(kind, path, template)
        except InputError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("value", (None, -1, 0.5, "3", True, 1 << 31, [], {}))
@pytest.mark.parametrize("field", ("copies", "rows", "inputs", "aux"))
def test_counts_of_a_template_are_numbers(good, template, tmp_path, field, value):
    def change(header):
        owner = header["template"] if field == "copies" else header["template"]["body"]
        owner[field] = value

    (tmp_path / "file").write_bytes(with_header(good["ckey"], change))
    with pytest.raises(FormatError):
        read("ckey", tmp_path / "file", template)


@pytest.mark.parametrize("value", (None, 1, "x", [], {}, {"copies": 2}, {"copies": 2, "prefix": 1, "body": {}}))
def test_a_header_that_is_no_template(good, template, tmp_path, value):
    (tmp_path / "file").write_bytes(with_header(good["ckey"], lambda header: header.update(template=value)))
    with pytest.raises(FormatError):
        read("ckey", tmp_path / "file", template)
    with suppress(FormatError):  # which needs less of it
        inspect(tmp_path / "file")


@pytest.mark.parametrize("field", ("n_wires", "n_public", "n_constraints"))
def test_counts_of_the_key_are_the_templates(good, template, tmp_path, field):
    (tmp_path / "file").write_bytes(with_header(good["ckey"], lambda header: header.update({field: header[field] + 1})))
    with pytest.raises(FormatError):
        read("ckey", tmp_path / "file", template)


def test_a_prefix_without_the_constant_one(good, template, tmp_path):
    def change(header):
        header["template"]["prefix"]["inputs"] = 0
        header["template"]["body"]["aux"] += 1

    (tmp_path / "file").write_bytes(with_header(good["ckey"], change))
    with pytest.raises(FormatError, match="constant one"):
        read("ckey", tmp_path / "file", template)

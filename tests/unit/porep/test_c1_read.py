"""C1 outputs in all three forms: what is read, and what is refused with its place."""

import json
import subprocess
import sys

import numpy as np
import pytest

from cuzk.circuits.porep.shape import SHAPES
from cuzk.errors import FormatError, InputError
from cuzk.porep.c1 import Limits, read
from cuzk.porep.c1.bincode import bincode_bytes
from cuzk.porep.c1.layout import layout
from cuzk.porep.c1.write import FORMS, c1_bytes, write_c1
from tests.unit.porep.c1_files import SECTOR, TAG, challenge, dumped, inner, small_c1, wrapped


def same(a, b):
    ids = ("comm_r", "comm_d", "replica_id", "seed", "ticket", "registered")
    return (
        np.array_equal(a.hashes, b.hashes) and np.array_equal(a.numbers, b.numbers)
        and all(getattr(a, key) == getattr(b, key) for key in ids)
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_it_was_written(form, tmp_path):
    path = tmp_path / "c1"
    size = write_c1(small_c1(), path, form)
    assert size == path.stat().st_size
    for source in (path, path.read_bytes(), bytearray(path.read_bytes())):
        found = read(source)
        assert found.form == form and same(found, small_c1())
    assert read(path).sector_number == (SECTOR if form == "wrapper" else None)


def test_values_lie_where_an_ordinary_json_reader_finds_them():
    """The schema against a generic walk of the document."""
    found, document = read(wrapped(inner())), inner()
    at = layout(found.shape)
    for k in range(2):
        vp, hashes = challenge(document, k), found.hashes[0, k]
        own = vp["replica_column_proofs"]["c_x"]
        assert hashes[at.columns[0].rows + 1].tolist() == own["column"]["rows"][1]
        path = vp["replica_column_proofs"]["exp_parents"][7]["inclusion_proof"]["data"]["Single"]["path"]["path"][1]
        first, index, _ = at.columns[14].proof.levels[1]
        assert hashes[first : first + 7].tolist() == path["hashes"]
        assert found.numbers[0, k, index] == path["index"]
        assert hashes[at.data.root].tolist() == vp["comm_d_proofs"]["data"]["Single"]["root"]
        assert hashes[at.labels[1].parents + 36].tolist() == vp["labeling_proofs"][1]["parents"][36]
        assert found.numbers[0, k, at.encoding.node] == vp["encoding_proof"]["node"]


@pytest.mark.parametrize(("shape", "size"), [*zip(SHAPES, (28_248, 60_120, 76_056, 11_014_808, 11_184_728), strict=True)])
def test_bincode_has_the_length_that_the_sizes_give(shape, size):
    assert bincode_bytes(shape, shape.partitions) == size
    # C, R: B32 a challenge
    assert layout(shape).hashes == dict(zip((s.name for s in SHAPES), (405, 865, 1095, 1793, 1810), strict=True))[shape.name]


def shuffled(value):
    """The same document with all objects' keys in another order."""
    if isinstance(value, dict):
        return {k: shuffled(value[k]) for k in reversed(value)}
    return [shuffled(v) for v in value] if isinstance(value, list) else value


def with_unknown_keys(value):
    if isinstance(value, dict):
        new = {k: with_unknown_keys(v) for k, v in value.items()}
        enum = TAG in value or "Single" in value
        return new if enum else {"new": {"deep": [1, -2.5e3, None, True, 'x"\\u00e9']}, **new, "more": []}
    return [with_unknown_keys(v) for v in value] if isinstance(value, list) else value


def without_phantoms(value):
    if isinstance(value, dict):
        return {k: without_phantoms(v) for k, v in value.items() if k != "_h"}
    return [without_phantoms(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("change", [shuffled, with_unknown_keys, without_phantoms])
def test_order_of_keys_unknown_keys_and_phantoms_do_not_matter(change):
    document = change(inner())
    assert same(read(dumped(document)), small_c1())
    assert same(read(wrapped(document)), small_c1())


def test_white_space_and_escapes():
    text = json.dumps(inner(), indent=3)
    text = text.replace('"comm_r"', '"\\u0063omm_\\u0072"')
    assert same(read(text.encode()), small_c1())
    assert same(read(wrapped(text.encode()).replace(b"/", b"\\/").replace(b"+", b"\\u002B")), small_c1())


def test_base64_at_every_alignment_and_length():
    """Groups and windows begin and end at any character."""
    for spaces in range(5):
        assert same(read(b" \n" + wrapped(dumped(inner()) + b" " * spaces) + b"\t"), small_c1())
    assert same(read(wrapped(b" " * 50_000 + dumped(inner()))), small_c1())


def changed(path, value):
    """The inner document with the value at `path` replaced (or removed, for `...`)."""
    document = inner()
    at = document
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    return document


VP = ("vanilla_proofs", TAG, 0, 1)
NAMED = f"vanilla_proofs.{TAG}[0][1]"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*VP, "comm_d_proofs", "data", "Single", "root", 5), 256, (f"{NAMED}.comm_d_proofs.data.Single.root[5]", "255")),
        ((*VP, "comm_d_proofs", "data", "Single", "root", 5), -1, ("root[5]", "negative")),
        ((*VP, "comm_d_proofs", "data", "Single", "root", 5), 1.5, ("root[5]", "whole")),
        ((*VP, "comm_d_proofs", "data", "Single", "root"), [0] * 31, ("root", "31 numbers, not 32")),
        ((*VP, "comm_d_proofs", "data", "Single", "root"), [0] * 33, ("root", "33 numbers, not 32")),
        ((*VP, "comm_d_proofs", "data", "Single", "root"), "00" * 32, ("root", "array")),
        ((*VP, "comm_d_proofs", "data", "Single", "path", "path"), lambda p: p[:-1], ("path.path", "5 elements, not 6")),
        ((*VP, "comm_d_proofs", "data", "Single", "path", "path", 0, "index"), 2, ("path[0].index", "above 1")),
        ((*VP, "comm_d_proofs", "data"), {"Sub": {}}, (f"{NAMED}.comm_d_proofs.data.Single", "missing")),
        ((*VP, "labeling_proofs"), lambda p: p[:1], (f"{NAMED}.labeling_proofs", "1 elements, not 2")),
        ((*VP, "labeling_proofs", 1, "parents"), lambda p: [*p, p[0]], ("labeling_proofs[1].parents", "37")),
        ((*VP, "labeling_proofs", 1, "node"), 1 << 64, ("labeling_proofs[1].node", "above 18446744073709551615")),
        ((*VP, "labeling_proofs", 1, "layer_index"), 1 << 32, ("layer_index", "above 4294967295")),
        ((*VP, "replica_column_proofs", "drg_parents"), lambda p: p[:5], ("drg_parents", "5 elements, not 6")),
        ((*VP, "replica_column_proofs", "exp_parents", 3, "column", "rows"), [], ("exp_parents[3].column.rows", "0 elements")),
        ((*VP, "encoding_proof"), ..., (f"{NAMED}.encoding_proof", "missing")),
        (("vanilla_proofs", TAG, 0), lambda p: p[:1], (f"vanilla_proofs.{TAG}[0]", "1 elements, not 2")),
        (("vanilla_proofs", TAG), [], (TAG, "no partition")),
        (("vanilla_proofs",), {}, ("vanilla_proofs", "empty")),
        (("vanilla_proofs",), {"StackedDrg1KiBV1": []}, ("vanilla_proofs", "StackedDrg1KiBV1")),
        (("vanilla_proofs", "Other"), [], ("vanilla_proofs", "more")),
        (("registered_proof",), "StackedDrg8MiBV1_1", (TAG, "StackedDrg8MiBV1_1")),
        (("registered_proof",), "StackedDrg2KiBV1_9", ("registered_proof", "StackedDrg2KiBV1_9")),
        (("registered_proof",), "x" * 1000, ("registered_proof",)),
        (("registered_proof",), 7, ("registered_proof", "string")),
        (("comm_r",), ..., ("comm_r", "missing")), (("ticket",), None, ("ticket", "array")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(path, value, words):
    document = changed(path, value)
    for source, prefix in ((dumped(document), ""), (wrapped(document), "Phase1Out")):
        with pytest.raises(FormatError) as caught:
            read(source, name="bad.json")
        text = str(caught.value)
        assert text.startswith("bad.json:") and all(word in text for word in words), text
        assert not prefix or prefix in text or words[0] in ("registered_proof",) or TAG in words[0]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "nothing"), (b"{", "key"), (b"{}", "Phase1Out"), (b"[]", "object"), (b'{"a":1}', "Phase1Out"), (b" 7", "object"),
        (b"\xef\xbb\xbf{}", "bincode"), (b"\0" * 100, "bincode"), (b"\x01" + b"\0" * 200, "bincode"),
        (b'{"seed":' + b"[" * 100_000, "number"), (b'{"x":' + b"[" * 100_000, "nested"), (b'{"x":' + b'{"x":' * 100, "nested"),
        (b'{"x":tru}', "true"), (b'{"x":01}', "JSON"), (b'{"x":"\\q"}', "escape"), (b'{"x":"\n"}', "control"),
        (b'{"x":"\\u12g4"}', "hexadecimal"), (b'{"x":1}}', "follows"), (b'{"x":1,}', "key"), (b'{"x" 1}', "':'"),
    ],
)  # fmt: skip
def test_texts_that_are_no_c1_output(text, word):
    with pytest.raises(FormatError, match=word):
        read(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Phase1Out": 5}, ("Phase1Out", "base64")), ({"Phase1Out": "e30"}, ("Phase1Out", "multiple of 4")),
        ({"Phase1Out": "e3_="}, ("Phase1Out", "standard base64")), ({"Phase1Out": "e31="}, ("behind",)),
        ({"Phase1Out": "e30=e30="}, ("padding",)), ({"Phase1Out": "=30="}, ("standard base64",)),
        ({"Phase1Out": "e3\n0="}, ("standard base64",)), ({"Phase1Out": "e30="}, ("Phase1Out.comm_r", "missing")),
        ({"Phase1Out": ""}, ("Phase1Out", "object")), ({"SectorNum": -1}, ("SectorNum", "negative")),
        ({"SectorSize": "2KiB"}, ("SectorSize", "number")),
    ],
)  # fmt: skip
def test_wrappers_that_are_none(change, words):
    with pytest.raises(FormatError) as caught:
        read(wrapped(inner(), **change))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_key_twice_is_refused():
    text = dumped(inner()).replace(b'"seed":', b'"ticket":')
    with pytest.raises(FormatError, match=r"ticket: .*twice"):
        read(text)


def test_the_byte_of_a_fault_is_that_of_the_file():
    text = dumped(inner())
    at = text.index(b'"leaf":[') + 8
    bad = text[:at] + b"x" + text[at + 1 :]
    with pytest.raises(FormatError) as caught:
        read(bad)
    assert caught.value.offset == at
    with pytest.raises(FormatError) as caught:
        read(wrapped(bad))
    assert f"byte {at} of the document in Phase1Out" in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_cut_anywhere(form):
    whole = c1_bytes(small_c1(), form)
    rng = np.random.default_rng(5)
    for cut in [1, 2, 7, 8, 15, 16, len(whole) - 1, *rng.integers(1, len(whole), 60).tolist()]:
        with pytest.raises(FormatError):
            read(whole[:cut])
    with pytest.raises(FormatError):
        read(whole + b"\x01")


@pytest.mark.parametrize("form", FORMS)
def test_random_bytes_changed_are_read_or_refused(form):
    """Whatever happens to the text: a C1 output, or a FormatError; never another error, never a crash."""
    whole = c1_bytes(small_c1(), form)
    rng = np.random.default_rng(6)
    for _ in range(150):
        bad = bytearray(whole)
        for at in rng.integers(0, len(whole), rng.integers(1, 4)):
            bad[at] = rng.integers(0, 256)
        try:
            read(bytes(bad))
        except FormatError:
            continue


def test_counts_in_bincode_are_named():
    whole = c1_bytes(small_c1(), "bincode")
    at = layout(small_c1().shape)
    atom = next(a for a in at.atoms if a.kind == "fixed" and a.path.endswith("column.rows"))
    bad = bytearray(whole)
    bad[16 + at.bincode_bytes + atom.offset] += 1
    with pytest.raises(FormatError, match=r"s\[0\]\[1\].replica_column_proofs.c_x.column.rows: .* 3, not 2") as caught:
        read(bytes(bad))
    assert caught.value.offset == 16 + at.bincode_bytes + atom.offset


def test_bincode_is_taken_for_version_1_1_unless_told():
    whole = c1_bytes(small_c1("1.0"), "bincode")
    assert read(whole).registered.name == "StackedDrg2KiBV1_1"
    assert read(whole, registered="StackedDrg2KiBV1").registered.number == 0
    with pytest.raises(InputError, match="8MiB"):
        read(whole, registered="StackedDrg8MiBV1")
    with pytest.raises(InputError, match="asked for"):
        read(dumped(inner()), registered="StackedDrg2KiBV1")


def test_limits():
    with pytest.raises(FormatError, match="1,000"):
        read(dumped(inner()), Limits(max_bytes=1000))
    document = inner()
    document["vanilla_proofs"][TAG] *= 3
    with pytest.raises(FormatError, match="more than 2 elements"):
        read(dumped(document), Limits(max_partitions=2))
    assert read(dumped(document)).partitions == 3  # that a proof has one is what `check` says


def test_peak_memory_is_below_twice_the_file(tmp_path):
    """A wrapper of 126 partitions (8 MB): the process grows by less than another file."""
    document = inner()
    document["vanilla_proofs"][TAG] *= 63
    path = tmp_path / "c1.json"
    path.write_bytes(wrapped(document))
    code = (
        "import resource, sys\n"
        "from cuzk.porep.c1 import read\n"
        "from cuzk.native import info; info()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak(); found = read(sys.argv[1]); print(peak() - before, found.partitions)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    grown, partitions = map(int, done.stdout.split())
    assert partitions == 63 and grown < 2 * path.stat().st_size

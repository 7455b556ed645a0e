"""JSON of strangers: no key twice, positions, and memory that is bounded before it is taken."""

import json
import time
import tracemalloc

import pytest

from cuzk import strict_json
from cuzk.errors import FormatError
from cuzk.groth16.formats.proof import read_proofs, read_public
from cuzk.groth16.formats.vk import read_vk


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    (
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', r"'c' appears twice.*line 2", 24),
        ('{"a": 1, "a": 1}', "'a' appears twice", 9),
        ('["é", }', r"line 1, column 7", 7),
        ("[NaN]", "NaN is no number", 1),
        ("[-Infinity]", "-Infinity is no number", 1),
        (b'["\xff"]', "UTF-8", 2),
        ("", "Expecting value", 0),
    ),
)
def test_what_is_refused_and_where(text, message, offset):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(FormatError, match=message) as caught:
        strict_json.loads("f.json", data)
    assert caught.value.offset == offset


@pytest.mark.parametrize("piece", (b"[],", b"{},", b'"0",', b'["0"],', b'{"a":[]},', b"[[[[]]]],"))
def test_sixty_megabytes_of_nothing_take_no_memory_and_no_time(tmp_path, piece):
    path = tmp_path / "f.json"
    path.write_bytes(b"[" + piece * (60_000_000 // len(piece)) + piece[:-1] + b"]")
    for read in (read_public, read_proofs, read_vk):
        start = time.monotonic()
        tracemalloc.start()
        with pytest.raises(FormatError):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100 << 20 and time.monotonic() - start < 5


def test_the_estimate_is_above_what_parsing_takes():
    """For documents of every shape, so that the budget holds."""
    point = ["1" * 115, "2" * 115, "1"]
    for document in ([str(i) for i in range(20000)], [[]] * 20000, [{}] * 20000, [{"a": i} for i in range(9000)], [point] * 5000,
                     [[[str(10**100 + i), "7"], ["1", "0"]] for i in range(4000)], list(range(30000))):  # fmt: skip
        data = json.dumps(document, separators=(",", ":")).encode()
        tracemalloc.start()
        kept = strict_json.loads("f.json", data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= strict_json.needed_bytes(data), document[:1]
        assert kept == document
        for path, size in (("verification key of 25,839 signals", 25_840 * 260),):
            assert size * 3 < strict_json.BUDGET_BYTES, path

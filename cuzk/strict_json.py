"""JSON from files, strictly: UTF-8, no key twice, no NaN, and refused before it takes more memory than it can need."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from cuzk.errors import FormatError

BUDGET_BYTES = 256 << 20
"""The most that a parsed document may take, by the estimate below: a verifying key of some 200,000 public signals."""
LIST_BYTES, DICT_BYTES, STRING_BYTES, ITEM_BYTES = 88, 296, 50, 40
"""CPython takes about this for each list, object, string (beside its text) and item of either."""


def needed_bytes(data: bytes) -> int:
    """About the memory that parsing takes, from the document's punctuation: an upper bound where it stands in strings too."""
    items = data.count(b",") + data.count(b":")
    lists, objects = data.count(b"["), data.count(b"{")
    return 2 * len(data) + items * ITEM_BYTES + lists * LIST_BYTES + objects * DICT_BYTES + data.count(b'"') // 2 * STRING_BYTES


def loads(path: str | PathLike[str], data: bytes, budget_bytes: int = BUDGET_BYTES, base: int = 0) -> Any:
    """The document in `data`, which stands at byte `base` of the file. Raises FormatError with line and column, or the key."""
    needed = needed_bytes(data)
    if needed > budget_bytes:
        message = f"reading this JSON would take about {needed >> 20} MiB, more than any document of its kind ({len(data)} bytes)"
        raise FormatError(path, message, offset=base)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"not JSON: {error.reason} in UTF-8", offset=base + error.start) from error
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise FormatError(path, message, offset=base + len(text[: error.pos].encode())) from error
    except _Refused as error:
        at = _second(data, error.word) if error.twice else data.find(error.word.encode())
        line = data.count(b"\n", 0, max(at, 0)) + 1
        raise FormatError(path, f"{error} (line {line})", offset=base + max(at, 0)) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"not JSON: {error}", offset=base) from error


class _Refused(Exception):
    def __init__(self, message: str, word: str, twice: bool) -> None:
        self.word, self.twice = word, twice
        super().__init__(message)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {key!r} appears twice in one object", json.dumps(key, ensure_ascii=False), True)
            seen.add(key)
    return found


def _constant(name: str) -> Any:
    raise _Refused(f"not JSON: {name} is no number", name, False)


def _second(data: bytes, word: str) -> int:
    first = data.find(word.encode("utf-8", "surrogatepass"))
    return data.find(word.encode("utf-8", "surrogatepass"), first + 1) if first >= 0 else first

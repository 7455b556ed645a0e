"""Axes of a sweep: `policy.pw=1-24`, `policy.srs=pinned,vram`, `machine.ram=128GiB,256GiB`, any key of a scenario."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cuzk.errors import InputError

MOST_VALUES = 4096
MOST_SETTINGS = 1_000_000
_RANGE = re.compile(r"(\d{1,7})-(\d{1,7})(?::(\d{1,7}))?")


@dataclass(frozen=True)
class Axis:
    """One key and the values that it takes, as `--set` would give them."""

    key: str
    values: tuple[str, ...]


def parse_axis(text: str) -> Axis:
    """`KEY=V,V,…`; `A-B` and `A-B:STEP` are whole numbers; commas within brackets do not part. Raises InputError."""
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not equals or not key or not all(part for part in key.split(".")):
        raise InputError(f"--over {text}: must be KEY=VALUES, such as policy.pw=1-24 or machine.ram=128GiB,256GiB")
    values: list[str] = []
    for part in _parts(rest):
        if (span := _RANGE.fullmatch(part)) is None:
            values.append(part)
            continue
        first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
        if last < first or step < 1:
            raise InputError(f"--over {text}: {part} has no value in it: the lower end comes first")
        if (last - first) // step >= MOST_VALUES:
            raise InputError(f"--over {text}: {part} has more than {MOST_VALUES:,} values")
        values += map(str, range(first, last + 1, step))
    if not values or not all(values):
        raise InputError(f"--over {text}: an empty value")
    return Axis(key, tuple(dict.fromkeys(values)))


def _parts(text: str) -> list[str]:
    """The text at its commas, but for those within brackets or quotes."""
    parts, depth, quote, now = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        if letter == "," and depth == 0 and not quote:
            parts.append(now.strip())
            now = ""
        else:
            now += letter
    return [*parts, now.strip()]


def count(axes: Sequence[Axis]) -> int:
    """Settings of the grid. Raises InputError for more than can be swept, and for a key that is there twice."""
    keys = [axis.key for axis in axes]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise InputError(f"{twice[0]} is swept twice")
    total = 1
    for axis in axes:
        total *= len(axis.values)
    if total > MOST_SETTINGS:
        raise InputError(f"{total:,} settings are more than {MOST_SETTINGS:,}: fewer values, or fewer axes")
    return total


def settings(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    """Every combination, the last axis fastest."""
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip((axis.key for axis in axes), values, strict=True))


def overrides(setting: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in setting.items()]

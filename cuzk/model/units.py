"""Quantities with mandatory units: sizes, durations, rates.

In a file a quantity must carry its unit (`16GiB`, `3.5s`, `55GB/s`); a bare number is an error there. Python callers
may pass plain numbers in the base unit (bytes, seconds, bytes/s, 1/s). `model_dump(mode="json")` writes quantities
back with an exact unit, so a dumped model loads again unchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

BYTE_UNITS: dict[str, int] = {
    "B": 1,
    "KiB": KIB, "Ki": KIB, "MiB": MIB, "Mi": MIB, "GiB": GIB, "Gi": GIB, "TiB": TIB, "Ti": TIB,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
SECOND_UNITS: dict[str, Decimal] = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "ms": Decimal("1e-3"),
    "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400),
}  # fmt: skip
PER_UNITS: dict[str, Decimal] = {"s": Decimal(1), "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}

MAX_BYTES = 1 << 60
MAX_SECONDS = 1e12
UNITS_REQUIRED = {"units": "required"}
"""Validation context under which a bare number is an error; loaders of files pass it."""

_NUMBER = r"([-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?)"
_SIZE = re.compile(rf"\s*{_NUMBER}\s*([A-Za-z]+)\s*")
_TIME = re.compile(rf"\s*{_NUMBER}\s*([A-Za-zµ]+)\s*")
_RATE = re.compile(rf"\s*{_NUMBER}\s*([A-Za-z]+)\s*/\s*([A-Za-z]+)\s*")
_FREQUENCY = re.compile(rf"\s*{_NUMBER}\s*/\s*([A-Za-z]+)\s*")


def looks_like_size(text: str) -> bool:
    """A number directly followed by letters: a size, right or wrong, and no formula."""
    return bool(_SIZE.fullmatch(text))


def looks_like_duration(text: str) -> bool:
    return bool(_TIME.fullmatch(text))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text.replace("_", ""))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None


def _unit(name: str, units: Mapping[str, Any], kind: str) -> Any:
    if name in units:
        return units[name]
    same = [unit for unit in units if unit.lower() == name.lower()]
    hint = f"; did you mean '{same[0]}'?" if same else f"; use one of {', '.join(units)}"
    raise ValueError(f"'{name}' is not a unit of {kind}{hint}")


def parse_bytes(text: str) -> int:
    """'16GiB', '16Gi', '16GB' (10^9), '512 MiB' → bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a size: write a number and a unit, such as 16GiB or 512MiB")
    exact: Decimal = _decimal(match[1]) * _unit(match[2], BYTE_UNITS, "size")
    if exact < 0:
        raise ValueError(f"a size cannot be negative, and {text!r} is")
    if exact > MAX_BYTES:
        raise ValueError(f"{text!r} is larger than any machine (limit 1 EiB)")
    return round(exact)


def parse_seconds(text: str) -> float:
    """'3.5s', '120ms', '2min', '1h' → seconds. Raises ValueError."""
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a duration: write a number and a unit, such as 3.5s or 120ms")
    exact = float(_decimal(match[1]) * _unit(match[2], SECOND_UNITS, "time"))
    if exact < 0:
        raise ValueError(f"a duration cannot be negative, and {text!r} is")
    if exact > MAX_SECONDS:
        raise ValueError(f"{text!r} is longer than {MAX_SECONDS:g} s")
    return exact


def parse_rate(text: str) -> float:
    """'55GB/s', '300 GiB/s' → bytes per second. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a rate: write a number, a unit of size and '/s', such as 55GB/s")
    size, per = _unit(match[2], BYTE_UNITS, "size"), _unit(match[3], PER_UNITS, "time")
    exact = _decimal(match[1]) * size / per
    if exact <= 0:
        raise ValueError(f"a rate must be above zero, and {text!r} is not")
    if exact > MAX_BYTES:
        raise ValueError(f"{text!r} is faster than any memory")
    return float(exact)


def parse_frequency(text: str) -> float:
    """'1.5/min', '80/h' → events per second. Raises ValueError."""
    match = _FREQUENCY.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a frequency: write a number and '/s', '/min' or '/h', such as 1.5/min")
    exact = float(_decimal(match[1]) / _unit(match[2], PER_UNITS, "time"))
    if not 0 < exact <= 1e6:
        raise ValueError(f"a frequency must be above zero and at most 1e6/s, and {text!r} is not")
    return exact


def _quantity(parse: Callable[[str], float], kind: str, example: str, limit: float) -> Callable[..., Any]:
    def validate(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"a {kind} is needed here, such as {example}")
        if not math.isfinite(value):
            raise ValueError(f"a {kind} must be finite, not {value}")
        if (info.context or {}).get("units") == "required":
            raise ValueError(f"{value} has no unit: write a {kind} with its unit, such as {example}")
        if not 0 <= value <= limit:
            raise ValueError(f"{value} is outside 0…{limit:g}")
        return value

    return validate


def _exact(value: float, units: tuple[tuple[str, float], ...], base: str) -> str:
    """`value` in the largest of `units` that divides it, else in `base`; exact either way."""
    for name, factor in units:
        if value and value % factor == 0:
            return f"{int(value // factor)}{name}"
    text = repr(int(value)) if value == int(value) else repr(float(value))
    return text + base


def bytes_text(value: int) -> str:
    """Exact text of a size that `parse_bytes` reads back: 8589934592 → '8GiB'."""
    return _exact(value, (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)), "B")


def seconds_text(value: float) -> str:
    return _exact(value, (), "s")


def rate_text(value: float) -> str:
    return _exact(value, (("GB/s", 1e9), ("MB/s", 1e6)), "B/s")


def frequency_text(value: float) -> str:
    return _exact(value, (), "/s")


def _schema(pattern: str, what: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "description": what})


_N = r"^\s*[+]?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*"
_SIZES = "(" + "|".join(sorted(BYTE_UNITS, key=len, reverse=True)) + ")"
_TIMES = "(" + "|".join(sorted(SECOND_UNITS, key=len, reverse=True)) + ")"

Bytes = Annotated[
    int,
    BeforeValidator(_quantity(parse_bytes, "size", "16GiB", MAX_BYTES)),
    PlainSerializer(bytes_text, return_type=str, when_used="json"),
    _schema(_N + _SIZES + r"\s*$", "size with its unit: 16GiB = 16Gi, 16GB = 16·10^9"),
]
"""A size in bytes."""

Seconds = Annotated[
    float,
    BeforeValidator(_quantity(parse_seconds, "duration", "3.5s", MAX_SECONDS)),
    PlainSerializer(seconds_text, return_type=str, when_used="json"),
    _schema(_N + _TIMES + r"\s*$", "duration with its unit: 3.5s, 120ms, 2min"),
]
"""A duration in seconds."""

Rate = Annotated[
    float,
    BeforeValidator(_quantity(parse_rate, "rate", "55GB/s", MAX_BYTES)),
    PlainSerializer(rate_text, return_type=str, when_used="json"),
    _schema(_N + _SIZES + r"\s*/\s*(s|min|h|d)\s*$", "rate with its unit: 55GB/s"),
]
"""A bandwidth in bytes per second."""

Frequency = Annotated[
    float,
    BeforeValidator(_quantity(parse_frequency, "frequency", "1.5/min", 1e6)),
    PlainSerializer(frequency_text, return_type=str, when_used="json"),
    _schema(_N + r"/\s*(s|min|h|d)\s*$", "events per time: 1.5/min, 80/h"),
]
"""Events per second."""


def fmt_gib(size_bytes: float) -> str:
    """16642998272 → '15.5 GiB': one decimal, always GiB."""
    return f"{size_bytes / GIB:.1f} GiB"


def fmt_s(duration_s: float) -> str:
    """Seconds as people read them: '842 ms', '37.1 s', '12 min 22 s', '2 h 05 min'."""
    if not math.isfinite(duration_s):
        return str(duration_s)
    if duration_s < 0:
        return "-" + fmt_s(-duration_s)
    if duration_s < 0.9995:
        return "0 s" if duration_s == 0 else f"{duration_s * 1e3:.3g} ms"
    if duration_s < 599.95:
        return f"{duration_s:.1f} s"
    whole = round(duration_s)
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"

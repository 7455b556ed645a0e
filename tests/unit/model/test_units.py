import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from cuzk.model.units import (
    BYTE_UNITS,
    GIB,
    MAX_BYTES,
    UNITS_REQUIRED,
    Bytes,
    Frequency,
    Rate,
    Seconds,
    bytes_text,
    fmt_gib,
    fmt_s,
    parse_bytes,
    parse_frequency,
    parse_rate,
    parse_seconds,
    rate_text,
    seconds_text,
)


class Quantities(BaseModel):
    size: Bytes = 0
    time: Seconds = 0.0
    rate: Rate = 1.0
    often: Frequency = 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16GiB", 16 * GIB), ("16Gi", 16 * GIB), ("16GB", 16 * 10**9), ("512MiB", 512 << 20), ("0B", 0), ("1.5GiB", 3 << 29),
        ("131981020KiB", 131981020 << 10), ("150108897280B", 150108897280),
        (" 1 TiB ", 1 << 40), ("1e3kB", 10**6), ("1_000B", 1000),
    ],
)  # fmt: skip
def test_sizes(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["16", "", "GiB", "16 G i B", "16GiBs", "16gib", "-1GiB", "nanGiB", "infB", "1e99GiB", "2EiB", "16XB"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_bytes(text)


def test_a_unit_in_the_wrong_case_is_suggested() -> None:
    with pytest.raises(ValueError, match="did you mean 'GiB'"):
        parse_bytes("16gib")


def test_times_and_rates() -> None:
    assert parse_seconds("120ms") == 0.12
    assert parse_seconds("2min") == 120
    assert parse_rate("55GB/s") == 55e9
    assert parse_rate("60GiB/min") == GIB
    assert parse_frequency("90/h") == 0.025
    for text in ("3.5", "3.5 sec", "-1s", "1e13s"):
        with pytest.raises(ValueError):
            parse_seconds(text)
    for text in ("55GB", "55/s", "0GB/s", "-5GB/s"):
        with pytest.raises(ValueError):
            parse_rate(text)
    for text in ("0/s", "5", "-1/h"):
        with pytest.raises(ValueError):
            parse_frequency(text)


@given(st.integers(0, MAX_BYTES))
def test_a_size_reads_back_as_it_was_written(size: int) -> None:
    assert parse_bytes(bytes_text(size)) == size


@given(st.integers(0, 10**6), st.sampled_from(sorted(BYTE_UNITS)))
def test_every_unit_counts(number: int, unit: str) -> None:
    assert parse_bytes(f"{number}{unit}") == number * BYTE_UNITS[unit]


@given(st.floats(0, 1e12, allow_subnormal=False), st.floats(1e-3, 1e15))
def test_times_and_rates_read_back(time: float, rate: float) -> None:
    assert parse_seconds(seconds_text(time)) == time
    assert math.isclose(parse_rate(rate_text(rate)), rate, rel_tol=1e-15)


@pytest.mark.parametrize(("field", "value"), [("size", 16), ("time", 3.5), ("rate", 1e9), ("often", 2), ("size", 0), ("time", 0)])
def test_in_a_file_a_bare_number_is_an_error(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match="no unit"):
        Quantities.model_validate({field: value}, context=UNITS_REQUIRED)
    assert getattr(Quantities.model_validate({field: value}), field) == value


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}, math.nan, math.inf, -1])
def test_no_quantity_at_all(value: object) -> None:
    for field in ("size", "time"):
        with pytest.raises(ValidationError):
            Quantities.model_validate({field: value})


def test_a_dumped_model_loads_where_units_are_required() -> None:
    model = Quantities(size=3 * GIB, time=0.125, rate=5.5e10, often=0.5)
    dumped = model.model_dump(mode="json")
    assert dumped == {"size": "3GiB", "time": "0.125s", "rate": "55GB/s", "often": "0.5/s"}
    assert Quantities.model_validate(dumped, context=UNITS_REQUIRED) == model


def test_what_people_read() -> None:
    assert fmt_gib(16_642_998_272) == "15.5 GiB"
    assert [fmt_s(t) for t in (0, 0.0175, 0.842, 37.06, 742, 7500)] == [
        "0 s", "17.5 ms", "842 ms", "37.1 s", "12 min 22 s", "2 h 05 min",
    ]  # fmt: skip

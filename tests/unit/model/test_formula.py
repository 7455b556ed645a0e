import contextlib
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from cuzk.errors import InputError
from cuzk.model.formula import DurationFormula, Formula, SizeFormula
from cuzk.model.units import GIB, UNITS_REQUIRED

NAMES = {"h": 134217727.0, "l": 130169893.0, "a": 129753620.0, "b_g1": 33112282.0, "b_g2": 33112282.0, "gt": 32.0}


class Fields(BaseModel):
    any: Formula = Formula(0)
    size: SizeFormula = Formula(0)
    time: DurationFormula = Formula(0)


def test_the_key_size_of_porep() -> None:
    formula = Formula("96*(h+l+a+b_g1) + 192*b_g2")
    assert formula.size(NAMES) == 47_373_896_256
    assert formula.names == {"h", "l", "a", "b_g1", "b_g2"}
    assert formula.compile()(NAMES) == formula(NAMES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 // 2", 3), ("-7 % 3", 2), ("2**10", 1024), ("min(3, 1, 2)", 1), ("max(3, gt)", 32), ("ceil(2.1)", 3),
        ("floor(-0.5)", -1),
        ("log2(8)", 3), ("ilog2(134217728)", 27), ("ilog2(134217727)", 26), ("clamp(ilog2(1.5*134217728) - 8, 10, 18)", 18),

        ("1 if gt >= 32 and not gt > 32 else 2", 1), ("(2 > 1) + 1", 2), ("1 < gt < 40", 1), ("abs(-2)", 2),
        ("sqrt(9)", 3), ("+1 - -1", 2),
    ],
)  # fmt: skip
def test_values(text: str, value: float) -> None:
    assert Formula(text).evaluate(NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a b", "1 +", "x.y", "x[0]", "__import__('os')", "[1]", "{1}", "'a'", "a == 'b'", "lambda: 1", "f(1)", "min(1)",
        "min",
        "clamp(1, 2)", "log2(x=1)", "1 << 3", "1 | 2", "~1", "a is b", "a in b", "1e999", "1j", "True", "x := 1",
        "\0", "9" * 5000,
        "(" * 900 + "1" + ")" * 900, "-" * 1900 + "1", "1" + "+1" * 1500, "*a", "f'{a}'", "await x", "...",
    ],
)  # fmt: skip
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(ValueError):
        Formula(text)


@pytest.mark.parametrize(
    "text", ["1/0", "1 % 0", "9**9**9**9", "(-8)**(1/3)", "log2(0)", "ilog2(-1)", "sqrt(-1)", "1e300*1e300", "0**-1"]
)
def test_values_that_do_not_exist(text: str) -> None:
    with pytest.raises(InputError, match="formula"):
        Formula(text).evaluate({})


def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="unknown name 'b_g3'; did you mean 'b_g"):
        Formula("96*b_g3").evaluate(NAMES)


def test_a_size_is_whole_and_not_negative() -> None:
    assert Formula("10/4").size({}) == 3
    with pytest.raises(InputError, match="negative"):
        Formula("-1").size({})


expressions = st.recursive(
    st.one_of(st.integers(0, 10**9).map(str), st.sampled_from(sorted(NAMES)), st.floats(0, 1e9).map(repr)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} > {t[2]} else 1)"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_a_formula_is_what_python_computes_in_doubles(text: str) -> None:
    formula = Formula(text)
    direct = eval(text, {"__builtins__": {}, "max": max}, dict(NAMES))
    assert math.isclose(formula.evaluate(NAMES), float(direct), rel_tol=1e-9)
    again = pickle.loads(pickle.dumps(formula))
    assert again == formula and again.evaluate(NAMES) == formula.evaluate(NAMES)


@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        Formula(text)


def test_sizes_and_durations_where_a_formula_is_due() -> None:
    fields = Fields.model_validate({"any": "4GiB", "size": "1GiB", "time": "120ms"}, context=UNITS_REQUIRED)
    assert fields.any.evaluate({}) == 4 * GIB
    assert fields.size.evaluate({}) == GIB
    assert fields.time.evaluate({}) == 0.12
    assert Fields.model_validate(fields.model_dump(mode="json"), context=UNITS_REQUIRED) == fields


@pytest.mark.parametrize(
    ("field", "value"), [("size", 5), ("size", "5"), ("size", "2*3"), ("time", 5.0), ("time", "5"), ("any", "4XB")]
)
def test_a_constant_without_its_unit(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match="unit"):
        Fields.model_validate({field: value}, context=UNITS_REQUIRED)


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}, math.nan, math.inf])
def test_no_formula_at_all(value: object) -> None:
    with pytest.raises(ValidationError):
        Fields.model_validate({"any": value})


def test_a_number_has_one_form() -> None:
    assert Formula(0) == Formula("0.0") == Formula("0e3")
    assert hash(Formula("2")) == hash(Formula(2.0))


def test_a_formula_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Formula("1").text = "2"  # type: ignore[misc]

"""Formulas over counts and policy values: `96*(h+l+a+b_g1) + 192*b_g2`.

A formula is a Python expression of a small, safe kind: numbers, names, + - * / // % **, comparisons, and/or/not,
`x if c else y`, and the functions min max ceil floor log2 ilog2 clamp abs sqrt. All arithmetic is in doubles, so counts
are exact up to 2^53 and no expression can grow without bound.
"""

from __future__ import annotations

import ast
import difflib
import math
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer, ValidationInfo
from pydantic_core import core_schema

from cuzk.errors import InputError
from cuzk.model.units import bytes_text, looks_like_duration, looks_like_size, parse_bytes, parse_seconds

MAX_LENGTH = 2000
Names = Mapping[str, float]


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(value, high))


def _ilog2(value: float) -> float:
    """Floor of log2, exact for powers of two."""
    if value <= 0:
        raise ValueError("ilog2 of a number that is not above zero")
    return float(math.frexp(value)[1] - 1)


def _pow(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


def _ceil(value: float) -> float:
    return float(math.ceil(value))


def _floor(value: float) -> float:
    return float(math.floor(value))


FUNCTIONS: dict[str, tuple[Callable[..., float], int, int]] = {
    "min": (min, 2, 16), "max": (max, 2, 16), "ceil": (_ceil, 1, 1), "floor": (_floor, 1, 1), "log2": (math.log2, 1, 1),
    "ilog2": (_ilog2, 1, 1), "clamp": (_clamp, 3, 3), "abs": (abs, 1, 1), "sqrt": (math.sqrt, 1, 1),
}  # fmt: skip
_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_COMPARE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_GLOBALS: dict[str, Any] = {"__builtins__": {}, "_pow": _pow} | {f"_{k}": v[0] for k, v in FUNCTIONS.items()}


class _Translator(ast.NodeVisitor):
    """Rebuilds the expression with names looked up in the dictionary `_n`; refuses everything else."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def generic_visit(self, node: ast.AST) -> ast.expr:
        raise ValueError(f"{type(node).__name__} is not allowed in a formula")

    def number(self, node: ast.expr) -> ast.expr:
        result: ast.expr = self.visit(node)
        return result

    def visit_Expression(self, node: ast.Expression) -> ast.expr:
        return self.number(node.body)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{value!r} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError("a number in the formula is too large")
        return ast.Constant(number)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in FUNCTIONS:
            raise ValueError(f"'{node.id}' is a function: write {node.id}(…)")
        self.names[node.id] = None
        return ast.Subscript(ast.Name("_n", ast.Load()), ast.Constant(node.id), ast.Load())

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, (ast.UAdd, ast.USub, ast.Not)):
            raise ValueError(f"{type(node.op).__name__} is not allowed in a formula")
        return ast.UnaryOp(node.op, self.number(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.Pow):
            return _call("_pow", [left, right])
        if not isinstance(node.op, _BINARY):
            raise ValueError(f"{type(node.op).__name__} is not allowed in a formula")
        return ast.BinOp(left, node.op, right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return ast.BoolOp(node.op, [self.number(value) for value in node.values])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        for op in node.ops:
            if not isinstance(op, _COMPARE):
                raise ValueError(f"{type(op).__name__} is not allowed in a formula")
        return ast.Compare(self.number(node.left), node.ops, [self.number(part) for part in node.comparators])

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.number(node.test), self.number(node.body), self.number(node.orelse))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
            raise ValueError(f"unknown function '{name}'{suggestion(name, FUNCTIONS)}")
        _, least, most = FUNCTIONS[node.func.id]
        if node.keywords or not least <= len(node.args) <= most:
            many = f"{least}" if least == most else f"{least} to {most}"
            raise ValueError(f"{node.func.id} takes {many} arguments, not {len(node.args)}")
        return _call(f"_{node.func.id}", [self.number(argument) for argument in node.args])


def _call(name: str, arguments: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def suggestion(name: str, known: Iterable[str]) -> str:
    """'; did you mean 'x'?' or, with nothing near, the short list of what is known."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known: {', '.join(known)}" if known else ""


@lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[Callable[[Names], float], frozenset[str]]:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a formula of {len(text)} characters (limit {MAX_LENGTH})")
    if not text.strip():
        raise ValueError("an empty formula")
    translator = _Translator()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            parsed = ast.parse(text.strip(), mode="eval")
        body = translator.visit(parsed)
        tree = ast.Expression(ast.Lambda(_ARGUMENTS, body))
        code = compile(ast.fix_missing_locations(tree), "<formula>", "eval")
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        shown = text if len(text) <= 60 else text[:57] + "…"
        raise ValueError(f"{shown!r} is not a formula{where}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("the formula is nested too deeply") from None
    lambda_code = next(const for const in code.co_consts if isinstance(const, types.CodeType))
    return types.FunctionType(lambda_code, _GLOBALS, "formula"), frozenset(translator.names)


_ARGUMENTS = ast.arguments(posonlyargs=[], args=[ast.arg("_n")], kwonlyargs=[], kw_defaults=[], defaults=[])


def _canonical(text: str) -> str:
    """A bare number in its shortest form, so that 0, 0.0 and 0e3 are one formula; other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


class Formula:
    """An immutable formula. Raises ValueError on text that is none."""

    __slots__ = ("_function", "names", "text")

    text: str
    names: frozenset[str]

    def __init__(self, text: str | float) -> None:
        if isinstance(text, (int, float)) and not isinstance(text, bool):
            if not math.isfinite(text):
                raise ValueError(f"{text} is not finite")
            text = repr(text)
        if not isinstance(text, str):
            raise ValueError(f"a formula is text or a number, not {text!r}")
        function, names = _compiled(text)
        object.__setattr__(self, "text", text.strip() if names else _canonical(text.strip()))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_function", function)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a formula is immutable")

    def __reduce__(self) -> tuple[type[Formula], tuple[str]]:
        return Formula, (self.text,)

    def compile(self) -> Callable[[Names], float]:
        """The bare compiled function, for loops: KeyError for a missing name, ArithmeticError as Python raises."""
        function: Callable[[Names], float] = self._function  # type: ignore[attr-defined]
        return function

    def evaluate(self, names: Names) -> float:
        """The value under `names`. Raises InputError: unknown name, division by zero, overflow, no finite number."""
        self.check(names)
        try:
            value = float(self.compile()(names))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InputError(f"formula '{self.text}': {error}") from None
        if not math.isfinite(value):
            raise InputError(f"formula '{self.text}' is not finite here")
        return value

    __call__ = evaluate

    def size(self, names: Names) -> int:
        """The value as whole bytes, rounded up. Raises InputError, also for a negative size."""
        value = self.evaluate(names)
        if value < 0:
            raise InputError(f"formula '{self.text}' gives a negative size: {value:g}")
        return math.ceil(value)

    def check(self, known: Iterable[str]) -> None:
        """Raises InputError, with a suggestion, for a name that is not in `known`."""
        known = known if isinstance(known, Mapping) else set(known)
        for name in sorted(self.names):
            if name not in known:
                raise InputError(f"formula '{self.text}': unknown name '{name}'{suggestion(name, known)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"type": ["string", "number"], "description": "number, size such as 4GiB, or formula over counts"}

    @classmethod
    def _validate(cls, value: Any, info: core_schema.ValidationInfo) -> Formula:
        if isinstance(value, Formula):
            return value
        if isinstance(value, str) and looks_like_size(value):
            return cls(parse_bytes(value))
        return cls(value)


def _duration(value: Any, info: ValidationInfo) -> Any:
    """Turns '3.5s' into its seconds; a constant without unit is refused in files."""
    if isinstance(value, str):
        if looks_like_duration(value):
            return repr(parse_seconds(value))
        if not Formula(value).names:
            raise ValueError(f"'{value}' has no unit: write a duration such as 3.5s, or a formula over counts")
    return _with_unit(value, info, "a duration such as 3.5s")


def _size(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and not looks_like_size(value) and not Formula(value).names:
        raise ValueError(f"'{value}' has no unit: write a size such as 4GiB, or a formula over counts")
    return _with_unit(value, info, "a size such as 4GiB")


def _with_unit(value: Any, info: ValidationInfo, what: str) -> Any:
    if isinstance(value, (int, float)) and (info.context or {}).get("units") == "required":
        raise ValueError(f"{value} has no unit: write {what}, or a formula over counts")
    return value


def _duration_text(formula: Formula) -> str:
    return formula.text if formula.names else formula.text + "s"


def _size_text(formula: Formula) -> str:
    return formula.text if formula.names else bytes_text(formula.size({}))


DurationFormula = Annotated[Formula, BeforeValidator(_duration), PlainSerializer(_duration_text, when_used="json")]
"""Seconds: '3.5s', or a formula whose value is in seconds."""

SizeFormula = Annotated[Formula, BeforeValidator(_size), PlainSerializer(_size_text, when_used="json")]
"""Bytes: '4GiB', or a formula whose value is in bytes."""

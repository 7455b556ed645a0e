"""Validation of a tree of nodes into a model, with every fault at its place in the file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from cuzk.model.units import UNITS_REQUIRED
from cuzk.model.yamlpos import BROKEN, Loc, Node, Problems, describe

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], node: Node, problems: Problems, at: Loc = (), incomplete: bool = False) -> M | None:
    """`node` as `model`; None if there are faults, which go to `problems`.

    `at` is put before each path. `incomplete`: a part could not be loaded, so do not complain of what is missing.
    """
    try:
        return model.model_validate(node.plain(), context=UNITS_REQUIRED)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            _report(model, node, dict(fault), problems, at, incomplete)
        return None


def _report(model: type[BaseModel], root: Node, fault: dict[str, Any], problems: Problems, at: Loc, incomplete: bool) -> None:
    node, loc, models = root, list[str | int](), {model}
    key_fault = fault["type"] == "extra_forbidden"
    for element in fault["loc"]:
        child = node.child(element)
        if child is None:
            continue  # the tag of a union, or a key that is missing
        models = _below(models, element) if not key_fault or element in _keys(models) else models
        node = child
        loc.append(element)
        if node.value is BROKEN:
            return  # reported where it was read
    pos = node.pos
    if key_fault:
        name = str(fault["loc"][-1])
        pos = node.key_pos or node.pos
        message = f"unknown key{_did_you_mean(name, _keys(models), every=True)}"
    elif fault["type"] == "missing":
        if incomplete:
            return
        loc.append(fault["loc"][-1])
        if node.key_pos is not None and node.key_pos.file == node.pos.file:
            pos = node.key_pos
        message = "is required, and missing"
    else:
        message = _message(fault, node)
    problems.add(pos, (*at, *loc), message)


def _below(models: set[type[BaseModel]], element: str | int) -> set[type[BaseModel]]:
    """The models that may stand under `element` of one of `models`; a list's or dict's item: the same ones."""
    found: set[type[BaseModel]] = set()
    known = False
    for model in models:
        for name, field in model.model_fields.items():
            if element in (name, field.alias):
                known = True
                found |= set(_models_in(field.annotation))
    return found if known else models


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _keys(models: set[type[BaseModel]]) -> list[str]:
    return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})


def _did_you_mean(name: str, known: Iterable[str], every: bool = False) -> str:
    known = list(known)
    cutoff = 0.5 if len(name) < 4 else 0.6
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=cutoff)
    near = near or difflib.get_close_matches(name.lower(), known, n=1, cutoff=cutoff)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known here: {', '.join(known)}" if every and known else ""


_KINDS = {
    "int_type": "a whole number", "int_from_float": "a whole number", "int_parsing": "a whole number",
    "float_type": "a number", "float_parsing": "a number", "string_type": "text", "bool_type": "true or false",
    "bool_parsing": "true or false", "dict_type": "a mapping (key: value)", "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)", "tuple_type": "a list", "list_type": "a list",
    "finite_number": "a finite number", "int_parsing_size": "a smaller number",
}  # fmt: skip
_LIMITS = {
    "greater_than_equal": ("at least", "ge"), "greater_than": ("above", "gt"), "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}  # fmt: skip


def _message(fault: dict[str, Any], node: Node) -> str:
    kind, context, value = fault["type"], fault.get("ctx", {}), node.value
    if kind in _KINDS:
        return f"must be {_KINDS[kind]}, not {describe(value)}"
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        return f"must be {word} {context[key]:,}, not {describe(value)}"
    if kind in ("literal_error", "enum"):
        allowed = [word for word in context["expected"].split("'")[1::2]]
        near = _did_you_mean(value, allowed) if isinstance(value, str) else ""
        return f"must be {context['expected']}, not {describe(value)}{near}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_too_short":
        return "must not be empty"
    return str(fault["msg"])

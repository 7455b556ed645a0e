"""Models as YAML text that loads back equal. Only what differs from the defaults is written, quantities with units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from cuzk.model.yamlpos import plain_scalar

_PLAIN = re.compile(r"[A-Za-z0-9_(.][A-Za-z0-9_ ./+*()%<>=,;-]*")


def part_text(kind: str, part: BaseModel, comment: str = "") -> str:
    """The file of a part: `kind` is its key, such as 'calibration'; `comment` goes above it."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    data = part.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return "\n".join([*lines, *_block({kind: data}, 0)]) + "\n"


def yaml_text(data: Any) -> str:
    """Plain data (dicts, lists, scalars) as YAML."""
    return "\n".join(_block(data, 0)) + "\n"


def _block(data: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(data, dict):
        for key, value in data.items():
            if _nested(value):
                yield f"{indent}{_scalar(str(key))}:"
                yield from _block(value, depth + 1)
            else:
                yield f"{indent}{_scalar(str(key))}: {_inline(value)}"
    elif isinstance(data, (list, tuple)):
        for value in data:
            if _nested(value):
                first, *rest = _block(value, depth + 1)
                yield f"{indent}- {first.lstrip()}"
                yield from rest
            else:
                yield f"{indent}- {_inline(value)}"
    else:
        yield indent + _inline(data)


def _nested(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, (dict, list, tuple)) for item in value) or sum(len(str(i)) + 2 for i in value) > 90
    return isinstance(value, dict) and bool(value)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_scalar(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether `text` without quotes reads back as itself, also within [ ]."""
    try:
        return bool(_PLAIN.fullmatch(text)) and text[-1] != " " and "," not in text and plain_scalar(text) == text
    except ValueError:
        return False

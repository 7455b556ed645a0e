"""YAML as a tree in which every value knows its file, line and column.

A small, strict YAML: one document, a mapping at the top, text keys, no duplicates, no anchors, aliases, merge keys,
tags or directives. Scalars follow YAML 1.2 (`yes`, `off` are text; `010` is ten). All faults of a file are collected in
`Problems`, and raised at once as ScenarioError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzk.errors import ScenarioError

MAX_FILE_BYTES = 1 << 20
MAX_VALUES = 50_000
MAX_DEPTH = 48
MAX_INT_DIGITS = 400

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Pos:
    """The place where something was written; `line` and `col` count from 1, 0 where there are none (`--set …`)."""

    file: str
    line: int = 0
    col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


class _Broken:
    """Stands for a value whose fault is reported already."""

    def __repr__(self) -> str:
        return "<unreadable>"


BROKEN = _Broken()


@dataclass(slots=True)
class Node:
    """A value with its position: a scalar, a list of nodes or a dict of nodes."""

    value: Any
    pos: Pos
    key_pos: Pos | None = None
    replaces: bool = False
    """In a merge this value takes the place of the one below it, whole."""

    def plain(self) -> Any:
        """The value as plain dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, key: str | int) -> Node | None:
        if isinstance(self.value, dict):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            found: Node = self.value[key]
            return found
        return None

    def find(self, loc: Loc) -> Node | None:
        """The node at `loc`, or None."""
        node: Node | None = self
        for key in loc:
            node = node.child(key) if node is not None else None
        return node


@dataclass
class Problems:
    """Faults found so far, as `file:line:col: path: message`."""

    found: dict[str, tuple[str, int, int]] = field(default_factory=dict)

    def add(self, pos: Pos, loc: Loc | str, message: str) -> None:
        path = loc if isinstance(loc, str) else ".".join(map(str, loc))
        self.found.setdefault(f"{pos}: {path + ': ' if path else ''}{message}", (pos.file, pos.line, pos.col))

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_if_any(self) -> None:
        if self.found:
            raise ScenarioError(sorted(self.found, key=lambda line: self.found[line]))


def merge(base: Node, over: Node) -> Node:
    """`over` laid on `base`: mappings are merged deep, anything else is replaced."""
    if over.replaces or not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    children = dict(base.value)
    for key, child in over.value.items():
        children[key] = merge(children[key], child) if key in children else child
    return Node(children, over.pos, over.key_pos, base.replaces)


def read_file(path: Path, shown: str, problems: Problems) -> Node | None:
    """The mapping in a YAML file; None after a fault that leaves nothing to look at.

    `shown` is the file's name in messages.
    """
    start = Pos(shown, 1, 1)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        problems.add(Pos(shown), "", f"cannot be read: {error.strerror or error}")
        return None
    if len(raw) > MAX_FILE_BYTES:
        problems.add(start, "", f"larger than {MAX_FILE_BYTES >> 20} MiB: this is no scenario")
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        col = error.start - (before.rfind(b"\n") + 1) + 1
        problems.add(Pos(shown, before.count(b"\n") + 1, col), "", f"not UTF-8 text (byte 0x{raw[error.start]:02x})")
        return None
    return parse(text, shown, problems)


def parse(text: str, shown: str, problems: Problems) -> Node | None:
    """The mapping in `text`; None after a fault that leaves nothing to look at."""
    start = Pos(shown, 1, 1)
    node = parse_value(text, shown, problems)
    if node is None or node.value is BROKEN:
        return None
    if node.value is None and not node.pos.line:
        problems.add(start, "", "the file is empty")
        return None
    if not isinstance(node.value, dict):
        problems.add(node.pos, "", f"a mapping (key: value) is needed at the top, not {describe(node.value)}")
        return None
    return node


def parse_value(text: str, shown: str, problems: Problems) -> Node | None:
    """Any YAML value in `text`: None after a fault of syntax, a null without position if there is no document."""
    from ruamel.yaml import YAML  # costs more to import than all of cuzk.model
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    builder = _Builder(shown, problems)
    # ruamel's scanner fails on odd input with whatever Python raised there: that is a fault of the file too.
    faults = (YAMLError, ValueError, IndexError, KeyError, AttributeError, TypeError, AssertionError, RecursionError)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if not builder.feed(event):
                return None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        pos = Pos(shown, mark.line + 1, mark.column + 1) if mark else Pos(shown, 1, 1)
        problems.add(pos, "", _syntax_message(error.problem or error.context or "not YAML", text, pos))
        return None
    except faults as error:
        at = getattr(error, "position", None)
        before = text[:at] if isinstance(at, int) else ""
        pos = Pos(shown, before.count("\n") + 1, len(before) - before.rfind("\n"))
        character = getattr(error, "character", None)
        what = f"a control character ({character!r})" if character is not None else "text that is not YAML"
        problems.add(pos, "", what)
        return None
    return builder.root or Node(None, Pos(shown))


def _syntax_message(problem: str, text: str, pos: Pos) -> str:
    lines = text.splitlines()
    line = lines[pos.line - 1] if 0 < pos.line <= len(lines) else ""
    if "\\t" in problem or "\t" in line[: pos.col]:
        return "a tab in the indentation or before a key: use spaces"
    return problem


class _Builder:
    """Builds nodes from parser events without recursion, so depth is bounded by MAX_DEPTH and not by the stack."""

    def __init__(self, shown: str, problems: Problems) -> None:
        self.shown, self.problems = shown, problems
        self.root: Node | None = None
        self._stack: list[Node] = []
        self._keys: list[tuple[str | None, Pos] | None] = []
        """An entry for each open collection: the key whose value is due (None in the pair: faulty, drop its value)."""
        self._locs: list[Loc] = []
        self._values = 0
        self._skip = 0
        """Depth inside a collection that stands where a key is needed."""

    def feed(self, event: Any) -> bool:
        """False: stop, a fault makes the rest meaningless."""
        kind = type(event).__name__
        pos = Pos(self.shown, event.start_mark.line + 1, event.start_mark.column + 1)
        if kind == "DocumentStartEvent":
            return self._document(event, pos)
        if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
            return True
        self._values += 1
        if self._values > MAX_VALUES:
            self.problems.add(pos, self._loc(), f"more than {MAX_VALUES:,} keys and values: this is no scenario")
            return False
        self._refuse_extras(event, kind, pos)
        if self._skip:
            self._skip += kind.endswith("StartEvent") - kind.endswith("EndEvent")
            return True
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._stack.pop()
            self._keys.pop()
            self._locs.pop()
            return True
        if self._key_is_due():
            self._key(event, kind, pos)
            return True
        if kind == "ScalarEvent":
            self._add(Node(self._scalar(event, pos), pos))
        elif kind == "AliasEvent":
            self._add(Node(BROKEN, pos))
        else:
            if len(self._stack) >= MAX_DEPTH:
                self.problems.add(pos, self._loc(), f"nested more than {MAX_DEPTH} deep")
                return False
            node = Node({} if kind == "MappingStartEvent" else [], pos)
            self._locs.append(self._loc())
            self._add(node)
            self._stack.append(node)
            self._keys.append(None)
        return True

    def _document(self, event: Any, pos: Pos) -> bool:
        if self.root is not None:
            self.problems.add(pos, "", "a second document: one file holds one")
            return False
        if event.version is not None or event.tags:
            self.problems.add(Pos(self.shown, 1, 1), "", "directives (%YAML, %TAG) are not supported")
            return False
        return True

    def _refuse_extras(self, event: Any, kind: str, pos: Pos) -> None:
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            self.problems.add(pos, self._loc(), "anchors and aliases are not supported: use `extends`")
        elif getattr(event, "tag", None) is not None:
            self.problems.add(pos, self._loc(), f"tags ({event.tag}) are not supported")

    def _key_is_due(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._keys[-1] is None

    def _key(self, event: Any, kind: str, pos: Pos) -> None:
        mapping, loc = self._stack[-1].value, self._loc()
        self._keys[-1] = (None, pos)
        if kind != "ScalarEvent":
            self.problems.add(pos, loc, "a key must be text")
            self._skip = int(kind != "AliasEvent")
            return
        key = self._scalar(event, pos)
        if key == "<<" and not event.style:
            self.problems.add(pos, loc, "merge keys (<<) are not supported: use `extends`")
        elif not isinstance(key, str):
            self.problems.add(pos, loc, f"a key must be text, not {describe(key)}: quote it")
        elif key in mapping:
            first = mapping[key].key_pos
            self.problems.add(pos, (*loc, key), f"key given twice (first in line {first.line})")
        else:
            self._keys[-1] = (key, pos)

    def _add(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1].value
        if isinstance(parent, list):
            parent.append(node)
            return
        key, node.key_pos = self._keys[-1] or (None, node.pos)
        self._keys[-1] = None
        if key is not None:
            parent[key] = node

    def _loc(self) -> Loc:
        """The place of the value that comes next."""
        if not self._stack:
            return ()
        within = self._stack[-1].value
        if isinstance(within, list):
            return (*self._locs[-1], len(within))
        key = self._keys[-1]
        return self._locs[-1] if key is None or key[0] is None else (*self._locs[-1], key[0])

    def _scalar(self, event: Any, pos: Pos) -> Any:
        if event.style:
            return event.value
        try:
            return plain_scalar(event.value)
        except ValueError as error:
            self.problems.add(pos, self._loc(), str(error))
            return BROKEN


_INT = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"": None, "~": None}
_WORDS |= {form: value for word, value in (("null", None), ("true", True), ("false", False))
           for form in (word, word.capitalize(), word.upper())}  # fmt: skip


def plain_scalar(text: str) -> Any:
    """The value that an unquoted scalar stands for: YAML 1.2 core, and `_` between digits. ValueError for .nan and .inf."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text) > MAX_INT_DIGITS:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text.replace("_", ""))
    if text[:2] in ("0x", "0o") and re.fullmatch(r"[0-9a-fA-F]{1,64}", text[2:]):
        try:
            return int(text, 0)
        except ValueError:
            return text
    if re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text):
        raise ValueError(f"{text} is not a number to calculate with")
    if _FLOAT.fullmatch(text):
        value = float(text.replace("_", ""))
        if abs(value) == float("inf"):
            raise ValueError(f"{text} is too large")
        return value
    return text


def describe(value: Any) -> str:
    """A short name of a value for messages."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"

"""Trace files: JSONL, a header line and one event a line. See docs/trace.md.

Writing streams: the file grows as `PATH.part` and gets its name when it is closed, so a file that has its name is whole, and what
a killed run has left can still be read. Reading streams too, and names the line of whatever is wrong.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, get_args

from cuzk.errors import InputError
from cuzk.trace.event import EVENT_KEYS, Event, Kind

VERSION = 1
MAX_LINE_BYTES = 1 << 20
KINDS = frozenset(get_args(Kind))
_INTEGERS = frozenset(("gpu", "proof", "partition", "bytes", "live", "reserved", "resident", "capacity"))
_TEXTS = frozenset(("name", "worker", "stream", "pool", "reason", "cost"))


@dataclass
class Trace:
    """A trace in memory."""

    header: dict[str, Any]
    events: list[Event] = field(default_factory=list)
    truncated: bool = False
    """The last line was cut short: the run that wrote it was killed."""


class TraceWriter:
    """Writes a trace. `header` gets `trace: 1` in front; `clock` must be in it. Use as a context manager, or `close()`."""

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any]) -> None:
        """Raises OSError."""
        self._target = Path(path)
        if self._target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        # a device or a pipe is written to as it is: a rename would put a file in its place
        special = self._target.exists() and not self._target.is_file()
        if not special:
            self._target = Path(os.path.realpath(self._target))  # a link stays
        self._part = self._target if special else self._target.with_name(self._target.name + ".part")
        self._file: IO[str] | None = open(self._part, "w", encoding="utf-8")  # noqa: SIM115 - lives until close()
        self._file.write(_line({"trace": VERSION, **header}))

    def __call__(self, event: Event) -> None:
        if self._file is not None:
            self._file.write(_line(event.to_json()))

    @property
    def path(self) -> str:
        """The file's name."""
        return os.fspath(self._target)

    def abandon(self) -> None:
        """Leave no file: what was written is cut short."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
            if self._part != self._target:
                self._part.unlink(missing_ok=True)

    def close(self) -> None:
        """Finish the file and give it its name. Raises OSError, and then there is none of that name."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError:
                self.abandon()
                raise
            self._file = None
            if self._part != self._target:
                os.replace(self._part, self._target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def write_trace(path: str | os.PathLike[str], header: dict[str, Any], events: Iterator[Event] | list[Event]) -> None:
    """Write a whole trace. Raises OSError."""
    with TraceWriter(path, header) as write:
        for event in events:
            write(event)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """The whole trace, events in order of time. Raises InputError (`file:line: …`) or OSError."""
    trace = Trace({})
    for item in _items(path, trace):
        if isinstance(item, Event):
            trace.events.append(item)
        else:
            trace.header = item
    # device work is reported when its events are reached, which may be late
    trace.events.sort(key=lambda event: event.t)
    return trace


def iter_events(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events one by one, as they stand in the file. Raises InputError (`file:line: …`) or OSError."""
    for item in _items(path, Trace({})):
        if isinstance(item, Event):
            yield item


def _items(path: str | os.PathLike[str], trace: Trace) -> Iterator[dict[str, Any] | Event]:
    with open(path, "rb") as file:
        number, seen_header = 0, False
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{os.fspath(path)}:{number}"
            if len(raw) > MAX_LINE_BYTES:
                raise InputError(f"{where}: the line is longer than {MAX_LINE_BYTES} bytes: this is not a trace")
            if not raw.strip():
                continue
            try:
                data = json.loads(raw, parse_constant=_no_constant)
            except (ValueError, RecursionError) as error:
                if seen_header and not raw.endswith(b"\n"):
                    trace.truncated = True
                    return
                raise InputError(f"{where}: not JSON: {error}") from None
            if not isinstance(data, dict):
                raise InputError(f"{where}: an event is a JSON object, not {type(data).__name__}")
            if not seen_header:
                seen_header = True
                yield _header(data, where)
            else:
                yield _event(data, where)
        if not seen_header:
            raise InputError(f"{os.fspath(path)}: empty: a trace begins with its header line")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _header(data: dict[str, Any], where: str) -> dict[str, Any]:
    if "trace" not in data:
        raise InputError(f'{where}: not a trace: its first line must be a header such as {{"trace": 1, "clock": "wall"}}')
    if data["trace"] != VERSION or isinstance(data["trace"], bool):
        raise InputError(f"{where}: trace version {data['trace']!r}; this cuzk reads version {VERSION}")
    if data.get("clock") not in ("sim", "wall"):
        raise InputError(f"{where}: clock must be 'sim' or 'wall', not {data.get('clock')!r}")
    return data


def _event(data: dict[str, Any], where: str) -> Event:
    unknown = data.keys() - EVENT_KEYS
    if unknown:
        raise InputError(f"{where}: unknown key {min(unknown)!r}")
    t, kind = data.get("t"), data.get("kind")
    if isinstance(t, bool) or not isinstance(t, (int, float)) or not math.isfinite(t) or t < 0:
        raise InputError(f"{where}: t must be seconds from the start, 0 or more, not {t!r}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{where}: kind {kind!r}; there are {', '.join(sorted(KINDS))}")
    for key, value in data.items():
        if key in _INTEGERS and (isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63):
            raise InputError(f"{where}: {key} must be a whole number, not {value!r}")
        if key == "cpu_s" and (isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value)):
            raise InputError(f"{where}: cpu_s must be seconds, not {value!r}")
        if key in _TEXTS and not isinstance(value, str):
            raise InputError(f"{where}: {key} must be text, not {value!r}")
    if "holders" in data:
        data = data | {"holders": _holders(data["holders"], where)}
    return Event(**data)


def _holders(value: Any, where: str) -> list[tuple[str, int, int]]:
    rows: list[tuple[str, int, int]] = []
    for row in value if isinstance(value, list) else [value]:
        match row:
            case [str() as name, int() as count, int() as size] if not isinstance(count, bool):
                rows.append((name, count, size))
            case _:
                raise InputError(f"{where}: holders must be rows of [buffer, count, bytes], not {row!r}")
    return rows

"""`cuzk.toml` of the daemon: every key with its default, its type and what the daemon really does with it.

The daemon ignores unknown keys, never reads some that it knows, and takes sizes and durations that it cannot parse for others
without a word. All of that is reproduced here, and said. Source: the daemon's configuration module (Curio, 2026-08).
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any, Literal

from cuzk.errors import InputError
from cuzk.model.formula import suggestion
from cuzk.model.units import GIB, MIB

Kind = Literal["string", "size", "duration", "count", "bool", "ordinals", "list"]
Fate = Literal["used", "deprecated", "never-read", "printed"]
MOST_BYTES = 1 << 20
WRONG_SIZE = 50 * GIB
"""The daemon takes a size that it cannot read for this, but for those in MiB and MB, which become 0."""
WRONG_DURATION_S = 300


@dataclass(frozen=True)
class Key:
    kind: Kind
    default: Any
    fate: Fate = "used"
    why: str = ""


KEYS: dict[str, Key] = {
    "daemon.listen": Key("string", "unix:///run/curio/cuzk.sock"),
    "daemon.status_listen": Key("string", ""),
    "memory.total_budget": Key("size", "auto"),
    "memory.safety_margin": Key("size", "5GiB"),
    "memory.eviction_min_idle": Key("duration", "5m"),
    "memory.pinned_budget": Key("string", None, "deprecated", "a warning, and nothing else"),
    "memory.working_memory_budget": Key("string", None, "deprecated", "a warning, and nothing else"),
    "gpus.devices": Key("ordinals", []),
    "gpus.gpu_threads": Key("count", 0),
    "gpus.gpu_workers_per_device": Key("count", 2),
    "scheduler.max_batch_size": Key("count", 1),
    "scheduler.max_batch_wait_ms": Key("count", 10_000),
    "scheduler.sort_by_type": Key("bool", True, "never-read", "the queue is ordered by priority and time of submission"),
    "synthesis.threads": Key("count", 0),
    "synthesis.partition_workers": Key(
        "count", None, "deprecated", "a warning, and nothing else: pipeline.max_parallel_synthesis is what bounds synthesis"
    ),
    "pipeline.enabled": Key("bool", True),
    "pipeline.synthesis_lookahead": Key("count", 1, "printed", "no channel uses it"),
    "pipeline.synthesis_concurrency": Key("count", 1),
    "pipeline.max_parallel_synthesis": Key("count", 18),
    "pipeline.slot_size": Key("count", 0, "printed", "its branch cannot be reached"),
    "pipeline.max_gpu_queue_depth": Key("count", 0),
    "srs.param_cache": Key("string", "/data/zk/params"),
    "srs.preload": Key("list", None, "deprecated", "a warning, and nothing else: keys load with the first job of their kind"),
    "logging.level": Key("string", "info"),
    "logging.format": Key("string", None, "never-read", "there are no JSON logs"),
}
_TYPES: dict[Kind, tuple[type, str]] = {
    "string": (str, "a string"), "size": (str, "a string such as \"200GiB\""), "duration": (str, "a string such as \"5m\""),
    "count": (int, "a whole number"), "bool": (bool, "true or false"), "ordinals": (list, "a list of device numbers"),
    "list": (list, "a list"),
}  # fmt: skip


@dataclass(frozen=True)
class Note:
    """Something that a user of the file would not expect. `key` is dotted; `line` counts from 1."""

    line: int
    key: str
    message: str
    fate: str

    def text(self, path: str) -> str:
        return f"{path}:{self.line}: {self.key}: {self.message}"


@dataclass
class Settings:
    path: str
    values: dict[str, Any] = field(default_factory=dict)
    """Every key of `KEYS`; sizes in bytes ('auto' stays), durations in seconds."""
    given: dict[str, int] = field(default_factory=dict)
    """Key that the file has -> its line."""
    notes: list[Note] = field(default_factory=list)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def read_toml(path: str | os.PathLike[str]) -> Settings:
    """Raises InputError: no TOML, a wrong type (the daemon would not start), or a file of another program."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise InputError(f"{name}: larger than any configuration ({MOST_BYTES:,} bytes)")
    try:
        text = raw.decode("utf-8")
        data = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: byte {error.start}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(_positioned(name, str(error), text)) from None
    out = Settings(name, {key: _settled(spec, spec.default) for key, spec in KEYS.items()})
    lines = _lines(text)
    found = _flat(data)
    if found and not any(key in KEYS for key in found):
        raise InputError(f"{name}: not a configuration of the daemon: none of its keys is one ({', '.join(list(found)[:4])})")
    faults = [fault for key, value in found.items() if (fault := _take(out, key, value, lines.get(key, 1)))]
    if faults:
        raise InputError("\n".join(faults))
    out.notes.sort(key=lambda note: note.line)
    return out


def _positioned(name: str, message: str, text: str) -> str:
    """tomllib puts the place behind its message."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    if found is None:
        return f"{name}: {message}"
    line, column = (found[2], found[3]) if found[2] else (text.count("\n") + 1, 1)
    return f"{name}:{line}:{column}: {found[1]}"


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """Section.key -> value; what stands outside a section keeps its own name."""
    out: dict[str, Any] = {}
    for section, body in data.items():
        if isinstance(body, dict):
            out |= {f"{section}.{key}": value for key, value in body.items()} or {section: body}
        else:
            out[section] = body
    return out


def _lines(text: str) -> dict[str, int]:
    """The line of each key. Keys of inline tables and dotted keys are found too; a key not found is on line 1."""
    out: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.\-\"']+)\s*\]", line):
            section = header[1].strip("\"'")
        elif given := re.match(r"\s*([\w.\-\"']+)\s*=", line):
            key = re.sub(r"[\"']", "", given[1])
            out.setdefault(f"{section}.{key}" if section else key, number)
            for inner in re.findall(r"([\w\-]+)\s*=", line[given.end() :]):
                out.setdefault(f"{key}.{inner}", number)
    return out


def _take(out: Settings, key: str, value: Any, line: int) -> str | None:
    """Put one value into the settings; the fault if the daemon would not start with it."""
    spec = KEYS.get(key)
    if spec is None:
        message = f"unknown: the daemon ignores it without a word{_near(key)}"
        out.notes.append(Note(line, key, message, "ignored"))
        return None
    kind, words = _TYPES[spec.kind]
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if right and spec.kind == "ordinals":
        right = all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value)
    if right and spec.kind == "count":
        right = value >= 0
    if not right:
        return f"{out.path}:{line}: {key}: must be {words}, not {value!r}: the daemon would not start"
    out.given[key] = line
    if spec.fate != "used":
        said = {"deprecated": "deprecated", "never-read": "never read", "printed": "printed at the start only"}[spec.fate]
        out.notes.append(Note(line, key, f"{said}: {spec.why}", spec.fate))
        return None
    settled = _settled(spec, value)
    out.values[key] = settled
    if spec.kind == "size" and value != "auto" and _size(value) is None:
        shown = f"{settled // GIB} GiB" if settled else "0 bytes"
        out.notes.append(Note(line, key, f"the daemon cannot read {value!r} and takes it for {shown}", "misread"))
    if spec.kind == "duration" and _duration(value) is None:
        out.notes.append(Note(line, key, f"the daemon cannot read {value!r} and takes it for {settled} s", "misread"))
    return None


def _near(key: str) -> str:
    """'; did you mean …?' by the last part of the name, in whatever section."""
    ends = {known.rpartition(".")[2]: known for known in KEYS}
    found = suggestion(key.rpartition(".")[2], ends)
    return f"; did you mean '{ends[found.split(chr(39))[1]]}'?" if "did you mean" in found else ""


def _settled(spec: Key, value: Any) -> Any:
    """The value as the daemon ends up with it."""
    if spec.kind == "size" and value != "auto" and value is not None:
        size = _size(value)
        return size if size is not None else 0 if value.strip().endswith(("MiB", "MB")) else WRONG_SIZE
    if spec.kind == "duration":
        seconds = _duration(value)
        return WRONG_DURATION_S if seconds is None else seconds
    return value


def _size(text: str) -> int | None:
    """An integer with GiB, MiB, GB, MB or bare bytes, as the daemon reads it; None: it does not."""
    found = re.fullmatch(r"\s*(\d{1,15})\s*(GiB|MiB|GB|MB|)\s*", text)
    if found is None:
        return None
    return int(found[1]) * {"GiB": GIB, "MiB": MIB, "GB": 10**9, "MB": 10**6, "": 1}[found[2]]


def _duration(text: str) -> int | None:
    found = re.fullmatch(r"\s*(\d{1,9})\s*(m|s|)\s*", text)
    return None if found is None else int(found[1]) * (60 if found[2] == "m" else 1)

"""Rows of simulated scenarios by content: the same scenario, seed and version of cuzk give the same row, so none is made twice.

The file has a line a row and is only ever appended to, so an interrupt costs at most the row that is being made.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import cuzk
from cuzk.model.scenario import Scenario

ROOMS = ("model", "pipeline", "sim", "planning")
"""The packages that decide a row."""


@cache
def version() -> str:
    """A digest of the code that makes rows: another cuzk makes its own."""
    digest = hashlib.sha256(cuzk.__version__.encode())
    package = Path(cuzk.__file__).parent
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def key(scenario: Scenario, seeds: int) -> str:
    """The content of a scenario (machine, circuit, pipeline, policy, workload, calibration, seed) and of the code."""
    return hashlib.sha256(f"{version()} {scenario.hash()} {seeds}".encode()).hexdigest()[:32]


def default_path() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cuzk" / "sweeps.jsonl"


class Cache:
    """A context manager. `path` None: rows are kept in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        """Read what is there; lines that are cut or foreign are passed over. Raises OSError."""
        if self.path is None:
            return self
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = True
        if self.path.exists():
            with open(self.path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    whole = line.endswith("\n")
                    try:
                        found = json.loads(line)
                        self.rows[found["key"]] = found["row"]
                    except (ValueError, KeyError, TypeError):
                        continue
        self._file = open(self.path, "a", encoding="utf-8")
        if not whole:
            self._file.write("\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def put(self, name: str, row: dict[str, Any]) -> None:
        """Keep a row; it is on its way to the file when this returns."""
        self.rows[name] = row
        if self._file is not None:
            self._file.write(json.dumps({"key": name, "row": row}, separators=(",", ":")) + "\n")
            self._file.flush()

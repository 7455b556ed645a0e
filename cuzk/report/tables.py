"""Rows of figures as files: CSV, JSON, Parquet, by the file's ending."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuzk.errors import HardwareMissing, InputError
from cuzk.report.files import usable, write_text

ENDINGS = (".csv", ".json", ".parquet")


def table_file(path: str) -> Path:
    """`path`, if a table could be written there. Raises InputError for another ending, OSError for the place."""
    if Path(path).suffix not in ENDINGS:
        raise InputError(f"{path}: a table is {', '.join(ENDINGS)}, by the ending of its name")
    if Path(path).suffix == ".parquet":
        _pyarrow()
    return usable(path)


def write_table(path: str, rows: Sequence[dict[str, Any]], head: dict[str, Any] | None = None) -> None:
    """Write `rows`, columns in the order in which they first appear. `head`: further keys of a JSON document."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    match Path(path).suffix:
        case ".csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            write_text(path, text.getvalue())
        case ".json":
            write_text(path, json.dumps({"schema_version": 1, **(head or {}), "rows": list(rows)}, indent=1) + "\n")
        case _:
            _write_parquet(path, rows, columns)


def _write_parquet(path: str, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    import os

    arrow, parquet = _pyarrow()
    table = arrow.table({name: [row.get(name) for row in rows] for name in columns})
    part = f"{path}.part"
    try:
        parquet.write_table(table, part)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise HardwareMissing(f"Parquet needs pyarrow: pip install 'cuzk[sweep]' ({error})") from None
    return pyarrow, pyarrow.parquet

"""docs/trace.md names every kind of event and every key, and its example runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from cuzk.trace.event import EVENT_KEYS, Kind
from cuzk.trace.jsonl import read_trace
from cuzk.trace.schema import SCHEMA, faults_of, table

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "trace.md").read_text()


# INV-21
def test_every_kind_and_key_is_documented() -> None:
    coded = set(re.findall(r"`([a-z_]+)`", TEXT))
    assert not set(get_args(Kind)) - coded
    assert not EVENT_KEYS - coded


def test_the_table_of_events_is_written_from_the_schema() -> None:
    assert set(SCHEMA) == set(get_args(Kind))
    assert table() in TEXT, "write cuzk.trace.schema.table() into docs/trace.md"


def test_the_example_file_is_a_trace(tmp_path: Path) -> None:
    block = TEXT.split("```json\n")[1].split("```")[0]
    path = tmp_path / "example.jsonl"
    path.write_text(block)
    trace = read_trace(path)
    assert len(trace.events) == len(block.splitlines()) - 1
    assert [fault for event in trace.events for fault in faults_of(event)] == []
    for line in block.splitlines():
        json.loads(line)


def test_the_example_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from cuzk.cli.main import main

    (tmp_path / "out" / "demo").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    steady = str(ROOT / "scenarios" / "demo-steady.yaml")
    trace = "out/demo/steady-measured.jsonl"
    assert main(["sim", steady, "--set", "workload.proofs=1", "--no-fix", "--trace", trace]) == 0
    capsys.readouterr()
    exec(TEXT.split("```python\n")[1].split("```")[0], {})
    assert "GiB at" in capsys.readouterr().out

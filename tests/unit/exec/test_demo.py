"""The demonstration as a whole: it takes a minute or two, and real memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main


@pytest.mark.slow
def test_the_demo_predicts_proves_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "-o", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    text = printed.err
    assert "OOM    ram runs out" in text and "30 partitions proved" in text
    document = json.loads(printed.out)
    assert document == json.loads((out / "demo.json").read_text())
    runs = {row["name"]: row for row in document["runs"]}
    assert (runs["steady"]["verdict_predicted"], runs["steady"]["verdict_measured"]) == ("fits", "fits")
    assert (runs["pile-up"]["verdict_predicted"], runs["pile-up"]["verdict_measured"]) == ("oom", "oom")
    assert runs["steady"]["peak_ram_bytes_measured"] > 2 * 2**30
    assert abs(runs["steady"]["peak_ram_bytes_error"]) < 0.1
    assert (out / "demo.html").stat().st_size > 1_000_000
    assert main(["compare", str(out / "steady-predicted.jsonl"), str(out / "steady-measured.jsonl")]) == 0

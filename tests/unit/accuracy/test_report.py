"""The report shows every row, and the page needs no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuzk.accuracy.library import load_calibration
from cuzk.analysis.bands import widened
from cuzk.cli.main import main
from cuzk.report.accuracy import markdown

POINTS = """measurements:
- {id: one, config: {phase: 11, pw: 10, gw: 2, c: 2, j: 2}, measured: {s_per_proof: 60.0, prove_s: 57.0, oom: none}}
- {id: p11-int12, config: {phase: 12, pw: 4, c: 2, j: 2}, measured: {peak_rss_gib: 150.0}}
- {id: five, config: {phase: 5}, measured: {peak_rss_gib: 182}}
"""


@pytest.fixture
def points(tmp_path: Path) -> str:
    file = tmp_path / "points.yaml"
    file.write_text(POINTS, encoding="utf-8")
    return str(file)


def test_json_rows_are_the_contract(points: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--points", points, "--seeds", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {(r["id"], r["metric"]): r for r in document["rows"]}
    assert set(rows) == {("one", "s_per_proof"), ("one", "prove_s"), ("one", "oom"), ("p11-int12", "peak_ram_gib")}
    for row in rows.values():
        assert {"id", "metric", "measured", "predicted", "p5", "p95", "used_in_fit"} <= row.keys()
    assert rows["one", "oom"]["predicted"] == "none" and rows["one", "oom"]["p5"] is None
    assert rows["p11-int12", "peak_ram_gib"]["used_in_fit"] and not rows["one", "prove_s"]["used_in_fit"]
    pace = rows["one", "s_per_proof"]
    assert pace["p5"] < pace["predicted"] < pace["p95"]
    assert [r["id"] for r in document["not_scored"]] == ["five"]


def test_the_gate_is_the_exit_code(points: str) -> None:
    """60 s a proof for two proofs is no measurement of the reference system: the goal is missed."""
    assert main(["validate", "--points", points, "--seeds", "1"]) == 0
    assert main(["validate", "--points", points, "--seeds", "1", "--gate"]) == 4


def test_a_faulty_row_is_code_2_and_writes_nothing(points: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(points).write_text(POINTS + "- {id: bad, config: {phase: 12}, measured: {prove_s: -3}}\n", encoding="utf-8")
    out = tmp_path / "report.md"
    assert main(["validate", "--points", points, "--seeds", "1", "-o", str(out), "--json"]) == 2
    shown = capsys.readouterr()
    assert "bad: prove_s: must be above zero" in shown.err and len(json.loads(shown.out)["rows"]) == 4 and not out.exists()


def test_markdown_and_page_show_every_row(points: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["validate", "--points", points, "--seeds", "2", "--json", "-o", str(page)]) == 0
    document = json.loads(capsys.readouterr().out)
    text = markdown(document)
    html = page.read_text(encoding="utf-8")
    for row in document["rows"]:
        assert f"| {row['id']} |" in text and f"<td>{row['id']}</td>" in html
    assert "five" in text and 'src="http' not in html.replace("'", '"')


def test_bands_are_as_wide_as_the_error_that_was_seen() -> None:
    calibration = load_calibration("reference").model_copy(update={"parameters": {"residual_prove_s": 0.1}})
    values = widened([100.0] * 201, "prove_s", calibration)
    assert values[0] == 100.0, "the plain run stays"
    spread = sorted(v for v in values[1:] if v is not None)
    assert spread[9] == pytest.approx(100 * 2.718281828 ** (-0.1645), rel=0.02)
    assert spread[-10] == pytest.approx(100 * 2.718281828**0.1645, rel=0.02)
    assert widened([1.0, 2.0], "s_per_proof", calibration) == [1.0, 2.0]

"""Timelines of the stand-alone prover: read, imported, fitted, predicted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuzk.accuracy.library import load_calibration, place
from cuzk.accuracy.runs import backtest_runs, measured, scenario_of
from cuzk.accuracy.stage_laws import fit_stages, overtakes
from cuzk.accuracy.timelines import read_runs, read_timeline
from cuzk.errors import InputError
from cuzk.pipeline.program import bind
from cuzk.trace.spans import spans
from cuzk.trace.timelines import events_of

DATA = place("data", "h200-reference")


@pytest.fixture(scope="module")
def runs():  # type: ignore[no-untyped-def]
    return read_runs(DATA)


def test_every_run_is_read(runs) -> None:  # type: ignore[no-untyped-def]
    assert runs.faults == [] and runs.warnings == [] and len(runs.runs) == 17
    assert all(run.timeline is not None and len(run.timeline.partitions) == run.settings["partitions"] for run in runs.runs)


def test_imported_events_are_the_columns() -> None:
    timeline = read_timeline(DATA / "d24-gw2-split.jsonl")
    found = {(s.name, s.proof): s.seconds for s in spans(events_of(timeline), waits=True)}
    first = json.loads((DATA / "d24-gw2-split.jsonl").read_text().splitlines()[1])
    columns = json.loads((DATA / "d24-gw2-split.jsonl").read_text().splitlines()[0])["part_cols"]
    row = dict(zip(columns, first, strict=True))
    assert found["prep_msm", 0] == pytest.approx(row["prep"] / 1000) and found["tail_msm", 0] == pytest.approx(row["tail"] / 1000)
    assert found["prep", 0] == pytest.approx(row["barrier_wait"] / 1000)
    assert sum(e.kind == "complete" and e.partition == -1 for e in events_of(timeline)) == 12


def test_damaged_lines_are_dropped_and_named(tmp_path: Path) -> None:
    lines = (DATA / "d24-gw2-split.jsonl").read_text().splitlines()
    damaged = [lines[0], lines[1][:40], "[1,2]", *lines[2:5], lines[-1][:200]]
    (tmp_path / "x.jsonl").write_text("\n".join(damaged), encoding="utf-8")
    timeline = read_timeline(tmp_path / "x.jsonl")
    assert len(timeline.partitions) == 3 and len(timeline.dropped) == 3 and "x.jsonl:2" in timeline.dropped[0]
    (tmp_path / "y.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="not a timeline"):
        read_timeline(tmp_path / "y.jsonl")


def test_who_overtakes_whom(runs) -> None:  # type: ignore[no-untyped-def]
    pair = [run for run in runs.runs if run.id == "d24-gw2-split"]
    assert overtakes(pair) == (2, 11), "runs.yaml counts two overtakes in this run"


@pytest.mark.parametrize(
    ("run", "d_bc", "capacity"),
    [("d24-gw1-split", 64 << 24, None), ("d24-small-free1.8", 32 << 24, 1932735283), ("d27-gw1-split", 64 << 27, None)],
)
def test_buffers_follow_the_provers_formulas(runs, run: str, d_bc: int, capacity: int | None) -> None:  # type: ignore[no-untyped-def]
    found = next(r for r in runs.runs if r.id == run)
    scenario = scenario_of(found, runs, load_calibration("h200-supraseal"))
    program = bind(scenario)
    size = program.size("d_bc", scenario.circuit)
    assert 0 <= size - d_bc <= 64 << 20 and size % (32 << 20) == 0
    assert program.size("d_a", scenario.circuit) == 32 << scenario.circuit.log2_domain
    if capacity is not None:
        context = sum(r.nbytes for r in program.residents if r.buffer == "context")
        assert abs(program.pools["vram:0"] - context - capacity) < 1024


def test_a_law_returns_what_it_was_made_of(runs) -> None:  # type: ignore[no-untyped-def]
    laws = fit_stages(runs).laws
    assert laws["msm_h"].t24_s * 2 ** (3 * laws["msm_h"].power) == pytest.approx(1.129, rel=0.02), "measured at 2^27"
    assert laws["msm_h"].error < 0.02 < laws["prep_msm"].error, "GPU stages repeat, the scan does not"


def test_left_out_domains_are_predicted(runs) -> None:  # type: ignore[no-untyped-def]
    without = fit_stages(runs, used=[r.id for r in runs.runs if r.settings["domain_log2"] != 27])
    assert without.calibration.range["domain"] == (2**24, 2**26)
    law = without.laws["msm_h"]
    assert law.t24_s * 2 ** (3 * law.power) == pytest.approx(1.129, rel=0.03)


def test_every_figure_gets_a_row_and_every_verdict_is_right() -> None:
    found = backtest_runs(str(DATA), load_calibration("h200-supraseal"), seeds=3, processes=1)
    runs = read_runs(DATA)
    assert {(r.id, r.metric) for r in found.rows} == {(run.id, m) for run in runs.runs for m in measured(run)}
    assert [r.id for r in found.rows if r.metric == "verdict" and r.measured != r.predicted] == []
    vram = [abs(r.error) for r in found.rows if r.metric == "peak_vram_bytes" and r.error is not None]
    assert max(vram) < 0.03


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no runs\.yaml"):
        read_runs(tmp_path)
    (tmp_path / "runs.yaml").write_text("runs:\n- {id: x, settings: {domain_log2: -3, gw: 1, partitions: 2}, measured: {}}\n")
    with pytest.raises(InputError, match="domain_log2 must be above zero"):
        read_runs(tmp_path)

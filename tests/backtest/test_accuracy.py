"""The gates: how far predictions may be from the measured points, and that no point is lost."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from cuzk.accuracy.backtest import GATES, LOWEST, NOT_TO_BE_SCORED, Backtest, backtest, failed_gates, summary
from cuzk.accuracy.library import load_calibration, place, reference_points
from cuzk.accuracy.measured_points import METRIC_OF, read_points
from cuzk.accuracy.scenarios import case
from cuzk.errors import InputError
from cuzk.pipeline.bounds import bounds
from cuzk.pipeline.program import bind

SEEDS = 5


@pytest.fixture(scope="module")
def found() -> Backtest:
    return backtest(read_points(reference_points()), load_calibration("reference"), SEEDS)


@pytest.fixture(scope="module")
def table(found: Backtest) -> dict[str, Any]:
    return summary(found.rows)


def test_no_row_is_lost(found: Backtest) -> None:
    """Counted from the file itself, not by the code that reads it."""
    with open(reference_points(), encoding="utf-8") as file:
        data = YAML(typ="safe", pure=True).load(file)["measurements"]
    figures = {(row["id"], METRIC_OF[k]) for row in data for k, v in row["measured"].items() if k in METRIC_OF and v is not None}
    rows = {(row.id, row.metric) for row in found.rows}
    left_out = {(name, metric) for name, metric, _ in found.not_scored if metric != "*"}
    whole = {name for name, metric, _ in found.not_scored if metric == "*"}
    assert left_out == set(NOT_TO_BE_SCORED)
    assert rows | left_out | {f for f in figures if f[0] in whole} == figures and not rows & left_out
    assert {f[0] for f in figures if f[0] in whole} == {"p5-pipe-j1", "p5-pipe-j2"}, "only phase 5 has no pipeline"
    assert found.faults == []


@pytest.mark.parametrize("metric", ["s_per_proof", "peak_ram_gib", "prove_s"])
def test_errors_stay_within_the_goals(table: dict[str, Any], metric: str) -> None:
    median, worst = GATES[metric]
    assert table[metric]["predicted"] == table[metric]["rows"] >= 8
    assert table[metric]["median"] <= median and abs(table[metric]["worst"]) <= worst
    assert table[metric].get("lowest", 0.0) >= LOWEST.get(metric, -1.0)


def test_every_verdict_is_right(found: Backtest) -> None:
    wrong = {(r.id, r.measured, r.predicted) for r in found.rows if r.metric == "oom" and r.measured != r.predicted}
    assert wrong == set()


def test_the_static_bound_exceeds_the_card_just_where_it_ran_out() -> None:
    points, calibration = read_points(reference_points()), load_calibration("reference")
    judged = [p for p in points.points if p.metrics.get("oom")]
    for point in judged:
        plan = bind(case(point, calibration, points.systems).scenario)
        bound = next(b for b in bounds(plan) if b.pool == "vram:0")
        assert (bound.at_most_bytes > bound.capacity_bytes) == (point.metrics["oom"] == "vram"), (point.id, bound.why)


def test_a_calibration_of_another_prover_is_refused() -> None:
    with pytest.raises(InputError, match="'h200-supraseal' predicts none of the points"):
        backtest(read_points(reference_points()), load_calibration("h200-supraseal"), 1, processes=1)


def test_better_than_the_rule_of_thumb(table: dict[str, Any]) -> None:
    for metric in ("s_per_proof", "peak_ram_gib"):
        assert table[metric]["median"] < table[metric]["rule_of_thumb"]["median"]
        assert abs(table[metric]["worst"]) < table[metric]["rule_of_thumb"]["worst"]


def test_a_gate_can_fail(found: Backtest) -> None:
    from dataclasses import replace

    spoiled = [replace(row, predicted=row.predicted * 0.8) if row.metric == "peak_ram_gib" else row for row in found.rows]  # type: ignore[operator]
    failed = failed_gates(spoiled)
    assert any("too low" in f for f in failed) and any("worst" in f for f in failed)
    verdicts = [replace(r, predicted="ram") for r in found.rows if r.metric == "oom"]
    assert any("verdicts wrong" in f for f in failed_gates(verdicts))


def test_points_out_of_the_fit_are_said_to_be() -> None:
    calibration = load_calibration("reference").model_copy(update={"points": ("p11-int12",)})
    points = read_points(reference_points())
    points.points = [p for p in points.points if p.id in ("p11-int12", "p12-sweep-pw10")]
    rows = backtest(points, calibration, 1, processes=1).rows
    assert {(r.id, r.used_in_fit) for r in rows} == {("p11-int12", True), ("p12-sweep-pw10", False)}


def test_the_data_is_the_librarys() -> None:
    assert place("data", "reference", "measurements.yaml").is_file() and place("data", "h200-reference", "runs.yaml").is_file()

"""Planted faults leave nothing behind: a few hundred seeds; `make faults` and `make soak` run more."""

from __future__ import annotations

import pytest

from tests.faults.harness import run_seed

BATCH = 25


# INV-11
@pytest.mark.parametrize("first", range(0, 200, BATCH))
def test_planted_faults_break_no_invariant(first: int) -> None:
    reports = [run_seed(seed) for seed in range(first, first + BATCH)]
    assert {report.seed: report.breaches for report in reports if report.breaches} == {}
    assert sum(len(report.struck) for report in reports) > BATCH // 2, "hardly any fault struck"
    assert sum(report.compared for report in reports) > BATCH // 2, "hardly anything was compared"


@pytest.mark.slow
def test_many_more_seeds() -> None:
    assert [report.breaches for report in map(run_seed, range(1000, 2000)) if report.breaches] == []

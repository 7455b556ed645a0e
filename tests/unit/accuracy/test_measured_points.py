"""Measured points: what is read, what is refused, what only warns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.accuracy.library import load_calibration
from cuzk.accuracy.measured_points import Points, read_points
from cuzk.accuracy.scenarios import Unscored, case
from cuzk.errors import InputError, ScenarioError
from cuzk.model.scenario import Scenario


def points(tmp_path: Path, text: str) -> Points:
    file = tmp_path / "points.yaml"
    file.write_text("measurements:\n" + text, encoding="utf-8")
    return read_points(file)


def scenario(tmp_path: Path, config: str, measured: str = "s_per_proof: 40.0") -> Scenario:
    found = points(tmp_path, f"- {{id: x, config: {{{config}}}, measured: {{{measured}}}}}\n")
    return case(found.points[0], load_calibration("reference"), {}).scenario


def test_words_of_the_documents_become_policy(tmp_path: Path) -> None:
    policy = scenario(
        tmp_path,
        "phase: 9, workers: 3, pw: 12, c: 7, permit: held through send, prestage: before GPU mutex, free_d_bc: right after NTT "
        "(and all else), dealloc_mtx: true, channel_capacity: 'max(synthesis_lookahead, pw)', locks: compute_mtx + mem_mtx",
    ).policy
    assert (policy.gw, policy.pw, policy.permit_returns, policy.prestage) == (3, 12, "after-send", "before-mutex")
    assert (policy.free_d_bc, policy.dealloc_native, policy.channel_capacity) == ("after-ntt", "async-serialised", "pw")
    assert (policy.gpu_locks, policy.j) == ("compute+memory", 7)


def test_what_a_row_leaves_open_is_as_in_its_phase(tmp_path: Path) -> None:
    ninth = scenario(tmp_path, "phase: 9, c: 20, j: null")
    assert (ninth.policy.j, ninth.workload.proofs, ninth.policy.pw) == (15, 20, None)
    early = scenario(tmp_path, "phase: 12, permit: released before send, j: 15")
    assert (early.pipeline, early.workload.proofs) == ("phase12-prefix", 20)
    assert scenario(tmp_path, "phase: 12, permit: held through send").pipeline == "phase12"


def test_a_batch_is_one_larger_circuit(tmp_path: Path) -> None:
    batch = scenario(tmp_path, "phase: 3, batch_size: 2, c: 4, j: 4")
    assert (batch.circuit.partitions, batch.workload.proofs, batch.policy.j, batch.pipeline) == (20, 2, 2, "phase2")


def test_unknown_keys_warn_and_keep_the_row(tmp_path: Path) -> None:
    found = points(tmp_path, "- {id: x, sorce: me, config: {phase: 12, pww: 3}, measured: {s_per_proof: 40.0, mood: good}}\n")
    assert len(found.points) == 1 and "sorce" in found.warnings[0] and "did you mean 'source'" in found.warnings[0]
    warned = case(found.points[0], load_calibration("reference"), {}).warnings
    assert len(warned) == 1 and "pww" in warned[0] and "did you mean 'pw'" in warned[0]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{id: x, config: {phase: 12}, measured: {s_per_proof: -1.0}}", "s_per_proof: must be above zero"),
        ("{id: x, config: {phase: 12}, measured: {peak_rss_gib: 0}}", "peak_rss_gib: must be above zero"),
        ("{id: x, config: {phase: 12}, measured: {s_per_proof: fast}}", "must be a number"),
        ("{id: x, config: {phase: 12}, measured: {oom: maybe}}", "must be none, ram or vram"),
        ("{id: x, config: {phase: 12}}", "'measured' is missing"),
        ("{config: {phase: 12}, measured: {}}", "without an id"),
        ("[1, 2]", "a point is a mapping"),
        ("{id: x, config: {phase: 8, c: 5}, measured: {s_per_proof: 40.0, total_s: 900.0}}", "contradicts 5 proofs"),
        ("{id: x, config: {phase: 8}, measured: {peak_rss_gib: 300.0, peak_ram_gib: 200.0}}", "contradict each other"),
    ],
)
def test_a_faulty_row_is_named_with_its_place_and_the_others_stay(tmp_path: Path, row: str, says: str) -> None:
    found = points(tmp_path, f"- {row}\n- {{id: good, config: {{phase: 12}}, measured: {{s_per_proof: 38.0}}}}\n")
    assert [p.id for p in found.points] == ["good"]
    assert len(found.faults) == 1 and says in found.faults[0] and "points.yaml:2:" in found.faults[0]


def test_the_same_id_twice(tmp_path: Path) -> None:
    row = "- {id: x, config: {phase: 12}, measured: {s_per_proof: 38.0}}\n"
    assert "used before" in points(tmp_path, row + row).faults[0]


def test_a_file_without_a_usable_row(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="above zero"):
        points(tmp_path, "- {id: x, config: {phase: 12}, measured: {s_per_proof: 0}}\n")
    (tmp_path / "other.yaml").write_text("machine: {}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="must be a list of measured points"):
        read_points(tmp_path / "other.yaml")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("phase: 12, gw: 2, workers: 3", "contradicts gw = 2"),
        ("phase: 12, pw: 0", "above zero"),
        ("phase: 12, pw: many", "whole number"),
        ("phase: 12, permit: sometimes", "is none of"),
        ("phase: 12, c: -5", "c must be a whole number"),
        ("pw: 3", "'phase' is missing"),
    ],
)
def test_a_configuration_that_cannot_be(tmp_path: Path, config: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        scenario(tmp_path, config)


def test_a_phase_without_a_pipeline_is_not_scored(tmp_path: Path) -> None:
    with pytest.raises(Unscored, match="phase 5"):
        scenario(tmp_path, "phase: 5, tool: pce-pipeline")

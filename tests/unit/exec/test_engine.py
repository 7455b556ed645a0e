"""The interpreter on the null device: every preset runs to its end, and gives everything back."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.exec.null import NullDevice
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.presets.reference_prover.phases import PHASES as PRESETS
from tests.unit.exec.playing import ROOT, play, quick, scenario

PHASES = [name for name in PRESETS if name.startswith("phase")]
"""Those that the calibration used here has costs for."""
FITTING = {"phase10": ("policy.j=1", "policy.gw=1")}
"""phase 10 with its default runs out of VRAM on this card, and is meant to."""


@pytest.mark.parametrize("phase", PHASES)
def test_every_preset_runs_to_its_end(phase: str) -> None:
    # at this pace the threads' own times count for most: any order can come up, so there is room for all of them
    scene = scenario(phase, "machine.ram=2TiB", *FITTING.get(phase, ()))
    played = play(scene)
    played.assert_clean()
    engine = played.engine
    sets = 4 if phase == "phase2" else 40
    assert (engine.core.failure, engine.core.failures, engine.core.oom) == (None, [], None)
    assert len(engine.core.completion_s) == sets
    assert engine.core.deallocations == {"native": sets, "host": sets}
    assert sum(e.kind == "complete" and e.partition == -1 for e in played.events) == 4


@pytest.mark.parametrize("order", ["fifo", "barging"])
def test_lock_orders(order: str) -> None:
    played = play(scenario("phase8", f"policy.lock_order={order}", "policy.gw=4", "workload.proofs=6",
                           machine="zen4-96c-755g-32g"))  # fmt: skip
    played.assert_clean()
    assert len(played.engine.core.completion_s) == 60


@pytest.mark.parametrize("order", ["fifo", "by-proof", "random"])
def test_permit_orders(order: str) -> None:
    played = play(scenario("phase12", f"policy.order={order}"))
    played.assert_clean()
    assert len(played.engine.core.completion_s) == 40


@pytest.mark.parametrize("admission", ["byte-budget", "queue-target"])
def test_admissions(admission: str) -> None:
    played = play(scenario("phase12", f"policy.admission={admission}"))
    played.assert_clean()
    assert len(played.engine.core.completion_s) == 40


def test_open_arrivals_are_admitted_when_they_arrive() -> None:
    scene = scenario("phase12", "workload.proofs=3", "workload.arrivals=[0s, 100s, 2000s]")
    played = play(scene)
    played.assert_clean()
    admitted = {e.proof: e.t for e in played.events if e.kind == "admit"}
    assert admitted[1] >= 100 and admitted[2] >= 2000


def test_closed_loop_keeps_j_in_flight() -> None:
    played = play(scenario("phase12", "policy.j=2", "workload.proofs=6"))
    level = most = 0
    for event in played.events:
        if event.kind == "admit":
            level += 1
            most = max(most, level)
        if event.kind == "complete" and event.partition == -1:
            level -= 1
    assert (level, most) == (0, 2)


def test_two_devices_share_the_work() -> None:
    played = play(scenario("phase12", "machine.ram=755GiB", machine="three-24g-128g"), NullDevice(scale=1e-6, time_scale=5e-4))
    played.assert_clean()
    lanes = {e.worker for e in played.events if e.name == "ntt_h"}
    assert {lane.split(".")[0] for lane in lanes} == {"gpu:0", "gpu:1", "gpu:2"}


PIPELINE = """
version: 1
machine: {root}/scenarios/machines/zen4-96c-755g-5070ti.yaml
circuit: {root}/scenarios/circuits/winning-32g.yaml
policy: {{j: 2}}
workload: {{proofs: 6}}
pipeline:
  name: small
  buffers:
    rows: {{pool: ram, size: 32*constraints, touched_by: fill}}
    table: {{pool: "vram:$gpu", size: 1GiB, scope: gpu}}
    scratch: {{pool: "vram:$gpu", size: 32*domain, allocator: cached}}
  locks: {{card: {{per: gpu, order: barging}}}}
  permits: {{room: {{count: 3}}}}
  channels: {{ready: {{}}}}
  workers:
    task:
      start: partition
      steps:
        - acquire: room
        - alloc: rows
        - run: fill
        - spawn: side
          as: side
        - join: side
        - put: ready
        - release: room
    side:
      start: spawned
      limit: 1
      steps:
        - run: look
    worker:
      start: pool
      per: gpu
      count: 2
      steps:
        - get: ready
        - acquire: card
        - alloc: [table, scratch]
        - {{copy: scratch, from: rows, on: copies}}
        - {{record: there, on: copies}}
        - {{stream_wait: there, on: work}}
        - {{run: compute, on: work, uses: [scratch]}}
        - {{record: done, on: work}}
        - {{free: scratch, after: done}}
        - trim: "vram:$gpu"
        - release: card
        - free: rows
        - complete: partition
"""


def test_a_pipeline_of_ones_own(tmp_path: Path) -> None:
    """Limits, device-owned buffers, a caching allocator, streams that wait for each other, a free behind an event."""
    path = tmp_path / "own.yaml"
    path.write_text(PIPELINE.format(root=ROOT))
    scene = load_scenario(path)
    played = play(scene, quick())
    played.assert_clean()
    assert len(played.engine.core.completion_s) == 6
    events = played.events
    assert sum(e.kind == "alloc" and e.name == "table" for e in events) == 1
    looking = most = 0
    for event in events:
        if event.name == "look":
            looking += 1 if event.kind == "begin" else -1
            most = max(most, looking)
    assert most == 1
    for proof in range(6):
        mine = [(e.kind, e.name) for e in events if e.proof == proof]
        assert mine.index(("end", "upload")) < mine.index(("begin", "compute"))
        assert mine.index(("end", "compute")) < mine.index(("free", "scratch"))


def test_a_set_that_ends_holding_something_fails_its_proof(tmp_path: Path) -> None:
    path = tmp_path / "leak.yaml"
    path.write_text(PIPELINE.format(root=ROOT).replace("        - free: rows\n", ""))
    played = play(load_scenario(path), quick())
    played.assert_clean()
    assert "still holds rows" in str(played.engine.core.failures[0][1])

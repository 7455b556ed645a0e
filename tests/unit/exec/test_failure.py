"""Failure has a scope: whatever breaks, wherever, what it concerns is unwound, everything is given back, and nothing hangs."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import DeviceLost, InputError, Interrupted
from cuzk.exec.device import Allocation, Work, timed_ops
from cuzk.exec.null import NullDevice
from cuzk.model.scenario import load_scenario
from cuzk.pipeline import ops
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.presets.reference_prover.phases import PHASES as PRESETS
from cuzk.pipeline.program import bind
from tests.unit.exec.playing import ROOT, play, quick, scenario

PHASES = [name for name in PRESETS if name.startswith("phase")]
"""Those that the calibration used here has costs for."""


class Broken(Exception):
    """Raised by a step body."""


class Faulty(NullDevice):
    """Raises `error` at one step (or allocation) of one proof, once. `partition` None: the first that comes."""

    def __init__(self, error: Any, step: str | None = None, buffer: str | None = None, proof: int = 1, every: bool = False,
                 partition: int | None = None) -> None:  # fmt: skip
        super().__init__(scale=1e-6, time_scale=5e-5)
        self.error, self.step, self.buffer, self.proof, self.every, self.partition = error, step, buffer, proof, every, partition
        self.hits = 0
        self.lock = threading.Lock()

    def _maybe(self, pset: Any) -> None:
        if pset.proof != self.proof or (self.partition is not None and pset.partition != self.partition):
            return
        with self.lock:
            self.hits += 1
            if self.hits > 1 and not self.every:
                return
        raise self.error

    def perform(self, work: Work) -> None:
        if work.name == self.step:
            self._maybe(work.pset)
        super().perform(work)

    def allocate(self, request: Allocation) -> Any:
        if request.buffer == self.buffer and request.pset is not None:
            self._maybe(request.pset)
        return super().allocate(request)


def steps_of(phase: str) -> list[str]:
    names = {op.name if isinstance(op, ops.Run) else op.law for op in timed_ops(bind(scenario(phase)))}
    # with pre-staging, the slow path is for too little VRAM only: test_a_refused_pre_stage_takes_the_slow_path
    return sorted(names - {"upload_pageable"} if "upload" in names else names)


QUIET = ("policy.gw=1", "policy.j=3", "policy.pw=6", "circuit.partitions=4")
"""One GPU worker: no phase runs out of VRAM by itself."""
FAULTS = [(phase, step) for phase in PHASES for step in steps_of(phase)]


# INV-11
@pytest.mark.parametrize(("phase", "step"), FAULTS)
def test_a_fault_in_any_step_fails_its_proof_alone(phase: str, step: str) -> None:
    device = Faulty(Broken("no"), step=step)
    played = play(scenario(phase, *QUIET), device)
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None
    assert [number for number, _ in engine.core.failures] == [1]
    assert isinstance(engine.core.failures[0][1], Broken)
    whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
    # deallocation comes after completion: there the proof is out already
    assert whole - {1} == {0, 2, 3}
    assert 1 not in whole or step.startswith("dealloc_")


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("phase", PHASES)
def test_every_partition_of_a_proof_failing_at_once(phase: str, every: bool) -> None:
    for step in ("ntt_h", "epilogue", "prep_msm"):
        played = play(scenario(phase, *QUIET), Faulty(Broken("no"), step=step, every=every))
        played.assert_clean()
        assert [number for number, _ in played.engine.core.failures] == [1]


def buffers_of(phase: str) -> list[tuple[str, str]]:
    pipeline = bind(scenario(phase)).pipeline
    return [(name, spec.pool) for name, spec in pipeline.buffers.items() if spec.scope == "set"]


@pytest.mark.parametrize("phase", PHASES)
def test_memory_that_the_system_refuses(phase: str) -> None:
    """VRAM: that proof alone (or the slow path, which tries again). RAM: the end of the run. Either way with its name."""
    for buffer, pool in buffers_of(phase):
        device = Faulty(MemoryError("refused"), buffer=buffer, every=True)
        played = play(scenario(phase, *QUIET), device)
        played.assert_clean()
        engine = played.engine
        assert device.hits, buffer
        assert engine.core.oom is not None
        at_s, oom = engine.core.oom
        assert (oom.pool, oom.buffer) == (pool.replace("$gpu", "0"), buffer)
        assert oom.request_bytes > 0 and at_s > 0
        if pool == "ram":
            assert isinstance(engine.core.failure, OutOfMemory)
        else:
            assert engine.core.failure is None and [number for number, _ in engine.core.failures] == [1]


def test_a_refused_pre_stage_takes_the_slow_path() -> None:
    device = Faulty(MemoryError("refused"), buffer="d_bc", partition=3)
    played = play(scenario("phase12", *QUIET), device)
    played.assert_clean()
    assert played.engine.core.failures == []
    slow = [(e.proof, e.partition) for e in played.events if e.name == "upload_pageable" and e.kind == "begin"]
    assert slow == [(1, 3), (1, 3)]


@pytest.mark.parametrize("step", ["witness", "ntt_h", "prep_msm", "b_g2_msm"])
def test_memory_refused_inside_a_body_ends_the_run(step: str) -> None:
    played = play(scenario("phase12", *QUIET), Faulty(MemoryError(), step=step))
    played.assert_clean()
    assert isinstance(played.engine.core.failure, OutOfMemory)
    assert played.engine.core.failure.pool == "ram"


@pytest.mark.parametrize("phase", PHASES)
def test_an_interrupt_at_any_moment(phase: str) -> None:
    rng = random.Random(phase)
    scene = scenario(phase, *QUIET)
    outcomes = []
    for _ in range(6):
        played = play(scene, NullDevice(scale=1e-6, time_scale=1e-3), interrupt_after_s=rng.random() * 0.15)
        played.assert_clean()
        outcomes.append(played.engine.core.failure)
        if played.engine.core.failure is None:  # on a busy machine all may be done before
            assert all(proof.completed_s is not None for proof in played.engine.core.proofs)
    assert all(failure is None or isinstance(failure, Interrupted) for failure in outcomes)
    assert any(outcomes)


class Loses(NullDevice):
    """Its second GPU is lost at the first MSM."""

    def perform(self, work: Work) -> None:
        if work.gpu == 1 and work.name == "msm_h":
            raise DeviceLost(1, "sticky")
        super().perform(work)


# INV-12
def test_a_lost_device_leaves_the_others_at_work() -> None:
    scene = scenario("phase12", "workload.proofs=8", "machine.ram=755GiB", machine="three-24g-128g")
    played = play(scene, Loses(scale=1e-6, time_scale=5e-4))
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None and engine.core.failures
    assert all(isinstance(why, DeviceLost) for _, why in engine.core.failures)
    lost_at = next(e.t for e in played.events if e.kind == "fail" and e.name == "device")
    assert not any(e.worker.startswith("gpu:1") and e.kind == "begin" and e.t > lost_at for e in played.events)
    whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
    assert whole | {number for number, _ in engine.core.failures} == set(range(8))
    assert whole


def test_one_device_lost_of_several_and_another_process_to_come() -> None:
    """Nothing is admitted any more; what is not on the lost device comes out first."""
    scene = scenario("phase12", "workload.proofs=40", "machine.ram=755GiB", machine="three-24g-128g")
    played = play(scene, Loses(scale=1e-6, time_scale=5e-4), replaceable=True)
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None and list(engine.core.lost) == [1]
    lost_at = next(e.t for e in played.events if e.kind == "fail" and e.name == "device")
    admitted = [e.proof for e in played.events if e.kind == "admit"]
    assert len(admitted) < 40 and all(e.t <= lost_at for e in played.events if e.kind == "admit")
    failed = [number for number, _ in engine.core.failures]
    whole = {e.proof: e.t for e in played.events if e.kind == "complete" and e.partition == -1}
    assert sorted([*failed, *whole]) == admitted
    assert any(t > lost_at for t in whole.values())


def test_the_last_device_lost_and_another_process_to_come() -> None:
    """What is in flight fails, each proof with the reason; the run does not."""
    played = play(scenario("phase12", *QUIET), Faulty(DeviceLost(0, "sticky"), step="msm_h", proof=0), replaceable=True)
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None and list(engine.core.lost) == [0]
    assert [number for number, _ in engine.core.failures] == [0, 1, 2]
    assert {e.name for e in played.events if e.kind == "fail"} == {"device", "proof"}
    assert [e.proof for e in played.events if e.kind == "admit"] == [0, 1, 2]


def test_a_proof_that_is_out_is_not_failed_by_a_lost_device() -> None:
    device = Faulty(DeviceLost(0, "sticky"), step="dealloc_native", every=True)
    played = play(scenario("phase12", "policy.gw=1", "policy.j=1", "circuit.partitions=1"), device, replaceable=True)
    played.assert_clean()
    assert list(played.engine.core.lost) == [0]
    failed = [number for number, _ in played.engine.core.failures]
    whole = [e.proof for e in played.events if e.kind == "complete" and e.partition == -1]
    assert 1 in whole and not set(failed) & set(whole)


def test_the_rest_of_a_run_keeps_its_numbers_and_its_clock() -> None:
    import time

    began_s = time.perf_counter() - 100
    played = play(scenario("phase12", *QUIET), first=2, start_s=began_s)
    played.assert_clean()
    assert [e.proof for e in played.events if e.kind == "admit"] == [2, 3]
    assert {e.proof for e in played.events if e.kind == "complete" and e.partition == -1} == {2, 3}
    assert all(e.t >= 100 / played.engine.device.time_scale for e in played.events)
    assert played.events[0].kind == "alloc"  # loading is on the clock too


def test_a_fault_that_surfaces_while_a_set_is_unwound() -> None:
    """Giving memory back waits for a GPU, so a lost device may be noticed there first."""

    class LosesInFree(Faulty):
        def free(self, real: Any) -> None:
            super().free(real)
            if self.hits and self.error is not None:
                self.error = None
                raise DeviceLost(0, "sticky")

    played = play(scenario("phase12", *QUIET), LosesInFree(Broken("no"), step="msm_h"), replaceable=True)
    played.assert_clean()
    assert list(played.engine.core.lost) == [0] and played.engine.core.failure is None


def test_pages_that_cannot_be_locked_fail_the_proof_and_name_ram() -> None:
    from cuzk.gpu.faults import HostMemoryRefused

    played = play(scenario("phase12", *QUIET), Faulty(HostMemoryRefused("RAM: 4.0 GiB cannot be locked"), step="pin_pages"))
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None and [number for number, _ in engine.core.failures] == [1]
    assert engine.core.oom is not None and engine.core.oom[1].pool == "ram"
    assert str(engine.core.oom[1]) == "RAM: 4.0 GiB cannot be locked"


def test_the_last_device_lost_ends_the_run() -> None:
    played = play(scenario("phase12", *QUIET), Faulty(DeviceLost(0, "sticky"), step="msm_h"))
    played.assert_clean()
    assert isinstance(played.engine.core.failure, DeviceLost)


def test_a_claim_that_can_never_be_granted_is_refused() -> None:
    scene = scenario("phase12", "policy.admission=byte-budget", "policy.budget_partition=900GiB")
    with pytest.raises(InputError, match=r"units of byte_budget, which has .* it would wait for ever"):
        bind(scene)


CROSSED = """
version: 1
machine: {root}/scenarios/machines/zen4-96c-755g-5070ti.yaml
circuit: {root}/scenarios/circuits/winning-32g.yaml
policy: {{j: 2}}
workload: {{proofs: 4}}
pipeline:
  name: crossed
  buffers: {{rows: {{pool: ram, size: 32*constraints}}}}
  permits: {{left: {{count: 1}}, right: {{count: 1}}}}
  channels: {{ready: {{}}}}
  workers:
    task:
      start: partition
      steps: [{{acquire: left}}, {{alloc: rows}}, {{run: fill}}, {{put: ready}}]
    worker:
      start: pool
      count: 2
      steps:
        - get: ready
        - acquire: right
        - spawn: child
          as: child
        - join: child
        - {{release: right}}
        - {{release: left}}
        - {{free: rows}}
        - {{complete: partition}}
    child:
      start: spawned
      steps: [{{acquire: right}}, {{run: look}}, {{release: right}}]
"""


def test_a_deadlock_is_seen_and_ends_the_run(tmp_path: Path) -> None:
    """A child waits for a permit that its parent holds while it waits for the child. No static check can know the counts."""
    path = tmp_path / "crossed.yaml"
    path.write_text(CROSSED.format(root=ROOT))
    played = play(load_scenario(path))
    played.assert_clean()
    assert isinstance(played.engine.core.failure, InputError)
    assert "deadlocks" in str(played.engine.core.failure) and "child waits for right" in str(played.engine.core.failure)


def test_residents_that_do_not_fit_end_the_run_before_it_starts() -> None:
    played = play(scenario("phase12", machine="zen4-96c-container-64g"))
    played.assert_clean()
    assert isinstance(played.engine.core.failure, OutOfMemory)
    assert played.engine.core.oom is not None and played.engine.core.oom[0] == 0
    assert not any(e.kind == "admit" for e in played.events)


def test_the_pile_up_is_stopped_with_its_holders_named() -> None:
    scene = scenario("phase12-prefix", "policy.pw=15", "policy.j=15", "policy.gw=1", "workload.proofs=20",
                     "machine.ram=400GiB")  # fmt: skip
    played = play(scene, quick())
    played.assert_clean()
    assert played.engine.core.oom is not None
    held = {name: count for name, count, _ in played.engine.core.oom[1].holders}
    assert held["a"] > 10 and held["aux"] > 10
    assert played.events[-1].kind == "free"


@pytest.mark.parametrize("seed", range(12))
def test_many_faults_at_once(seed: int) -> None:
    """Any body of any proof may fail, at random; barging locks and spawned children included."""

    class Random(NullDevice):
        rng = random.Random(seed)

        def perform(self, work: Work) -> None:
            if self.rng.random() < 0.004:
                raise Broken(work.name)
            super().perform(work)

    phase = list(PHASES)[seed % len(PHASES)]
    scene = scenario(phase, "policy.lock_order=barging", "workload.proofs=12", "policy.j=4", "policy.gw=2", "machine.ram=2TiB",
                     machine="zen4-96c-755g-32g")  # fmt: skip
    played = play(scene, Random(scale=1e-6, time_scale=2e-5))
    played.assert_clean()
    failed = {number for number, _ in played.engine.core.failures}
    whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
    assert failed | whole == set(range(12))

"""Any policy, any order, faults anywhere: what holds for every run."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.exec.device import Work
from cuzk.exec.null import NullDevice
from cuzk.model.scenario import Scenario
from cuzk.pipeline.check import check
from cuzk.pipeline.program import bind
from cuzk.sim import simulate
from tests.unit.exec.playing import play, quick, scenario

OPTIONS = {
    "prestage": ["off", "before-mutex", "inside-mutex"], "free_d_bc": ["after-unlock", "before-unlock", "after-ntt"],
    "unpin": ["before-unlock", "after-unlock"], "free_abc": ["after-start", "after-finish"], "prove_api": ["monolithic", "split"],
    "permit_returns": ["after-synthesis", "after-send", "after-pickup", "after-gpu-start"], "channel_capacity": [1, 3, "pw"],
    "dealloc": ["inline", "async", "async-serialised"], "gpu_locks": ["one", "compute+memory"],
    "admission": ["permits", "byte-budget", "queue-target"], "order": ["fifo", "by-proof", "random"],
    "lock_order": ["fifo", "barging"], "msm_sync": ["each-batch", "deferred"], "b_g2_msm": ["cpu", "gpu"],
    "quotient": ["bellman", "odd-coset", "c-free"], "witness": ["field", "bits"], "matrices": ["csr", "template"],
    "matvec": ["cpu", "gpu"], "prep_msm": ["cpu", "gpu"],
}  # fmt: skip
POLICIES = st.fixed_dictionaries(
    {"pw": st.integers(1, 8), "gw": st.integers(1, 3), "j": st.integers(1, 4)},
    optional={name: st.sampled_from(values) for name, values in OPTIONS.items()},
)
PHASES = st.sampled_from([f"phase{n}" for n in (2, 7, 8, 9, 10, 11, 12)] + ["phase12-prefix"])
ROOMY = ("machine.ram=8TiB", "circuit.partitions=3", "workload.proofs=5")


def with_policy(phase: str, policy: dict[str, Any]) -> Scenario:
    return scenario(phase, *ROOMY, machine="three-24g-128g").with_policy(**policy)


# INV-7
@given(phase=PHASES, policy=POLICIES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_run_ends_clean_and_counts_as_the_simulator_does(phase: str, policy: dict[str, Any]) -> None:
    """Every proof comes out or has failed (of VRAM); each set that came out is deallocated on each path, once."""
    scene = with_policy(phase, policy)
    assert not [f for f in check(bind(scene)) if f.severity == "error"]
    played = play(scene)
    played.assert_clean()
    engine = played.engine
    assert engine.core.failure is None
    whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
    failed = {number for number, _ in engine.core.failures}
    assert whole | failed == set(range(5))
    assert all(hasattr(why, "pool") and why.pool.startswith("vram") for _, why in engine.core.failures)
    if not failed:
        assert set(engine.core.deallocations.values()) == {len(engine.core.completion_s)}
        simulated = simulate(scene)
        if simulated.verdict == "fits":
            assert (simulated.completions, simulated.deallocations) == (len(engine.core.completion_s), engine.core.deallocations)


# INV-2
@given(phase=PHASES, policy=POLICIES, every=st.integers(5, 200))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_faults_anywhere_leave_nothing_behind(phase: str, policy: dict[str, Any], every: int) -> None:
    class Failing(NullDevice):
        count = 0

        def perform(self, work: Work) -> None:
            Failing.count += 1
            if Failing.count % every == 0:
                raise RuntimeError(work.name)
            super().perform(work)

    device = Failing(scale=1e-6, time_scale=5e-5)
    played = play(with_policy(phase, policy), device)
    played.assert_clean()
    whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
    assert whole | {number for number, _ in played.engine.core.failures} == set(range(5))


def test_quick_devices_really_take_memory() -> None:
    """The runs above are small, not empty: buffers exist and are touched."""
    device = quick()
    played = play(scenario("phase12", *ROOMY), device)
    played.assert_clean()
    assert {e.pool for e in played.events if e.kind == "alloc"} >= {"ram", "pinned", "vram:0"}

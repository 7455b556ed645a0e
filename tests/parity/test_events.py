"""Parity by event: any scenario and policy, simulated and run on the null device, obeys one grammar and one schema."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.errors import ScenarioError
from cuzk.pipeline.grammar import sentences, violations
from cuzk.pipeline.program import Program, bind
from cuzk.sim.options import Options
from cuzk.sim.run import run_program
from cuzk.trace.event import Event
from cuzk.trace.schema import faults_of
from tests.unit.exec.playing import play, scenario
from tests.unit.exec.test_failure import Broken, Faulty
from tests.unit.exec.test_policies import PHASES, POLICIES, with_policy

SLOW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def simulated(program: Program) -> list[Event]:
    return run_program(program, None, Options(trace=True)).events or []


def assert_as_the_program_says(program: Program, events: list[Event]) -> None:
    assert [fault for event in events for fault in faults_of(event)] == []
    assert violations(program, events) == []


# INV-23
@given(phase=st.one_of(PHASES, st.just("own")), policy=POLICIES)
@SLOW
def test_both_interpreters_obey_one_grammar(phase: str, policy: dict[str, Any]) -> None:
    scene = with_policy(phase, policy)
    try:
        program = bind(scene)
    except ScenarioError as refused:
        assert "needs" in str(refused)
        return
    predicted, measured = simulated(program), play(scene).events
    assert_as_the_program_says(program, predicted)
    assert_as_the_program_says(program, measured)
    if any(event.kind == "oom" for event in (*predicted, *measured)):
        return  # who runs out first is a matter of pace
    lanes = [{lane[:3] for lane in sentences(program, events)} for events in (predicted, measured)]
    assert lanes[0] == lanes[1]
    assert fields(predicted) == fields(measured)


def fields(events: list[Event]) -> Counter[tuple[Any, ...]]:
    """Every event that does not depend on pace, with all of its fields that do not."""
    found: Counter[tuple[Any, ...]] = Counter()
    for e in events:
        if e.kind in ("begin", "end", "alloc", "free", "dealloc", "complete", "admit") and e.proof is not None:
            law = None if e.name.startswith("upload") else e.cost  # which arm of a pre-stage was taken
            name = "upload" if e.name.startswith("upload") else e.name
            found[e.kind, name, e.worker.partition(":")[0], e.proof, e.partition, law, e.pool and e.pool[:4], e.bytes] += 1
    return Counter({key: n for key, n in found.items() if key[1] != "prestage_setup"})


@pytest.mark.parametrize("step", ["witness", "ntt_h", "prep_msm", "b_g2_msm", "epilogue", "dealloc_host"])
def test_a_failed_proof_breaks_off_and_is_unwound(step: str) -> None:
    scene = scenario("phase12", "policy.gw=2", "policy.j=3", "workload.proofs=4", "circuit.partitions=3")
    played = play(scene, Faulty(Broken("no"), step=step))
    assert_as_the_program_says(bind(scene), played.events)


def test_a_simulated_failure_obeys_it_too() -> None:
    scene = scenario("phase9", "policy.prestage=before-mutex", "policy.gw=3", "workload.proofs=4")
    events = simulated(bind(scene))
    assert any(event.kind == "oom" and event.pool == "vram:0" for event in events)
    assert_as_the_program_says(bind(scene), events)


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda e: e.kind == "free" and e.name == "d_bc", "is no sentence"),
        (lambda e: e.kind == "end" and e.name == "msm_h", "is no sentence"),
        (lambda e: e.kind == "grant", "is no sentence"),
    ],
)
def test_an_event_that_is_missing_is_found(spoil: Any, found: str) -> None:
    program = bind(scenario("phase12", "workload.proofs=2"))
    events = simulated(program)
    assert violations(program, events) == []
    gone = next(index for index, event in enumerate(events) if spoil(event) and event.partition is not None)
    assert any(found in text for text in violations(program, events[:gone] + events[gone + 1 :]))

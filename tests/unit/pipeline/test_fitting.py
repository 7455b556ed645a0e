"""What a policy leaves open of a GPU run is chosen by what fits the card, and what is chosen does fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.model import load_scenario
from cuzk.model.policy import Policy
from cuzk.pipeline.fitting import fits, fitted
from cuzk.pipeline.program import bind
from cuzk.sim import simulate

SCENARIO = Path(__file__).parents[3] / "scenarios" / "own-h200.yaml"
FACTS = {"quotient": "c-free", "matrices": "template", "witness": "bits"}
GIB = 1 << 30


def scenario_with(vram_gib: float, **policy):
    scenario = load_scenario(SCENARIO)
    cards = tuple(gpu.model_copy(update={"vram": int(vram_gib * GIB)}) for gpu in scenario.machine.gpus)
    machine = scenario.machine.model_copy(update={"gpus": cards})
    return scenario.model_copy(update={"machine": machine, "policy": Policy(**FACTS, **policy)})


@pytest.mark.parametrize(
    ("vram_gib", "srs", "sets"),
    [(12, "split", 1), (14, "split", 2), (16, "split", 2), (24, "split", 3), (32, "split", 3), (48, "split", 3), (64, "vram", 1),
     (80, "vram", 2), (139, "vram", 2)],
)  # fmt: skip
def test_the_best_that_fits(vram_gib, srs, sets):
    found = fitted(scenario_with(vram_gib))
    assert (found.policy.srs, found.policy.gw) == (srs, sets)
    assert fits(bind(found))
    outcome = simulate(found).to_json()
    assert outcome["verdict"] in ("fits", "risky")
    assert outcome["peaks"]["vram:0"]["resident_bytes"] <= vram_gib * GIB


def test_more_vram_is_never_slower_to_stream():
    """The bytes that cross the link for each set fall as the card grows."""
    stay = []
    for vram_gib in (24, 28, 32, 40, 48):
        program = bind(fitted(scenario_with(vram_gib)))
        stay.append(next(each.nbytes for each in program.residents if each.buffer == "key_ring"))
    assert stay == sorted(stay)


def test_what_the_policy_says_stays():
    asked = scenario_with(16, srs="pinned")
    assert fitted(asked) is asked
    found = fitted(scenario_with(16, j=1, pw=7))
    assert (found.policy.srs, found.policy.j, found.policy.pw) == ("split", 1, 7)


def test_a_card_on_which_nothing_fits_is_left_to_its_defaults():
    asked = scenario_with(8)
    assert fitted(asked) is asked


def test_a_machine_without_the_ram_to_lock_locks_nothing():
    asked = scenario_with(24)
    machine = asked.machine.model_copy(update={"ram": 40 * GIB})
    found = fitted(asked.model_copy(update={"machine": machine}))
    assert found.policy.srs in (None, "mmap")

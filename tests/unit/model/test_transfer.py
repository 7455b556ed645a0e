"""Laws of one card on another: by what the cards multiply and move, only for work of the GPU, nothing on the same card."""

import pytest

from cuzk.accuracy.library import load_calibration
from cuzk.model.machine import Gpu
from cuzk.model.scenario import load_scenario
from cuzk.model.transfer import BAND, Rates, calibrated_on, factor, rates_of, same_card
from cuzk.sim import simulate

REFERENCE = load_calibration("reference")
THERE = calibrated_on(REFERENCE)


def test_the_card_of_a_calibration_is_known_by_name_or_machine():
    assert THERE is not None and THERE.name == "RTX 5070 Ti"
    assert calibrated_on(load_calibration("own-h200")).sms == 132
    unknown = REFERENCE.model_copy(update={"gpu": "", "machine": "nowhere"})
    assert calibrated_on(unknown) is None


def test_the_same_card_changes_nothing_whatever_its_memory():
    here = rates_of(Gpu.model_validate({"card": "RTX 5070 Ti"}, context={}).model_copy(update={"vram": 32 << 30}))
    assert same_card(THERE, here) and factor("msm_h", REFERENCE.law("msm_h"), THERE, here) == 1.0


def test_half_the_multiprocessors_take_twice_as_long_and_host_work_stays():
    half = Rates("half", THERE.sms // 2, THERE.clock_mhz, THERE.imad, THERE.memory_bandwidth)
    assert factor("msm_h", REFERENCE.law("msm_h"), THERE, half) == pytest.approx(2.0)
    assert 1.0 < factor("batch_add", REFERENCE.law("batch_add"), THERE, half) < 2.0
    assert factor("witness", REFERENCE.law("witness"), THERE, half) == 1.0


def test_the_two_cards_that_one_prover_ran_on_lie_within_the_band():
    there = load_calibration("h200-supraseal")
    card = calibrated_on(there)
    measured = {"ntt_h": (0.2, 0.4398), "msm_h": (0.49, 1.1255), "batch_add": (0.65, 0.6756), "tail_msm": (0.083, 0.191)}
    for step, (mine, theirs) in measured.items():
        forth = mine * factor(step, REFERENCE.law(step), THERE, card)
        back = theirs * factor(step, there.law(step), card, THERE)
        assert 1 / BAND < theirs / forth < BAND and 1 / BAND < mine / back < BAND, step


def test_each_card_of_a_machine_has_its_own_rate():
    both = "machine.gpus=[{card: RTX 5070 Ti},{card: RTX 5070 Ti, sms: 20}]"
    run = simulate(load_scenario("scenarios/phase12-pw10.yaml", ["workload.proofs=4", both]), trace=True)
    ends = [e.worker for e in run.events if e.name == "msm_h" and e.kind == "end"]
    first, second = (sum(worker.startswith(f"gpu:{gpu}.") for worker in ends) for gpu in (0, 1))
    assert first > 1.3 * second > 0

"""A run on a GPU that others use too has the rest of it, and takes what fits that."""

from __future__ import annotations

import pytest

from cuzk.exec.cuda import CudaProver
from tests.unit.pipeline.test_fitting import FACTS, GIB, scenario_with


@pytest.mark.parametrize(("free_gib", "srs"), [(139, "vram"), (60, "vram"), (30, "split"), (14.5, "split")])
def test_what_others_hold_is_off(monkeypatch, free_gib, srs):
    monkeypatch.setattr(CudaProver, "room_bytes", staticmethod(lambda index, context_bytes: int(free_gib * GIB)))
    seen, suited = CudaProver.suit(scenario_with(139), FACTS)
    assert seen.machine.gpus[0].vram == int(free_gib * GIB)
    assert suited is not None and suited.policy.srs == srs and suited.machine == seen.machine


def test_a_scenario_with_less_than_the_card_has_keeps_its_own(monkeypatch):
    monkeypatch.setattr(CudaProver, "room_bytes", staticmethod(lambda index, context_bytes: 139 * GIB))
    seen, suited = CudaProver.suit(scenario_with(16), FACTS)
    assert seen.machine.gpus[0].vram == 16 * GIB and suited is not None and suited.policy.srs == "split"


def test_without_a_gpu_to_ask_the_scenario_is_believed(monkeypatch):
    monkeypatch.setattr(CudaProver, "room_bytes", staticmethod(lambda index, context_bytes: None))
    seen, suited = CudaProver.suit(scenario_with(16), FACTS)
    assert seen.machine.gpus[0].vram == 16 * GIB and suited is not None and suited.policy.srs == "split"


def test_who_has_chosen_a_place_is_left_alone(monkeypatch):
    monkeypatch.setattr(CudaProver, "room_bytes", staticmethod(lambda index, context_bytes: None))
    _, suited = CudaProver.suit(scenario_with(16, srs="mmap"), FACTS)
    assert suited is None

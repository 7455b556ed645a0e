"""Cards by name: their own figures, or an error that names the nearest; never another card's."""

from pathlib import Path

import pytest

from cuzk.errors import InputError, ScenarioError
from cuzk.model.catalogue import default_catalogue, load_catalogue
from cuzk.model.scenario import load_scenario

SCENARIO = str(Path(__file__).parents[3] / "scenarios" / "phase12-pw10.yaml")


def test_every_card_is_a_usable_gpu():
    from cuzk.model.machine import Gpu

    for card in default_catalogue().cards:
        gpu = Gpu.model_validate({"card": card.name})
        assert gpu.usable_vram > 0 and gpu.sms == card.sms and gpu.pcie_h2d > 0


@pytest.mark.parametrize("name", ["RTX 4090", "rtx4090", "NVIDIA GeForce RTX 4090"])
def test_names_of_people_and_of_the_driver(name):
    assert default_catalogue().card(name).sms == 128


def test_a_neighbour_is_never_taken():
    with pytest.raises(InputError, match=r"no card 'RTX 4091'.*did you mean 'RTX 4090'"):
        default_catalogue().card("RTX 4091")
    assert default_catalogue().find("RTX 4070 Ti") is None and default_catalogue().find("RTX 3080 Ti").sms == 80


def test_a_card_in_a_scenario():
    scenario = load_scenario(SCENARIO, ["machine.gpus=[{card: RTX 4090, count: 2, reserved: 4GiB}]"])
    assert [gpu.sms for gpu in scenario.machine.gpus] == [128, 128]
    assert scenario.machine.gpus[0].vram == 24 << 30 and scenario.machine.gpus[1].reserved == 4 << 30
    with pytest.raises(ScenarioError, match=r"--set.*machine\.gpus.*no card 'RTX 9090'"):
        load_scenario(SCENARIO, ["machine.gpus=[{card: RTX 9090}]"])


def test_a_users_catalogue_is_vetted_with_positions(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("catalogue:\n  cards:\n    - name: X\n      capability: '9.0'\n      sms: 0\n")
    with pytest.raises(ScenarioError, match=r"mine\.yaml:5:12: catalogue\.cards\.0\.sms"):
        load_catalogue(path)
    rest = "vram: 1GiB, memory_bandwidth: 1GB/s, link_generation: 4, link_width: 8, power_w: 1, price_usd: 1"
    card = f"{{name: X, capability: '9.0', sms: 1, clock_mhz: 1, {rest}}}"
    path.write_text(f"catalogue:\n  cards:\n    - {card}\n    - {card}\n")
    with pytest.raises(ScenarioError, match="two cards are named 'X'"):
        load_catalogue(path)

"""What a step reads beside its work costs the longer of both; what it reads before costs both."""

from __future__ import annotations

import pytest

from cuzk.pipeline.ops import Read
from cuzk.pipeline.prices import RING_SHARE, step_price
from cuzk.pipeline.program import bind
from tests.unit.pipeline.test_fitting import scenario_with


@pytest.mark.parametrize(("pool", "rate"), [("pinned", 55e9), ("ram", RING_SHARE * 55e9)])
@pytest.mark.parametrize("step", ["msm_h", "batch_add"])
def test_the_longer_of_work_and_link(step, pool, rate):
    scenario = scenario_with(24, srs="vram")
    names = bind(scenario).names(scenario.circuit, 0)

    def price(nbytes, **how):
        return step_price(
            scenario.calibration, scenario.machine, names, step, step, "gpu", 0, (Read("srs", pool, nbytes),), **how
        )

    alone = price(0, overlaps=True).seconds
    little, much = price(int(0.5 * alone * rate), overlaps=True), price(int(3 * alone * rate), overlaps=True)
    assert little.seconds == pytest.approx(alone) and little.gpu == 1.0 and little.link is None
    assert much.seconds == pytest.approx(3 * alone, rel=1e-6) and (much.gpu, much.link) == (0.0, "h2d")
    if pool == "pinned":
        assert price(int(3 * alone * rate)).seconds == pytest.approx(4 * alone, rel=1e-6)

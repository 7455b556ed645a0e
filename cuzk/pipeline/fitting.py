"""The options that a policy leaves open of a GPU run, by what fits the card: where the key lies, and how many sets share it."""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.pipeline.bounds import bounds
from cuzk.pipeline.presets.streamed import streams
from cuzk.pipeline.program import Program, bind

PLACES = ("srs", "pce", "matvec", "prep_msm", "b_g2_msm")
"""Options that say where work and data are. Whoever sets one has chosen; then nothing is chosen here."""
_ALL_ON_GPU: dict[str, Any] = {"pce": "vram", "matvec": "gpu", "prep_msm": "gpu", "b_g2_msm": "gpu"}
THREE_FROM = 20 << 30
"""VRAM from which three sets leave the MSM over h enough."""


def candidates(vram_bytes: int) -> list[dict[str, Any]]:
    """Policies, fastest first by what an H200 took (docs/cards.md): the key on the card, a part of it, nothing of it and nothing
    page-locked."""
    sets = (3, 2, 1) if vram_bytes >= THREE_FROM else (2, 1)
    return [
        {**_ALL_ON_GPU, "srs": "vram", "pw": 3, "gw": 2, "j": 2, "prestage": "before-mutex"},
        {**_ALL_ON_GPU, "srs": "vram", "pw": 2, "gw": 1, "j": 2},
        *({**_ALL_ON_GPU, "srs": srs, "pw": 1 + max(2, n), "gw": n, "j": 2} for srs in ("split", "mmap") for n in sets),
    ]


def fitted(scenario: Scenario) -> Scenario:
    """The scenario with the first of `candidates` whose memory fits its machine; as it is if the policy has chosen, or none fits.

    Other options of the policy stay. The machine's VRAM is what this run may have: what others hold is off already.
    """
    if any(getattr(scenario.policy, option) is not None for option in PLACES) or not scenario.machine.gpus:
        return scenario
    for candidate in candidates(min(gpu.vram for gpu in scenario.machine.gpus)):
        chosen = scenario.model_copy(update={"policy": scenario.policy.over(Policy.model_validate(candidate))})
        if fits(bind(chosen)):
            return chosen
    return scenario


def fits(program: Program) -> bool:
    """Whether no pool can be asked for more than it has."""
    capacity = program.pools
    most = {bound.pool: bound.at_most_bytes for bound in bounds(program)}
    if streams(program.policy):
        most |= {f"vram:{gpu}": _streamed_bytes(program, gpu) for gpu in range(program.gpus)}
    return all(most[pool] <= capacity[pool] for pool in most)


def _streamed_bytes(program: Program, gpu: int) -> int:
    """VRAM of a GPU where a key passes by: `gw` sets are split and ride, one of them is at its quotient or at h."""
    sets = program.policy.gw or 1
    resident = sum(each.nbytes for each in program.residents if each.pool == f"vram:{gpu}")
    size = {name: program.size(name, program.largest, gpu) for name in _OF_A_SET}
    quotient, h = size["d_bc"], size["msm_h_temps"]
    riding = sets * size["d_tails"] + size["tail_temps"]
    beside = max(quotient, h + riding) if sets == 1 else max(quotient, h) + riding
    return resident + sets * (size["d_w"] + size["d_splits"]) + size["d_a"] + beside


_OF_A_SET = ("d_w", "d_splits", "d_tails", "tail_temps", "d_a", "d_bc", "msm_h_temps")

"""Pipelines that ship with cuzk, built from a policy.

own.py             cuzk's own executor
streamed.py        its GPU worker where the key passes by in chunks
partition.py       the steps that it shares with the reference prover's phases
reference_prover/  the reference prover's history
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuzk.pipeline.presets.own import OWN, own
from cuzk.pipeline.presets.reference_prover.phases import PHASES, phase
from cuzk.pipeline.presets.reference_prover.supraseal import supraseal

if TYPE_CHECKING:
    from cuzk.model.policy import Policy
    from cuzk.pipeline.steps import Pipeline


@dataclass(frozen=True)
class Preset:
    """A preset: its options where the policy leaves them open, and the builder of its steps."""

    defaults: dict[str, Any]
    build: Callable[[str, Policy], Pipeline]
    is_own: bool = False
    """Whether cuzk's own executor runs it; the others are the reference prover's."""


PRESETS: dict[str, Preset] = {"own": Preset(OWN, own, is_own=True)} | {
    name: Preset(defaults, supraseal if name.startswith("supraseal") else phase) for name, defaults in PHASES.items()
}


def preset_policy(preset: str, policy: Policy) -> Policy:
    """`policy` with every open option filled from the preset. Raises KeyError for an unknown preset."""
    return policy.over(type(policy).model_validate(PRESETS[preset].defaults))


def build(preset: str, policy: Policy) -> Pipeline:
    """The preset under a policy that leaves nothing open."""
    return PRESETS[preset].build(preset, policy)

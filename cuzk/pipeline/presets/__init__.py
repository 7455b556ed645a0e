"""Pipelines that ship with cuzk, built from a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuzk.pipeline.presets.phases import PHASES, preset_policy
from cuzk.pipeline.presets.reference import reference
from cuzk.pipeline.presets.supraseal import supraseal

if TYPE_CHECKING:
    from cuzk.model.policy import Policy
    from cuzk.pipeline.steps import Pipeline

__all__ = ["PHASES", "build", "preset_policy", "reference", "supraseal"]


def build(name: str, policy: Policy) -> Pipeline:
    """The preset `name` under a policy that leaves nothing open."""
    return supraseal(name, policy) if name.startswith("supraseal") else reference(name, policy)

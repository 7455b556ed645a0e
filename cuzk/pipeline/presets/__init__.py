"""Pipelines that ship with cuzk, built from a policy."""

from cuzk.pipeline.presets.phases import PHASES, preset_policy
from cuzk.pipeline.presets.reference import reference

__all__ = ["PHASES", "preset_policy", "reference"]

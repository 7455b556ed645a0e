"""The library's contents: calibrations by short name, measured points, measured runs."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.model.files import library
from cuzk.model.scenario import load_part


def place(*parts: str) -> Path:
    """A path in the library of scenarios. Raises InputError if there is none."""
    root = library()
    if root is None:
        raise InputError("the library of scenarios is missing from this installation")
    return root.joinpath(*parts)


def reference_points() -> str:
    return str(place("data", "reference", "measurements.yaml"))


@lru_cache(maxsize=16)
def load_calibration(name: str) -> Calibration:
    """A calibration file, or one of the library by its short name ('reference')."""
    short = place("calibrations", f"{name}.yaml")
    return load_part(str(short) if "/" not in name and short.is_file() else name, "calibration", Calibration)


def cross_validation_of(name: str) -> dict[str, Any] | None:
    """The file that `cuzk calibrate --points` wrote beside the calibration: each point predicted by a fit without it."""
    short = place("calibrations", f"{name}.yaml")
    file = Path(str(short if "/" not in name and short.is_file() else name).removesuffix(".yaml") + ".cv.json")
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file}: not JSON: {error}") from None
    if not isinstance(found, dict) or not {"how", "summary"} <= found.keys():
        raise InputError(f"{file}: not a cross-validation: 'how' and 'summary' are needed")
    return found

"""The base of every model: frozen, unknown keys refused, numbers finite.

Whole numbers and reals are strict (`Count`, `Positive`, `Real`, `Share`): a YAML `"12"`, `12.0` or `true` where a
count is meant is a fault, not a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

MAX_COUNT = 1 << 50
"""Upper limit of counts: every count and size below it is exact as a float."""

Count = Annotated[int, Strict(), Field(ge=0, le=MAX_COUNT)]
Positive = Annotated[int, Strict(), Field(ge=1, le=MAX_COUNT)]
Real = Annotated[float, Strict()]
NonNegative = Annotated[float, Strict(), Field(ge=0)]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Name = Annotated[str, Strict(), Field(min_length=1, max_length=200)]

Source = Literal["document", "fit", "measured", "derived", "assumed"]
"""The source of a number: printed by others, fitted, measured here, computed from counts, or a guess."""

Provenance = dict[str, str]
"""For each figure that needs it: where it comes from."""


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


AsTuple = BeforeValidator(_as_tuple)
"""Annotates a tuple field that a YAML list may fill."""


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True, use_attribute_docstrings=True)

    def with_(self, **changes: Any) -> Self:
        """A copy with `changes`, validated. Raises pydantic.ValidationError."""
        return type(self).model_validate({name: self.__dict__[name] for name in type(self).model_fields} | changes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Pydantic's copy; what was derived from the old values and cached is not taken along."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy

"""The template of a sector's partition, and its counts."""

from __future__ import annotations

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.porep.circuit import Prefix, emit_challenge, emit_prefix
from cuzk.circuits.porep.shape import Shape
from cuzk.circuits.porep.values import PrefixValues, blank_challenge
from cuzk.circuits.template import build_template
from cuzk.groth16.template.model import Template


def porep_template(shape: Shape, library: Library | None = None, *, inline: bool = False) -> Template:
    """Emits the prefix and one challenge. `inline` emits every gadget in full instead of stamping it."""

    def body(cs: Emitter, prefix: object) -> None:
        assert isinstance(prefix, Prefix)
        emit_challenge(cs, shape, prefix, blank_challenge(shape))

    return build_template(
        f"porep-{shape.name}", shape.challenges, lambda cs: emit_prefix(cs, PrefixValues()), body, library, inline=inline
    )

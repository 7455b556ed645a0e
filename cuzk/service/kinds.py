"""Kinds of proof, in a table: number and names on the wire, usual priority, and who reads their inputs.

A kind whose reader is not there is refused in words when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from cuzk.errors import InputError
from cuzk.service.request import Priority, ProofRequest, Refused


class Statement(Protocol):
    """A checked input: what its partitions prove, and how their values are made. Must be safe to use from several threads."""

    @property
    def circuit_id(self) -> str:
        """Names the key, such as `porep-32g`."""

    @property
    def partitions(self) -> int: ...

    def witness(self, partition: int, circuit: Any) -> Any:
        """The values of a partition, as the prover takes them. `circuit`: what was loaded with the key (keys.py). Raises
        InputError, ProofInvalid."""

    def public_inputs(self, partition: int) -> list[int]:
        """Without ONE: what a verifier derives, not what the prover happened to use."""


Reader = Callable[[ProofRequest], Statement]
"""Raises InputError that says where the input is wrong. Called in a thread of its own."""


@dataclass(frozen=True)
class Kind:
    number: int
    name: str
    """In text fields: `porep-c2`."""
    wire: str
    """The name in the enum."""
    priority: Priority
    read: Reader | None = None
    why_not: str = ""
    """Why there is no reader."""

    @property
    def metric(self) -> str:
        return self.name.replace("-", "_")


class Kinds:
    """The kinds that a service knows."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._of_number = {kind.number: kind for kind in kinds}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._of_number.values())

    def of(self, number: int) -> Kind:
        """Raises Refused for a number that is no kind."""
        kind = self._of_number.get(number)
        if kind is None:
            raise Refused("invalid", f"invalid proof_kind: {number}")
        return kind

    def named(self, name: str) -> Kind:
        """By any of its names. Raises InputError."""
        for kind in self:
            if name in (kind.name, kind.metric, kind.wire, kind.wire.lower()):
                return kind
        raise InputError(f"unknown kind of proof {name[:40]!r}: one of {', '.join(kind.name for kind in self)}")


def require_reader(kind: Kind) -> Reader:
    """Raises InputError that says why a kind cannot be proved."""
    if kind.read is None:
        raise InputError(f"{kind.name} is not proved here: {kind.why_not}")
    return kind.read


def standard_kinds() -> Kinds:
    """Those of the wire protocol, with the readers that are there."""
    from cuzk.service.porep import read_porep
    from cuzk.service.post import read_post
    from cuzk.service.update import read_update

    return Kinds((
        Kind(1, "porep-c2", "POREP_SEAL_COMMIT", Priority.NORMAL, read_porep),
        Kind(2, "snap-update", "SNAP_DEALS_UPDATE", Priority.NORMAL, read_update),
        Kind(3, "window-post", "WINDOW_POST_PARTITION", Priority.HIGH, read_post),
        Kind(4, "winning-post", "WINNING_POST", Priority.CRITICAL, read_post),
    ))  # fmt: skip

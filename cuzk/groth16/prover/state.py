"""The state of one proof while it is made. Every large buffer is a named field that its last user frees in plain sight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.products import Witness

BUFFERS = ("aux", "a", "b", "c", "d_a", "d_bc", "splits")


@dataclass
class Split:
    """The rows of a query by the value of their scalar: zero (left out), one (a bitmap), other (the tail)."""

    ones: np.ndarray
    """Bit k, little-endian in bytes: row k has scalar one."""
    n_ones: int
    tail_rows: np.ndarray
    tail_scalars: np.ndarray
    """`(tail, 4)` canonical."""


@dataclass
class ProofState:
    """One proof under way. Fr buffers are `(n, 4)` uint64, Montgomery unless said otherwise."""

    key: ProvingKey
    quotient: str
    blinding: Blinding
    threads: int | None = None
    aux: Witness | None = None
    """All wires: ONE, public, private."""
    public: list[int] = field(default_factory=list)
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    c: np.ndarray | None = None
    d_a: np.ndarray | None = None
    """On the domain: A, then the quotient's scalars (canonical)."""
    d_bc: np.ndarray | None = None
    """On the domain: B, and C behind it where the quotient needs C."""
    splits: dict[str, Split] | None = None
    sums: dict[str, np.ndarray] = field(default_factory=dict)
    """Partial results, mont points: h, l, a, b_g1, b_g2 and their parts *_ones, *_tail."""
    proof: Proof | None = None

    def take(self, name: str) -> Any:
        """A buffer that must exist by now."""
        buffer = getattr(self, name)
        if buffer is None:
            raise RuntimeError(f"step out of order: buffer {name} is not there")
        return buffer

    def split(self, name: str) -> Split:
        """A query's split, which prep_msm has made."""
        if self.splits is None:
            raise RuntimeError("step out of order: prep_msm has not run")
        return self.splits[name]

    def free(self, *names: str) -> None:
        """Drop buffers (each of BUFFERS). Freeing one that is not there does nothing."""
        for name in names:
            if name not in BUFFERS:
                raise ValueError(f"no buffer {name}")
            setattr(self, name, None)

    def live_bytes(self) -> dict[str, int]:
        """Bytes of each buffer that is alive."""
        sizes = {name: buffer.nbytes for name in BUFFERS[:-1] if (buffer := getattr(self, name)) is not None}
        if self.splits is not None:
            unique = {id(s): s for s in self.splits.values()}.values()
            sizes["splits"] = sum(s.ones.nbytes + s.tail_rows.nbytes + s.tail_scalars.nbytes for s in unique)
        return sizes

"""The built-in benchmark circuits by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cuzk.circuits.builtin import bits, mimc
from cuzk.circuits.builtin.tiling import Tiling
from cuzk.errors import InputError

MAX_CONSTRAINTS = 1 << 27


@dataclass(frozen=True)
class Builtin:
    """A circuit family: its tiling for a number of constraints, and a witness for a seed, in chunks."""

    name: str
    summary: str
    tiling: Callable[[int], Tiling]
    witness: Callable[[Tiling, int], Iterator[np.ndarray]]


BUILTIN = {
    "mimc": Builtin("mimc", "chains of x^5: full-width values", mimc.tiling, mimc.witness),
    "bits": Builtin("bits", "boolean gates: 99 % zeros and ones", bits.tiling, bits.witness),
}


def builtin(name: str, n_constraints: int) -> tuple[Builtin, Tiling]:
    """A circuit and its tiling. Raises InputError for an unknown name or an impossible size."""
    if name not in BUILTIN:
        raise InputError(f"no built-in circuit {name!r}; there are {', '.join(BUILTIN)}")
    if not 1 <= n_constraints <= MAX_CONSTRAINTS:
        raise InputError(f"a circuit has 1 to {MAX_CONSTRAINTS} (2^27) constraints, not {n_constraints}")
    return BUILTIN[name], BUILTIN[name].tiling(n_constraints)

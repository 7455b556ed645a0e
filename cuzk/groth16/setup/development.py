"""Keys for development: this machine draws the secrets, so its owner could forge proofs. The file says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16 import points
from cuzk.groth16.field import fr_array
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.mapped import MappedArray
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.key import QUOTIENTS
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.setup.columns import Columns
from cuzk.groth16.setup.secrets import Secrets
from cuzk.groth16.template.system import System

CHUNK = 1 << 16
MAX_LOG_DOMAIN = 31
"""The odd coset needs the roots of unity of twice the domain's order; the field has 2^32."""
ROOTS = {".zkey": 5, ".params": 7, ".ckey": 7}


def key_suffix(out: Path) -> str:
    """The kind of key that a file name asks for. Raises InputError."""
    suffix = os.path.splitext(os.fspath(out))[1]
    if suffix not in ROOTS:
        raise InputError(
            f"{os.fspath(out)}: the name must end in {', '.join(ROOTS)}, which says what kind of key to write"
        )
    return suffix


def setup_development(
    system: System,
    out: Path,
    secrets: Secrets | None = None,
    quotients: tuple[str, ...] = QUOTIENTS,
    progress: Progress = silent,
    mark: bool = True,
) -> VerifyingKey:
    """Write a key for a system with A, B, C; the kind is by the suffix of `out`. Returns its verifying key.

    `quotients` matters to .ckey alone. `mark` False leaves the development mark out: for byte-exact comparisons with
    known secrets.
    """
    suffix = key_suffix(out)
    if system.log_domain > MAX_LOG_DOMAIN:
        raise InputError(f"the circuit needs a domain of 2^{system.log_domain}; at most 2^{MAX_LOG_DOMAIN} is possible")
    if suffix != ".zkey":
        system = system.merged()
    system = system.with_input_rows()
    maker = _Maker(Columns(system, secrets or Secrets.random(), ROOTS[suffix]), progress, mark)
    if suffix == ".zkey":
        maker.write_zkey(out)
    elif suffix == ".params":
        maker.write_params(out)
    else:
        maker.write_ckey(out, quotients)
    return maker.verifying_key()


class _Maker:
    """Turns scalars into points, chunk by chunk, and writes them in the order of each format."""

    def __init__(self, columns: Columns, progress: Progress, mark: bool) -> None:
        self.columns, self.system, self.progress, self.mark = columns, columns.system, progress, mark
        s = columns.secrets
        self.g1 = native.fixed_base_g1(fr_array([s.alpha, s.beta, s.delta]))
        self.g2 = native.fixed_base_g2(fr_array([s.beta, s.gamma, s.delta]))
        self.ic = native.fixed_base_g1(columns.ic())

    def verifying_key(self) -> VerifyingKey:
        g1, g2 = ([points.from_mont(p) for p in group] for group in (self.g1, self.g2))
        ic = tuple(points.from_mont(p) for p in self.ic)
        return VerifyingKey(g1[0], g2[0], g2[1], g2[2], ic, g1[1], g1[2], development=self.mark)

    def _points(
        self, what: str, scalars: Callable[[], np.ndarray], rows: np.ndarray | None = None, group: int = 1
    ) -> Iterator[np.ndarray]:
        """Chunks of scalar·generator; the scalars are computed when the list is due, and dropped with it."""
        values = scalars()
        if rows is not None:
            values = values[rows]
        multiply = native.fixed_base_g1 if group == 1 else native.fixed_base_g2
        for first in range(0, len(values), CHUNK):
            yield multiply(values[first : first + CHUNK])
            self.progress(what, min(first + CHUNK, len(values)), len(values))

    def write_zkey(self, out: Path) -> None:
        from cuzk.groth16.formats.zkey import ZkeyHeader, ZkeyPoints, development_section, unmarked_section, write_zkey

        c, system = self.columns, self.system
        g1, g2 = (list(np.split(group, 3)) for group in (self.g1, self.g2))
        header = ZkeyHeader(system.n_wires, system.n_public, c.m, g1[0], g1[1], g2[0], g2[1], g1[2], g2[2])
        lists = ZkeyPoints(
            header,
            ic=[self.ic],
            a=self._points("A", c.a),
            b_g1=self._points("B in G1", c.b),
            b_g2=self._points("B in G2", c.b, group=2),
            l_query=self._points("L", c.l_odd),
            h=self._points("H", c.h_odd),
        )
        write_zkey(out, lists, system.expanded(), development_section if self.mark else unmarked_section)

    def write_params(self, out: Path) -> None:
        from cuzk.groth16.formats.params import development_tail, write_params

        c, system = self.columns, self.system
        l_scalars = c.l_odd()
        unused = np.flatnonzero(~l_scalars.any(axis=1))
        if len(unused):
            wire = int(unused[0]) + system.n_public + 1
            raise InputError(
                f"wire {wire} appears in no constraint ({len(unused)} such): the .params format has no place for it; "
                "write a .zkey or .ckey, or remove the wire"
            )
        a_wires, b_wires = system.used_wires(0), system.used_wires(1)
        lists = {
            "h": (c.m - 1, self._points("H", c.h_monomial)),
            "l": (len(l_scalars), self._points("L", lambda: l_scalars)),
            "a": (len(a_wires), self._points("A", c.a, a_wires)),
            "b_g1": (len(b_wires), self._points("B in G1", c.b, b_wires)),
            "b_g2": (len(b_wires), self._points("B in G2", c.b, b_wires, group=2)),
        }
        write_params(out, self.verifying_key(), lists, development_tail() if self.mark else b"")

    def write_ckey(self, out: Path, quotients: tuple[str, ...]) -> None:
        from cuzk.groth16.formats.ckey import CkeyArrays, write_ckey

        c, system = self.columns, self.system
        a_wires, b_wires = system.used_wires(0), system.used_wires(1)
        private = system.n_wires - system.n_public - 1

        def g1(what: str, count: int, scalars: Callable[[], np.ndarray], rows: np.ndarray | None = None) -> MappedArray:
            return MappedArray("u8", (count, 12), self._points(what, scalars, rows))

        odd, plain_l = {"c-free", "odd-coset"} & set(quotients), {"odd-coset", "bellman"} & set(quotients)
        arrays = CkeyArrays(
            self.g1,
            self.g2,
            self.ic,
            a_wires,
            g1("A", len(a_wires), c.a, a_wires),
            b_wires,
            g1("B in G1", len(b_wires), c.b, b_wires),
            MappedArray("u8", (len(b_wires), 24), self._points("B in G2", c.b, b_wires, group=2)),
            l_points=g1("L", private, c.l_odd) if plain_l else None,
            l_c_free=g1("L without C", system.n_wires, c.l_c_free) if "c-free" in quotients else None,
            h_odd=g1("H on the odd coset", c.m, c.h_odd) if odd else None,
            h_monomial=g1("H as monomials", c.m - 1, c.h_monomial) if "bellman" in quotients else None,
        )
        origin = {"made_by": "cuzk setup", "from": "secrets of this machine"}
        write_ckey(out, arrays, system, root=c.root, log_domain=c.log_domain, development=self.mark, origin=origin)

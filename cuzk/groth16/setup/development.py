"""Keys for development: this machine draws the secrets, so its owner could forge proofs. The file says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.ahead import ahead
from cuzk.groth16.field import fr_array
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.mapped import MappedArray
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.key import QUOTIENTS
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.setup.columns import Columns
from cuzk.groth16.setup.secrets import Secrets
from cuzk.groth16.template.system import System

CHUNK_A_THREAD = 1 << 16
"""Points that each thread makes between two looks at what else there is to do: about a tenth of a second."""
UNUSED_STEP = 1 << 20
MULTIPLY: dict[int, Callable[..., np.ndarray]] = {1: native.fixed_base_g1, 2: native.fixed_base_g2}
Scalars = Callable[[int, int], np.ndarray]
"""Any piece of a list of canonical scalars, first to last − 1."""
MAX_LOG_DOMAIN = 31
"""The odd coset needs the roots of unity of twice the domain's order; the field has 2^32."""
ROOTS = {".zkey": 5, ".params": 7, ".ckey": 7}


def key_suffix(out: Path) -> str:
    """The kind of key that a file name asks for. Raises InputError."""
    suffix = os.path.splitext(os.fspath(out))[1]
    if suffix not in ROOTS:
        raise InputError(f"{os.fspath(out)}: the name must end in {', '.join(ROOTS)}, which says what kind of key to write")
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
    columns = in_own_thread(Columns, system, secrets or Secrets.random(), ROOTS[suffix], progress)
    maker = _Maker(columns, progress, mark)
    if suffix == ".zkey":
        maker.write_zkey(out)
    elif suffix == ".params":
        maker.write_params(out)
    else:
        maker.write_ckey(out, quotients)
    return maker.verifying_key()


def _of_wires(values: Callable[[np.ndarray], np.ndarray], wires: np.ndarray) -> Scalars:
    """The list of the values of some wires."""
    return lambda first, last: values(wires[first:last])


class _Maker:
    """Turns scalars into points, chunk by chunk, and writes them in the order of each format."""

    def __init__(self, columns: Columns, progress: Progress, mark: bool) -> None:
        self.columns, self.system, self.progress, self.mark = columns, columns.system, progress, mark
        s = columns.secrets
        self.g1 = native.fixed_base_g1(fr_array([s.alpha, s.beta, s.delta]))
        self.g2 = native.fixed_base_g2(fr_array([s.beta, s.gamma, s.delta]))
        self.ic = native.fixed_base_g1(columns.ic())

    def verifying_key(self) -> VerifyingKey:
        g1, g2 = ([point_bytes.from_mont(p) for p in group] for group in (self.g1, self.g2))
        ic = tuple(point_bytes.from_mont(p) for p in self.ic)
        return VerifyingKey(g1[0], g2[0], g2[1], g2[2], ic, g1[1], g1[2], development=self.mark)

    def _steps(self, what: str, count: int, group: int = 1) -> Iterator[tuple[int, int]]:
        """Pieces of a list, first and last + 1; told as progress when the next one is asked for."""
        step = CHUNK_A_THREAD * native.info()["threads"] // group
        for first in range(0, count, step):
            last = min(first + step, count)
            yield first, last
            self.progress(what, last, count)

    def _points(self, what: str, count: int, scalars: Scalars, group: int = 1) -> Iterator[np.ndarray]:
        """scalar·generator in chunks, ahead of whoever writes them."""
        return ahead(MULTIPLY[group](scalars(first, last)) for first, last in self._steps(what, count, group))

    def _array(self, what: str, count: int, scalars: Scalars, group: int = 1) -> MappedArray:
        """scalar·generator, made where the file has its place."""

        def fill(out: np.ndarray) -> None:
            for first, last in self._steps(what, count, group):
                MULTIPLY[group](scalars(first, last), out=out[first:last])

        return MappedArray("u8", (count, 12 * group), fill=fill)

    def write_zkey(self, out: Path) -> None:
        from cuzk.groth16.formats.zkey import ZkeyHeader, ZkeyPoints, development_section, unmarked_section, write_zkey

        c, system, wires = self.columns, self.system, self.system.n_wires
        g1, g2 = (list(np.split(group, 3)) for group in (self.g1, self.g2))
        header = ZkeyHeader(system.n_wires, system.n_public, c.m, g1[0], g1[1], g2[0], g2[1], g1[2], g2[2])
        lists = ZkeyPoints(
            header,
            ic=[self.ic],
            a=self._points("A", wires, lambda first, last: c.a(slice(first, last))),
            b_g1=self._points("B in G1", wires, lambda first, last: c.b(slice(first, last))),
            b_g2=self._points("B in G2", wires, lambda first, last: c.b(slice(first, last)), group=2),
            l_query=self._points("L", wires - c.first_private, c.l_odd),
            h=self._points("H", c.m, c.h_odd),
        )
        write_zkey(out, lists, system.expanded(), development_section if self.mark else unmarked_section)

    def write_params(self, out: Path) -> None:
        from cuzk.groth16.formats.params import development_tail, write_params

        c, system = self.columns, self.system
        private = system.n_wires - c.first_private
        for first in range(0, private, UNUSED_STEP):
            unused = np.flatnonzero(~c.l_odd(first, min(first + UNUSED_STEP, private)).any(axis=1))
            if len(unused):
                wire = c.first_private + first + int(unused[0])
                raise InputError(
                    f"wire {wire} appears in no constraint: the .params format has no place for it; write a .zkey or .ckey, "
                    "or remove the wire"
                )
        a_wires, b_wires = system.used_wires(0), system.used_wires(1)
        lists = {
            "h": (c.m - 1, self._points("H", c.m - 1, c.h_monomial)),
            "l": (private, self._points("L", private, c.l_odd)),
            "a": (len(a_wires), self._points("A", len(a_wires), _of_wires(c.a, a_wires))),
            "b_g1": (len(b_wires), self._points("B in G1", len(b_wires), _of_wires(c.b, b_wires))),
            "b_g2": (len(b_wires), self._points("B in G2", len(b_wires), _of_wires(c.b, b_wires), group=2)),
        }
        write_params(out, self.verifying_key(), lists, development_tail() if self.mark else b"")

    def write_ckey(self, out: Path, quotients: tuple[str, ...]) -> None:
        from cuzk.groth16.formats.ckey import CkeyArrays, write_ckey

        c, system = self.columns, self.system
        a_wires, b_wires = system.used_wires(0), system.used_wires(1)
        odd, plain_l = {"c-free", "odd-coset"} & set(quotients), {"odd-coset", "bellman"} & set(quotients)
        arrays = CkeyArrays(
            self.g1,
            self.g2,
            self.ic,
            a_wires,
            self._array("A", len(a_wires), _of_wires(c.a, a_wires)),
            b_wires,
            self._array("B in G1", len(b_wires), _of_wires(c.b, b_wires)),
            self._array("B in G2", len(b_wires), _of_wires(c.b, b_wires), group=2),
            l_points=self._array("L", system.n_wires - c.first_private, c.l_odd) if plain_l else None,
            l_c_free=self._array("L without C", system.n_wires, c.l_c_free) if "c-free" in quotients else None,
            h_odd=self._array("H on the odd coset", c.m, c.h_odd) if odd else None,
            h_monomial=self._array("H as monomials", c.m - 1, c.h_monomial) if "bellman" in quotients else None,
        )
        origin = {"made_by": "cuzk setup", "from": "secrets of this machine"}
        write_ckey(out, arrays, system, root=c.root, log_domain=c.log_domain, development=self.mark, origin=origin)

"""cuzk's own key file (.ckey): every array where a prover wants it, aligned and without conversion.

Mapped container with magic `cuzk-key`. Metadata: root, log_domain, n_wires, n_public, n_constraints, development,
origin. Arrays: g1 (3, 12) alpha beta delta; g2 (3, 24) beta gamma delta; ic; a_points, a_wires; b_g1_points,
b_g2_points, b_wires (no points at infinity); the matrices (matrices.py, or template_arrays.py); and per quotient, where
present:

| quotient | arrays |
| c-free | l_c_free, one point a wire: L − Q (−Q for public wires); h_odd |
| odd-coset | l, one point a private wire; h_odd |
| bellman | l; h_monomial (domain − 1) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.mapped import MappedArray, MappedFile, write_mapped
from cuzk.groth16.formats.matrices import matrix_arrays, read_system, system_metadata
from cuzk.groth16.formats.template_arrays import is_template, read_template, template_arrays, template_metadata
from cuzk.groth16.key import ProvingKey, Query
from cuzk.groth16.template.system import System, TemplateSystem

MAGIC = b"cuzk-key"


class CkeyFile:
    """An indexed .ckey."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mapped = MappedFile(path, MAGIC, "cuzk key (.ckey)")
        header = self.mapped.header
        self.root = self.mapped.integer("root", 5, 7)
        if self.root == 6:
            raise FormatError(path, "header field root is 6, expected 5 or 7", offset=16)
        self.log_domain = self.mapped.integer("log_domain", 1, 31)
        self.n_public = self.mapped.integer("n_public", 0, 2**32 - 2)
        self.n_wires = self.mapped.integer("n_wires", self.n_public + 1, 2**32)
        self.development = header.get("development") is True
        origin = header.get("origin")
        self.origin: dict[str, Any] = origin if isinstance(origin, dict) else {}

    def key(self, check_wires: bool = True) -> ProvingKey:
        """The key over the mapped arrays. Raises FormatError for a missing or misshapen one.

        `check_wires` reads the lists of wires once; without it only shapes are checked, in constant time.
        """
        mapped, wires = self.mapped, self.n_wires
        g1, g2 = mapped.array("g1", "u8", (3, 12)), mapped.array("g2", "u8", (3, 24))
        a_wires, b_wires = (self._wires(name, check_wires) for name in ("a_wires", "b_wires"))
        h_odd = h_monomial = l_query = l_c_free = None
        if "h_odd" in mapped:
            h_odd = mapped.array("h_odd", "u8", (1 << self.log_domain, 12))
        if "h_monomial" in mapped:
            h_monomial = mapped.array("h_monomial", "u8", ((1 << self.log_domain) - 1, 12))
        if "l" in mapped:
            first = self.n_public + 1
            l_query = Query(mapped.array("l", "u8", (wires - first, 12)), first=first, infinities=True)
        if "l_c_free" in mapped:
            l_c_free = Query(mapped.array("l_c_free", "u8", (wires, 12)), infinities=True)
        key = ProvingKey(
            path=self.path,
            kind="ckey",
            root=self.root,
            log_domain=self.log_domain,
            n_wires=wires,
            n_public=self.n_public,
            alpha_g1=g1[0:1],
            beta_g1=g1[1:2],
            delta_g1=g1[2:3],
            beta_g2=g2[0:1],
            gamma_g2=g2[1:2],
            delta_g2=g2[2:3],
            ic=mapped.array("ic", "u8", (self.n_public + 1, 12)),
            a_query=Query(mapped.array("a_points", "u8", (len(a_wires), 12)), a_wires),
            b_g1_query=Query(mapped.array("b_g1_points", "u8", (len(b_wires), 12)), b_wires),
            b_g2_query=Query(mapped.array("b_g2_points", "u8", (len(b_wires), 24)), b_wires),
            l_query=l_query,
            l_c_free_query=l_c_free,
            h_odd=h_odd,
            h_monomial=h_monomial,
            read_system=self.constraints,
            development=self.development,
            place=self._place,
        )
        if not key.quotients:
            message = "the arrays of no quotient are complete (h_odd with l_c_free or l, h_monomial with l)"
            raise FormatError(self.path, message, offset=16)
        return key

    def _place(self, element: str) -> tuple[Path, str, int]:
        """The place of an element, as VerifyingKey.place gives it."""
        places = {"alpha": ("g1", 0), "beta_g1": ("g1", 96), "delta_g1": ("g1", 192)}
        places |= {"beta": ("g2", 0), "gamma": ("g2", 192), "delta": ("g2", 384)}
        name, at = places[element] if element in places else ("ic", 96 * int(element[3:-1]))
        return self.path, name, self.mapped.offset(name) + at

    def _wires(self, name: str, check: bool) -> np.ndarray:
        wires = self.mapped.array(name, "u4", (-1,))
        if check and len(wires) and (int(wires[-1]) >= self.n_wires or bool((wires[1:] <= wires[:-1]).any())):
            bad = int(np.argmax((wires[1:] <= wires[:-1]) | (wires[1:] >= self.n_wires))) + 1 if len(wires) > 1 else 0
            raise self.mapped.error(name, f"wires do not rise, or leave the {self.n_wires} that exist", 4 * bad)
        return wires

    @property
    def has_template(self) -> bool:
        """Whether the matrices are a template."""
        return is_template(self.mapped)

    def constraints(self) -> System:
        system = read_template(self.mapped) if self.has_template else read_system(self.mapped)
        if system.log_domain > self.log_domain:
            message = f"{system.rows} rows do not fit the domain 2^{self.log_domain}"
            raise self.mapped.error("prefix_a_row_ptr" if self.has_template else "a_row_ptr", message)
        return system


@dataclass
class CkeyArrays:
    """The point arrays of a key to write, in chunks where they are large. Absent ones are None."""

    g1: np.ndarray
    g2: np.ndarray
    ic: np.ndarray
    a_wires: np.ndarray
    a_points: MappedArray
    b_wires: np.ndarray
    b_g1_points: MappedArray
    b_g2_points: MappedArray
    l_points: MappedArray | None = None
    l_c_free: MappedArray | None = None
    h_odd: MappedArray | None = None
    h_monomial: MappedArray | None = None


def write_ckey(
    path: Path,
    points: CkeyArrays,
    system: System,
    *,
    root: int,
    log_domain: int,
    development: bool,
    origin: dict[str, Any],
) -> None:
    """Write a key. `system` must have its input rows."""
    arrays = {
        "g1": MappedArray.of(points.g1),
        "g2": MappedArray.of(points.g2),
        "ic": MappedArray.of(points.ic),
        "a_wires": MappedArray.of(points.a_wires),
        "a_points": points.a_points,
        "b_wires": MappedArray.of(points.b_wires),
        "b_g1_points": points.b_g1_points,
        "b_g2_points": points.b_g2_points,
        "l": points.l_points,
        "l_c_free": points.l_c_free,
        "h_odd": points.h_odd,
        "h_monomial": points.h_monomial,
        **(template_arrays(system.template) if isinstance(system, TemplateSystem) else matrix_arrays(system)),
    }
    metadata = {
        "kind": "key",
        "root": root,
        "log_domain": log_domain,
        **system_metadata(system),
        **({"template": template_metadata(system.template)} if isinstance(system, TemplateSystem) else {}),
        "development": development,
        "origin": origin,
    }
    write_mapped(path, MAGIC, metadata, {name: array for name, array in arrays.items() if array is not None})

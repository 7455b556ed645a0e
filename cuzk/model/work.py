"""Work of each step of a proof, whoever does it: field multiplications, point additions, bytes.

A step that a calibration has measured takes its law. One that runs where nobody measured it is priced from this table and
the rates below, and says so. Counts: multiplications and additions of the algorithms in use (Pippenger's buckets with windows of
about log2(n) - 6 bits, 255-bit scalars; four transforms of n log2(n) / 2 butterflies without c), formulas over counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.model.formula import Formula
from cuzk.model.policy import Processor

NATURAL: dict[str, Processor] = {
    "witness": "cpu",
    "synthesis": "cpu",
    "matvec": "cpu",
    "prep_msm": "cpu",
    "b_g2_msm": "cpu",
    "epilogue": "cpu",
    "ntt_h": "gpu",
    "msm_h": "gpu",
    "batch_add": "gpu",
    "tail_msm": "gpu",
}
"""The processor on which a step runs by nature: a law of its bare name is measured there."""


def law_name(step: str, at: Processor) -> str:
    """The cost law of a step on a processor: `matvec`, `matvec_gpu`."""
    return step if NATURAL.get(step, at) == at else f"{step}_{at}"


NONE = Formula(0)


@dataclass(frozen=True)
class Work:
    """Amounts of each kind of work in a step."""

    g1_additions: Formula = NONE
    g2_additions: Formula = NONE
    field_multiplications: Formula = NONE
    scanned_bytes: Formula = NONE


def _msm(points: str) -> Formula:
    return Formula(f"ceil(255 / max(4, log2(max(64, {points})) - 6)) * ({points})")


WORK: dict[str, Work] = {
    "matvec": Work(field_multiplications=Formula("nnz / 8"), scanned_bytes=Formula("4*nnz + 96*constraints")),
    "prep_msm": Work(scanned_bytes=Formula("32*variables*(1 - witness_bits) + variables*witness_bits")),
    "ntt_h": Work(field_multiplications=Formula("(7 - quotient_odd_coset - 3*quotient_c_free) * domain * log2_domain / 2")),
    "msm_h": Work(g1_additions=_msm("h")),
    "batch_add": Work(g1_additions=Formula("ones_share * (l + a + b_g1)")),
    "tail_msm": Work(g1_additions=_msm("(tail_l + tail_a + tail_b)")),
    "b_g2_msm": Work(g2_additions=Formula("ones_share * b_g2 + 20 * tail_b")),
}


@dataclass(frozen=True)
class Rates:
    """Work that one core, or one multiprocessor, does in a second."""

    g1_additions: float
    g2_additions: float
    field_multiplications: float
    scanned_bytes: float

    def seconds(self, work: Work, names: dict[str, float], units: float) -> float:
        """Time of `work` on `units` cores or multiprocessors."""
        seconds = work.g1_additions.evaluate(names) / self.g1_additions
        seconds += work.g2_additions.evaluate(names) / self.g2_additions
        seconds += work.field_multiplications.evaluate(names) / self.field_multiplications
        seconds += work.scanned_bytes.evaluate(names) / self.scanned_bytes
        return seconds / max(1.0, units)


CORE = Rates(1.1e6, 0.4e6, 28e6, 4e9)
"""One core of a current server: batch-affine additions and multiplications of docs/native.md, without wide vector units."""
MULTIPROCESSOR = Rates(27e6, 9e6, 1.3e9, 20e9)
"""One multiprocessor of an H200: docs/performance.md's sums divided by its 132."""

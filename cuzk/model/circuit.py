"""Circuit: counts, and every size that follows from them. A size is typed in only where the counts are not known."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from cuzk.model.base import Count, Model, Name, Positive, Provenance, Share
from cuzk.model.units import Bytes

FR_BYTES = 32
G1_BYTES = 96
"""An uncompressed affine point of G1; G2 is twice that."""
G2_BYTES = 192
TWO_ADICITY = 32
"""Powers of two in r - 1 of BLS12-381: the largest FFT domain is 2^32."""
MOST_ROWS = 1 << TWO_ADICITY
CSR_ENTRY_BYTES = 36
"""One nonzero in CSR: a 32-byte coefficient and a 4-byte column."""
CSR_ROW_BYTES = 4


class Circuit(Model):
    """One partition's circuit.

    Groth16 over a domain of n points: h has n - 1 points, l one for each aux variable; the a and b queries drop the
    variables of zero density. Sizes of the reference system: 96 bytes a point in G1, 192 in G2, uncompressed.
    """

    name: Name
    constraints: Positive
    """Rows of the constraint system, input rows included."""
    aux: Positive
    """Private variables."""
    inputs: Positive = 1
    """Public variables, the constant ONE included."""
    nnz_a: Count = 0
    nnz_b: Count = 0
    nnz_c: Count = 0
    """Nonzeros of the matrices A, B, C."""
    density_a_aux: Count
    """Aux variables that occur in A. Every public variable does, by its input row."""
    density_b_input: Count = 1
    density_b_aux: Count
    full_size_share: Share = 0.01
    """Share of witness values that are neither 0 nor 1."""
    ones_share: Share = 0.5
    """Share of witness values that are 1."""
    partitions: Annotated[int, Field(strict=True, ge=1, le=1024)] = 1
    """Circuits a proof."""
    proof_bytes: Positive = 192
    """Bytes of one partition's proof, compressed."""
    srs: Bytes | None = None
    """Size of the proving key where it is measured; None: from the counts."""
    pce: Bytes | None = None
    """Size of the matrices in memory where it is measured; None: CSR from the counts."""
    pce_template: Bytes | None = None
    """Size of the matrices as one repeated template; None: there is none, and `pce` stands for it."""
    provenance: Provenance = Field(default_factory=dict)

    @field_validator("constraints")
    @classmethod
    def _has_a_domain(cls, value: int) -> int:
        if value > MOST_ROWS:
            raise ValueError(f"{value:,} rows: the scalar field of BLS12-381 has no domain above 2^{TWO_ADICITY}")
        return value

    @field_validator("density_a_aux", "density_b_aux")
    @classmethod
    def _at_most_aux(cls, value: int, info: ValidationInfo) -> int:
        aux = info.data.get("aux")
        if aux is not None and value > aux:
            raise ValueError(f"a density of {value:,} among {aux:,} aux variables")
        return value

    @field_validator("density_b_input")
    @classmethod
    def _at_most_inputs(cls, value: int, info: ValidationInfo) -> int:
        inputs = info.data.get("inputs")
        if inputs is not None and value > inputs:
            raise ValueError(f"a density of {value:,} among {inputs:,} inputs")
        return value

    @field_validator("ones_share")
    @classmethod
    def _shares(cls, value: float, info: ValidationInfo) -> float:
        if value + info.data.get("full_size_share", 0.0) > 1 + 1e-12:
            raise ValueError("the shares of ones and of full-size values add up to more than 1")
        return value

    @cached_property
    def log2_domain(self) -> int:
        return (self.constraints - 1).bit_length()

    @property
    def domain(self) -> int:
        """Points of the FFT domain: the next power of two."""
        return 1 << self.log2_domain

    @property
    def h(self) -> int:
        return self.domain - 1

    @property
    def l(self) -> int:  # noqa: E743 - the query's name in the paper
        return self.aux

    @property
    def a(self) -> int:
        return self.inputs + self.density_a_aux

    @property
    def b_g1(self) -> int:
        return self.density_b_input + self.density_b_aux

    @property
    def b_g2(self) -> int:
        return self.b_g1

    @property
    def nnz(self) -> int:
        return self.nnz_a + self.nnz_b + self.nnz_c

    @property
    def srs_bytes(self) -> int:
        """Proving key in memory: 96·(h + l + a + b_g1) + 192·b_g2, unless measured."""
        points = G1_BYTES * (self.h + self.l + self.a + self.b_g1) + G2_BYTES * self.b_g2
        return points if self.srs is None else self.srs

    @property
    def pce_bytes(self) -> int:
        """Matrices in CSR: 36 bytes a nonzero and 4 a row of each, unless measured."""
        csr = CSR_ENTRY_BYTES * self.nnz + 3 * CSR_ROW_BYTES * (self.constraints + 1)
        return csr if self.pce is None else self.pce

    @property
    def vector_bytes(self) -> int:
        """One of a, b, c."""
        return FR_BYTES * self.constraints

    @property
    def witness_bytes(self) -> int:
        return FR_BYTES * (self.aux + self.inputs)

    @cached_property
    def _names(self) -> dict[str, float]:
        tail = self.full_size_share
        return {
            "constraints": self.constraints, "aux": self.aux, "inputs": self.inputs,
            "variables": self.aux + self.inputs,
            "nnz_a": self.nnz_a, "nnz_b": self.nnz_b, "nnz_c": self.nnz_c, "nnz": self.nnz,
            "density_a_aux": self.density_a_aux, "density_b_input": self.density_b_input,
            "density_b_aux": self.density_b_aux,
            "full_size_share": tail, "ones_share": self.ones_share, "partitions": self.partitions,
            "domain": self.domain, "log2_domain": self.log2_domain,
            "h": self.h, "l": self.l, "a": self.a, "b_g1": self.b_g1, "b_g2": self.b_g2,
            "tail_l": tail * self.l, "tail_a": tail * self.a, "tail_b": tail * self.b_g1,
            "srs": self.srs_bytes, "pce": self.pce_bytes, "proof_bytes": self.proof_bytes,
            "pce_template": self.pce_bytes if self.pce_template is None else self.pce_template,
            "aux_bits": (self.aux + 7) // 8 + FR_BYTES * tail * self.aux,
        }  # fmt: skip

    def names(self) -> dict[str, float]:
        """Every count, for formulas. `tail_x`: expected scalars of query x that are neither 0 nor 1;
        `aux_bits`: bytes of the aux witness as one bit a value, with full-size values beside it."""
        return dict(self._names)

"""Every size that follows from a circuit's template: key, matrices, witness, memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from cuzk.groth16.template.model import Template

FR_BYTES, G1_BYTES, G2_BYTES = 32, 96, 192
VK_HEAD_BYTES = 3 * G1_BYTES + 3 * G2_BYTES + 4
"""alpha, beta, delta in G1; beta, gamma, delta in G2; the number of IC points."""
CSR_ENTRY_BYTES, CSR_ROW_BYTES = 36, 4
"""The reference's matrices: 32-byte coefficient and 4-byte column a nonzero, a 4-byte offset a row."""


@dataclass(frozen=True)
class CircuitSizes:
    template: Template
    ones_share: float | None = None
    """Share of the values of a satisfied partition that are 1; None: not counted."""

    @property
    def queries(self) -> dict[str, int]:
        """Points of the key's lists as bellman stores them."""
        t = self.template
        a_aux, b_input, b_aux = t.densities()
        b = b_input + b_aux
        return {"h": (1 << t.log2_domain) - 1, "l": t.n_aux, "a": t.n_inputs + a_aux, "b_g1": b, "b_g2": b}

    @property
    def vk_bytes(self) -> int:
        return VK_HEAD_BYTES + G1_BYTES * self.template.n_inputs

    @property
    def params_bytes(self) -> int:
        q = self.queries
        points = G1_BYTES * (q["h"] + q["l"] + q["a"] + q["b_g1"]) + G2_BYTES * q["b_g2"]
        return self.vk_bytes + 4 * len(q) + points

    @property
    def csr_bytes(self) -> int:
        t = self.template
        return CSR_ENTRY_BYTES * sum(t.nonzeros()) + 3 * CSR_ROW_BYTES * (t.n_rows + 1)

    @property
    def witness_field_bytes(self) -> int:
        """32 bytes a value."""
        return FR_BYTES * (self.template.n_aux + self.template.n_inputs)

    @property
    def witness_bits_bytes(self) -> int:
        """A bit a variable in words of 64, and 32 bytes a field element."""
        t = self.template
        total = FR_BYTES * t.n_inputs
        for part, copies in ((t.prefix, 1), (t.body, t.copies)):
            total += copies * (8 * ((part.aux + 63) // 64) + FR_BYTES * int(part.field_aux.sum()))
        return total

    def smaller(self) -> dict[str, str]:
        """The form of matrices and witness that takes fewer bytes."""
        return {
            "matrices": "template" if self.template.nbytes < self.csr_bytes else "csr",
            "witness": "bits" if self.witness_bits_bytes < self.witness_field_bytes else "field",
        }

    def host_memory(self) -> list[dict[str, Any]]:
        """Host bytes under each combination of policies: shared by all partitions, and for one partition while it is
        proved (witness, and a, b, c where the CPU multiplies; the c-free quotient has no c)."""
        vector = FR_BYTES * self.template.n_rows
        out = []
        for matrices, witness, quotient, matvec in product(
            ("csr", "template"), ("field", "bits"), ("bellman", "odd-coset", "c-free"), ("cpu", "gpu")
        ):
            vectors = 0 if matvec == "gpu" else vector * (2 if quotient == "c-free" else 3)
            own = self.witness_field_bytes if witness == "field" else self.witness_bits_bytes
            out.append({
                "matrices": matrices, "witness": witness, "quotient": quotient, "matvec": matvec,
                "shared_bytes": self.csr_bytes if matrices == "csr" else self.template.nbytes,
                "partition_bytes": own + vectors,
            })  # fmt: skip
        return out


@dataclass(frozen=True)
class NamedSizes:
    """The sizes of a circuit that has a name of its own, as documents."""

    circuit: CircuitSizes
    name: str
    """For the command line, such as `porep-32g`."""
    what: str
    """The thing that one circuit proves, in words."""
    partitions: int
    """Circuits a proof."""
    repeated: str
    """The part that the template repeats."""
    facts: dict[str, Any]
    """Figures of the circuit that stand behind the name."""

    def document(self) -> dict[str, Any]:
        """For `cuzk circuit NAME --json`."""
        sizes, t = self.circuit, self.circuit.template
        a_aux, b_input, b_aux = t.densities()
        bits = t.bit_share()
        return {
            "name": self.name,
            **self.facts,
            "partitions": self.partitions,
            "rows": t.n_rows,
            "constraints": t.n_constraints,
            "aux": t.n_aux,
            "inputs": t.n_inputs,
            "domain": 1 << t.log2_domain,
            "nonzeros": dict(zip("abc", t.nonzeros(), strict=True)),
            "coefficients": len(t.coefficients_mont),
            "densities": {"a_aux": a_aux, "b_input": b_input, "b_aux": b_aux},
            "queries": sizes.queries,
            "vk_bytes": sizes.vk_bytes,
            "params_bytes": sizes.params_bytes,
            "shares": {"zero_or_one": bits, "ones": sizes.ones_share, "full_size": 1 - bits},
            "csr_bytes": sizes.csr_bytes,
            "template_bytes": t.nbytes,
            "witness_field_bytes": sizes.witness_field_bytes,
            "witness_bits_bytes": sizes.witness_bits_bytes,
            "smaller": sizes.smaller(),
            "host_memory": sizes.host_memory(),
        }

    def yaml(self) -> str:
        """The circuit as a file for scenarios."""
        sizes, t = self.circuit, self.circuit.template
        a_aux, b_input, b_aux = t.densities()
        nnz = t.nonzeros()
        figures: dict[str, Any] = {
            "constraints": t.n_rows, "aux": t.n_aux, "inputs": t.n_inputs,
            "nnz_a": nnz[0], "nnz_b": nnz[1], "nnz_c": nnz[2],
            "density_a_aux": a_aux, "density_b_input": b_input, "density_b_aux": b_aux,
            "full_size_share": round(1 - t.bit_share(), 6), "ones_share": round(sizes.ones_share or 0.0, 4),
            "partitions": self.partitions, "pce_template": f"{t.nbytes}B",
        }  # fmt: skip
        lines = [
            f"# {self.what}. Written by: cuzk circuit {self.name} --counts FILE",
            "circuit:",
            f"  name: {self.name}",
            *(f"  {k}: {v:_}" if isinstance(v, int) else f"  {k}: {v}" for k, v in figures.items()),
            "  provenance:",
            "    constraints: counted in the emitted circuit, input rows included",
            "    full_size_share: variables that are not bits by construction",
            "    ones_share: counted in one partition that satisfies the circuit",
            f"    pce_template: {self.repeated} matrices, int32 columns, u32 row offsets, u16 coefficient numbers",
        ]
        return "\n".join(lines) + "\n"

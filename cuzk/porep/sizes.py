"""Every size of a sector's circuit, from the emitted template and a partition that satisfies it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from cuzk.circuits.porep.shape import Shape
from cuzk.groth16.template.model import Template
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.synthetic import SyntheticSector

FR_BYTES, G1_BYTES, G2_BYTES = 32, 96, 192
VK_HEAD_BYTES = 3 * G1_BYTES + 3 * G2_BYTES + 4
"""alpha, beta, delta in G1; beta, gamma, delta in G2; the number of IC points."""
CSR_ENTRY_BYTES, CSR_ROW_BYTES = 36, 4
"""The reference's matrices: 32-byte coefficient and 4-byte column a nonzero, a 4-byte offset a row."""


@dataclass(frozen=True)
class PorepSizes:
    shape: Shape
    template: Template
    ones_share: float
    """Share of the values of a satisfied partition that are 1."""
    witness_bits_bytes: int

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
        return FR_BYTES * (self.template.n_aux + self.template.n_inputs)

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

    def document(self) -> dict[str, Any]:
        """For `cuzk circuit porep-… --json`."""
        t = self.template
        a_aux, b_input, b_aux = t.densities()
        bits = t.bit_share()
        return {
            "name": circuit_name(self.shape),
            "sector_bytes": self.shape.sector_bytes,
            "partitions": self.shape.partitions,
            "challenges": self.shape.challenges,
            "layers": self.shape.layers,
            "rows": t.n_rows,
            "constraints": t.n_constraints,
            "aux": t.n_aux,
            "inputs": t.n_inputs,
            "domain": 1 << t.log2_domain,
            "nonzeros": dict(zip("abc", t.nonzeros(), strict=True)),
            "coefficients": len(t.coefficients_mont),
            "densities": {"a_aux": a_aux, "b_input": b_input, "b_aux": b_aux},
            "queries": self.queries,
            "vk_bytes": self.vk_bytes,
            "params_bytes": self.params_bytes,
            "shares": {"zero_or_one": bits, "ones": self.ones_share, "full_size": 1 - bits},
            "csr_bytes": self.csr_bytes,
            "template_bytes": t.nbytes,
            "witness_field_bytes": self.witness_field_bytes,
            "witness_bits_bytes": self.witness_bits_bytes,
            "host_memory": self.host_memory(),
        }

    def yaml(self) -> str:
        """The circuit as a file for scenarios."""
        t = self.template
        name = circuit_name(self.shape)
        a_aux, b_input, b_aux = t.densities()
        nnz = t.nonzeros()
        figures: dict[str, Any] = {
            "constraints": t.n_rows, "aux": t.n_aux, "inputs": t.n_inputs,
            "nnz_a": nnz[0], "nnz_b": nnz[1], "nnz_c": nnz[2],
            "density_a_aux": a_aux, "density_b_input": b_input, "density_b_aux": b_aux,
            "full_size_share": round(1 - t.bit_share(), 6), "ones_share": round(self.ones_share, 4),
            "partitions": self.shape.partitions, "pce_template": f"{t.nbytes}B",
        }  # fmt: skip
        lines = [
            f"# One partition of a {self.shape.name} PoRep proof. Written by: cuzk circuit {name} --counts FILE",
            "circuit:",
            f"  name: {name}",
            *(f"  {k}: {v:_}" if isinstance(v, int) else f"  {k}: {v}" for k, v in figures.items()),
            "  provenance:",
            "    constraints: counted in the emitted circuit, input rows included",
            "    full_size_share: variables that are not bits by construction",
            "    ones_share: counted in one partition that satisfies the circuit",
            "    pce_template: one challenge's matrices, int32 columns, u32 row offsets, u16 coefficient numbers",
        ]
        return "\n".join(lines) + "\n"


def circuit_name(shape: Shape) -> str:
    """`porep-32g`, `porep-2k`."""
    return "porep-" + shape.name.lower().removesuffix("ib")


def porep_sizes(shape: Shape) -> PorepSizes:
    """Emits the template and fills one partition (synthetic, always the same) to count its ones."""
    maker = PartitionMaker(shape)
    seed = bytes(32)
    sector = SyntheticSector(shape, SectorIds(porep_id=porep_id(shape, "1.1")), seed)
    witness = maker.witness(sector, sector.nodes)
    return PorepSizes(shape, maker.template, witness.ones_share(), witness.nbytes)

"""Every size of a sector's circuit, from the emitted template and a partition that satisfies it."""

from __future__ import annotations

from cuzk.circuits.porep.shape import Shape
from cuzk.circuits.sizes import CircuitSizes, NamedSizes
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.synthetic import SyntheticSector


def circuit_name(shape: Shape) -> str:
    """`porep-32g`, `porep-2k`."""
    return "porep-" + shape.name.lower().removesuffix("ib")


def porep_sizes(shape: Shape) -> NamedSizes:
    """Emits the template and fills one partition (synthetic, always the same) to count its ones."""
    maker = PartitionMaker(shape)
    seed = bytes(32)
    sector = SyntheticSector(shape, SectorIds(porep_id=porep_id(shape, "1.1")), seed)
    witness = maker.witness(sector, sector.nodes)
    facts = {"sector_bytes": shape.sector_bytes, "challenges": shape.challenges, "layers": shape.layers}
    what = f"One partition of a {shape.name} PoRep proof"
    sizes = CircuitSizes(maker.template, witness.ones_share())
    return NamedSizes(sizes, circuit_name(shape), what, shape.partitions, "one challenge's", facts)

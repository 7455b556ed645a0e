"""A C1 output in memory: two arrays, and the names of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.circuits.porep.shape import Shape
from cuzk.errors import FormatError, InputError
from cuzk.porep.c1.layout import Layout, layout
from cuzk.porep.challenges import drawn
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds
from cuzk.porep.registered import Registered
from cuzk.porep.statement import Statement


@dataclass(frozen=True)
class Owner:
    """The miner and number that the sector is meant to have: decides whether the replica id belongs to it."""

    prover_id: bytes
    sector_number: int

    @staticmethod
    def of_miner(miner: int, sector_number: int) -> Owner:
        """The prover id of a miner's actor: its number as unsigned LEB128, zeros behind. Raises InputError."""
        if not 0 <= miner < 1 << 64:
            raise InputError(f"miner id {miner} is outside 0 … 2^64 - 1")
        raw = bytearray()
        while True:
            miner, low = miner >> 7, miner & 0x7F
            raw.append(low | (0x80 if miner else 0))
            if not miner:
                return Owner(bytes(raw) + bytes(32 - len(raw)), sector_number)


@dataclass(frozen=True)
class C1:
    """`hashes` (partitions, challenges, k, 32) uint8, `numbers` (partitions, challenges, m) uint64; `layout` says what lies
    where. Nothing is checked before `check`, beyond what the form of the file forces."""

    source: str
    """The file, for messages."""
    form: str
    """`wrapper`, `inner` or `bincode`."""
    registered: Registered
    hashes: NDArray[np.uint8]
    numbers: NDArray[np.uint64]
    comm_r: bytes
    comm_d: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes
    sector_number: int | None = None
    """That of the wrapper, which nothing depends on."""
    sector_bytes_named: int | None = None
    """Size that the wrapper names."""

    @property
    def shape(self) -> Shape:
        return self.registered.shape

    @property
    def sector_size(self) -> int:
        """Bytes."""
        return self.shape.sector_bytes

    @property
    def partitions(self) -> int:
        return len(self.hashes)

    @cached_property
    def layout(self) -> Layout:
        return layout(self.shape)

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.shape, self.registered.porep_id)

    @property
    def nbytes(self) -> int:
        """Memory of the values."""
        return self.hashes.nbytes + self.numbers.nbytes

    def place(self, partition: int | None = None, challenge: int | None = None, rest: str = "") -> str:
        """The name of a place in the document, as in `vanilla_proofs.StackedDrg2KiBV1[0][1].comm_d_proofs`."""
        path = f"vanilla_proofs.StackedDrg{self.shape.name}V1"
        path += "" if partition is None else f"[{partition}]" + ("" if challenge is None else f"[{challenge}]")
        return path + (f".{rest}" if rest else "")

    def fault(self, path: str, message: str) -> FormatError:
        """An error that names the file and a place in the document."""
        return FormatError(self.source, f"{path}: {message}")

    def challenges(self, partition: int) -> list[int]:
        """The nodes that a partition must open, from the seed."""
        return drawn(self.shape, self.registered.porep_id, self.replica_id, self.comm_r, self.seed, partition)

    @cached_property
    def opened(self) -> list[list[tuple[int, list[int]]]]:
        """For each partition the nodes that it must open, each with its parents."""
        nodes = [self.challenges(partition) for partition in range(self.registered.partitions)]
        parents = iter(self.graph.parents_of([node for some in nodes for node in some]))
        return [[(node, next(parents)) for node in some] for some in nodes]

    def public_inputs(self, partition: int) -> list[int]:
        """Public inputs that the sector's statement gives a partition, without ONE. Raises InputError for a partition that
        the proof has not."""
        if not 0 <= partition < self.registered.partitions:
            raise InputError(
                f"partition {partition}: {self.registered.name} has partitions 0 to {self.registered.partitions - 1}"
            )
        out = [int.from_bytes(x, "little") for x in (self.replica_id, self.comm_d, self.comm_r)]
        for node, parents in self.opened[partition]:
            out += [node, *parents, node, node, node]
        return out

    def check(self, owner: Owner | None = None, *, full: bool = True, threads: int | None = None) -> None:
        """Raises FormatError with the place of the first thing that is wrong; see `check_c1`."""
        from cuzk.porep.c1.check import check_c1

        check_c1(self, owner, full=full, threads=threads)

    def statement(self) -> Statement:
        """The statement of a proof of this sector; the replica id stands for miner and sector number, which no file has."""
        ids = SectorIds(ticket=self.ticket, porep_id=self.registered.porep_id)
        return Statement(self.shape, ids, self.comm_d, self.comm_r, self.seed, None, self.replica_id)

    def ids(self, owner: Owner) -> SectorIds:
        return SectorIds(owner.prover_id, owner.sector_number, self.ticket, self.registered.porep_id)

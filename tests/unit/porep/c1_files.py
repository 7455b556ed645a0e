"""C1 outputs for tests: a sealed 2 KiB sector opened, as documents that can be changed."""

import base64
import json
from functools import cache

from cuzk.porep.c1 import C1
from cuzk.porep.c1.write import c1_bytes, sector_c1
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.sealing import pad_data, seal
from tests.unit.porep.sector_files import SEED, SMALL, sector_data

TAG = "StackedDrg2KiBV1"
MINER, SECTOR = 1000, 7
PROVER_ID = b"\xe8\x07" + bytes(30)


@cache
def small_c1(version: str = "1.1") -> C1:
    ids = SectorIds(PROVER_ID, SECTOR, bytes([9] * 32), porep_id(SMALL, version))
    return sector_c1(seal(SMALL, ids, pad_data(sector_data(), SMALL)), SEED)


@cache
def _inner(version: str) -> bytes:
    return c1_bytes(small_c1(version), "inner")


def inner(version: str = "1.1") -> dict:
    """The inner document, a fresh one each time."""
    return json.loads(_inner(version))


def dumped(document: dict) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def wrapped(document: dict | bytes, **changes) -> bytes:
    raw = document if isinstance(document, bytes) else dumped(document)
    return json.dumps({"SectorNum": SECTOR, "Phase1Out": base64.b64encode(raw).decode(), "SectorSize": 2048} | changes).encode()


def challenge(document: dict, k: int = 0) -> dict:
    return document["vanilla_proofs"][TAG][0][k]

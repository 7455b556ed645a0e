"""A sealed 2 KiB sector and other people's files, for the tests of PoRep."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cuzk.circuits.porep.shape import shape
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.sealing import pad_data, seal

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("CUZK_SHARED", ROOT.parent / "shared"))
SEED = bytes(range(32))
SMALL = shape("2KiB")


def filecoin_file(name: str) -> Path:
    """A file of other people's test data, or a skip that says which one is absent."""
    path = SHARED / "fixtures" / "filecoin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there (CUZK_SHARED names another folder)")
    return path


def foreign_proof() -> dict:
    return json.loads(filecoin_file("porep-2kib.json").read_text())


def sector_data(size: int = 2032) -> np.ndarray:
    return np.frombuffer(bytes(i * 7 % 251 for i in range(size)), np.uint8)


def sealed_sector():
    ids = SectorIds(bytes([3] * 32), 7, bytes([9] * 32), porep_id(SMALL, "1.1"))
    return seal(SMALL, ids, pad_data(sector_data(), SMALL))

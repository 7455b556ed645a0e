"""Values made in processes of their own: the same ones, faults of a file with their place, processes that die."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from cuzk.errors import CuzkError, FormatError
from cuzk.groth16.template.bits import ARRAYS
from cuzk.porep.c1.opening import c1_witness
from cuzk.porep.c1.write import write_c1
from cuzk.porep.processes import SectorProcesses, slim
from tests.unit.porep.c1_files import small_c1


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("c1") / "c1.json"
    write_c1(small_c1("non-interactive"), made)
    return made


@pytest.fixture(scope="module")
def sectors(path: Path):
    made = SectorProcesses([path], 1)
    yield made
    made.close()


def test_the_same_values_and_public_inputs(sectors: SectorProcesses) -> None:
    c1 = small_c1("non-interactive")
    for proof, partition in ((0, 12), (5, 0)):
        found, wanted = sectors.witness(proof, partition), c1_witness(sectors.maker, c1, partition)
        assert all(np.array_equal(getattr(found, name), getattr(wanted, name)) for name in ARRAYS)
        assert found.template is sectors.maker.template
        assert sectors.public_inputs(proof, partition) == c1.public_inputs(partition)
        sectors.done(proof)


def test_a_circuit_without_rows_gives_the_same_values(sectors: SectorProcesses) -> None:
    c1 = small_c1()
    thin, whole = (c1_witness(maker, c1, 0) for maker in (slim(sectors.maker), sectors.maker))
    assert all(np.array_equal(getattr(thin, name), getattr(whole, name)) for name in ARRAYS)


def test_a_process_that_dies_fails_one_partition_and_is_replaced(sectors: SectorProcesses) -> None:
    sectors.witness(0, 0)
    (child,) = sectors._children
    os.kill(child._process.pid, signal.SIGKILL)
    child._process.join()
    with pytest.raises(CuzkError, match="partition 3"):
        sectors.witness(0, 3)
    assert sectors.witness(0, 3).body_bits.any()


def test_a_file_that_changes_is_named(sectors: SectorProcesses, path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    try:
        with pytest.raises(FormatError, match=r"c1\.json"):
            sectors.witness(77, 0)
    finally:
        path.write_bytes(whole)
    assert sectors.witness(78, 0).body_bits.any()

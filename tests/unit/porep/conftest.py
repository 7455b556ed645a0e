import pytest

from cuzk.porep.partition import PartitionMaker
from tests.unit.porep.sector_files import SMALL, sealed_sector


@pytest.fixture(scope="session")
def sealed():
    return sealed_sector()


@pytest.fixture(scope="session")
def maker():
    return PartitionMaker(SMALL)

import pytest
from sector_files import SMALL, sealed_sector

from cuzk.porep.partition import PartitionMaker


@pytest.fixture(scope="session")
def sealed():
    return sealed_sector()


@pytest.fixture(scope="session")
def maker():
    return PartitionMaker(SMALL)

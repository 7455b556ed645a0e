from dataclasses import dataclass
from types import ModuleType

import native_reference as ref
import pytest

from cuzk import native
from cuzk.native import _library


def _usable() -> list[str]:
    try:
        features = _library.load("portable").cuzk_cpu_features()
    except _library.NativeLibraryMissing:
        return ["portable"]
    directory = _library.library_directory()
    return [
        v for v, need in _library.VARIANTS.items()
        if features & need == need and (directory / f"libcuzk_{v}.so").is_file()
    ]  # fmt: skip


@pytest.fixture(autouse=True, params=_usable())
def variant(request, monkeypatch):
    """Every test of this folder runs once for each variant of the library that this CPU can execute."""
    monkeypatch.setenv("CUZK_NATIVE_VARIANT", request.param)
    _library.load.cache_clear()
    yield request.param
    _library.load.cache_clear()


@dataclass(frozen=True)
class Group:
    """One of the two groups: its plain-integer field and the library's functions without their suffix."""

    name: str
    field: type
    library: ModuleType = native

    def __getattr__(self, operation: str):
        for name in (f"{operation}_{self.name}", f"{self.name}_{operation}"):
            if hasattr(self.library, name):
                return getattr(self.library, name)
        raise AttributeError(operation)

    def array(self, points):
        return ref.points_to_array(self.field, points)

    def points(self, array):
        return ref.array_to_points(self.field, array)


@pytest.fixture(params=["g1", "g2"])
def group(request):
    return Group(request.param, ref.Fq if request.param == "g1" else ref.Fq2)

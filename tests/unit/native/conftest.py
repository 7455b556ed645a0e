from dataclasses import dataclass
from types import ModuleType

import pytest

from cuzk import native
from cuzk.native import _library
from tests.unit.native import native_reference as ref


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


def pytest_generate_tests(metafunc):
    """Every test runs once for each variant of the library that this CPU can execute; a module may set VARIANTS to "lanes"
    (one for each kind of lanes: `portable` and `adx` share the bulk loops, only their multiplication differs) or "best"."""
    if "variant" not in metafunc.fixturenames:
        return
    usable, wanted = _usable(), getattr(metafunc.module, "VARIANTS", "all")
    if wanted == "best":
        usable = usable[:1]
    elif wanted == "lanes" and "adx" in usable:
        usable.remove("portable")
    metafunc.parametrize("variant", usable, indirect=True)


@pytest.fixture(autouse=True)
def variant(request, monkeypatch):
    """The name of the variant under test."""
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

"""Finds and loads the variant of the host library that suits this CPU.

The package holds one shared library a variant: `portable` runs everywhere, `adx` needs BMI2 and ADX, `ifma` AVX-512 IFMA too. The
portable one is loaded first and asked what the CPU has, so nothing is ever executed that the CPU lacks. CUZK_NATIVE_VARIANT
forces one. All give the same bytes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sysconfig
from pathlib import Path
from typing import Any

from cuzk.errors import CuzkError, HardwareMissing, OutOfMemoryError

ABI_VERSION = 2
#: Best first; with the bits of cuzk_cpu_features() that each needs.
VARIANTS = {"ifma": 3, "adx": 1, "portable": 0}

_OUT_OF_MEMORY, _FAULT = -2, -3


class NativeLibraryMissing(HardwareMissing):
    """The host library has not been built, or was built from other sources than this package."""


def _directories() -> list[Path]:
    # Beside this file: a wheel, or the tree after `python -m cuzk.native.build`. In site-packages: an editable install, whose
    # Python files stay in the tree.
    here = Path(__file__).resolve().parent
    return list(dict.fromkeys([here, *(Path(sysconfig.get_path(kind)) / "cuzk" / "native" for kind in ("platlib", "purelib"))]))


def library_directory() -> Path | None:
    """The directory that holds the libraries, or None if they have not been built."""
    return next((d for d in _directories() if (d / "libcuzk_portable.so").is_file()), None)


def _open(directory: Path, variant: str) -> ctypes.CDLL:
    path = directory / f"libcuzk_{variant}.so"
    if not path.is_file():
        raise NativeLibraryMissing(f"{path}: no such variant of the host library; build it with: python -m cuzk.native.build")
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as e:
        raise NativeLibraryMissing(f"{path}: cannot be loaded ({e}); build it again with: python -m cuzk.native.build") from None
    for name in ("cuzk_abi_version", "cuzk_cpu_features"):
        getattr(lib, name).restype = ctypes.c_int64
    lib.cuzk_variant.restype = ctypes.c_char_p
    if lib.cuzk_abi_version() != ABI_VERSION:
        raise NativeLibraryMissing(f"{path}: built from older sources; build it again with: python -m cuzk.native.build")
    return lib


@functools.cache
def load(variant: str | None = None) -> ctypes.CDLL:
    """The library of `variant`, by default the best one for this CPU or the one that CUZK_NATIVE_VARIANT names."""
    directory = library_directory()
    if directory is None:
        raise NativeLibraryMissing(
            f"the host library is not built (looked in {', '.join(map(str, _directories()))}); "
            "run: python -m cuzk.native.build   (needs a C++ compiler and cmake), or: pip install ."
        )
    portable = _open(directory, "portable")
    features = portable.cuzk_cpu_features()
    wanted = variant or os.environ.get("CUZK_NATIVE_VARIANT")
    if wanted is None:
        fits = (v for v, need in VARIANTS.items() if features & need == need and (directory / f"libcuzk_{v}.so").is_file())
        wanted = next(fits)
    elif wanted not in VARIANTS:
        raise HardwareMissing(f"CUZK_NATIVE_VARIANT={wanted}: unknown; one of {', '.join(VARIANTS)}")
    elif features & VARIANTS[wanted] != VARIANTS[wanted]:
        raise HardwareMissing(f"CUZK_NATIVE_VARIANT={wanted}: this CPU lacks the instructions it needs")
    return portable if wanted == "portable" else _open(directory, wanted)


def call(name: str, *args: Any) -> int:
    """Calls `cuzk_<name>`; integers and pointers (int or None) alike go as 64 bits. Raises for the library's failures."""
    try:
        function = getattr(load(), f"cuzk_{name}")
    except AttributeError:
        raise NativeLibraryMissing(f"the host library lacks {name}; build it again with: python -m cuzk.native.build") from None
    function.restype = ctypes.c_int64
    result: int = function(*(ctypes.c_void_p(a) if a is None else ctypes.c_uint64(a) for a in args))
    if result == _OUT_OF_MEMORY:
        raise OutOfMemoryError(f"{name}: the host library ran out of memory")
    if result == _FAULT:
        raise CuzkError(f"{name}: internal fault in the host library")
    return result


def thread_count(threads: int | None) -> int:
    """Cores that this process may use, or `threads` if given."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return min(threads, 4096)


def info() -> dict[str, Any]:
    """The loaded library: variant, the CPU's features that matter here, ABI version, directory, and default thread count."""
    lib = load()
    features = lib.cuzk_cpu_features()
    return {
        "variant": lib.cuzk_variant().decode(),
        "cpu": {"bmi2_adx": bool(features & 1), "avx512_ifma": bool(features & 2)},
        "abi_version": lib.cuzk_abi_version(),
        "directory": str(library_directory()),
        "threads": thread_count(None),
    }

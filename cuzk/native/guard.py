"""Mappings of files whose missing pages are told instead of ending the process (kernels/abi/guard.cpp)."""

from __future__ import annotations

from ._library import NativeLibraryMissing, call


def add(address: int, nbytes: int) -> int | None:
    """Guard a mapping; its slot, or None where that cannot be (no library, no free slot)."""
    try:
        slot = call("guard_add", address, nbytes)
    except NativeLibraryMissing:
        return None
    return slot if slot >= 0 else None


def faults(slot: int) -> int:
    """The number of times that pages of the mapping were missing; it reads as zeros from there on."""
    return call("guard_faults", slot)


def remove(slot: int) -> None:
    """The mapping is gone."""
    call("guard_remove", slot)

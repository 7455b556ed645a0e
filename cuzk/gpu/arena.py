"""One block of device memory, cut into temporaries whose sizes are known before anything is launched."""

from __future__ import annotations

from collections.abc import Iterable

ALIGNMENT_BYTES = 256


def aligned(size_bytes: int) -> int:
    """The size rounded up to the arena's alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class Layout:
    """Names and byte offsets of temporaries, laid one after another.

    `total_bytes` is what a planner accounts for and what the arena must hold: exactly the same number.
    """

    def __init__(self, sizes_bytes: Iterable[tuple[str, int]]) -> None:
        self.offsets: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        end = 0
        for name, size_bytes in sizes_bytes:
            if name in self.offsets:
                raise ValueError(f"temporary {name} appears twice")
            self.offsets[name] = end
            self.sizes[name] = size_bytes
            end += aligned(max(size_bytes, 1))
        self.total_bytes = end

    def at(self, base: int) -> dict[str, int]:
        """Addresses of all temporaries in a block that starts at `base`."""
        return {name: base + offset for name, offset in self.offsets.items()}

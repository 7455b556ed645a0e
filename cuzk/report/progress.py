"""Progress on stderr, and only where somebody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable


def say(message: str) -> None:
    """One line, overwritten by the next one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def done() -> None:
    """Leave the line clean."""
    say("")


def counter(what: str) -> Callable[[int, int], None]:
    """For work in many like pieces: `what 12 of 40`, and a clean line at the end."""

    def tell(count: int, total: int) -> None:
        say(f"{what} {count:,} of {total:,}") if count < total else done()

    return tell

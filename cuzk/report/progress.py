"""Progress on stderr, and only where somebody looks at it."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """One line, overwritten by the next one."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def done() -> None:
    """Leave the line clean."""
    say("")

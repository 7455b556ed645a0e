"""What the proving verbs share: JSON documents, progress on a terminal, the development-key warning."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

SCHEMA_VERSION = 1


def print_json(document: dict) -> None:
    """One document on stdout."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2))


def terminal_progress() -> Callable[[str, int, int], None]:
    """Progress on one line of stderr, if that is a terminal; a few times a second at most."""
    if not sys.stderr.isatty():
        return lambda what, done, total: None
    last = 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > 0.2 or done >= total:
            last = now
            sys.stderr.write(f"\r\033[K{what}: {100 * done / max(1, total):.0f} %" + ("\r\033[K" if done >= total else ""))
            sys.stderr.flush()

    return show


def warn_development(path: object) -> None:
    """What every verb says of a development key."""
    print(f"cuzk: {path} is a development key: whoever made it can forge proofs", file=sys.stderr)


def quotient_list(text: str) -> tuple[str, ...]:
    """An argparse type: `all` or a comma-separated list of quotients."""
    import argparse

    from cuzk.groth16.key import QUOTIENTS

    if text == "all":
        return QUOTIENTS
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in QUOTIENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown quotient {unknown[0]!r}; there are {', '.join(QUOTIENTS)}, all")
    return tuple(name for name in QUOTIENTS if name in names)

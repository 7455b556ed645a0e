"""The parts that the proving verbs share: JSON documents, progress on a terminal, the development-key warning."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

SCHEMA_VERSION = 1


def print_json(document: dict[str, Any]) -> None:
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


def warn_unsafe(path: object, weaknesses: list[str]) -> None:
    """The warning of every verb about a key under which proofs can be forged: a line on stderr for each reason."""
    for reason in weaknesses:
        print(f"cuzk: WARNING: {path} {reason}", file=sys.stderr)


def add_allow_unsafe_key(parser: argparse.ArgumentParser) -> None:
    """The option of verbs that judge proofs."""
    parser.add_argument(
        "--allow-unsafe-key",
        action="store_true",
        help="judge a proof also under a key that lets proofs be forged (a development key, no phase 2 contribution)",
    )


def quotient_list(text: str) -> tuple[str, ...]:
    """An argparse type: `all` or a comma-separated list of quotients."""
    from cuzk.groth16.key import QUOTIENTS

    if text == "all":
        return QUOTIENTS
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in QUOTIENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown quotient {unknown[0]!r}; there are {', '.join(QUOTIENTS)}, all")
    return tuple(name for name in QUOTIENTS if name in names)

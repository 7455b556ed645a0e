"""The status page: what runs, what waits, curves and lanes of the last minutes, predicted beside measured. One file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def page() -> str:
    return (files(__package__ or "cuzk.service") / "page.html").read_text("utf-8")

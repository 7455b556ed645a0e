"""Files are written whole or not at all (cuzk.outputs)."""

from cuzk.outputs import usable, write_text

__all__ = ["usable", "write_text"]

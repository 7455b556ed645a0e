"""`python -m cuzk`."""

from cuzk.cli.main import entry

entry()

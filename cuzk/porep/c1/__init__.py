"""Filecoin's C1 output ("vanilla proofs"): the challenged nodes of a sealed sector with their paths, as phase 1 hands them over.

found = read("c1.json")           # wrapper JSON, inner JSON or bincode; a path, or the bytes themselves
found.check()                     # commitments, challenges, paths, labels: what is wrong is named by its place
found.public_inputs(0)            # of partition 0
"""

from cuzk.porep.c1.check import check_c1
from cuzk.porep.c1.model import C1, Owner
from cuzk.porep.c1.read import Limits, read
from cuzk.porep.c1.write import write_c1

__all__ = ["C1", "Limits", "Owner", "check_c1", "read", "write_c1"]

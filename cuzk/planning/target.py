"""Targets of throughput: `40 s/proof`, `1.5 min/proof`, `100 proofs/h`, `0.5 proofs/min`."""

from __future__ import annotations

import re

from cuzk.errors import InputError

_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_NUMBER = r"(\d+(?:\.\d+)?)"
_PER_PROOF = re.compile(rf"\s*{_NUMBER}\s*({'|'.join(_UNITS)})\s*/\s*proof\s*")
_PER_TIME = re.compile(rf"\s*{_NUMBER}\s*proofs?\s*/\s*({'|'.join(_UNITS)})\s*")


def seconds_a_proof(text: str) -> float:
    """Raises InputError for what is no target."""
    if found := _PER_PROOF.fullmatch(text):
        value = float(found[1]) * _UNITS[found[2]]
    elif found := _PER_TIME.fullmatch(text):
        value = _UNITS[found[2]] / float(found[1]) if float(found[1]) else 0.0
    else:
        raise InputError(f"--target {text!r}: must be such as '40 s/proof' or '100 proofs/h'")
    if not 1e-3 <= value <= 1e7:
        raise InputError(f"--target {text!r}: {value:g} s/proof is no pace of any machine")
    return value


def one_target(texts: list[str]) -> float:
    """The target of several options; they must say the same. Raises InputError."""
    found = [seconds_a_proof(text) for text in texts]
    if not found:
        raise InputError("--target is needed, such as '40 s/proof' or '100 proofs/h'")
    if max(found) > 1.001 * min(found):
        raise InputError(f"contradictory targets: {' and '.join(repr(t) for t in texts)}: give one")
    return found[0]

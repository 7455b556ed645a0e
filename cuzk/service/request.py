"""A client's request, checked for size and form; its content is for its kind to judge."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, fields
from enum import IntEnum

from cuzk.errors import CuzkError, InputError

MAX_ID_CHARS = 256
MAX_ITEMS = 4096
"""Vanilla proofs of one request: a WindowPoSt partition has 2,349 sectors at most."""
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f,\u2028\u2029]+")
"""Ids stand in logs and in TIMELINE records: no control characters, no commas. Blanks and brackets are common."""
_U64 = 1 << 64


class Priority(IntEnum):
    """Numbers are those on the wire."""

    UNSPECIFIED = 0
    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


class Refused(CuzkError):
    """A request that is not taken on. `reason`: invalid, conflict, busy, disk, draining."""

    exit_code = 2

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class ProofRequest:
    """One proof. Bytes that a kind does not use are empty."""

    request_id: str
    kind: int
    """Number of the kind on the wire."""
    miner: int = 0
    sector_number: int = 0
    sector_size: int = 0
    registered_proof: int = 0
    partition_index: int = 0
    randomness: bytes = b""
    comm_r_old: bytes = b""
    comm_r_new: bytes = b""
    comm_d_new: bytes = b""
    vanilla: tuple[bytes, ...] = ()
    priority: Priority = Priority.UNSPECIFIED
    deadline_s: float | None = None
    """Seconds from now after which nobody wants it any more."""

    def digest(self) -> str:
        """SHA-256 of all that decides the proof: the same content under the same id is the same job."""
        outer = hashlib.sha256()
        for name in _CONTENT:
            outer.update(f"{name}={getattr(self, name)!r}\n".encode())
        for item in self.vanilla:
            outer.update(len(item).to_bytes(8, "little"))
            outer.update(item)
        return outer.hexdigest()

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.vanilla))

    def check(self, max_bytes: int) -> None:
        """Raises Refused."""
        check_id(self.request_id)
        for name in ("miner", "sector_number", "sector_size", "registered_proof"):
            if not 0 <= getattr(self, name) < _U64:
                raise Refused("invalid", f"{name}: outside 0 … 2^64 - 1")
        for name in ("randomness", "comm_r_old", "comm_r_new", "comm_d_new"):
            if len(getattr(self, name)) not in (0, 32):
                raise Refused("invalid", f"{name}: 32 bytes are needed, not {len(getattr(self, name))}")
        if len(self.vanilla) > MAX_ITEMS:
            raise Refused("invalid", f"vanilla_proofs: {len(self.vanilla)} items, {MAX_ITEMS} are taken")
        if self.nbytes > max_bytes:
            raise Refused("invalid", f"vanilla proofs of {self.nbytes:,} bytes: {max_bytes:,} are taken")
        if self.deadline_s is not None and not 0 < self.deadline_s <= 366 * 86400:
            raise Refused("invalid", "the deadline must be above 0 seconds and within a year")


_CONTENT = tuple(f.name for f in fields(ProofRequest) if f.name not in ("request_id", "vanilla", "priority", "deadline_s"))


def check_id(job_id: str) -> None:
    """Raises Refused for an id that cannot stand in a log line."""
    if len(job_id) > MAX_ID_CHARS:
        raise Refused("invalid", f"request_id: {len(job_id)} characters, {MAX_ID_CHARS} are taken")
    if not _ID.fullmatch(job_id):
        raise Refused("invalid", "request_id: control characters and commas are not taken (it stands in log lines)")


def new_id() -> str:
    return str(uuid.uuid4())


def priority_of(number: int) -> Priority:
    """Unknown numbers are NORMAL, as the daemon takes them."""
    return Priority(number) if number in Priority._value2member_map_ else Priority.NORMAL


def priority_named(name: str) -> Priority:
    """Raises InputError."""
    try:
        return Priority[name.upper()]
    except KeyError:
        raise InputError(f"unknown priority {name[:40]!r}: {', '.join(p.name.lower() for p in Priority)}") from None

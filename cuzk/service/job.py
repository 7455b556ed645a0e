"""One job of the service: a request on its way."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cuzk.service.journal import Ended
from cuzk.service.kinds import Kind, Statement
from cuzk.service.request import Priority, ProofRequest


class Phase(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    """Its input is read and checked."""
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(eq=False)
class Job:
    """All fields but the flag belong to the service's event loop."""

    request: ProofRequest
    """Without its vanilla proofs: those are on disk."""
    digest: str
    seq: int
    kind: Kind
    submitted_s: float
    """Seconds since the epoch."""
    deadline_at_s: float | None = None
    arrived: float = field(default_factory=time.monotonic)
    phase: Phase = Phase.QUEUED
    statement: Statement | None = None
    scenario: Any = None
    """That of a run of its circuit, for forecasts."""
    circuit_id: str = ""
    partitions: int = 0
    """0: not known yet."""
    made: dict[int, bytes] = field(default_factory=dict)
    """Partition -> 192 bytes."""
    spent_ms: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Partition that was made by this service -> its synthesis, its time in the hands of a GPU worker."""
    synth_s: float = 0.0
    gpu_s: float = 0.0
    load_s: float = 0.0
    prepare_s: float = 0.0
    began: float | None = None
    """When its first partition began (monotonic)."""
    retries: int = 0
    """Partitions that had to be proved again."""
    ended: Ended | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    cancel: threading.Event = field(default_factory=threading.Event)
    why_cancelled: BaseException | None = None
    waits_for: str = ""
    """Why it has not started, in words."""
    forecast: dict[str, Any] | None = None
    predicted_at_start: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return self.request.request_id

    @property
    def priority(self) -> Priority:
        return self.request.priority

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts jobs: the highest priority first, then who came first."""
        return (-int(self.priority), self.seq)

    @property
    def missing(self) -> list[int]:
        return [number for number in range(self.partitions) if number not in self.made]

    def end_as(self, state: str, *, proof: bytes = b"", error: str = "", final: bool = False) -> Ended:
        """With its times: waiting is neither reading the input nor loading the key."""
        now = time.monotonic()
        began = self.began if self.began is not None else now
        waited = max(0.0, began - self.arrived - self.prepare_s - self.load_s)
        seconds = (waited, self.load_s, self.synth_s, self.gpu_s, now - self.arrived)
        queue_ms, load_ms, synth_ms, gpu_ms, total_ms = (round(1000 * value) for value in seconds)
        return Ended(state, proof, error, final, 0.0, queue_ms, load_ms, synth_ms, gpu_ms, total_ms)

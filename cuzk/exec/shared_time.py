"""Emulated sharing in real time: several pieces of pretended work slow each other as the calibration says.

The laws are the simulator's: D = Σ DRAM demands, S = (1 + D^q)^(1/q); F = max(1, load/capacity)^exponent of the resource that the
work belongs to (cores, a device's multiprocessors, a link's direction); speed = 1 / (((1 − m) + m·S)·F).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cuzk.model.calibration import Contention


@dataclass
class Resource:
    """A rate that all work of one kind shares."""

    capacity: float
    exponent: float = 1.0
    load: float = 0.0

    def slowdown(self) -> float:
        return 1.0 if self.load <= self.capacity else (self.load / self.capacity) ** self.exponent


@dataclass(eq=False)
class _Piece:
    left_s: float
    resource: Resource
    memory_share: float
    speed: float = 1.0
    since_s: float = field(default_factory=time.perf_counter)


class SharedTime:
    """Passes the time of pieces of work. `scale`: real seconds for one second of the calibration."""

    def __init__(self, contention: Contention, scale: float) -> None:
        self._contention, self._scale = contention, scale
        self._changed = threading.Condition()
        self._pieces: set[_Piece] = set()
        self._demand = 0.0

    def spend(self, seconds: float, resource: Resource, load: float, memory_share: float, demand: float,
              cancelled: Callable[[], bool], progress: Callable[[float], None] | None = None) -> None:  # fmt: skip
        """Return when `seconds` of work alone are done beside all the others, or the work is cancelled.

        `progress` is called now and then with the share that is done; what it does goes on beside the work.
        """
        if seconds <= 0:
            return
        piece = _Piece(seconds, resource, memory_share)
        with self._changed:
            self._move()
            self._pieces.add(piece)
            resource.load += load
            self._demand += demand
            self._settle()
        try:
            while self._wait(piece, 0.2 if progress is None else 0.02) and not cancelled():
                if progress is not None:
                    progress(min(1.0, 1.0 - piece.left_s / seconds))
        finally:
            with self._changed:
                self._move()
                self._pieces.discard(piece)
                resource.load -= load
                self._demand -= demand
                self._settle()

    def _wait(self, piece: _Piece, most_s: float) -> bool:
        """False once the piece is done."""
        with self._changed:
            self._move()
            if piece.left_s > 1e-9:
                self._changed.wait(min(piece.left_s / piece.speed * self._scale, most_s))
                self._move()
            return piece.left_s > 1e-9

    def _move(self) -> None:
        now = time.perf_counter()
        for piece in self._pieces:
            piece.left_s -= (now - piece.since_s) / self._scale * piece.speed
            piece.since_s = now

    def _settle(self) -> None:
        slowdown = self._contention.dram_slowdown(max(0.0, self._demand))
        for piece in self._pieces:
            piece.speed = Contention.speed(piece.memory_share, slowdown) / piece.resource.slowdown()
        self._changed.notify_all()

"""Several threads' work on one stream, in pieces of some milliseconds.

Kernels of two streams that each fill the chip do not mix: whoever's kernel ends first waits for the whole of the other's next
one. So what belongs together is queued as a piece on one stream, and nobody queues more than a few pieces ahead: whoever has
something to add waits for milliseconds, and the device never runs dry.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AHEAD = 2
"""Pieces that a turn has queued and the device has not done, at most: one is worked on, one is ready."""


class Turns:
    """One stream of a device and whose turn it is to queue work there."""

    def __init__(self, device: Any) -> None:
        self.device, self.stream = device, device.stream()
        self.mutex = threading.Lock()

    @contextmanager
    def turn(self, queued: deque[Any] | None = None, ahead: int = AHEAD) -> Iterator[Turn]:
        """The right to queue work, for one thread at a time. `queued`: what an earlier turn of the same work has left to do;
        `ahead`: pieces of it that may wait."""
        with self.mutex:
            yield Turn(self, queued, ahead)

    def finish(self) -> None:
        """Waits for all that is queued now."""
        event = self.device.event()
        self.device.record(event, self.stream)
        self.device.wait(event)


class Turn:
    """Held while work is queued; lent to others between its pieces."""

    def __init__(self, turns: Turns, queued: deque[Any] | None = None, ahead: int = AHEAD) -> None:
        self._turns, self.stream, self._ahead = turns, turns.stream, ahead
        self._queued: deque[Any] = deque() if queued is None else queued

    def pause(self) -> None:
        """Ends a piece. Returns once the device has no more than a few pieces of this turn to do."""
        device = self._turns.device
        event = device.event()
        device.record(event, self.stream)
        self._queued.append(event)
        with self.aside():
            while len(self._queued) > self._ahead:
                device.wait(self._queued.popleft())

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others may queue work meanwhile."""
        self._turns.mutex.release()
        try:
            yield
        finally:
            self._turns.mutex.acquire()

"""Runs whose proofs are not known beforehand: they come from a feed, as long as that is open.

Everything else is a run like any other: the same program, core, books, devices. A proof of the feed can be of some partitions
only, under their own numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.pipeline.core import RunCore
from cuzk.pipeline.sets import PartitionSet, ProofRun


@dataclass(eq=False)
class Fed:
    """A proof that a feed brings."""

    partitions: Sequence[int]
    priority: int = 0
    """Higher goes first where the pipeline's order looks at it."""
    run: ProofRun | None = None
    """The proof in the run, once it is admitted."""


class Feed:
    """Proofs for a run, from any thread, in order."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[Fed] = []
        self._closed = False
        self._nudge: Callable[[], None] = lambda: None

    def listen(self, nudge: Callable[[], None]) -> None:
        """`nudge` is called when something has come, or nothing will come any more."""
        self._nudge = nudge

    def put(self, fed: Fed) -> None:
        """Raises ValueError once the feed is closed."""
        with self._mutex:
            if self._closed:
                raise ValueError("the feed is closed")
            self._waiting.append(fed)
        self._nudge()

    def withdraw(self, fed: Fed) -> bool:
        """Whether it had not been taken yet, and never will be."""
        with self._mutex:
            if fed not in self._waiting:
                return False
            self._waiting.remove(fed)
            return True

    def take(self) -> Fed | None:
        with self._mutex:
            return self._waiting.pop(0) if self._waiting else None

    def close(self) -> None:
        """Nothing will come any more: the run ends when all that has come is done."""
        with self._mutex:
            self._closed = True
        self._nudge()

    @property
    def is_empty(self) -> bool:
        with self._mutex:
            return not self._waiting

    @property
    def is_over(self) -> bool:
        with self._mutex:
            return self._closed and not self._waiting


class FedCore(RunCore):
    """The core of a run that a feed feeds."""

    def __init__(self, feed: Feed, *args: Any, on_admit: Callable[[Fed], None] = lambda fed: None, **options: Any) -> None:
        """`on_admit` is told of each proof before its sets begin."""
        super().__init__(*args, **options)
        self.arrivals.clear()
        self._feed, self._on_admit = feed, on_admit

    def admit_due(self, now: float) -> list[tuple[str, PartitionSet]]:
        tasks: list[tuple[str, PartitionSet]] = []
        while self.has_capacity and self.failure is None and (fed := self._feed.take()) is not None:
            # a run without an end keeps no list of what is over
            self.proofs[:] = [proof for proof in self.proofs if not proof.left or proof.open_sets]
            due = self.admit(self.program.scenario.circuit, fed.priority, now, now, fed.partitions)
            fed.run = self.proofs[-1]
            self._on_admit(fed)
            tasks += due
        return tasks

    @property
    def has_room(self) -> bool:
        return self.has_capacity and not self._feed.is_empty

    @property
    def is_over(self) -> bool:
        return not self.open_sets and not self.in_flight and (self.failure is not None or self._feed.is_over)

"""One link from the host to a device, and who comes first on it.

Two streams of copies do not share a link evenly: whoever has more of them queued takes nearly all. So one thread hands copies to
the link, two at a time, those of the first feed before those of the second; and none before its place on the device is free,
since a copy that waits in a stream holds up all behind it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.gpu.feed import Feed, Sent

OUTSTANDING = 2
"""Copies that the device has been given and has not done: one is on the link, one is ready."""
LOOK_S = 3e-4
"""Between two looks at places that are not free yet."""


@dataclass
class _Job:
    target: int
    source: np.ndarray
    after: Any
    issued: threading.Event = field(default_factory=threading.Event)
    sent: Sent | None = None
    error: BaseException | None = None

    def wait(self) -> None:
        self.issued.wait()
        if self.error is not None:
            raise self.error
        assert self.sent is not None
        self.sent.wait()


class Link:
    """Feeds that share `feed`: 0 comes before 1, and so on. `close` ends the thread, not the feed."""

    def __init__(self, device: Any, feed: Feed, feeds: int = 2) -> None:
        self._device, self._feed = device, feed
        self._waiting: list[deque[_Job]] = [deque() for _ in range(feeds)]
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="link")
        self._thread.start()

    def lane(self, rank: int) -> LinkLane:
        """The feed of that rank."""
        return LinkLane(self, rank)

    def put(self, rank: int, job: _Job) -> None:
        """Queues a copy; its turn comes when its place is free and nothing of a lower rank can go."""
        with self._changed:
            if self._closing:
                raise RuntimeError("the link is closed")
            self._waiting[rank].append(job)
            self._changed.notify()

    def close(self) -> None:
        """Copies that are queued still go."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        self._device.use()
        outstanding: deque[Sent] = deque()
        while True:
            with self._changed:
                while not any(self._waiting) and not self._closing:
                    self._changed.wait()
                if not any(self._waiting):
                    return
                heads = [queue for queue in self._waiting if queue]
            chosen = next((queue for queue in heads if self._free(queue[0])), None)
            if chosen is None:
                time.sleep(LOOK_S)
                continue
            with self._changed:
                job = chosen.popleft()
            try:
                job.sent = self._feed.send(job.target, job.source, None)
                outstanding.append(job.sent)
            except BaseException as error:  # whoever waits for the bytes learns of it
                job.error = error
            job.issued.set()
            if len(outstanding) >= OUTSTANDING:
                self._await(outstanding.popleft())

    def _free(self, job: _Job) -> bool:
        """Whether a job's place is free. An error is told to whoever waits for it."""
        try:
            return job.after is None or self._device.reached(job.after)
        except CuzkError:
            return True  # sending will fail in the same way

    @staticmethod
    def _await(sent: Sent) -> None:
        try:
            sent.wait()
        except CuzkError:
            return  # told to whoever waits for the bytes


@dataclass
class LinkLane:
    """A feed over a shared link."""

    _link: Link
    _rank: int

    def send(self, target: int, source: np.ndarray, after: Any) -> Sent:
        """Begins a copy as Feed.send does, when its turn comes."""
        job = _Job(target, source, after)
        self._link.put(self._rank, job)
        return job

    def close(self) -> None:
        """The link is closed by its owner."""

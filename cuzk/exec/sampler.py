"""Samples of what is resident, as the operating system (or the driver) reports it, beside the books."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from cuzk.exec.engine import Engine

PERIOD_S = 0.025


class Sampler:
    """A thread that writes a `sample` event for each pool, as long as the context is open."""

    def __init__(self, engine: Engine, period_s: float = PERIOD_S) -> None:
        self._engine, self._period_s = engine, period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sampler", daemon=True)
        self.peaks: dict[str, tuple[int, float]] = {}
        """Pool -> (highest bytes, when)."""
        self.count = 0

    def sample(self) -> None:
        engine = self._engine
        levels = engine.device.resident()
        with engine.mutex:
            now = engine.now()
            for pool, nbytes in levels.items():
                engine.core.journal.sample(pool, nbytes)
                if nbytes > self.peaks.get(pool, (-1, 0.0))[0]:
                    self.peaks[pool] = (nbytes, now)
            self.count += 1

    def _loop(self) -> None:
        while not self._stop.wait(self._period_s):
            self.sample()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

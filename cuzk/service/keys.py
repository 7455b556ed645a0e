"""Keys by circuit: loaded when they are wanted, kept, and let go under a budget, the one that was idle longest first."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cuzk.errors import InputError
from cuzk.groth16.key import ProvingKey
from cuzk.model.units import fmt_gib
from cuzk.service.failures import InUse, NeverFits

log = logging.getLogger("cuzk.service")


@dataclass(frozen=True)
class Loaded:
    """A key, and what makes values for it."""

    circuit_id: str
    key: ProvingKey
    circuit: Any
    """Statements of this circuit make their values with it, such as a PartitionMaker."""
    nbytes: int

    @staticmethod
    def of(circuit_id: str, key: ProvingKey, circuit: Any) -> Loaded:
        return Loaded(circuit_id, key, circuit, os.path.getsize(key.path))


@dataclass
class _Entry:
    loaded: Loaded
    load_s: float
    users: int = 0
    used_s: float = 0.0


Load = Callable[[str], Loaded]
"""Circuit id -> its key. Raises InputError for a circuit that has none here."""


class KeyStore:
    """All that is loaded in this process. Safe to use from several threads; a key is loaded once, different ones side by side."""

    def __init__(self, load: Load, budget_bytes: int | None = None, min_idle_s: float = 0.0,
                 clock: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        """`budget_bytes`: most that keys take together (None: no bound). `min_idle_s`: a key is not let go for another one
        before it has been idle for so long, unless it is asked for by name."""
        self._load, self._budget, self._min_idle_s, self._clock = load, budget_bytes, min_idle_s, clock
        self._mutex = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._loading: set[str] = set()
        self.on_evict: Callable[[str], None] = lambda circuit_id: None
        """Told of each key that goes, while nobody can use it."""

    @contextmanager
    def use(self, circuit_id: str) -> Iterator[tuple[Loaded, float]]:
        """The key, and the seconds that loading it took now. It stays as long as it is used. Waits for room that users of
        other keys hold. Raises InputError, NeverFits."""
        entry, took_s = self._get(circuit_id)
        try:
            yield entry.loaded, took_s
        finally:
            with self._mutex:
                entry.users -= 1
                entry.used_s = self._clock()
                self._mutex.notify_all()

    def load(self, circuit_id: str) -> float:
        with self.use(circuit_id) as (_, took_s):
            return took_s

    def evict(self, circuit_id: str) -> int | None:
        """Bytes that went; None if the key was not there. Raises InUse."""
        with self._mutex:
            entry = self._entries.get(circuit_id)
            if entry is None:
                return None
            if entry.users:
                raise InUse(f"the key of {circuit_id} is in use by {entry.users} job(s): cancel them first, or wait")
            del self._entries[circuit_id]
            self.on_evict(circuit_id)
            self._mutex.notify_all()
            return entry.loaded.nbytes

    def loaded(self) -> list[dict[str, Any]]:
        with self._mutex:
            now = self._clock()
            return [
                {"circuit_id": name, "bytes": e.loaded.nbytes, "users": e.users, "load_s": round(e.load_s, 3),
                 "idle_s": 0.0 if e.users else round(now - e.used_s, 3)}
                for name, e in self._entries.items()
            ]  # fmt: skip

    def _get(self, circuit_id: str) -> tuple[_Entry, float]:
        with self._mutex:
            self._mutex.wait_for(lambda: circuit_id not in self._loading)
            entry = self._entries.get(circuit_id)
            if entry is not None:
                entry.users += 1
                return entry, 0.0
            self._loading.add(circuit_id)
        try:
            began = self._clock()
            found = self._load(circuit_id)
            if getattr(found.key, "development", False):
                log.warning("development key circuit_id=%s: whoever made it can forge proofs", circuit_id)
            entry = self._enter(found, began)
            return entry, entry.load_s
        finally:
            with self._mutex:
                self._loading.discard(circuit_id)
                self._mutex.notify_all()

    def _enter(self, found: Loaded, began: float) -> _Entry:
        """Keys are mapped, so a new one takes no memory before its first use: room is made between the two."""
        if self._budget is not None and found.nbytes > self._budget:
            raise NeverFits(f"the key of {found.circuit_id} takes {fmt_gib(found.nbytes)}, the budget for keys is "
                            f"{fmt_gib(self._budget)}")  # fmt: skip
        with self._mutex:
            while self._budget is not None and sum(e.loaded.nbytes for e in self._entries.values()) + found.nbytes > self._budget:
                now = self._clock()
                idle = {name: e for name, e in self._entries.items() if not e.users}
                ripe = [name for name, e in idle.items() if now - e.used_s >= self._min_idle_s]
                if ripe:
                    gone = min(ripe, key=lambda name: idle[name].used_s)
                    del self._entries[gone]
                    self.on_evict(gone)
                elif idle:
                    self._mutex.wait(max(0.01, min(self._min_idle_s - (now - e.used_s) for e in idle.values())))
                else:
                    self._mutex.wait()
            entry = self._entries[found.circuit_id] = _Entry(found, self._clock() - began, users=1)
            return entry


def folder_keys(directory: str) -> Load:
    """Keys from a folder of Filecoin's parameter files. No other path is ever opened: a circuit id is looked up in a table."""

    def load(circuit_id: str) -> Loaded:
        from cuzk.service.porep import load_porep
        from cuzk.service.post import load_post
        from cuzk.service.update import load_update

        for loader in (load_porep, load_post, load_update):
            found = loader(directory, circuit_id)
            if found is not None:
                return found
        raise InputError(f"unknown circuit ID: {circuit_id[:80]}")

    return load

"""What the system refuses in the middle of a run: a thread, a place on the disk. The run ends with words, and nothing hangs."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import InputError
from cuzk.exec.run import run
from cuzk.trace.jsonl import TraceWriter
from tests.unit.exec.playing import play, quick, scenario

SMALL = ("policy.gw=2", "policy.j=2", "policy.pw=3", "circuit.partitions=3", "workload.proofs=3")


class Starved:
    """The `first`-th start of a thread in this process raises, or every one from it on."""

    def __init__(self, first: int, every: bool) -> None:
        self.first, self.every, self.count, self.hits = first, every, 0, 0
        self._real = threading.Thread.start

    def __call__(self, thread: threading.Thread) -> None:
        if thread.name == "played":  # the test's own
            self._real(thread)
            return
        self.count += 1
        if self.count == self.first or (self.every and self.count > self.first):
            self.hits += 1
            raise RuntimeError("can't start new thread")
        self._real(thread)


# INV-11
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("phase", ["phase12", "phase9", "phase7"])
def test_a_thread_that_cannot_be_started_hangs_nothing(phase: str, every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = 0
    for first in range(1, 40):
        starved = Starved(first, every)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread, s=starved: s(thread))
            played = play(scenario(phase, *SMALL), quick(), name="played")
        played.assert_clean()
        core = played.engine.core
        whole = {e.proof for e in played.events if e.kind == "complete" and e.partition == -1}
        if starved.hits:
            hits += 1
            assert core.failure is not None or core.failures, first
            told = core.failure or core.failures[0][1]
            assert "thread" in str(told) or "deadlocks" in str(told), told
        if core.failure is None:
            assert whole | {number for number, _ in core.failures} == set(range(3))
    assert hits > 10


def full_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    real, written = TraceWriter.__call__, 0

    def write(self: TraceWriter, event: Any) -> None:
        nonlocal written
        written += 1
        if written > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, event)

    monkeypatch.setattr(TraceWriter, "__call__", write)


@pytest.mark.parametrize("after", [0, 1, 20, 60, 100])
def test_a_disk_that_fills_while_the_trace_is_written(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch, after)
    result = run(scenario("phase12", *SMALL), quick(), trace_path=tmp_path / "trace.jsonl")
    assert isinstance(result.error, InputError) and result.exit_code == 2
    assert "trace.jsonl: No space left on device" in str(result.error)
    assert list(tmp_path.iterdir()) == [], "no file is under its name that is not whole"


def test_what_was_buffered_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, text: str) -> int:
            return len(text)

        def close(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    made = TraceWriter(tmp_path / "trace.jsonl", {"clock": "wall"})
    assert made._file is not None
    made._file.close()
    made._file = Full()  # type: ignore[assignment]
    with pytest.raises(OSError, match="No space left"):
        made.close()
    assert list(tmp_path.iterdir()) == []

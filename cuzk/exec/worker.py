"""The process that proves for another one: it opens the key, has the device's context and all the memory, and writes no file.

It gets a Job and then a Go through a pipe, and sends back what it has prepared, every event, every proof that is complete, and
at last its Outcome. If the pipe closes, the process that wanted the proofs is gone, and this one ends at once.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from cuzk.errors import CuzkError, describe
from cuzk.exec.device import Device
from cuzk.exec.engine import Engine
from cuzk.exec.result import outcome_of
from cuzk.exec.sampler import Sampler
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.pipeline.sets import ProofRun
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.exec.run import Prepared, Proving


@dataclass(frozen=True)
class Job:
    """The arguments of `cuzk.exec.run.prepare`. `make_device` must be importable under its name."""

    scenario: Scenario
    proving: Proving
    ram_cap_bytes: int | None
    make_device: Callable[..., Device] | None


@dataclass(frozen=True)
class Ready:
    """Key and witnesses are open."""

    scenario: Scenario
    measured: dict[str, Any]
    device: str
    """Its name."""


@dataclass(frozen=True)
class Go:
    """Prove, from the proof with number `first` on, by the clock of a run that began at `start_s` (None: begin it)."""

    first: int
    start_s: float | None


class Stop:
    """Unwind."""


class Opened:
    """The device is open: what comes now are events."""


@dataclass(frozen=True)
class Started:
    """All is loaded, and the clock runs since `start_s`."""

    start_s: float


@dataclass(frozen=True)
class Made:
    """A proof is complete and verified. `parts`: partition -> its proof and public signals."""

    proof: ProofRun
    parts: dict[int, Any]


@dataclass(frozen=True)
class Raised:
    """This stands in the way of a run."""

    error: BaseException


def main(descriptor: int) -> None:
    """The whole life of the process. `descriptor`: its end of the pipe."""
    pipe = Connection(descriptor)
    outbox = _Outbox(pipe)
    try:
        job: Job = pipe.recv()
        _work(job, _Inbox(pipe), outbox)
    except EOFError:
        os._exit(1)
    except BaseException as error:
        sent = _portable(error)
        sent.add_note("".join(traceback.format_exception(error)))
        outbox.put(Raised(sent))
    outbox.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)  # destructors of a context that is lost would complain, or hang


def _work(job: Job, inbox: _Inbox, outbox: _Outbox) -> None:
    from cuzk.exec.run import prepare

    prepared = prepare(job.scenario, job.proving, ram_cap_bytes=job.ram_cap_bytes, make_device=job.make_device, worker=False)
    outbox.put(Ready(prepared.scenario, prepared.measured, prepared.device.name))
    _prove(prepared, inbox.go.get(), inbox, outbox)


def _prove(prepared: Prepared, go: Go, inbox: _Inbox, outbox: _Outbox) -> None:
    program, device = bind(prepared.scenario), prepared.device
    device.open(program)
    told = go.start_s

    def sink(event: Event) -> None:
        nonlocal told
        if told is None and engine.start_s is not None:
            told = engine.start_s
            outbox.put(Started(told))
        outbox.put(event)

    def on_proof(proof: ProofRun) -> None:
        outbox.put(Made(replace(proof, members=[]), device.take_proof(proof.number)))

    engine = Engine(program, device, sink, on_proof, first=go.first, start_s=go.start_s, replaceable=True)
    outbox.put(Opened())
    inbox.serve(engine)
    with Sampler(engine) as sampler:
        engine.run()
    outcome = outcome_of(engine, sampler)
    failures = [(number, _portable(why)) for number, why in outcome.failures]
    outbox.put(replace(outcome, failures=failures, failure=outcome.failure and _portable(outcome.failure)))
    if not engine.core.lost:
        device.close()


def _portable(error: BaseException) -> BaseException:
    """The error as another process can have it: without classes that it may not know."""
    if type(error).__module__.partition(".")[0] in ("builtins", "cuzk"):
        with contextlib.suppress(Exception):
            copy: BaseException = pickle.loads(pickle.dumps(error))
            return copy
    return CuzkError(describe(error))


class _Outbox:
    """Sends in order, in a thread of its own: nothing in the run waits for the other process to read."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="outbox", daemon=True)
        self._thread.start()

    def put(self, message: Any) -> None:
        self._queue.put(message)

    def flush(self) -> None:
        """Until all is sent; the last call."""
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        going = True
        while going:
            messages = [self._queue.get()]
            while not self._queue.empty():
                messages.append(self._queue.get())
            going = all(message is not None for message in messages)
            try:
                self._pipe.send([message for message in messages if message is not None])
            except OSError:
                os._exit(1)


class _Inbox:
    """Listens in a thread of its own, so that the end of the other process is never missed."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.go: SimpleQueue[Go] = SimpleQueue()
        self._engine: SimpleQueue[Engine] = SimpleQueue()
        threading.Thread(target=self._loop, name="inbox", daemon=True).start()

    def serve(self, engine: Engine) -> None:
        """A Stop is the engine's from now on."""
        self._engine.put(engine)

    def _loop(self) -> None:
        try:
            self.go.put(self._pipe.recv())
            self._pipe.recv()
            self._engine.get().interrupt()
            self._pipe.recv()
        except (EOFError, OSError):
            os._exit(1)

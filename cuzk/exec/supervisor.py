"""Proofs in a worker process, and a fresh one when it is lost.

A spoiled CUDA context cannot be mended in the process that has it, and a process that the system kills cannot mend anything. So
this process has no context and no key: it starts a worker (worker.py), writes down what that says, and when its GPU is lost or
it dies, fails the proofs that were in flight and starts another one, which goes on with those that were not yet admitted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from typing import Any

from cuzk.errors import CuzkError, DeviceLost, Interrupted, describe
from cuzk.exec.aftermath import aftermath
from cuzk.exec.engine import POLL_S
from cuzk.exec.result import Outcome, RunResult, result_of
from cuzk.exec.run import Progress, TraceFile, header_of, interruptible, refuse_faults
from cuzk.exec.worker import Go, Job, Made, Opened, Raised, Ready, Started, Stop
from cuzk.pipeline.program import Program, bind
from cuzk.trace.event import Event
from cuzk.trace.jsonl import TraceWriter

PATIENCE_S = 120.0
"""A worker that has lost a device is given up when nothing but samples has come from it for so long: a driver may hang."""
BOOT = "import sys; sys.path[:] = sys.argv[2:]; from cuzk.exec.worker import main; main(int(sys.argv[1]))"


class WorkerDied(CuzkError):
    """The worker process ended by itself, or by the system."""


class Worker:
    """One worker process, as the process that started it has it. Ends with it, however that ends: the pipe closes then."""

    def __init__(self, job: Job) -> None:
        self._pipe, theirs = Pipe()
        # Ctrl-C reaches all processes of a terminal, and a service's end all of the service's; this one is told by us
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            command = [sys.executable, "-c", BOOT, str(theirs.fileno()), *sys.path]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            pass_fds=[theirs.fileno()])  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self.end = weakref.finalize(self, _end, self.process, self._pipe)
        """Kill it if it lives, and wait for it."""
        self.send(job)

    def send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it is dead: whoever reads its messages learns why
            self._pipe.send(message)

    def messages(self, tick: Callable[[], None] = lambda: None) -> Iterator[Any]:
        """The process's messages, until it is dead. `tick` is called several times a second."""
        while True:
            tick()
            try:
                if self._pipe.poll(POLL_S):
                    yield from self._pipe.recv()
            except (EOFError, OSError):
                self.process.wait()
                return

    def kill(self) -> None:
        self.process.kill()

    def why_dead(self) -> WorkerDied:
        """The error that says how the process ended."""
        code = self.process.wait()
        if code >= 0:
            return WorkerDied(f"the worker process ended with exit code {code}")
        name = signal.Signals(-code).name
        hint = ": the system was out of memory, or somebody did it" if -code == signal.SIGKILL else ""
        return WorkerDied(f"the worker process was killed by {name}{hint}")


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    process.kill()
    process.wait()
    pipe.close()


class Supervisor:
    """A scenario bound to a key, in a worker process."""

    def __init__(self, job: Job) -> None:
        """Raises what `prepare` raises."""
        self._job = job
        worker = Worker(job)
        try:
            self.ready = self._ready(worker)
        except BaseException:
            worker.end()
            raise
        self._waiting: Worker | None = worker

    @staticmethod
    def _ready(worker: Worker) -> Ready:
        for message in worker.messages():
            if isinstance(message, Ready):
                return message
            if isinstance(message, Raised):
                raise message.error
        raise worker.why_dead()

    def prove(self, trace_path: str | os.PathLike[str] | None, progress: Progress | None,
              made: Callable[[int, dict[int, Any]], None]) -> RunResult:  # fmt: skip
        """The result. `made` gets each proof that is complete: its number, and partition -> its proof and public signals."""
        ready, program = self.ready, bind(self.ready.scenario)
        refuse_faults(program)
        worker, self._waiting = self._waiting or Worker(self._job), None
        run = _Supervised(program, self._job, worker, progress, made)

        def open_trace() -> TraceWriter | None:
            header = header_of(program, ready.device) | ready.measured
            return TraceWriter(trace_path, header) if trace_path is not None else None

        outcome = run.to_its_end(open_trace)
        measured = {**ready.measured, "worker_restarts": run.restarts}
        return result_of(program, ready.device, outcome, run.events, measured)


class _Supervised:
    """One run over all of its workers."""

    def __init__(self, program: Program, job: Job, worker: Worker, progress: Progress | None,
                 made: Callable[[int, dict[int, Any]], None]) -> None:  # fmt: skip
        self._program, self._job, self._worker = program, job, worker
        self._progress = progress or (lambda proof: None)
        self.events: list[Event] = []
        self._made = made
        self.proofs: set[int] = set()
        self.restarts: list[dict[str, Any]] = []
        self._write: Callable[[Event], None] = lambda event: None
        self._start_s: float | None = None
        self._interrupted = self._told = self._opened = False
        self._halted: BaseException | None = None
        self._lost = False
        """The worker has lost a device."""
        self._heard_s = 0.0

    def to_its_end(self, open_trace: Callable[[], TraceWriter | None]) -> Outcome:
        trace: TraceFile | None = None

        def opened() -> None:
            nonlocal trace
            if trace is None:
                self._write = trace = TraceFile(open_trace(), self._halt)

        try:
            with interruptible(self._interrupt):
                outcome = self._stretches(opened)
            if self._halted is not None:
                outcome.failure = self._halted
            return outcome
        finally:
            self._worker.end()
            if trace is not None:
                trace.close()

    def _interrupt(self) -> None:
        self._interrupted = True

    def _halt(self, why: BaseException) -> None:
        """The trace cannot be written: the run ends for that reason."""
        self._halted = why
        self._interrupted = True

    def _now(self) -> float:
        """On the trace's clock, and never before its last event."""
        now = 0.0 if self._start_s is None else time.perf_counter() - self._start_s
        return max(now, self.events[-1].t if self.events else 0.0)

    def _sink(self, event: Event) -> None:
        self.events.append(event)
        self._write(event)

    # ------------------------------------------------------------------ a worker after another

    def _stretches(self, opened: Callable[[], None]) -> Outcome:
        whole: Outcome | None = None
        fruitless = 0
        while True:
            done_before = len(self.proofs)
            outcome = self._stretch(opened, first_of_all=whole is None)
            whole = outcome if whole is None else whole.then(outcome)
            if outcome.lost is None or outcome.failure is not None:
                return whole
            admitted = sum(event.kind == "admit" for event in self.events)
            if admitted == self._program.scenario.workload.proofs:
                return whole  # nothing is left to do for another worker
            fruitless = 1 if len(self.proofs) > done_before else fruitless + 1
            if self._interrupted or fruitless > 1:
                whole.failure = Interrupted("interrupted") if self._interrupted else outcome.lost
                self._sink(Event(self._now(), "fail", name="run", reason=describe(whole.failure)))
                return whole
            self._restart(outcome.lost)

    def _restart(self, why: BaseException) -> None:
        self._worker.end()
        at_s, reason = self._now(), describe(why)
        self.restarts.append({"at_s": round(at_s, 6), "reason": reason})
        self._sink(Event(at_s, "restart", name="worker", reason=reason))
        self._worker = Worker(self._job)
        self._told = self._opened = self._lost = False

    def _stretch(self, opened: Callable[[], None], first_of_all: bool) -> Outcome:
        """The outcome of one worker, run to its end. Raises the error that keeps the first one from starting."""
        first_event, done_before = len(self.events), set(self.proofs)
        self._worker.send(Go(sum(event.kind == "admit" for event in self.events), self._start_s))
        outcome: Outcome | None = None
        raised: BaseException | None = None
        for message in self._worker.messages(self._tick):
            match message:
                case Event():
                    self._note(message)
                case Opened():
                    self._opened = True
                    opened()
                case Started(start_s):
                    self._start_s = start_s
                case Made(proof, parts):
                    self.proofs.add(proof.number)
                    self._made(proof.number, parts)
                    self._progress(proof)
                case Raised(error):
                    raised = error
                case Outcome():
                    outcome = message
        if outcome is not None:
            return outcome
        reason = raised or (Interrupted("interrupted") if self._interrupted else self._worker.why_dead())
        if first_of_all and (raised is not None or (self._interrupted and not self._opened)):
            raise reason
        opened()
        done = set(self.proofs) - done_before
        ending = reason if isinstance(reason, CuzkError) else CuzkError(describe(reason))
        outcome, told = aftermath(self.events[first_event:], done, ending, self._now())
        for event in told:
            self._sink(event)
        if not isinstance(reason, (DeviceLost, WorkerDied)):
            outcome.failure = ending
            self._sink(Event(self._now(), "fail", name="run", reason=describe(reason)))
        return outcome

    def _note(self, event: Event) -> None:
        self._lost = self._lost or (event.kind == "fail" and event.name == "device")
        if event.kind != "sample":
            self._heard_s = time.monotonic()
        self._sink(event)

    def _tick(self) -> None:
        if self._interrupted and not self._told:
            self._told = True
            # before it has opened its device there is nothing to unwind
            self._worker.send(Stop()) if self._opened else self._worker.kill()
        if self._lost and time.monotonic() > self._heard_s + PATIENCE_S:
            self._worker.kill()

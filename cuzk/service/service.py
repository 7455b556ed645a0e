"""The service: jobs from their coming to their end. All state belongs to one event loop; work is done in threads beside it.

A job waits, has its input read and checked, is started when the machine has room for it beside what runs, and ends once: with
its proof, an error, or because somebody cancelled it. What is accepted is on disk before the client hears of it; a partition is
on disk before the job goes on; a proof is verified as a whole before it leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from cuzk.errors import CuzkError
from cuzk.service import journal as states
from cuzk.service.failures import Cancelled, Expired, chain
from cuzk.service.forecast import Forecaster, Load
from cuzk.service.job import Job, Phase
from cuzk.service.journal import Journal, Record
from cuzk.service.kinds import Kinds
from cuzk.service.live import Live
from cuzk.service.metrics import Metrics
from cuzk.service.prover import Prover
from cuzk.service.request import Priority, ProofRequest, Refused, new_id
from cuzk.service.runner import Left, Runner, aside

log = logging.getLogger("cuzk.service")
CRASHES = 3
"""A job that was in hand so often when the service was killed is not taken in hand again."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one service."""

    request_bytes: int = 256 << 20
    jobs: int = 256
    """Open jobs at most."""
    prepared: int = 4
    """Jobs whose inputs are kept in memory, read and checked, beside those that run."""
    attempts: int = 3
    """Rounds of a job: partitions that do not verify, or were lost with a device, are proved again."""
    failed_inputs: int = 2
    """Inputs of failed jobs that are kept for diagnosis."""
    job_timeout_s: float | None = None
    """Deadline of jobs that bring none."""


class Service:
    """Made and used in one event loop: `await start()` first, `await stop()` last."""

    def __init__(self, prover: Prover, journal: Journal, kinds: Kinds, *, limits: Limits | None = None,
                 forecaster: Forecaster | None = None, clock: Callable[[], float] = time.time) -> None:  # fmt: skip
        self.prover, self.journal, self.kinds, self.limits = prover, journal, kinds, limits or Limits()
        self.forecaster = forecaster or Forecaster()
        self.live, self.metrics = Live(), Metrics(kinds)
        self.jobs: dict[str, Job] = {}
        """Open jobs by id."""
        self.recent: deque[Job] = deque(maxlen=50)
        self.started = time.monotonic()
        self.draining = False
        self.degraded = ""
        """The fault of the service as a whole; empty without one."""
        self.clock = clock
        self._seq = journal.last_seq()
        self._coming: dict[str, asyncio.Future[None]] = {}
        self.wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop_task: asyncio.Task[None] | None = None
        self._forecast_of: tuple[Any, ...] = ()
        self._forecasting = False
        self.readers = ThreadPoolExecutor(4, "read")
        self.runners = ThreadPoolExecutor(max(1, prover.width), "prove")
        self.disk = ThreadPoolExecutor(4, "disk")
        self._runner = Runner(self)

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Takes up what an earlier service has left open."""
        await aside(self.disk, self.journal.sweep_inputs, self.limits.failed_inputs)
        for record in await aside(self.disk, self.journal.open_jobs):
            job = self._job_of(record)
            self.jobs[job.id] = job
            if record.begun >= CRASHES:
                error = CuzkError(f"the service was killed {record.begun} times while this job was in hand; it is given up")
                self.spawn(self._runner.end_failed(job, error))
            else:
                log.info("job resumed job_id=%s partitions_done=%d", job.id, len(job.made))
        self._loop_task = asyncio.create_task(self._schedule())

    async def drain(self, patience_s: float) -> None:
        """Takes nothing new, starts nothing, and lets what runs come to its end for so long; after that it stops at the next
        partition. What is left is taken up by the next service."""
        if not self.draining:
            log.info("draining jobs_running=%d jobs_open=%d", len(self._running()), len(self.jobs))
        self.draining = True
        self.wake.set()
        running = self._running()
        if running:
            await asyncio.wait([asyncio.ensure_future(job.over.wait()) for job in running], timeout=patience_s)

    async def stop(self) -> None:
        """The end: running jobs are stopped where they are, and stay open in the journal."""
        self.draining = True
        if self._loop_task is not None:
            self._loop_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop_task
        for job in self._running():
            job.why_cancelled = Left()
            job.cancel.set()
        while self._tasks:
            await asyncio.wait(self._tasks)
        for job in self.jobs.values():
            job.over.set()  # whoever waits learns that it has not ended
        with contextlib.suppress(sqlite3.Error):
            await aside(self.disk, self.journal.orderly)
        await asyncio.to_thread(self.prover.close)
        for pool in (self.readers, self.runners, self.disk):
            pool.shutdown()
        self.journal.close()

    # ------------------------------------------------------------------ what clients ask for

    async def submit(self, request: ProofRequest) -> tuple[Job | None, Record | None]:
        """The job that does it, or the record of the one that did. The same id and content joins, or gets the stored result.
        Raises Refused; then nothing has been taken on."""
        if self.draining:
            raise Refused("draining", "the service is shutting down: ask the next one")
        if not request.request_id:
            request = replace(request, request_id=new_id())
        request.check(self.limits.request_bytes)
        kind = self.kinds.of(request.kind)
        if request.priority == Priority.UNSPECIFIED:
            request = replace(request, priority=kind.priority)
        digest = await aside(self.disk, request.digest)
        while (coming := self._coming.get(request.request_id)) is not None:
            await asyncio.wait([coming])
        gate = self._coming[request.request_id] = asyncio.get_running_loop().create_future()
        try:
            # not to be torn apart by a client that goes away
            return await asyncio.shield(self._spawn_for(self._take(request, digest)))
        finally:
            self._coming.pop(request.request_id, None)
            gate.set_result(None)

    async def _take(self, request: ProofRequest, digest: str) -> tuple[Job | None, Record | None]:
        now = self.clock()
        wait_s = request.deadline_s if request.deadline_s is not None else self.limits.job_timeout_s
        deadline = None if wait_s is None else now + wait_s
        job = self.jobs.get(request.request_id)
        while job is not None and job.ended is not None:  # its end is being written down: what counts is what stands there then
            await job.over.wait()
            job = self.jobs.get(request.request_id)
        if job is not None:
            if job.digest != digest:
                raise Refused(
                    "conflict", f"request_id {job.id} is that of another job that has not ended: other content, same id"
                )
            self._join(job, request.priority, deadline)
            return job, None
        record = await aside(self.disk, self.journal.find, request.request_id)
        if record is not None and record.digest == digest and record.ended is not None:
            if record.ended.state == states.COMPLETED or (record.ended.state == states.FAILED and record.ended.final):
                return None, record
        else:
            record = None
        if len(self.jobs) >= self.limits.jobs:
            raise Refused("busy", f"{len(self.jobs)} jobs are open already, {self.limits.jobs} are taken: try later")
        self._seq += 1
        seq = self._seq
        try:
            await aside(self.disk, self.journal.accept, request, digest, seq, now, deadline)
        except (OSError, sqlite3.Error) as error:
            self.metrics.refused["disk"] += 1
            raise Refused("disk", f"the job cannot be written down, so it is not taken: {error}") from error
        job = Job(replace(request, vanilla=()), digest, seq, self.kinds.of(request.kind), now, deadline)
        job.made = dict(record.made) if record is not None else {}
        self.jobs[job.id] = job
        log.info("job enqueued job_id=%s proof_kind=%s priority=%s queue_position=%d", job.id, job.kind.name,
                 job.priority.name.capitalize(), self.position(job))  # fmt: skip
        self.wake.set()
        return job, None

    def _join(self, job: Job, priority: Priority, deadline: float | None) -> None:
        """The same request again: it can be more urgent, and is wanted as long as the one who waits longest wants it."""
        later = None if deadline is None or job.deadline_at_s is None else max(deadline, job.deadline_at_s)
        job.deadline_at_s = later
        if priority > job.priority:
            job.request = replace(job.request, priority=priority)
        self.metrics.joined += 1
        self.wake.set()

    async def wait(self, job_id: str, timeout_s: float | None = None) -> Record | None:
        """Until the job has ended. None: there is no such job. A record without an end: it has not ended, because the time is up
        or the service stops."""
        job = self.jobs.get(job_id)
        if job is not None:
            return await self.wait_for(job, timeout_s)
        found: Record | None = await aside(self.disk, self.journal.find, job_id)
        return found

    async def wait_for(self, job: Job, timeout_s: float | None = None) -> Record:
        """The same as `wait`, for a job that is at hand."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await job.over.wait()
        return Record(job.request, job.digest, job.seq, job.submitted_s, job.deadline_at_s, job.ended, dict(job.made))

    async def cancel(self, job_id: str) -> bool | None:
        """Whether it was running; None: there is no such job. One that has ended stays as it is."""
        job = self.jobs.get(job_id)
        if job is None:
            return None if await aside(self.disk, self.journal.find, job_id) is None else False
        was_running = job.phase is Phase.RUNNING
        self._call_off(job, Cancelled("cancelled by a client"))
        return was_running

    def _call_off(self, job: Job, why: BaseException) -> None:
        if job.why_cancelled is None:
            job.why_cancelled = why
        job.cancel.set()
        if job.phase in (Phase.QUEUED, Phase.READY):
            self.spawn(self._runner.end_failed(job, why))
        self.wake.set()

    async def preload(self, circuit_id: str) -> float:
        """Seconds that it took; 0.0 if it was there. Raises InputError."""
        return await asyncio.to_thread(self.prover.load, circuit_id)

    async def evict(self, circuit_id: str) -> int | None:
        """Bytes that went, None if it was not there. Raises InUse."""
        return await asyncio.to_thread(self.prover.evict, circuit_id)

    def position(self, job: Job) -> int:
        """Jobs that will start before it."""
        return sum(other.rank < job.rank for other in self.jobs.values() if other.phase not in (Phase.RUNNING, Phase.ENDED))

    # ------------------------------------------------------------------ the queue

    def _running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.phase is Phase.RUNNING]

    async def _schedule(self) -> None:
        while True:
            self.wake.clear()
            self._expire()
            if not self.draining:
                self._read_ahead()
                await self._start_what_fits()
            self._look_ahead()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_next_deadline()):
                    await self.wake.wait()

    def _expire(self) -> None:
        now = self.clock()
        for job in list(self.jobs.values()):
            if job.deadline_at_s is not None and job.deadline_at_s <= now and job.why_cancelled is None and job.ended is None:
                late = f"the deadline was {job.deadline_at_s - job.submitted_s:.1f} s after submission"
                self._call_off(job, Expired(f"{late}, and {len(job.made)} of {job.partitions or '?'} partitions are done"))

    def _until_next_deadline(self) -> float | None:
        times = [job.deadline_at_s for job in self.jobs.values() if job.deadline_at_s and job.why_cancelled is None]
        return max(0.01, min(times) - self.clock()) if times else None

    def _waiting(self) -> list[Job]:
        """In the order in which they go."""
        phases = (Phase.QUEUED, Phase.PREPARING, Phase.READY)
        return sorted((j for j in self.jobs.values() if j.phase in phases and j.why_cancelled is None), key=lambda j: j.rank)

    def _read_ahead(self) -> None:
        """Inputs of the next jobs are read: urgent ones at once, so that a winning ticket never waits behind 50 MB of another."""
        ahead = 0
        for job in self._waiting():
            urgent = job.priority >= Priority.HIGH
            ahead += not urgent
            if job.phase is Phase.QUEUED and (urgent or ahead <= self.limits.prepared):
                job.phase = Phase.PREPARING
                self.spawn(self._runner.prepare(job))

    async def _start_what_fits(self) -> None:
        """Strictly in order, except that a job whose input is still being read does not keep an idle machine from the next."""
        for job in self._waiting():
            running = self._running()
            if len(running) >= max(1, self.prover.width):
                job.waits_for = f"{len(running)} job(s) that run"
                return
            if job.phase is not Phase.READY:
                continue
            load = Load(job.id, job.scenario, len(job.missing), int(job.priority), job.circuit_id)
            beside = [Load(other.id, None, len(other.missing), int(other.priority), other.circuit_id) for other in running]
            verdict = await asyncio.to_thread(self.forecaster.fits, load, beside)
            if job.phase is not Phase.READY or job.why_cancelled is not None:
                continue  # called off meanwhile
            if verdict.never is not None:
                self.spawn(self._runner.end_failed(job, verdict.never))
                continue
            if not verdict.now:
                job.waits_for = verdict.why
                return  # nobody overtakes: memory that comes free is his
            job.phase, job.waits_for = Phase.RUNNING, ""
            job.predicted_at_start = verdict.predicted
            if verdict.events:
                self.live.predict(job.id, verdict.events)
            self.spawn(self._runner.run(job))

    def _look_ahead(self) -> None:
        """A forecast when something has changed, one at a time."""
        open_jobs = sorted((j for j in self.jobs.values() if j.phase in (Phase.READY, Phase.RUNNING)), key=lambda j: j.rank)
        open_jobs.sort(key=lambda j: j.phase is not Phase.RUNNING)
        asked = tuple((job.id, job.phase, len(job.missing)) for job in open_jobs)
        if open_jobs and asked != self._forecast_of and not self._forecasting:
            self._forecast_of, self._forecasting = asked, True
            self.spawn(self._forecast(open_jobs))

    async def _forecast(self, open_jobs: list[Job]) -> None:
        """When everybody will be done, by the simulator."""
        loads = [Load(j.id, None, len(j.missing), int(j.priority), j.circuit_id) for j in open_jobs if j.missing]
        said = self.clock()
        try:
            found = await asyncio.to_thread(self.forecaster.when, loads)
        finally:
            self._forecasting = False
        for job in open_jobs:
            if (band := found.get(job.id)) is not None:
                job.forecast = {"p50_s": round(band[0], 3), "p95_s": round(band[1], 3), "said_s": said}
                if job.deadline_at_s is not None:
                    job.forecast["meets_deadline"] = said + band[1] <= job.deadline_at_s
        self.wake.set()

    # ------------------------------------------------------------------ small things

    def _job_of(self, record: Record) -> Job:
        job = Job(record.request, record.digest, record.seq, self.kinds.of(record.request.kind), record.submitted_s,
                  record.deadline_at_s)  # fmt: skip
        job.made = dict(record.made)
        return job

    def degrade(self, why: str) -> None:
        """Something is wrong with the service as a whole."""
        if why != self.degraded:
            log.error("degraded why=%r", why)
        self.degraded = why

    def spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_is_done)
        return task

    def _spawn_for(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _spawned_is_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.degrade(f"internal fault: {chain(task.exception() or CuzkError('?'))}")

"""One job through its life: its input read, its partitions made, the whole verified, its end written down."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cuzk.errors import CuzkError, DeviceLost, InputError, ProofInvalid
from cuzk.service import journal as states
from cuzk.service.failures import Cancelled, Rejected, chain, is_final
from cuzk.service.job import Job, Phase
from cuzk.service.journal import Ended, Record
from cuzk.service.kinds import Statement, require_reader
from cuzk.service.prover import Made, Task

if TYPE_CHECKING:
    from cuzk.service.service import Service

log = logging.getLogger("cuzk.service")
DISK = "the journal"
"""The first words of what is wrong with the service while that is its disk."""


class Left(CuzkError):
    """The service stops; the job is the next one's."""


async def aside(pool: ThreadPoolExecutor, call: Callable[..., Any], *args: Any) -> Any:
    """The call in a thread of the pool."""
    return await asyncio.get_running_loop().run_in_executor(pool, call, *args)


class Runner:
    """Takes a job through its life once it is its turn."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def prepare(self, job: Job) -> None:
        service = self.service
        began = time.monotonic()
        try:
            with contextlib.suppress(sqlite3.Error):
                await aside(service.disk, service.journal.begin, job.id)
            statement, scenario, load_s = await aside(service.readers, self._read, job)
        except Exception as error:
            await self.end_failed(job, job.why_cancelled or error)
            return
        job.prepare_s += max(0.0, time.monotonic() - began - load_s)
        job.load_s += load_s
        if job.why_cancelled is not None:
            await self.end_failed(job, job.why_cancelled)
            return
        job.statement, job.scenario = statement, scenario
        job.circuit_id, job.partitions = statement.circuit_id, statement.partitions
        job.made = {number: proof for number, proof in job.made.items() if number < job.partitions}
        job.phase = Phase.READY
        service.wake.set()

    def _read(self, job: Job) -> tuple[Statement, Any, float]:
        """The checked input, the scenario of a run of it, and the seconds that loading its key took."""
        service = self.service
        record = Record(job.request, job.digest, job.seq, job.submitted_s, job.deadline_at_s, None)
        read = require_reader(job.kind)
        request = service.journal.request_with_input(record)
        try:
            statement = read(request)
        except InputError as error:
            raise Rejected(str(error)) from error
        load_s = service.prover.load(statement.circuit_id)
        return statement, service.prover.scenario_of(statement), load_s

    async def run(self, job: Job) -> None:
        service = self.service
        loop = asyncio.get_running_loop()
        statement = job.statement
        assert statement is not None
        service.live.begin(job.id)

        def on_made(made: Made) -> None:
            try:
                service.journal.made(job.id, made.partition, made.proof, round(1000 * made.synth_s), round(1000 * made.gpu_s))
            except sqlite3.Error as error:
                loop.call_soon_threadsafe(service.degrade, f"{DISK} cannot be written: {error}")
            loop.call_soon_threadsafe(self._made, job, made)

        def on_begin() -> None:
            loop.call_soon_threadsafe(self._begun, job)

        error: BaseException | None = None
        for attempt in range(service.limits.attempts):
            task = Task(job.id, statement, job.missing, on_made, on_begin, int(job.priority), job.cancel.is_set,
                        service.live.sink(job.id))  # fmt: skip
            try:
                if task.partitions:
                    job.load_s += await aside(service.runners, service.prover.load, job.circuit_id)
                    await aside(service.runners, service.prover.prove, task)
                    await asyncio.sleep(0)  # what the threads have handed over arrives first
                proofs = [job.made[number] for number in range(job.partitions)]
                bad = await aside(service.runners, service.prover.bad_partitions, statement, proofs)
                if not bad:
                    await self.end(job, job.end_as(states.COMPLETED, proof=b"".join(proofs)))
                    return
                error = ProofInvalid(f"partition(s) {bad} do not verify under the sector's public inputs")
                for number in bad:
                    del job.made[number]
                with contextlib.suppress(sqlite3.Error):
                    await aside(service.disk, service.journal.forget_partitions, job.id, bad)
            except (ProofInvalid, DeviceLost) as raised:
                error = raised
            except BaseException as raised:
                error = raised
                break
            job.retries += len(job.missing)
            service.metrics.proved_again += len(job.missing)
            log.warning("attempt failed job_id=%s attempt=%d missing=%s why=%r", job.id, attempt + 1, job.missing, chain(error))
            if isinstance(error, DeviceLost) and not service.prover.slots():
                service.degrade(f"no device is left: {error}")
                break
        await self.end_failed(job, job.why_cancelled if job.why_cancelled is not None else error or CuzkError("no attempt"))

    def _begun(self, job: Job) -> None:
        if job.began is None:
            job.began = time.monotonic()

    def _made(self, job: Job, made: Made) -> None:
        service = self.service
        if made.partition in job.made:
            return
        self._begun(job)
        job.made[made.partition] = made.proof
        job.spent_ms[made.partition] = (round(1000 * made.synth_s), round(1000 * made.gpu_s))
        job.synth_s += made.synth_s
        job.gpu_s += made.gpu_s
        service.metrics.partitions += 1
        log.info("partition GPU prove complete job_id=%s partition=%d gpu_ms=%d filled=%d", job.id, made.partition,
                 round(1000 * made.gpu_s), len(job.made) == job.partitions)  # fmt: skip

    async def end_failed(self, job: Job, error: BaseException) -> None:
        if isinstance(error, Left):  # the service stops, the job does not
            job.phase = Phase.QUEUED
            return
        if isinstance(error, Cancelled):
            await self.end(job, job.end_as(states.CANCELLED, error=str(error)))
            return
        text = chain(error)
        if not isinstance(error, CuzkError):
            log.error("fault job_id=%s", job.id, exc_info=error)
        if isinstance(error, ProofInvalid):
            text = _self_check(job, text)
        await self.end(job, job.end_as(states.FAILED, error=text, final=is_final(error)))

    async def end(self, job: Job, end: Ended) -> None:
        """Once only, whoever comes first."""
        service = self.service
        if job.ended is not None:
            return
        job.ended = end = replace(end, ended_s=service.clock())
        job.phase = Phase.ENDED
        keep = end.state == states.FAILED and job.statement is not None
        try:
            await aside(service.disk, service.journal.ended, job.id, job.digest, end, keep)
            if service.degraded.startswith(DISK):
                service.degraded = ""  # it can be written again
            if keep:
                await aside(service.disk, service.journal.sweep_inputs, service.limits.failed_inputs)
        except (OSError, sqlite3.Error) as error:
            # the result still goes to whoever waits; after a restart the job is open again, with its partitions
            service.degrade(f"{DISK} cannot be written (the end of job {job.id}): {error}")
        job.statement = None
        service.jobs.pop(job.id, None)
        service.recent.appendleft(job)
        service.live.end(job.id)
        service.metrics.count(job, end)
        level = log.info if end.state == states.COMPLETED else log.warning
        times = (
            f"total_ms={end.total_ms} queue_ms={end.queue_ms} srs_ms={end.load_ms} synth_ms={end.synth_ms} gpu_ms={end.gpu_ms}"
        )
        level("job ended job_id=%s state=%s proof_len=%d %s error=%r", job.id, end.state, len(end.proof), times, end.error)
        job.over.set()
        service.wake.set()


def _self_check(job: Job, text: str) -> str:
    """With the daemon's first words, which people look for."""
    if job.kind.number != 1:
        return f"proof self-check failed: {text}"
    whose = f"(sector={job.request.sector_number}, miner={job.request.miner})"
    return f"PoRep proof self-check failed: assembled proof did not verify {whose}: {text}"

"""The service itself: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter

import pytest

from cuzk.errors import CuzkError, DeviceLost, ProofInvalid
from cuzk.service.failures import NeverFits
from cuzk.service.forecast import Fit, Forecaster, Load
from cuzk.service.job import Phase
from cuzk.service.request import Priority, Refused
from cuzk.service.service import Limits

from .support import Gate, ToyProver, ToyStatement, request, running


async def ended(service, job_id, timeout_s=10.0):
    record = await service.wait(job_id, timeout_s)
    assert record is not None
    assert record.ended is not None, f"{job_id} has not ended"
    return record.ended


def proof_of(text: str) -> bytes:
    toy = ToyStatement(text, int(text.partition(":")[0]))
    return b"".join(toy.proof(n) for n in range(toy.partitions))


def test_a_job_comes_out_in_the_order_of_its_partitions(tmp_path):
    async def main():
        prover = ToyProver()
        async with running(prover, tmp_path) as service:
            await service.submit(request("a", "3:x"))
            end = await ended(service, "a")
            assert end.state == "completed" and end.proof == proof_of("3:x")
            assert end.synth_ms == 1500 and end.gpu_ms == 750  # sums
        assert prover.made == [("a", 0), ("a", 1), ("a", 2)]

    asyncio.run(main())


def test_the_same_request_again_joins_and_later_gets_the_stored_result(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate)
        async with running(prover, tmp_path) as service:
            submitted = await asyncio.gather(*(service.submit(request("a")) for _ in range(8)))
            assert len({id(job) for job, _ in submitted}) == 1
            await gate.wait()
            assert (await service.submit(request("a", priority=Priority.HIGH)))[0] is submitted[0][0]
            assert submitted[0][0].priority is Priority.HIGH
            gate.let()
            assert (await ended(service, "a")).state == "completed"
            job, record = await service.submit(request("a"))
            assert job is None and record.ended.proof == proof_of("1:x")
        assert prover.made == [("a", 0)]
        # and across a restart
        async with running(prover, tmp_path) as service:
            job, record = await service.submit(request("a"))
            assert job is None and record.ended.proof == proof_of("1:x")
            assert (await ended(service, "a")).proof == proof_of("1:x")
        assert prover.made == [("a", 0)]

    asyncio.run(main())


def test_an_open_id_with_other_content_is_refused_and_an_ended_one_is_a_new_job(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate), tmp_path) as service:
            await service.submit(request("a", "1:x"))
            with pytest.raises(Refused, match="another job that has not ended"):
                await service.submit(request("a", "1:y"))
            with pytest.raises(Refused, match="another job"):
                await service.submit(request("a", "1:x", miner=7))
            gate.let(2)
            assert (await ended(service, "a")).proof == proof_of("1:x")
            await service.submit(request("a", "1:y"))
            assert (await ended(service, "a")).proof == proof_of("1:y")

    asyncio.run(main())


def test_a_killed_service_is_taken_up_and_no_finished_partition_is_made_again(tmp_path):
    async def main():
        gate = Gate()
        first = ToyProver(step=gate)
        async with running(first, tmp_path, patience_s=0.0) as service:
            await service.submit(request("a", "4:x"))
            gate.let(2)
            for _ in range(3):
                await gate.wait()
        assert first.made == [("a", 0), ("a", 1)]
        second = ToyProver()
        async with running(second, tmp_path) as service:
            end = await ended(service, "a")
            assert end.state == "completed" and end.proof == proof_of("4:x")
        assert second.made == [("a", 2), ("a", 3)]
        assert list((tmp_path / "inputs").iterdir()) == []

    asyncio.run(main())


def test_a_partition_that_was_damaged_on_disk_is_made_again(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate), tmp_path, patience_s=0.0) as service:
            await service.submit(request("a", "2:x"))
            gate.let()
            for _ in range(2):
                await gate.wait()
        with sqlite3.connect(tmp_path / "journal.sqlite") as db:
            db.execute("UPDATE partitions SET proof=? WHERE number=0", (bytes(192),))
        prover = ToyProver()
        async with running(prover, tmp_path) as service:
            assert (await ended(service, "a")).proof == proof_of("2:x")
        assert sorted(prover.made) == [("a", 0), ("a", 1)]

    asyncio.run(main())


def test_a_partition_that_does_not_verify_is_proved_again_the_others_are_kept(tmp_path):
    async def main():
        prover = ToyProver(wrong={("a", 1)})
        async with running(prover, tmp_path) as service:
            await service.submit(request("a", "3:x"))
            assert (await ended(service, "a")).proof == proof_of("3:x")
            assert service.metrics.proved_again == 1
        assert Counter(prover.made) == {("a", 0): 1, ("a", 1): 2, ("a", 2): 1}

    asyncio.run(main())


@pytest.mark.parametrize("error", [ProofInvalid("the pairing says no"), DeviceLost(0, "sticky")])
def test_attempts_are_bounded_and_the_error_says_why(tmp_path, error):
    async def main():
        calls = []

        def step(task, partition):
            calls.append(partition)
            raise error

        async with running(ToyProver(step=step), tmp_path) as service:
            await service.submit(request("a", "2:x"))
            end = await ended(service, "a")
            assert end.state == "failed" and str(error) in end.error and not end.final
        assert len(calls) == 3

    asyncio.run(main())


def test_wrong_input_fails_at_once_and_is_remembered(tmp_path):
    async def main():
        prover = ToyProver()
        async with running(prover, tmp_path) as service:
            await service.submit(request("a", "rubbish"))
            end = await ended(service, "a")
            assert end.state == "failed" and end.final and end.error.startswith("C1 parse failed: byte 0")
            job, record = await service.submit(request("a", "rubbish"))
            assert job is None and record.ended.error == end.error
            await service.submit(request("b", kind=2))
            assert "not proved here" in (await ended(service, "b")).error
        assert prover.made == []

    asyncio.run(main())


def test_a_transient_failure_is_tried_again_with_what_was_finished(tmp_path):
    async def main():
        fail = [True]

        def step(task, partition):
            if partition == 1 and fail[0]:
                raise CuzkError("the lights went out")

        prover = ToyProver(step=step)
        async with running(prover, tmp_path) as service:
            await service.submit(request("a", "3:x"))
            assert "lights" in (await ended(service, "a")).error
            fail[0] = False
            job, record = await service.submit(request("a", "3:x"))
            assert record is None and job is not None
            assert (await ended(service, "a")).proof == proof_of("3:x")
        assert prover.made == [("a", 0), ("a", 1), ("a", 2)]

    asyncio.run(main())


def test_cancel_waiting_and_running(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate)
        async with running(prover, tmp_path) as service:
            await service.submit(request("a", "3:x"))
            await gate.wait()
            await service.submit(request("b"))
            assert await service.cancel("b") is False
            assert (await ended(service, "b")).state == "cancelled"
            assert await service.cancel("a") is True
            assert (await ended(service, "a")).state == "cancelled"
            assert await service.cancel("a") is False
            assert await service.cancel("never") is None
            await service.submit(request("c"))
            gate.let(9)
            assert (await ended(service, "c")).state == "completed"
        assert prover.made == [("c", 0)]

    asyncio.run(main())


def test_a_deadline_ends_waiting_and_running_jobs(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate), tmp_path) as service:
            await service.submit(request("a", deadline_s=0.4))
            await gate.wait()
            await service.submit(request("b", deadline_s=0.1))
            for job in ("b", "a"):
                end = await ended(service, job)
                assert end.state == "failed" and "deadline" in end.error and not end.final

    asyncio.run(main())


def test_the_urgent_go_first_then_who_came_first(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate)
        async with running(prover, tmp_path) as service:
            await service.submit(request("first"))
            await gate.wait()
            for job, priority in (("low", 1), ("n1", 2), ("n2", 0), ("high", 3), ("n3", 2)):
                await service.submit(request(job, priority=Priority(priority)))
            await service.submit(request("win", kind=4))
            gate.let(99)
            for job in ("low", "n3"):
                await ended(service, job)
        assert [job for job, _ in prover.made] == ["first", "win", "high", "n1", "n2", "n3", "low"]

    asyncio.run(main())


def test_no_more_jobs_than_the_limit(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate), tmp_path, limits=Limits(jobs=2, request_bytes=100)) as service:
            await service.submit(request("a"))
            await service.submit(request("b"))
            with pytest.raises(Refused, match="2 jobs are open"):
                await service.submit(request("c"))
            await service.submit(request("a"))  # joins
            with pytest.raises(Refused, match="100 are taken"):
                await service.submit(request("d", "1:" + "x" * 200))
            gate.let(9)

    asyncio.run(main())


def test_a_full_disk_refuses_and_leaves_nothing(tmp_path, monkeypatch):
    async def main():
        prover = ToyProver()
        async with running(prover, tmp_path) as service:

            def full(*args):
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("cuzk.service.journal.os.fsync", full)
            with pytest.raises(Refused, match="No space left"):
                await service.submit(request("a"))
            assert service.jobs == {} and list((tmp_path / "inputs").iterdir()) == []
            monkeypatch.undo()
            await service.submit(request("a"))
            assert (await ended(service, "a")).state == "completed"

    asyncio.run(main())


def test_a_journal_that_fails_in_the_middle_loses_no_proof(tmp_path, monkeypatch):
    async def main():
        async with running(ToyProver(), tmp_path) as service:

            def full(*args):
                raise sqlite3.OperationalError("database or disk is full")

            monkeypatch.setattr(service.journal, "made", full)
            monkeypatch.setattr(service.journal, "ended", full)
            job, _ = await service.submit(request("a", "2:x"))
            await asyncio.wait_for(job.over.wait(), 10)
            assert job.ended.proof == proof_of("2:x") and "disk is full" in service.degraded
            monkeypatch.undo()
            await service.submit(request("b"))
            await ended(service, "b")
            assert service.degraded == ""
        prover = ToyProver()
        async with running(prover, tmp_path) as service:  # it was never written down, so it is done again
            assert (await ended(service, "a")).proof == proof_of("2:x")

    asyncio.run(main())


def test_the_same_request_while_its_end_is_written_down_is_not_made_twice(tmp_path, monkeypatch):
    async def main():
        prover = ToyProver()
        async with running(prover, tmp_path) as service:
            real = service.journal.ended

            def slow(*args):
                time.sleep(0.3)
                real(*args)

            monkeypatch.setattr(service.journal, "ended", slow)
            job, _ = await service.submit(request("a", "2:x"))
            while job.ended is None:
                await asyncio.sleep(0.005)
            again, record = await service.submit(request("a", "2:x"))
            assert again is None and record.ended.proof == proof_of("2:x")
        assert prover.made == [("a", 0), ("a", 1)]

    asyncio.run(main())


def test_drain_finishes_what_runs_starts_nothing_and_takes_nothing(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate)
        async with running(prover, tmp_path) as service:
            running_job, _ = await service.submit(request("a", "2:x"))
            await gate.wait()
            await service.submit(request("b"))
            draining = asyncio.create_task(service.drain(10.0))
            await asyncio.sleep(0)
            with pytest.raises(Refused, match="shutting down"):
                await service.submit(request("c"))
            gate.let(9)
            await draining
            assert running_job.ended.state == "completed"
        assert prover.made == [("a", 0), ("a", 1)]
        async with running(prover, tmp_path) as service:
            assert (await ended(service, "b")).state == "completed"
            assert await service.wait("c") is None

    asyncio.run(main())


def test_a_job_that_kills_the_service_again_and_again_is_given_up(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate), tmp_path, patience_s=0.0) as service:
            await service.submit(request("a"))
            await gate.wait()
        with sqlite3.connect(tmp_path / "journal.sqlite") as db:
            assert db.execute("SELECT begun FROM jobs").fetchone() == (0,)  # an orderly end is not its fault
            db.execute("UPDATE jobs SET begun=3")
        async with running(ToyProver(), tmp_path) as service:
            assert "killed 3 times" in (await ended(service, "a")).error

    asyncio.run(main())


class Strict(Forecaster):
    """Two jobs of 'toy' do not fit side by side; 9 partitions never fit."""

    def fits(self, load: Load, beside: list[Load]) -> Fit:
        if load.partitions == 9:
            return Fit(False, never=NeverFits("toy can never run here: ram needs 9.0 GiB of 4.0 GiB"))
        return Fit(not beside, "memory beside the 1 job(s) that run" if beside else "")

    def when(self, loads: list[Load]) -> dict[str, tuple[float, float]]:
        return {load.job_id: (load.partitions, 2.0 * load.partitions) for load in loads}


def test_what_does_not_fit_waits_and_what_never_fits_fails_with_the_numbers(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate, width=2)
        async with running(prover, tmp_path, forecaster=Strict()) as service:
            await service.submit(request("a", "2:a"))
            await gate.wait()
            job, _ = await service.submit(request("b", "2:b"))
            await service.submit(request("huge", "9:c", priority=Priority.HIGH))
            end = await ended(service, "huge")
            assert end.state == "failed" and "9.0 GiB of 4.0 GiB" in end.error
            for _ in range(100):
                if job.waits_for and job.forecast:
                    break
                await asyncio.sleep(0.02)
            assert job.phase is Phase.READY and "memory" in job.waits_for and job.forecast["p95_s"] == 4.0
            gate.let(9)
            assert (await ended(service, "b")).state == "completed"

    asyncio.run(main())


def test_two_at_once_where_the_prover_takes_two(tmp_path):
    async def main():
        gate = Gate()
        async with running(ToyProver(step=gate, width=2), tmp_path) as service:
            await service.submit(request("a", "1:a"))
            await service.submit(request("b", "1:b"))
            await gate.wait()
            await gate.wait()
            gate.let(2)
            for job in "ab":
                assert (await ended(service, job)).state == "completed"

    asyncio.run(main())

"""The eight calls, over TCP and a unix socket, on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import grpc.aio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.service.proto import cuzk_pb2 as pb
from cuzk.service.service import Limits

from .support import Client, Gate, ToyProver, serving
from .test_service import proof_of

STATUS = pb.AwaitProofResponse


@contextlib.asynccontextmanager
async def refused(code: grpc.StatusCode, text: str = ""):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield
    assert caught.value.code() is code
    assert text in caught.value.details()


def test_prove_as_curio_asks_for_it(tmp_path):
    async def main():
        async with serving(ToyProver(), tmp_path) as (_, client):
            asked = {"sector_size": 32 << 30, "registered_proof": 8, "priority": 2, "sector_number": 7, "miner_id": 1000}
            found = await client.prove("porep-1000-7", "3:x", **asked)
            assert (found.job_id, found.status, found.proof) == ("porep-1000-7", STATUS.COMPLETED, proof_of("3:x"))
            assert found.synthesis_ms == 1500 and found.gpu_compute_ms == 750 and found.error_message == ""
            assert await client.prove("porep-1000-7", "3:x", **asked) == found
            made_up = await client.prove("", "1:x")
            assert len(made_up.job_id) == 36 and made_up.status == STATUS.COMPLETED

    asyncio.run(main())


def test_what_is_wrong_with_a_job_is_a_reply(tmp_path):
    async def main():
        async with serving(ToyProver(), tmp_path) as (_, client):
            found = await client.prove("a", "rubbish")
            assert found.status == STATUS.FAILED and found.error_message.startswith("C1 parse failed: ") and found.proof == b""
            found = await client.prove("b", kind=2)
            assert found.status == STATUS.FAILED and "snap-update is not proved here" in found.error_message

    asyncio.run(main())


def test_codes_for_what_is_not_taken_on(tmp_path):
    async def main():
        gate = Gate()
        async with serving(ToyProver(step=gate), tmp_path, limits=Limits(jobs=2)) as (_, client):
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "invalid proof_kind: 0"):
                await client.prove("a", kind=0)
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "invalid proof_kind: 99"):
                await client.prove("a", kind=99)
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "missing submit field"):
                await client.calls["Prove"](pb.ProveRequest())
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "commas"):
                await client.prove("a,b")
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "randomness: 32 bytes"):
                await client.prove("a", randomness=b"short")
            async with refused(grpc.StatusCode.NOT_FOUND, "job not found: nobody"):
                await client.calls["AwaitProof"](pb.AwaitProofRequest(job_id="nobody"))
            async with refused(grpc.StatusCode.INTERNAL, "unknown circuit ID: ../../etc/passwd"):
                await client.calls["PreloadSRS"](pb.PreloadSrsRequest(circuit_id="../../etc/passwd"))
            submit = client.calls["SubmitProof"]
            for job in "ab":
                await submit(pb.SubmitProofRequest(request_id=job, proof_kind=1, vanilla_proof=b"1:x"))
            async with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "jobs are open"):
                await client.prove("c")
            async with refused(grpc.StatusCode.INVALID_ARGUMENT, "other content"):
                await client.prove("a", "1:y")
            async with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
                await client.prove("big", "1:" + "x" * (1 << 20))
            gate.let(9)

    asyncio.run(main())


def test_await_with_and_without_a_timeout(tmp_path):
    async def main():
        gate = Gate()
        async with serving(ToyProver(step=gate), tmp_path) as (_, client):
            answer = await client.calls["SubmitProof"](pb.SubmitProofRequest(request_id="a", proof_kind=1, vanilla_proof=b"1:x"))
            assert (answer.job_id, answer.queue_position, answer.assigned_gpu) == ("a", 0, "")
            wait = client.calls["AwaitProof"]
            assert (await wait(pb.AwaitProofRequest(job_id="a", timeout_ms=30))).status == STATUS.TIMEOUT
            waiting = asyncio.ensure_future(wait(pb.AwaitProofRequest(job_id="a")))
            gate.let()
            assert (await waiting).proof == proof_of("1:x")
            assert (await wait(pb.AwaitProofRequest(job_id="a", timeout_ms=2**64 - 1))).proof == proof_of("1:x")

    asyncio.run(main())


def test_a_client_that_goes_away_loses_nothing(tmp_path):
    async def main():
        gate = Gate()
        prover = ToyProver(step=gate)
        async with serving(prover, tmp_path) as (_, client):
            asked = pb.ProveRequest(submit=pb.SubmitProofRequest(request_id="a", proof_kind=1, vanilla_proof=b"2:x"))
            async with refused(grpc.StatusCode.DEADLINE_EXCEEDED):
                await client.calls["Prove"](asked, timeout=0.2)
            retry = asyncio.ensure_future(client.prove("a", "2:x"))
            gate.let(9)
            assert (await retry).proof == proof_of("2:x")
        assert prover.made == [("a", 0), ("a", 1)]

    asyncio.run(main())


def test_cancel_evict_preload_status_metrics(tmp_path):
    async def main():
        gate = Gate()
        async with serving(ToyProver(step=gate), tmp_path) as (_, client):
            calls = client.calls
            proving = asyncio.ensure_future(client.prove("a"))
            await gate.wait()
            await calls["SubmitProof"](pb.SubmitProofRequest(request_id="b", proof_kind=4, vanilla_proofs=[b"1:y"]))
            status = await calls["GetStatus"](pb.GetStatusRequest())
            queues = {queue.proof_kind: (queue.pending, queue.in_progress) for queue in status.queues}
            assert queues == {"porep-c2": (0, 1), "snap-update": (0, 0), "winning-post": (1, 0)}
            assert [gpu.current_job_id for gpu in status.gpus] == ["a"]
            assert [(key.circuit_id, key.size_bytes, key.ref_count) for key in status.loaded_srs] == [("toy", 17, 1)]
            async with refused(grpc.StatusCode.FAILED_PRECONDITION, "in use"):
                await calls["EvictSRS"](pb.EvictSrsRequest(circuit_id="toy"))
            assert (await calls["CancelProof"](pb.CancelProofRequest(job_id="a"))).was_running
            assert (await proving).status == STATUS.CANCELLED
            async with refused(grpc.StatusCode.NOT_FOUND):
                await calls["CancelProof"](pb.CancelProofRequest(job_id="nobody"))
            gate.let(9)
            await calls["AwaitProof"](pb.AwaitProofRequest(job_id="b"))
            found = await calls["EvictSRS"](pb.EvictSrsRequest(circuit_id="toy"))
            assert found.was_loaded and found.freed_bytes == 17
            assert not (await calls["EvictSRS"](pb.EvictSrsRequest(circuit_id="other"))).was_loaded
            assert (await calls["PreloadSRS"](pb.PreloadSrsRequest(circuit_id="toy"))).already_loaded
            text = (await calls["GetMetrics"](pb.GetMetricsRequest())).prometheus_text
            assert "cuzk_proofs_completed_total 1\n" in text and 'cuzk_proofs_completed{proof_kind="winning_post"} 1\n' in text

    asyncio.run(main())


def test_waiters_hear_of_a_shutdown_and_the_job_is_done_by_the_next_service(tmp_path):
    async def main():
        gate = Gate()
        async with serving(ToyProver(step=gate), tmp_path) as (server, client):
            proving = asyncio.ensure_future(client.prove("a", "2:x"))
            await gate.wait()
            await server.stop(0.0)
            async with refused(grpc.StatusCode.UNAVAILABLE):
                await proving
        prover = ToyProver()
        async with serving(prover, tmp_path) as (_, client):
            assert (await client.prove("a", "2:x")).proof == proof_of("2:x")
        assert prover.made == [("a", 0), ("a", 1)]

    asyncio.run(main())


def test_a_token_where_one_is_set(tmp_path):
    async def main():
        async with serving(ToyProver(), tmp_path, token="0123456789abcdef") as (_, client):
            async with refused(grpc.StatusCode.UNAUTHENTICATED, "a token is needed"):
                await client.calls["GetStatus"](pb.GetStatusRequest())
            for given, code in (
                ("Bearer wrong", grpc.StatusCode.UNAUTHENTICATED),
                ("0123456789abcdef", grpc.StatusCode.UNAUTHENTICATED),
            ):
                async with refused(code):
                    await client.calls["GetStatus"](pb.GetStatusRequest(), metadata=[("authorization", given)])
            await client.calls["GetStatus"](pb.GetStatusRequest(), metadata=[("authorization", "Bearer 0123456789abcdef")])

    asyncio.run(main())


def test_a_unix_socket_is_private(tmp_path):
    async def main():
        path = tmp_path / "s" / "cuzk.sock"
        async with serving(ToyProver(), tmp_path / "state", path=str(path)) as (_, client):
            assert path.stat().st_mode & 0o007 == 0
            assert (await client.prove("a")).status == STATUS.COMPLETED

    asyncio.run(main())


def test_whatever_bytes_come_the_service_answers_and_lives(tmp_path):
    """Requests of no message, of wrong types and odd values: an answer or a code, and the next proof still comes out."""
    small = st.integers(0, 2**64 - 1)
    messages = st.builds(
        pb.SubmitProofRequest, request_id=st.text(max_size=300), proof_kind=st.sampled_from([0, 1, 2, 3, 4, 7]),
        priority=st.sampled_from([0, 1, 4, 9, -1]), vanilla_proof=st.binary(max_size=200), sector_number=small, miner_id=small,
        vanilla_proofs=st.lists(st.binary(max_size=20), max_size=4), randomness=st.binary(max_size=40), registered_proof=small,
        comm_r_old=st.binary(max_size=33), partition_index=st.integers(0, 2**32 - 1),
    )  # fmt: skip
    good = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INTERNAL,
            grpc.StatusCode.RESOURCE_EXHAUSTED}  # fmt: skip

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def fuzz(data):
        call = data.draw(st.sampled_from(sorted(Client.CALLS)))
        message = data.draw(messages)
        body = data.draw(st.one_of(
            st.binary(max_size=100), st.just(message.SerializeToString()),
            st.just(pb.ProveRequest(submit=message).SerializeToString()),
        ))  # fmt: skip

        async def ask():
            try:
                await asyncio.wait_for(client.raw[call](body), 10)
            except grpc.aio.AioRpcError as error:
                # bytes that are no message are refused by the library itself
                assert error.code() in good, error

        loop.run_until_complete(ask())

    loop = asyncio.new_event_loop()
    try:
        stack = contextlib.AsyncExitStack()
        _, client = loop.run_until_complete(stack.enter_async_context(serving(ToyProver(), tmp_path)))
        fuzz()
        assert loop.run_until_complete(client.prove("after", "2:x")).proof == proof_of("2:x")
        loop.run_until_complete(stack.aclose())
    finally:
        loop.close()

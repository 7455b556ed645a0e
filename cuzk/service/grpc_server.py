"""The gRPC way in: the eight calls of `cuzk.v1.ProvingEngine`, as Curio's client makes them.

Whatever is wrong with a job is a reply with status FAILED; an error code is for requests that are not taken on.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from cuzk.errors import CuzkError
from cuzk.service import journal as states
from cuzk.service.failures import InUse, chain
from cuzk.service.job import Phase
from cuzk.service.journal import Record
from cuzk.service.proto import cuzk_pb2 as pb
from cuzk.service.request import ProofRequest, Refused, new_id, priority_of
from cuzk.service.service import Service

SERVICE = "cuzk.v1.ProvingEngine"
CODES = {
    "invalid": grpc.StatusCode.INVALID_ARGUMENT, "conflict": grpc.StatusCode.INVALID_ARGUMENT,
    "busy": grpc.StatusCode.RESOURCE_EXHAUSTED, "disk": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "draining": grpc.StatusCode.UNAVAILABLE,
}  # fmt: skip
MAX_MS = 1 << 53
_STATUS = {states.COMPLETED: 1, states.FAILED: 2, states.CANCELLED: 3}
_TIMEOUT = 4

Context = Any
"""grpc.aio.ServicerContext; its type has no parameters that help here."""


def options(max_bytes: int) -> list[tuple[str, int]]:
    """Proofs take minutes in which nothing is said: no connection is cut for being idle, pings are taken leniently."""
    return [
        ("grpc.max_receive_message_length", max_bytes), ("grpc.max_send_message_length", max_bytes),
        ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000), ("grpc.so_reuseport", 0),
    ]  # fmt: skip


def make_server(service: Service, *, max_bytes: int, token: str | None = None) -> grpc.aio.Server:
    """A server without ports. With a token every call must bring it: metadata `authorization: Bearer TOKEN`."""
    interceptors = [_Token(token)] if token else []
    server = grpc.aio.server(options=options(max_bytes), interceptors=interceptors, maximum_concurrent_rpcs=4096)
    calls = Calls(service)
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            _guarded(service, getattr(calls, method)), request_deserializer=_parser(request),
            response_serializer=response.SerializeToString,
        )
        for name, method, request, response in (
            ("SubmitProof", "submit_proof", pb.SubmitProofRequest, pb.SubmitProofResponse),
            ("AwaitProof", "await_proof", pb.AwaitProofRequest, pb.AwaitProofResponse),
            ("Prove", "prove", pb.ProveRequest, pb.ProveResponse),
            ("CancelProof", "cancel_proof", pb.CancelProofRequest, pb.CancelProofResponse),
            ("GetStatus", "get_status", pb.GetStatusRequest, pb.GetStatusResponse),
            ("GetMetrics", "get_metrics", pb.GetMetricsRequest, pb.GetMetricsResponse),
            ("PreloadSRS", "preload_srs", pb.PreloadSrsRequest, pb.PreloadSrsResponse),
            ("EvictSRS", "evict_srs", pb.EvictSrsRequest, pb.EvictSrsResponse),
        )
    }  # fmt: skip
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    return server


class _Token(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        given = dict(details.invocation_metadata).get("authorization", "")
        raw = given.encode() if isinstance(given, str) else bytes(given)
        if hmac.compare_digest(raw, self._wanted):
            return await continuation(details)

        async def refuse(request: Any, context: Context) -> Any:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed: metadata authorization: Bearer TOKEN")

        return grpc.unary_unary_rpc_method_handler(refuse)


def _parser(message: Any) -> Callable[[bytes], Any]:
    """Bytes that are no message become the error, for the call to answer with: the library would call it unknown."""

    def parse(data: bytes) -> Any:
        try:
            return message.FromString(data)
        except DecodeError as error:
            return error

    return parse


def _guarded(service: Service, call: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def guarded(request: Any, context: Context) -> Any:
        if isinstance(request, DecodeError):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the request is no message: {request}")
        try:
            return await call(request, context)
        except Refused as error:
            service.metrics.refused[error.reason] += 1
            await context.abort(CODES[error.reason], str(error))
        except InUse as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except CuzkError as error:
            await context.abort(grpc.StatusCode.INTERNAL, chain(error))

    return guarded


class Calls:
    """One method a call; requests are emptied as soon as they are read, for a call can wait for minutes."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def submit_proof(self, request: pb.SubmitProofRequest, context: Context) -> pb.SubmitProofResponse:
        asked = proof_request(request, context)
        request.Clear()
        job, record = await self.service.submit(asked)
        if job is not None:
            return pb.SubmitProofResponse(job_id=job.id, queue_position=self.service.position(job))
        assert record is not None
        return pb.SubmitProofResponse(job_id=record.request.request_id)

    async def prove(self, request: pb.ProveRequest, context: Context) -> pb.ProveResponse:
        if not request.HasField("submit"):
            raise Refused("invalid", "missing submit field")
        asked = proof_request(request.submit, context)
        request.Clear()
        job, record = await self.service.submit(asked)
        del asked
        if record is None:
            assert job is not None
            record = await self.service.wait_for(job)
        return pb.ProveResponse(result=await self._result(record, context))

    async def await_proof(self, request: pb.AwaitProofRequest, context: Context) -> pb.AwaitProofResponse:
        timeout_s = min(request.timeout_ms, MAX_MS) / 1000 if request.timeout_ms else None
        record = await self.service.wait(request.job_id, timeout_s)
        if record is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"job not found: {request.job_id[:256]}")
        return await self._result(record, context, timed=True)

    async def _result(self, record: Record | None, context: Context, timed: bool = False) -> pb.AwaitProofResponse:
        if record is None:
            raise CuzkError("internal error: the job is gone")
        end = record.ended
        if end is None:
            if self.service.draining or not timed:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the service is shutting down; the job goes on when it is back: "
                                                                 "ask again with the same request_id")  # fmt: skip
            return pb.AwaitProofResponse(job_id=record.request.request_id, status=_enum(_TIMEOUT),
                                         error_message="not done yet; the job goes on")  # fmt: skip
        return pb.AwaitProofResponse(
            job_id=record.request.request_id, status=_enum(_STATUS[end.state]), proof=end.proof, error_message=end.error,
            queue_wait_ms=end.queue_ms, srs_load_ms=end.load_ms, synthesis_ms=end.synth_ms, gpu_compute_ms=end.gpu_ms,
            total_ms=end.total_ms,
        )  # fmt: skip

    async def cancel_proof(self, request: pb.CancelProofRequest, context: Context) -> pb.CancelProofResponse:
        was_running = await self.service.cancel(request.job_id)
        if was_running is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"job not found: {request.job_id[:256]}")
        return pb.CancelProofResponse(was_running=bool(was_running))

    async def get_status(self, request: pb.GetStatusRequest, context: Context) -> pb.GetStatusResponse:
        service, jobs = self.service, list(self.service.jobs.values())
        running = [job for job in jobs if job.phase is Phase.RUNNING]
        slots = service.prover.slots()
        gpus = []
        for index, slot in enumerate(slots):
            job = running[index % len(running)] if running else None
            gpus.append(pb.GPUStatus(ordinal=slot.ordinal, name=slot.name, vram_total_bytes=slot.vram_total_bytes,
                                     vram_free_bytes=slot.vram_free_bytes, current_job_id=job.id if job else "",
                                     current_proof_kind=job.kind.name if job else ""))  # fmt: skip
        keys = [pb.SRSStatus(circuit_id=key["circuit_id"], tier=pb.SRSStatus.HOT, size_bytes=key["bytes"], ref_count=key["users"])
                for key in service.prover.loaded()]  # fmt: skip
        queues = [
            pb.QueueStatus(
                proof_kind=kind.name,
                pending=sum(job.kind is kind and job.phase not in (Phase.RUNNING, Phase.ENDED) for job in jobs),
                in_progress=sum(job.kind is kind for job in running),
            )
            for kind in service.kinds
        ]
        return pb.GetStatusResponse(
            gpus=gpus, loaded_srs=keys, queues=queues, total_proofs_completed=sum(service.metrics.completed.values()),
            total_proofs_failed=sum(service.metrics.failed.values()), uptime_seconds=int(service.live.now()),
        )  # fmt: skip

    async def get_metrics(self, request: pb.GetMetricsRequest, context: Context) -> pb.GetMetricsResponse:
        return pb.GetMetricsResponse(prometheus_text=self.service.metrics.text(self.service))

    async def preload_srs(self, request: pb.PreloadSrsRequest, context: Context) -> pb.PreloadSrsResponse:
        took_s = await self.service.preload(request.circuit_id)
        return pb.PreloadSrsResponse(already_loaded=took_s == 0.0, load_time_ms=round(1000 * took_s))

    async def evict_srs(self, request: pb.EvictSrsRequest, context: Context) -> pb.EvictSrsResponse:
        freed = await self.service.evict(request.circuit_id)
        return pb.EvictSrsResponse(was_loaded=freed is not None, freed_bytes=freed or 0)


def _enum(number: int) -> Any:
    return number


def proof_request(message: pb.SubmitProofRequest, context: Context) -> ProofRequest:
    """Raises Refused. Metadata `cuzk-deadline-s` is the job's deadline; that of the call is the client's own affair, for it may
    ask again."""
    deadline_s: float | None = None
    given = dict(context.invocation_metadata() or ()).get("cuzk-deadline-s")
    if given is not None:
        with contextlib.suppress(ValueError):
            deadline_s = float(given)
        if deadline_s is None:
            raise Refused("invalid", "cuzk-deadline-s: must be a number of seconds")
    porep = message.proof_kind == pb.POREP_SEAL_COMMIT
    vanilla = (message.vanilla_proof,) if porep and message.vanilla_proof else tuple(message.vanilla_proofs)
    return ProofRequest(
        message.request_id or new_id(), int(message.proof_kind), miner=message.miner_id, sector_number=message.sector_number,
        sector_size=message.sector_size, registered_proof=message.registered_proof, partition_index=message.partition_index,
        randomness=message.randomness, comm_r_old=message.comm_r_old, comm_r_new=message.comm_r_new,
        comm_d_new=message.comm_d_new, vanilla=vanilla, priority=priority_of(message.priority), deadline_s=deadline_s,
    )  # fmt: skip

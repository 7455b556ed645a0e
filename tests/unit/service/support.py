"""A prover without proofs, a kind of its own, and a service on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import grpc
import grpc.aio

from cuzk.errors import InputError
from cuzk.service.failures import Cancelled, InUse
from cuzk.service.forecast import Forecaster
from cuzk.service.journal import Journal
from cuzk.service.kinds import Kind, Kinds, Statement
from cuzk.service.proto import cuzk_pb2 as pb
from cuzk.service.prover import Made, Slot, Task
from cuzk.service.request import Priority, ProofRequest
from cuzk.service.run import Access, Server
from cuzk.service.service import Limits, Service
from cuzk.service.sockets import Address


@dataclass(frozen=True)
class ToyStatement:
    text: str
    partitions: int
    circuit_id: str = "toy"

    def witness(self, partition: int, circuit: Any) -> Any:
        return self.text

    def public_inputs(self, partition: int) -> list[int]:
        return [partition]

    def proof(self, partition: int) -> bytes:
        return hashlib.sha512(f"{self.text} {partition}".encode()).digest() * 3


def read_toy(request: ProofRequest) -> ToyStatement:
    """`N:anything`: a proof of N partitions; `bad…` is refused."""
    text = b"".join(request.vanilla).decode("utf-8", "replace")
    head, colon, _ = text.partition(":")
    if not colon or not head.isdigit() or not 0 < int(head) < 100:
        raise InputError(f"C1 parse failed: byte 0: {text[:20]!r} is no toy")
    return ToyStatement(text, int(head))


def toy_kinds() -> Kinds:
    return Kinds((
        Kind(1, "porep-c2", "POREP_SEAL_COMMIT", Priority.NORMAL, read_toy),
        Kind(2, "snap-update", "SNAP_DEALS_UPDATE", Priority.NORMAL, None, "its circuit is not built in"),
        Kind(4, "winning-post", "WINNING_POST", Priority.CRITICAL, read_toy),
    ))  # fmt: skip


@dataclass
class ToyProver:
    """Hands over partition after partition. `step` is called before each: it may wait, or raise."""

    width: int = 1
    name: str = "toy"
    step: Callable[[Task, int], None] = lambda task, partition: None
    made: list[tuple[str, int]] = field(default_factory=list)
    """Every partition that was made, in order."""
    wrong: set[tuple[str, int]] = field(default_factory=set)
    """Partitions whose next proof will not verify."""
    users: int = 0
    loads: int = 0
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def prove(self, task: Task) -> None:
        with self.mutex:
            self.users += 1
        try:
            task.on_begin()
            for partition in task.partitions:
                if task.cancelled():
                    raise Cancelled("cancelled")
                self.step(task, partition)
                if task.cancelled():
                    raise Cancelled("cancelled")
                proof = task.statement.proof(partition)  # type: ignore[attr-defined]
                if (task.job_id, partition) in self.wrong:
                    self.wrong.discard((task.job_id, partition))
                    proof = bytes(192)
                self.made.append((task.job_id, partition))
                task.on_made(Made(partition, proof, 0.5, 0.25))
        finally:
            with self.mutex:
                self.users -= 1

    def bad_partitions(self, statement: Statement, proofs: Sequence[bytes]) -> list[int]:
        return [n for n, proof in enumerate(proofs) if proof != statement.proof(n)]  # type: ignore[attr-defined]

    def load(self, circuit_id: str) -> float:
        if circuit_id != "toy":
            raise InputError(f"unknown circuit ID: {circuit_id}")
        self.loads += 1
        return 0.0

    def evict(self, circuit_id: str) -> int | None:
        if self.users:
            raise InUse("in use")
        return 17 if circuit_id == "toy" else None

    def loaded(self) -> list[dict[str, Any]]:
        return [{"circuit_id": "toy", "bytes": 17, "users": self.users, "load_s": 0.0, "idle_s": 0.0}]

    def slots(self) -> list[Slot]:
        return [Slot(0, "toy")]

    def scenario_of(self, statement: Statement) -> Any:
        return None

    def close(self) -> None:
        pass


class Gate:
    """A step that waits until it is let through."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, task: Task, partition: int) -> None:
        self.reached.release()
        for _ in range(400):
            if self.open.acquire(timeout=0.05):
                return
            if task.cancelled():
                return
        raise AssertionError("the gate was never opened")

    async def wait(self) -> None:
        """Until a partition stands at the gate."""
        assert await asyncio.to_thread(self.reached.acquire, True, 10.0)

    def let(self, count: int = 1) -> None:
        self.open.release(count)


def request(job: str, text: str = "1:x", **others: Any) -> ProofRequest:
    return ProofRequest(job, others.pop("kind", 1), vanilla=(text.encode(),), **others)


@contextlib.asynccontextmanager
async def running(prover: ToyProver, state: Path, *, limits: Limits | None = None, forecaster: Forecaster | None = None,
                  patience_s: float = 5.0, **others: Any) -> AsyncIterator[Service]:  # fmt: skip
    service = Service(prover, Journal(state), others.pop("kinds", toy_kinds()), limits=limits, forecaster=forecaster, **others)
    await service.start()
    try:
        yield service
    finally:
        await service.drain(patience_s)
        await service.stop()


@contextlib.asynccontextmanager
async def serving(prover: ToyProver, state: Path, *, token: str | None = None, message_bytes: int = 1 << 20,
                  limits: Limits | None = None, path: str = "") -> AsyncIterator[tuple[Server, Client]]:  # fmt: skip
    listen = Address(path=path) if path else Address("127.0.0.1", 0)
    access = Access(listen, Address("127.0.0.1", 0), token, message_bytes=message_bytes)
    server = Server(prover, Journal(state), access, kinds=toy_kinds(), limits=limits)
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{path}" if path else f"127.0.0.1:{server.port}",
                                         options=[("grpc.max_send_message_length", -1)]) as channel:  # fmt: skip
        try:
            yield server, Client(channel)
        finally:
            await server.stop(2.0)


class Client:
    """The eight calls, from the messages alone."""

    CALLS: ClassVar = {"SubmitProof": (pb.SubmitProofRequest, pb.SubmitProofResponse), "AwaitProof": (pb.AwaitProofRequest,
             pb.AwaitProofResponse), "Prove": (pb.ProveRequest, pb.ProveResponse), "CancelProof": (pb.CancelProofRequest,
             pb.CancelProofResponse), "GetStatus": (pb.GetStatusRequest, pb.GetStatusResponse), "GetMetrics":
             (pb.GetMetricsRequest, pb.GetMetricsResponse), "PreloadSRS": (pb.PreloadSrsRequest, pb.PreloadSrsResponse),
             "EvictSRS": (pb.EvictSrsRequest, pb.EvictSrsResponse)}  # fmt: skip

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.raw = {
            name: channel.unary_unary(f"/cuzk.v1.ProvingEngine/{name}", request_serializer=lambda data: data)
            for name in self.CALLS
        }
        self.calls = {
            name: channel.unary_unary(f"/cuzk.v1.ProvingEngine/{name}", request_serializer=asked.SerializeToString,
                                      response_deserializer=answered.FromString)
            for name, (asked, answered) in self.CALLS.items()
        }  # fmt: skip

    async def prove(self, job: str, text: str = "1:x", **others: Any) -> Any:
        asked = pb.SubmitProofRequest(request_id=job, proof_kind=others.pop("kind", 1), vanilla_proof=text.encode(), **others)
        return (await self.calls["Prove"](pb.ProveRequest(submit=asked), timeout=20)).result

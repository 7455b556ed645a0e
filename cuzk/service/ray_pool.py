"""Provers on other machines, by Ray: one long-lived actor a host holds the keys and the devices, gets partitions, gives 192 bytes
each back.

A host that is lost gives nothing back: its partitions go to another one, or to a fresh actor. What comes twice counts once.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from cuzk.errors import CuzkError, HardwareMissing, InputError, ProofInvalid
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.point_bytes import PointError
from cuzk.groth16.verify import Verifier
from cuzk.service.failures import Cancelled, chain
from cuzk.service.kinds import Statement
from cuzk.service.prover import Made, Slot, Task

if TYPE_CHECKING:
    from cuzk.service.pipeline import PipelineProver

log = logging.getLogger("cuzk.service")
POLL_S = 0.2
LOSSES = 3
"""Times that partitions of one task may be lost with a host before the task is given up."""
MOST_AT_ONCE = 4
"""Partitions that a host gets in one call, so that its pipeline overlaps them."""


class HostSpec(Protocol):
    """The recipe of a host's prover; goes to it by pickle."""

    def prover(self) -> PipelineProver:
        """Called on the host. Raises InputError, HardwareMissing."""


class Host:
    """The actor: lives in a process of its own on its host."""

    def __init__(self, spec: HostSpec) -> None:
        self._spec = spec
        self._mutex = threading.Lock()
        self._cancelled: set[str] = set()

    def open(self) -> list[Slot]:
        """Makes the prover; not in the constructor, whose errors Ray hands on as text."""
        self._prover = self._spec.prover()
        return self._prover.slots()

    def prove(self, job_id: str, statement: Statement, numbers: list[int], priority: int) -> list[Made]:
        made: list[Made] = []
        self._prover.prove(
            Task(job_id, statement, numbers, made.append, priority=priority, cancelled=lambda: job_id in self._cancelled)
        )
        return made

    def cancel(self, job_id: str) -> None:
        with self._mutex:
            self._cancelled.add(job_id)

    def welcome(self, job_id: str) -> None:
        with self._mutex:
            self._cancelled.discard(job_id)

    def load(self, circuit_id: str) -> float:
        return self._prover.load(circuit_id)

    def evict(self, circuit_id: str) -> int | None:
        return self._prover.evict(circuit_id)

    def loaded(self) -> list[dict[str, Any]]:
        return self._prover.loaded()

    def verifying_key(self, circuit_id: str) -> VerifyingKey:
        return replace(self._prover.verifying_key(circuit_id), place=None)


@dataclass(eq=False)
class _Member:
    """One host as the pool has it."""

    node: str
    actor: Any
    slots: list[Slot]
    busy: bool = False
    dead: bool = False


@dataclass
class _Work:
    """The rest of one task."""

    todo: deque[int]
    given: dict[Any, tuple[_Member, list[int]]] = field(default_factory=dict)
    """Call that is under way -> who has it, which partitions."""
    made: set[int] = field(default_factory=set)
    losses: int = 0


class RayPool:
    """The prover of a service whose hosts are those of a Ray cluster. New hosts are taken in, lost ones left out."""

    name = "ray"

    def __init__(self, address: str, spec: HostSpec, *, width: int = 2, node_cpus: float = 0.0) -> None:
        """`address`: of the cluster, or `local` for one on this machine. Raises InputError, HardwareMissing."""
        self._ray = _ray()
        self._spec, self.width, self._node_cpus = spec, width, node_cpus
        self._started = not self._ray.is_initialized()
        if self._started:
            _require_answer(address)
            try:
                self._ray.init(address=address, include_dashboard=False if address == "local" else None, log_to_driver=False,
                               configure_logging=False)  # fmt: skip
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(f"--ray {address}: {' '.join(str(error).split())[:300]}") from error
        self._changed = threading.Condition()
        self._members: list[_Member] = []
        self._verifiers: dict[str, Verifier] = {}
        self._keys: list[dict[str, Any]] = []
        self.lost = 0
        """Hosts, or actors on them, that were lost."""
        try:
            self._gather()
        except BaseException:
            self.close()
            raise
        if not self._members:
            raise HardwareMissing(f"--ray {address}: no host of the cluster can prove")

    # -- hosts ---------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """An actor on every host that has none."""
        alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        with self._changed:
            for member in self._members:
                if member.node not in alive:
                    member.dead = True
            self._members = [member for member in self._members if not member.dead]
            missing = alive - {member.node for member in self._members}
        errors: list[BaseException] = []
        for node in sorted(missing):
            try:
                member = self._welcome(node)
            except Exception as error:
                errors.append(error)
                continue
            with self._changed:
                self._members.append(member)
                self._changed.notify_all()
        if errors and not self._members:
            raise _own(errors[0])

    def _welcome(self, node: str) -> _Member:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        kind = self._ray.remote(num_cpus=self._node_cpus, max_concurrency=4, scheduling_strategy=strategy)(Host)
        actor = kind.remote(self._spec)
        slots = self._ray.get(actor.open.remote(), timeout=3600)
        log.info("host joined node=%s devices=%s", node[:12], [slot.name for slot in slots])
        return _Member(node, actor, slots)

    def _lose(self, member: _Member, why: BaseException) -> None:
        with self._changed:
            if member.dead:
                return
            member.dead = True
            self.lost += 1
            if member in self._members:
                self._members.remove(member)
            self._changed.notify_all()
        log.warning("host lost node=%s why=%r", member.node[:12], " ".join(str(why).split())[:200])

    # -- proofs --------------------------------------------------------------------------------------------

    def prove(self, task: Task) -> None:
        reference = self._ray.put(task.statement)
        work = _Work(deque(task.partitions))
        task.on_begin()
        try:
            while len(work.made) < len(task.partitions):
                if task.cancelled():
                    raise Cancelled("cancelled")
                self._hand_out(task, reference, work)
                self._collect(task, work)
        finally:
            self._call_off(task, work)

    def _hand_out(self, task: Task, reference: Any, work: _Work) -> None:
        while work.todo:
            member = self._idle(None if work.given else task.cancelled)
            if member is None:
                return
            with self._changed:
                share = -(-len(work.todo) // max(1, len(self._members)))
            numbers = [work.todo.popleft() for _ in range(max(1, min(MOST_AT_ONCE, share)))]
            try:
                member.actor.welcome.remote(task.job_id)
                call = member.actor.prove.remote(task.job_id, reference, numbers, task.priority)
            except Exception as error:  # it died a moment ago
                self._lose(member, error)
                work.todo.extend(numbers)
                continue
            work.given[call] = (member, numbers)

    def _idle(self, cancelled: Callable[[], bool] | None) -> _Member | None:
        """A host that has nothing to do, now busy. `cancelled`: nothing of the task is under way, so wait for one, unless it
        says yes."""
        while True:
            with self._changed:
                for member in self._members:
                    if not member.busy:
                        member.busy = True
                        return member
                none = not self._members
            if none:
                self._gather()
                if not self._members:
                    raise HardwareMissing("no host of the cluster is left")
                continue
            if cancelled is None or cancelled():
                return None
            with self._changed:
                self._changed.wait(POLL_S)

    def _collect(self, task: Task, work: _Work) -> None:
        ready, _ = self._ray.wait(list(work.given), num_returns=1, timeout=POLL_S) if work.given else ([], [])
        for call in ready:
            member, numbers = work.given.pop(call)
            try:
                made = self._ray.get(call)
            except self._ray.exceptions.RayTaskError as error:
                self._free(member)
                raise _own(error) from error
            except self._ray.exceptions.RayError as error:  # the actor or its host is gone
                self._lose(member, error)
                work.losses += 1
                if work.losses > LOSSES:
                    raise CuzkError(
                        f"partitions {numbers} were lost with their hosts {work.losses} times: {chain(error)}"
                    ) from error
                work.todo.extend(number for number in numbers if number not in work.made)
                self._gather()
                continue
            self._free(member)
            for one in made:
                if one.partition not in work.made:
                    work.made.add(one.partition)
                    task.on_made(one)
            work.todo.extend(number for number in numbers if number not in work.made)

    def _free(self, member: _Member) -> None:
        with self._changed:
            member.busy = False
            self._changed.notify_all()

    def _call_off(self, task: Task, work: _Work) -> None:
        """Calls that are under way are not wanted any more; their hosts are free when they have let go."""
        for call, (member, _) in work.given.items():
            try:
                member.actor.cancel.remote(task.job_id)
                self._ray.wait([call], timeout=60.0)
                self._free(member)
            except Exception as error:
                self._lose(member, error)

    def bad_partitions(self, statement: Statement, proofs: Sequence[bytes]) -> list[int]:
        """Judged here, not on the hosts."""
        verifier = self._verifier(statement.circuit_id)
        bad = []
        for number, data in enumerate(proofs):
            try:
                good = verifier.accepts(Proof.from_bytes(data), statement.public_inputs(number))
            except PointError:
                good = False
            if not good:
                bad.append(number)
        return bad

    def _verifier(self, circuit_id: str) -> Verifier:
        if circuit_id not in self._verifiers:
            (key,) = self._each("verifying_key", circuit_id)[:1] or [None]
            if key is None:
                raise CuzkError(f"no host has the key of {circuit_id}")
            self._verifiers[circuit_id] = Verifier(key, f"the verifying key of {circuit_id}")
        return self._verifiers[circuit_id]

    # -- keys ----------------------------------------------------------------------------------------------

    def load(self, circuit_id: str) -> float:
        """The longest of all hosts."""
        took_s = max(self._each("load", circuit_id), default=0.0)
        self._look_at_keys()
        return took_s

    def evict(self, circuit_id: str) -> int | None:
        freed = [nbytes for nbytes in self._each("evict", circuit_id) if nbytes is not None]
        self._look_at_keys()
        return sum(freed) if freed else None

    def loaded(self) -> list[dict[str, Any]]:
        """Each key once, as the hosts said when one was last loaded or evicted; sizes and users of all hosts together."""
        return self._keys

    def _look_at_keys(self) -> None:
        rows: dict[str, dict[str, Any]] = {}
        for row in [row for of_host in self._each("loaded") for row in of_host]:
            known = rows.setdefault(row["circuit_id"], {**row, "bytes": 0, "users": 0})
            known["bytes"] += row["bytes"]
            known["users"] += row["users"]
        self._keys = list(rows.values())

    def slots(self) -> list[Slot]:
        with self._changed:
            return [slot for member in self._members for slot in member.slots]

    def _each(self, method: str, *args: Any) -> list[Any]:
        """The answers of all hosts that answer."""
        with self._changed:
            members = list(self._members)
        out = []
        for member, call in [(member, getattr(member.actor, method).remote(*args)) for member in members]:
            try:
                out.append(self._ray.get(call, timeout=3600))
            except self._ray.exceptions.RayTaskError as error:
                raise _own(error) from error
            except self._ray.exceptions.RayError as error:
                self._lose(member, error)
        return out

    def scenario_of(self, statement: Statement) -> Any:
        """Hosts differ: each keeps its own books."""
        return None

    def close(self) -> None:
        for member in self._members:
            self._ray.kill(member.actor)
        self._members = []
        if self._started:
            self._ray.shutdown()


def wait_for_hosts(pool: RayPool, count: int, patience_s: float) -> None:
    """Until so many hosts are there, or the time is up."""
    deadline = time.monotonic() + patience_s
    while len(pool.slots()) < count and time.monotonic() < deadline:
        pool._gather()
        time.sleep(0.5)


def _require_answer(address: str) -> None:
    """Raises InputError where nobody listens: Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--ray {address}: {getattr(error, 'strerror', None) or error}") from error


def _own(error: BaseException) -> CuzkError:
    """The error as it was raised on the host."""
    cause = getattr(error, "cause", None) or error
    if isinstance(cause, CuzkError):
        return cause
    return (
        ProofInvalid(str(cause))
        if isinstance(cause, AssertionError)
        else CuzkError(f"on a host: {type(cause).__name__}: {cause}")
    )


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise InputError(f"--ray needs the extra 'ray' (pip install 'cuzk[ray]'): {error}") from error
    return ray

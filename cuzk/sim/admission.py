"""Proofs of a run: when they come, are admitted, come out or fail; the ends of their sets."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from simpy.events import Event as SimEvent
from simpy.events import Timeout

from cuzk.errors import InputError
from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, Proof, SimToken
from cuzk.sim.jitter import factors
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Admission:
    """At most j proofs are in flight; one that is out or has failed admits the next."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.plan = engine, engine.plan
        self.proofs: list[Proof] = []
        self.in_flight = 0
        self.completion_s: list[float] = []
        """When each set was completed."""
        self.failures: dict[int, str] = {}
        self._pending = self.plan.scenario.workload.plan(engine.seed)
        self._arrived: deque[tuple[float, Any]] = deque()
        self._limit = self.plan.in_flight
        self.open_sets = 0

    def open(self) -> None:
        """The first arrivals are admitted; later ones are put into SimPy's queue."""
        for index, arrival in enumerate(self._pending):
            if arrival.at_s is None:
                self._arrived.append((0.0, arrival))
            else:
                timer = Timeout(self.engine.env, arrival.at_s, value=index)
                timer.callbacks.append(self._arrive)
        self._admit_due()

    @property
    def is_over(self) -> bool:
        """Every proof has come, and every set has ended."""
        return not self.open_sets and not self._arrived and len(self.proofs) == len(self._pending)

    def _arrive(self, timer: SimEvent) -> None:
        self.engine.tick()
        self._arrived.append((self.engine.now, self._pending[timer.value]))
        self._admit_due()
        self.engine.settled()

    def _admit_due(self) -> None:
        while self._arrived and (self._limit is None or self.in_flight < self._limit) and not self.engine.stopped:
            arrived_s, arrival = self._arrived.popleft()
            self._admit(arrived_s, arrival)

    def _admit(self, arrived_s: float, arrival: Any) -> None:
        scenario, now = self.plan.scenario, self.engine.now
        mix = scenario.workload.circuits
        circuit = mix[arrival.entry].circuit if mix else scenario.circuit
        number = len(self.proofs)
        spread = factors(self.engine.seed, number, circuit.partitions, self.engine.programs.costs.spread)
        proof = Proof(number, circuit.name, arrival.priority, arrived_s, now)
        self.proofs.append(proof)
        self.in_flight += 1
        if self.engine.events is not None:
            self.engine.events.append(Event(now, "admit", circuit.name, proof=number))
        for name, worker in self.plan.pipeline.workers.items():
            if worker.start not in ("partition", "proof"):
                continue
            program = self.engine.programs.of(name, circuit.name, 0)
            for part in range(circuit.partitions if worker.start == "partition" else 1):
                token = SimToken(number, part, circuit.name, owner=proof, spread=spread[part])
                token.priority = arrival.priority
                proof.members.append(token)
                proof.to_complete += 1
                proof.open_sets += 1
                self.open_sets += 1
                self.engine.begin(Actor(name, program, token, 0))

    def complete(self, actor: Actor) -> None:
        """One partition (or the whole proof) is out."""
        if actor.token.completed:
            raise ValueError(f"{actor.token} completes a second time")
        actor.token.completed = True
        proof: Proof = actor.token.owner
        now = self.engine.now
        self.completion_s.append(now)
        proof.to_complete -= 1
        if self.engine.events is not None:
            self.engine.event("complete", actor, "")
        if proof.to_complete == 0 and proof.failure is None:
            proof.completed_s = now
            self.engine.ledger.proof_done()
            if self.engine.events is not None:
                self.engine.events.append(Event(now, "complete", proof=proof.number, partition=-1))
            self._leave_proof(proof)

    def _leave_proof(self, proof: Proof) -> None:
        if not proof.left:
            proof.left = True
            self.in_flight -= 1
            self._admit_due()

    def vet(self) -> None:
        """At the end of a run that memory did not stop. Raises InputError if a proof neither came out nor failed."""
        lost = [proof for proof in self.proofs if proof.completed_s is None and proof.failure is None]
        if lost:
            name, sets = self.plan.pipeline.name, sum(proof.to_complete for proof in lost)
            what = f"{sets} sets end without `complete`" if sets else "no worker starts with a partition or a proof"
            raise InputError(f"pipeline '{name}': {len(lost)} of {len(self.proofs)} proofs never come out: {what}")

    def fail(self, proof: Proof, reason: str) -> None:
        if proof.failure is not None:
            return
        proof.failure = reason
        self.failures[proof.number] = reason
        if self.engine.events is not None:
            self.engine.events.append(Event(self.engine.now, "fail", proof=proof.number, reason=reason))
        dropped = self.engine.arbiter.fail("proof", proof.number, reason)
        for token in proof.members:
            token.failed = True
            for handle in token.handles.values():
                self.engine.runnable.extend((waiter, FAILED) for waiter in handle.waiters)
                handle.waiters.clear()
        for token in dropped:
            self.detach(token)

    def detach(self, token: SimToken) -> None:
        """One holder less; the last one ends the set, and gives back what a failed one still has."""
        token.attached -= 1
        if token.attached:
            return
        if not token.failed and (token.buffers or token.claims):
            held = ", ".join([*token.buffers, *(name for name, _ in token.claims)])
            raise InputError(f"pipeline '{self.plan.pipeline.name}': set {token} ends and still holds {held}")
        if token.failed and (token.buffers or token.claims):
            self.engine.ledger.before_free()
            rows = list(token.buffers.items())
            for name, _ in token.claims:
                self.engine.ledger.held[name] += self.engine.now
            self.engine.arbiter.unwind(token)
            if self.engine.events is not None:
                for buffer, (pool, nbytes, _) in reversed(rows):
                    self.engine.ledger.emit("free", token, buffer, pool, nbytes, "unwind")
                self.engine.events.append(Event(self.engine.now, "unwind", proof=token.proof, partition=token.partition))
        self.open_sets -= 1
        proof = token.owner
        proof.open_sets -= 1
        if not proof.open_sets:
            proof.members.clear()
            self._leave_proof(proof)

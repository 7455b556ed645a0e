"""The prover of this process: partitions of a job through the same pipeline run as `cuzk run`, keys that stay loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from cuzk.exec.cpu import CpuDevice
from cuzk.exec.proving import ProvingDevice
from cuzk.exec.run import Proving, bind_key
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.point_bytes import PointError
from cuzk.groth16.verify import Verifier
from cuzk.model.scenario import Scenario
from cuzk.native.memory import process_resident_bytes
from cuzk.service.failures import Cancelled
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.kinds import Statement
from cuzk.service.lane import Lane
from cuzk.service.prover import Slot, Task
from cuzk.trace.event import Event

POLL_S = 0.05
MakeDevice = Callable[..., ProvingDevice]


class PipelineProver:
    """Up to j jobs at once, through one run for a circuit (lane.py). `scenario`: machine, policy and pipeline; the circuit is
    that of each job's key."""

    def __init__(self, keys: KeyStore, scenario: Scenario, *, make_device: MakeDevice = CpuDevice, threads: int | None = None,
                 slots: Sequence[Slot] = (), observe: Callable[[Scenario, list[Event]], None] | None = None,
                 own_inputs: bool = False) -> None:  # fmt: skip
        """`observe` gets the scenario and all events of each run that came to its end. `own_inputs`: the public inputs are those
        of the witnesses, no statement says others."""
        self._own_inputs = own_inputs
        self._keys, self._scenario, self._make_device, self._threads = keys, scenario, make_device, threads
        self._observe = observe
        self.width = scenario.policy.j or 1
        self.name = str(make_device.name)  # type: ignore[attr-defined]
        self._slots = list(slots) or [Slot(0, self.name)]
        self._idle_bytes = process_resident_bytes()
        self._bound: dict[str, Scenario] = {}
        self._changed = threading.Condition()
        self._lane: Lane | None = None
        keys.on_evict = self._evicted
        self._verifiers: dict[str, Verifier] = {}

    # -- keys ----------------------------------------------------------------------------------------------

    def load(self, circuit_id: str) -> float:
        return self._keys.load(circuit_id)

    def evict(self, circuit_id: str) -> int | None:
        return self._keys.evict(circuit_id)

    def loaded(self) -> list[dict[str, Any]]:
        return self._keys.loaded()

    def slots(self) -> list[Slot]:
        return self._slots

    def close(self) -> None:
        with self._changed:
            self._close()

    def verifying_key(self, circuit_id: str) -> VerifyingKey:
        with self._keys.use(circuit_id) as (loaded, _):
            return loaded.key.verifying_key()

    def scenario_of(self, statement: Statement) -> Scenario | None:
        """The scenario that the first run of this circuit was bound to; before that, one from the values of a partition."""
        known = self._bound.get(statement.circuit_id)
        if known is None:
            with self._keys.use(statement.circuit_id) as (loaded, _):
                known = self._bound[statement.circuit_id] = self._bind(loaded, statement)
        return known

    def _bind(self, loaded: Loaded, statement: Statement) -> Scenario:
        """The scenario of a run of a circuit, from the values of one partition."""
        proving = Proving(str(loaded.key.path), (), None, self._threads)
        example = statement.witness(0, loaded.circuit)
        bound = bind_key(self._scenario, loaded.key, [example], proving, idle_bytes=self._idle_bytes,
                         make_device=self._make_device).scenario  # fmt: skip
        circuit = bound.circuit.model_copy(update={"partitions": statement.partitions})
        return bound.model_copy(update={"circuit": circuit})

    # -- proofs --------------------------------------------------------------------------------------------

    def bad_partitions(self, statement: Statement, proofs: Sequence[bytes]) -> list[int]:
        with self._keys.use(statement.circuit_id) as (loaded, _):
            verifier = self._verifier(loaded)
        made: list[Proof] = []
        broken = []
        for number, data in enumerate(proofs):
            try:
                made.append(Proof.from_bytes(data))
            except PointError:
                broken.append(number)
        if broken:
            return broken
        publics = [statement.public_inputs(number) for number in range(len(made))]
        if len(made) > 1 and verifier.accepts_all(made, publics):
            return []
        return [number for number in range(len(made)) if not verifier.accepts(made[number], publics[number])]

    def prove(self, task: Task) -> None:
        with self._keys.use(task.statement.circuit_id) as (loaded, _):
            lane = self._enter(task, loaded)
            try:
                lane.prove(task)
            finally:
                self._leave(lane)

    def _enter(self, task: Task, loaded: Loaded) -> Lane:
        """The lane of the task's circuit. One is open at a time: another circuit's has to be done first, for the books of a lane
        are those of the whole machine."""
        with self._changed:
            while True:
                if task.cancelled():
                    raise Cancelled("cancelled")
                lane = self._lane
                if lane is None:
                    break
                if lane.loaded is loaded and not lane.is_over:
                    lane.active += 1
                    return lane
                if not lane.active:
                    self._close()
                    break
                self._changed.wait(POLL_S)
            self._lane = lane = Lane(loaded, self._scenario, self._make_device, self._threads, self._idle_bytes, task.statement,
                                     self._observe, self._own_inputs)  # fmt: skip
            self._bound[loaded.circuit_id] = lane.scenario
            lane.active = 1
            return lane

    def _leave(self, lane: Lane) -> None:
        with self._changed:
            lane.active -= 1
            if lane.is_over and not lane.active and self._lane is lane:
                self._close()
            self._changed.notify_all()

    def _close(self) -> None:
        """Ends the lane that is open (mutex held); nothing is in it."""
        if self._lane is not None:
            self._lane.close()
            self._lane = None

    def _evicted(self, circuit_id: str) -> None:
        """A key goes that nobody uses: so does the lane that holds it."""
        with self._changed:
            if self._lane is not None and self._lane.loaded.circuit_id == circuit_id and not self._lane.active:
                self._close()

    def _verifier(self, loaded: Loaded) -> Verifier:
        found = self._verifiers.get(loaded.circuit_id)
        if found is None:
            found = self._verifiers[loaded.circuit_id] = Verifier(
                loaded.key.verifying_key(), f"the verifying key of {loaded.circuit_id}"
            )
        return found

"""The prover of this process: partitions of a job through the same pipeline run as `cuzk run`, keys that stay loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cuzk.errors import CuzkError, Interrupted, ProofInvalid
from cuzk.exec.cpu import CpuDevice
from cuzk.exec.device import Device, Work
from cuzk.exec.engine import Engine
from cuzk.exec.run import Proving, bind_key, refuse_faults
from cuzk.exec.sampler import Sampler
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.point_bytes import PointError
from cuzk.groth16.verify import Verifier
from cuzk.model.scenario import Scenario
from cuzk.native.memory import process_resident_bytes
from cuzk.pipeline.program import bind
from cuzk.service.failures import Cancelled
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.kinds import Statement
from cuzk.service.prover import Made, Slot, Task
from cuzk.trace.event import Event

POLL_S = 0.05
MakeDevice = Callable[..., CpuDevice]


class PipelineProver:
    """One job at a time, its partitions side by side. `scenario`: machine, policy and pipeline of a run; the circuit is that of
    each job's key."""

    width = 1

    def __init__(self, keys: KeyStore, scenario: Scenario, *, make_device: MakeDevice = CpuDevice, threads: int | None = None,
                 slots: Sequence[Slot] = (), observe: Callable[[Scenario, list[Event]], None] | None = None,
                 own_inputs: bool = False) -> None:  # fmt: skip
        """`observe` gets the scenario and all events of each run that came to its end. `own_inputs`: the public inputs are those
        of the witnesses, no statement says others."""
        self._own_inputs = own_inputs
        self._keys, self._scenario, self._make_device, self._threads = keys, scenario, make_device, threads
        self._observe = observe
        self.name = str(make_device.name)  # type: ignore[attr-defined]
        self._slots = list(slots) or [Slot(0, self.name)]
        self._idle_bytes = process_resident_bytes()
        self._bound: dict[str, Scenario] = {}
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
        pass

    def verifying_key(self, circuit_id: str) -> VerifyingKey:
        with self._keys.use(circuit_id) as (loaded, _):
            return loaded.key.verifying_key()

    def scenario_of(self, statement: Statement) -> Scenario | None:
        """The scenario that the first run of this circuit was bound to; before that, one from the values of a partition."""
        known = self._bound.get(statement.circuit_id)
        if known is None:
            with self._keys.use(statement.circuit_id) as (loaded, _):
                self._bind(loaded, statement, [0])
            known = self._bound[statement.circuit_id]
        return known

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
            self._prove(task, loaded)

    def _prove(self, task: Task, loaded: Loaded) -> None:
        statement, numbers = task.statement, list(task.partitions)
        if task.cancelled():
            raise Cancelled("cancelled")
        prepared = self._bind(loaded, statement, numbers)
        plan = bind(prepared.scenario)
        refuse_faults(plan)
        device: Any = prepared.device
        spent = _Spent()
        events: list[Event] = []

        def sink(event: Event) -> None:
            events.append(event)
            own = event
            if event.partition is not None and event.partition >= 0:
                own = replace(event, partition=numbers[event.partition])
            spent.take(event)
            task.emit(own)

        def told(partition: int, proof: Proof, public: list[int]) -> None:
            number = numbers[partition]
            if not self._own_inputs and public != statement.public_inputs(number):
                raise ProofInvalid(f"partition {number}: its witness has other public inputs than its statement")
            task.on_made(Made(number, proof.to_bytes(), *spent.of(partition), tuple(public)))

        device.told = told
        device.open(plan)
        try:
            engine = Engine(plan, device, sink)
            over = threading.Event()

            def watch() -> None:
                while not over.wait(POLL_S):
                    if task.cancelled():
                        engine.interrupt()

            watcher = threading.Thread(target=watch, name="cancel", daemon=True)
            watcher.start()
            task.on_begin()
            try:
                with Sampler(engine):
                    engine.run()
            finally:
                over.set()
                watcher.join()
        finally:
            device.close()
        core = engine.core
        error = core.failure or (core.failures[0][1] if core.failures else None)
        if error is not None:
            if isinstance(error, Interrupted) and task.cancelled():
                raise Cancelled("cancelled") from None
            raise error if isinstance(error, CuzkError) else CuzkError(f"the run failed: {error}") from error
        if self._observe is not None:
            self._observe(prepared.scenario, events)

    def _bind(self, loaded: Loaded, statement: Statement, numbers: list[int]) -> Any:
        assignments = _OfStatement(statement, numbers, loaded.circuit, self._own_inputs)
        scenario = self._scenario.model_copy(
            update={"circuit": self._scenario.circuit.model_copy(update={"partitions": len(numbers)})}
        )
        scenario = scenario.model_copy(update={"workload": scenario.workload.model_copy(update={"proofs": 1})})
        proving = Proving(str(loaded.key.path), (), None, self._threads)
        prepared = bind_key(
            scenario, loaded.key, assignments, proving, idle_bytes=self._idle_bytes, make_device=self._told_device
        )
        whole = prepared.scenario.circuit.model_copy(update={"partitions": statement.partitions})
        self._bound[loaded.circuit_id] = prepared.scenario.model_copy(update={"circuit": whole})
        return prepared

    def _told_device(self, *args: Any) -> Device:
        kind = type("Telling", (_Telling, self._make_device), {})  # type: ignore[arg-type]
        device: Device = kind(*args)
        return device

    def _verifier(self, loaded: Loaded) -> Verifier:
        found = self._verifiers.get(loaded.circuit_id)
        if found is None:
            found = self._verifiers[loaded.circuit_id] = Verifier(
                loaded.key.verifying_key(), f"the verifying key of {loaded.circuit_id}"
            )
        return found


class _OfStatement:
    """Some partitions of a statement as a run asks for them: their values are made in the run (cuzk.groth16.assignments)."""

    def __init__(self, statement: Statement, numbers: list[int], circuit: Any, own_inputs: bool) -> None:
        self._statement, self._numbers, self._circuit, self._own_inputs = statement, numbers, circuit, own_inputs
        self.partitions: int | None = len(numbers)

    def witness(self, proof: int, partition: int) -> Any:
        return self._statement.witness(self._numbers[partition], self._circuit)

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        return None if self._own_inputs else self._statement.public_inputs(self._numbers[partition])

    def examples(self) -> Sequence[Any]:
        return [self.witness(0, 0)]

    def done(self, proof: int) -> None:
        pass


class _Telling:
    """A device that hands over each partition as soon as it is verified, not only the proof as a whole."""

    told: Callable[[int, Proof, list[int]], None]
    _verified: dict[int, dict[int, tuple[Proof, list[int]]]]

    def perform(self, work: Work) -> None:
        super().perform(work)  # type: ignore[misc]
        if work.name == "epilogue" and not work.is_copy:
            of_proof = self._verified.get(work.pset.proof, {})
            for partition in list(of_proof):
                found = of_proof.pop(partition, None)
                if found is not None:  # else another thread was faster
                    self.told(partition, *found)


class _Spent:
    """Seconds of each partition in synthesis and in the hands of a GPU worker."""

    def __init__(self) -> None:
        self._synth: dict[int, float] = {}
        self._begun: dict[tuple[str, str, int], float] = {}
        self._gpu: dict[int, tuple[float, float]] = {}

    def take(self, event: Event) -> None:
        if event.kind not in ("begin", "end") or event.partition is None:
            return
        part = event.partition
        if event.worker.startswith("gpu"):
            first, _ = self._gpu.get(part, (event.t, event.t))
            self._gpu[part] = (first, event.t)
        elif event.worker.startswith("synthesis"):
            key = (event.worker, event.name, part)
            if event.kind == "begin":
                self._begun[key] = event.t
            else:
                self._synth[part] = self._synth.get(part, 0.0) + event.t - self._begun.pop(key, event.t)

    def of(self, partition: int) -> tuple[float, float]:
        first, last = self._gpu.get(partition, (0.0, 0.0))
        return self._synth.get(partition, 0.0), last - first

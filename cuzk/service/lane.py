"""A run without an end for one circuit: its key stays on the devices, and jobs go through its pipeline one behind the other: the
synthesis of the next overlaps the GPU work of the one before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cuzk.errors import CuzkError, Interrupted
from cuzk.exec.device import Work
from cuzk.exec.engine import Engine
from cuzk.exec.live import Fed, FedCore, Feed
from cuzk.exec.proving import ProvingDevice
from cuzk.exec.run import Proving, bind_key, refuse_faults
from cuzk.exec.sampler import Sampler
from cuzk.groth16.formats.proof import Proof
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.service.failures import Cancelled
from cuzk.service.keys import Loaded
from cuzk.service.kinds import Statement
from cuzk.service.prover import Made, Task
from cuzk.trace.event import Event

POLL_S = 0.05
SAMPLE_S = 0.25
"""Between two samples of resident memory: a lane lives for days."""
Observe = Callable[[Scenario, list[Event]], None]
MOST_EVENTS, MOST_OBSERVED = 100_000, 3


class Running:
    """A task on its way through a lane."""

    def __init__(self, task: Task, loaded: Loaded, own_inputs: bool) -> None:
        self.task, self.loaded, self.own_inputs = task, loaded, own_inputs
        self.fed = Fed(list(task.partitions), task.priority)
        self.changed = threading.Event()
        self.spent = Spent()

    @property
    def is_over(self) -> bool:
        run = self.fed.run
        return run is not None and run.left and (run.failure is None or not run.open_sets)


class Lane:
    """Made for the first task of a circuit; `prove` may be called from several threads."""

    def __init__(self, loaded: Loaded, scenario: Scenario, make_device: Callable[..., ProvingDevice], threads: int | None,
                 idle_bytes: int, example: Statement, observe: Observe | None, own_inputs: bool) -> None:  # fmt: skip
        """`example`: the circuit's shares are counted in its values. Raises InputError, HardwareMissing."""
        self.loaded, self._observe, self._own_inputs = loaded, observe, own_inputs
        self._mutex = threading.Lock()
        self._of_proof: dict[int, Running] = {}
        self.active = 0
        """Tasks that are in it."""
        self._events: list[Event] | None = [] if observe is not None else None
        self._observed = 0
        self._feed = Feed()
        assignments = _OfTasks(self._of_proof, example, loaded.circuit)
        kind = type("TellingDevice", (_Telling, make_device), {})  # type: ignore[arg-type]
        workload = scenario.workload.model_copy(update={"proofs": 1})
        scenario = scenario.model_copy(update={"workload": workload})
        how = Proving(str(loaded.key.path), (), None, threads)
        prepared = bind_key(scenario, loaded.key, assignments, how, idle_bytes=idle_bytes, make_device=kind)
        circuit = prepared.scenario.circuit.model_copy(update={"partitions": example.partitions})
        self.scenario: Scenario = prepared.scenario.model_copy(update={"circuit": circuit})
        program = bind(self.scenario)
        refuse_faults(program)
        self._device: Any = prepared.device
        self._device.told = self._told
        self._device.open(program)
        core = partial(FedCore, self._feed, on_admit=self._admitted)
        self._engine = Engine(program, self._device, self._sink, make_core=core)
        self._feed.listen(self._engine.nudge)
        self._thread = threading.Thread(target=self._live, name=f"lane {loaded.circuit_id}", daemon=True)
        self._over = threading.Event()
        self._thread.start()

    def _live(self) -> None:
        try:
            with Sampler(self._engine, SAMPLE_S):
                self._engine.run()
        except BaseException as error:
            self._engine.core.failure = self._engine.core.failure or error
        finally:
            try:
                self._device.close()
            finally:
                self._over.set()

    @property
    def is_over(self) -> bool:
        """Whether it takes nothing any more: closed, or its run has failed."""
        return self._over.is_set() or self._engine.core.failure is not None

    def close(self) -> None:
        """When all that is in it is done."""
        self._feed.close()
        self._thread.join()

    # ------------------------------------------------------------------ tasks

    def prove(self, task: Task) -> None:
        """The same as Prover.prove."""
        running = Running(task, self.loaded, self._own_inputs)
        try:
            with self._mutex:
                self._of_proof[-1 - id(running)] = running
            self._feed.put(running.fed)
            task.on_begin()
            self._wait(running)
        finally:
            with self._mutex:
                for number in [number for number, one in self._of_proof.items() if one is running]:
                    del self._of_proof[number]
        run, core = running.fed.run, self._engine.core
        error = run.failure if run is not None else None
        if error is None and (run is None or run.completed < run.sets):
            error = core.failure or CuzkError("the run ended before the task")
        if error is not None:
            if isinstance(error, Interrupted) and task.cancelled():
                raise Cancelled("cancelled")
            raise error if isinstance(error, CuzkError) else CuzkError(f"the run failed: {error}") from error
        self._learn()

    def _wait(self, running: Running) -> None:
        while not running.is_over and not self._over.is_set():
            if running.task.cancelled():
                if self._feed.withdraw(running.fed):
                    raise Cancelled("cancelled")
                if running.fed.run is not None:
                    self._engine.give_up(running.fed.run, Cancelled("cancelled"))
            running.changed.wait(POLL_S)
            running.changed.clear()

    def _admitted(self, fed: Fed) -> None:
        """For the core: a task's proof has its number now (the engine's mutex held)."""
        assert fed.run is not None
        with self._mutex:
            mine = next(one for one in self._of_proof.values() if one.fed is fed)
            self._of_proof[fed.run.number] = mine

    def _told(self, number: int, partition: int, proof: Proof, public: list[int]) -> None:
        """The device says that a partition is verified."""
        running = self._of_proof[number]
        running.task.on_made(Made(partition, proof.to_bytes(), *running.spent.of(partition), tuple(public)))

    def _sink(self, event: Event) -> None:
        if self._events is not None and len(self._events) < MOST_EVENTS:
            self._events.append(event)
        if event.proof is None:
            with self._mutex:
                running = next(iter(self._of_proof.values()), None)
        else:
            running = self._of_proof.get(event.proof)
        if running is None:
            return
        running.spent.take(event)
        running.task.emit(event)
        if event.kind in ("fail", "unwind") or (event.kind == "complete" and event.partition == -1):
            running.changed.set()

    def _learn(self) -> None:
        if self._observe is None or self._events is None:
            return
        self._observed += 1
        self._observe(self.scenario, list(self._events))
        if self._observed >= MOST_OBSERVED:
            self._events = None


class _OfTasks:
    """The values of whatever task a proof is (cuzk.groth16.assignments)."""

    partitions: int | None = None

    def __init__(self, of_proof: dict[int, Running], example: Statement, circuit: Any) -> None:
        self._of_proof, self._example, self._circuit = of_proof, example, circuit

    def witness(self, proof: int, partition: int) -> Any:
        return self._of_proof[proof].task.statement.witness(partition, self._circuit)

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        running = self._of_proof[proof]
        return None if running.own_inputs else running.task.statement.public_inputs(partition)

    def examples(self) -> Sequence[Any]:
        return [self._example.witness(0, self._circuit)]

    def done(self, proof: int) -> None:
        pass


class _Telling:
    """A device that hands over each partition as soon as it is verified, not only the proof as a whole."""

    told: Callable[[int, int, Proof, list[int]], None]
    _verified: dict[int, dict[int, tuple[Proof, list[int]]]]

    def perform(self, work: Work) -> None:
        super().perform(work)  # type: ignore[misc]
        if work.name == "epilogue" and not work.is_copy:
            number = work.pset.proof
            of_proof = self._verified.get(number, {})
            for partition in list(of_proof):
                found = of_proof.pop(partition, None)
                if found is not None:  # else another thread was faster
                    self.told(number, partition, *found)


class Spent:
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

"""`bind(scenario) -> Program`: a pipeline on a machine, with every name an instance and every formula a number, once.

Show, check, bounds, the planner, both interpreters and the null device walk the Program; none of them looks at the scenario to
learn what a step means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cuzk.errors import InputError, ScenarioError
from cuzk.model.circuit import Circuit
from cuzk.model.formula import Formula, suggestion
from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.pipeline import ops
from cuzk.pipeline.arbiter import Arbiter, Order
from cuzk.pipeline.binder import Binder
from cuzk.pipeline.books import Books
from cuzk.pipeline.endless import endless
from cuzk.pipeline.presets import PRESETS, build, preset_policy
from cuzk.pipeline.rules import Facts, refuse_contradictions
from cuzk.pipeline.steps import BufferSpec, Pipeline

GPU = "$gpu"
MOST_WORKERS = 1 << 16
PARENTS = {"pinned": "ram"}
"""A pool that is part of another."""


@dataclass(frozen=True)
class Resident:
    """A thing that is there before the start: keys, matrices, contexts."""

    buffer: str
    pool: str
    nbytes: int
    gpu: int
    cached: bool


@dataclass(frozen=True)
class Program:
    """A pipeline bound to a scenario. Made by `bind`; shared by every run of it."""

    scenario: Scenario
    pipeline: Pipeline
    policy: Policy
    _code: dict[tuple[str, str, int], tuple[ops.Op, ...]] = field(default_factory=dict, compare=False, repr=False)
    _names: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    _sizes: dict[tuple[str, str, int], int] = field(default_factory=dict, compare=False, repr=False)

    # -- what there is ------------------------------------------------------------------------------------

    @cached_property
    def gpus(self) -> int:
        return len(self.scenario.machine.gpus)

    @cached_property
    def circuits(self) -> dict[str, Circuit]:
        """The circuits of the workload by name."""
        return {circuit.name: circuit for circuit in self.scenario.circuits()}

    @cached_property
    def largest(self) -> Circuit:
        """The circuit with the most constraints."""
        return max(self.circuits.values(), key=lambda circuit: circuit.constraints)

    @cached_property
    def pools(self) -> dict[str, int]:
        """Capacity of each pool in bytes: what others hold or the system reserves is not part of it."""
        machine = self.scenario.machine
        host = {"ram": machine.usable_ram, "pinned": machine.usable_ram}
        return host | {f"vram:{i}": gpu.vram - gpu.reserved for i, gpu in enumerate(machine.gpus)}

    @cached_property
    def whole(self) -> bool:
        """Whether proofs go through as a whole, not partition by partition."""
        return any(worker.start == "proof" for worker in self.pipeline.workers.values())

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """Workers that start with a partition or a proof."""
        return tuple(name for name, worker in self.pipeline.workers.items() if worker.start in ("partition", "proof"))

    @cached_property
    def pool_workers(self) -> dict[str, int]:
        """Pool worker -> its loops on the whole machine."""
        return {
            name: self.worker_count(name) * (self.gpus if worker.per == "gpu" else 1)
            for name, worker in self.pipeline.workers.items()
            if worker.start == "pool"
        }

    @property
    def in_flight(self) -> int | None:
        """Proofs that may be in flight at once (j). None: all that have arrived, where arrivals are open and j is not given."""
        open_arrivals = self.scenario.workload.arrivals != "closed"
        return None if open_arrivals and self.scenario.policy.j is None else self.policy.j or 1

    @cached_property
    def facts(self) -> Facts:
        """The places where steps run and residents lie."""
        return Facts(self.scenario, self.pipeline, self.policy)

    # -- numbers ------------------------------------------------------------------------------------------

    def names(self, circuit: Circuit, gpu: int = 0) -> dict[str, Any]:
        """Names for formulas: the circuit's counts, the policy's numbers, the machine's, the calibration's parameters.
        No name has two of these meanings: `bind` refuses a parameter that does."""
        key = (circuit.name, gpu)
        if key not in self._names:
            self._names[key] = self._make_names(circuit, gpu)
        return self._names[key]

    def _make_names(self, circuit: Circuit, gpu: int) -> dict[str, Any]:
        machine, policy = self.scenario.machine, self.policy
        names: dict[str, Any] = {**circuit.names(), **policy.numbers()}
        names |= self.scenario.calibration.parameters if self.scenario.calibration else {}
        names["circuits"] = circuit.partitions if self.whole else 1
        names |= {"ram": machine.usable_ram, "cores": machine.cores, "threads": machine.threads, "gpus": self.gpus}
        if machine.gpus:
            device = machine.gpus[gpu]
            names |= {"gpu_context": device.context, "sms": device.sms, "vram": device.visible_vram}
        names["budget_bytes"] = max(1, self._unclaimed_ram(names))
        names["budget_partition_bytes"] = policy.budget_partition or 4 * circuit.vector_bytes
        return names

    def _unclaimed_ram(self, names: dict[str, Any]) -> int:
        """RAM that a byte budget hands out: the limit less the margin and the residents."""
        specs = {b: spec for b, spec in self.pipeline.buffers.items() if spec.scope == "run" and GPU not in spec.pool}
        residents = sum(self.number(spec.size, names, "buffers", buffer, "size") for buffer, spec in specs.items())
        return int(names["ram"]) - (self.policy.budget_margin or 0) - residents

    def size(self, buffer: str, circuit: Circuit, gpu: int = 0) -> int:
        """Bytes of one instance of `buffer`."""
        key = (buffer, circuit.name, gpu)
        if key not in self._sizes:
            formula = self.pipeline.buffers[buffer].size
            self._sizes[key] = self.number(formula, self.names(circuit, gpu), "buffers", buffer, "size")
        return self._sizes[key]

    def number(self, formula: Formula, names: dict[str, Any], *loc: str | int, least: int = 0, most: int = 1 << 60) -> int:
        """A whole number that the pipeline gives as a formula at `loc`. Raises ScenarioError, which names the place."""
        try:
            value = formula.size(names)
            if not least <= value <= most:
                raise InputError(f"must be {least:,} to {most:,}, not {value:,}")
            return value
        except InputError as error:
            unknown = sorted(formula.names - names.keys())
            hint = "" if not unknown else f" (a parameter that the calibration {self._calibration_name} does not give?)"
            raise self.error(loc, f"{error}{hint}") from None

    def error(self, place: Iterable[str | int], message: str) -> ScenarioError:
        """An error about what stands at `place` in the pipeline, for the caller to raise."""
        return self.scenario.error(("pipeline", *place), message)

    @property
    def _calibration_name(self) -> str:
        return f"'{self.scenario.calibration.name}'" if self.scenario.calibration else "(none)"

    def worker_count(self, worker: str) -> int:
        """Instances of a pool worker per GPU or host."""
        names = self.names(self.scenario.circuit)
        return self.number(self.pipeline.workers[worker].count, names, "workers", worker, "count", most=MOST_WORKERS)

    # -- instances ----------------------------------------------------------------------------------------

    @cached_property
    def residents(self) -> tuple[Resident, ...]:
        """All that is there before the start, in the order in which it is loaded."""
        rows: list[Resident] = []
        for name, spec in self.pipeline.buffers.items():
            if spec.scope != "run":
                continue
            for pool, gpu in self._pools_of(spec):
                sizes = [(c.name, self.size(name, c, gpu)) for c in self.circuits.values()]
                of_circuit = len(sizes) > 1 and bool(spec.size.names & set(self.scenario.circuit.names()))
                labelled = [(f"{name} {c}", n) for c, n in sizes] if of_circuit else [(name, sizes[0][1])]
                rows += [Resident(label, pool, n, gpu, spec.allocator == "cached") for label, n in labelled if n > 0]
        return tuple(rows)

    def _pools_of(self, spec: BufferSpec) -> list[tuple[str, int]]:
        if GPU not in spec.pool:
            return [(spec.pool, 0)]
        return [(spec.pool.replace(GPU, str(gpu)), gpu) for gpu in range(self.gpus)]

    @cached_property
    def lock_instances(self) -> dict[str, bool]:
        """Every lock by instance name, and whether it barges."""
        locks: dict[str, bool] = {}
        for name, lock in self.pipeline.locks.items():
            instances = [f"{name}:{gpu}" for gpu in range(self.gpus)] if lock.per == "gpu" else [name]
            locks |= dict.fromkeys(instances, lock.order == "barging")
        return locks

    @cached_property
    def permits(self) -> dict[str, tuple[int, Order]]:
        """Every permit with its units and order, limits of spawned workers among them."""
        names = self.names(self.scenario.circuit)
        permits: dict[str, tuple[int, Order]] = {
            name: (self.number(permit.count, names, "permits", name, "count"), permit.order)
            for name, permit in self.pipeline.permits.items()
        }
        for name, worker in self.pipeline.workers.items():
            if worker.limit is not None:
                permits[limit_permit(name)] = (worker.limit, "fifo")
        return permits

    @cached_property
    def channels(self) -> dict[str, int | None]:
        """Every channel with its capacity; None: unbounded."""
        names = self.names(self.scenario.circuit)
        return {
            name: None
            if channel.capacity is None
            else self.number(channel.capacity, names, "channels", name, "capacity", least=1)
            for name, channel in self.pipeline.channels.items()
        }

    def claim_instance(self, name: str, gpu: int) -> str:
        """The arbiter's name of a lock or permit for an actor bound to `gpu`."""
        lock = self.pipeline.locks.get(name)
        return f"{name}:{gpu}" if lock is not None and lock.per == "gpu" else name

    def arbiter(self, seed: int | None = None) -> Arbiter:
        """A fresh arbiter with this program's locks, permits and channels."""
        return Arbiter(self.lock_instances, self.permits, self.channels, self.scenario.seed if seed is None else seed)

    def books(self) -> Books:
        """Fresh books of this program's pools; residents not yet allocated."""
        gpus = range(max(1, self.gpus))
        return Books(self.pools, PARENTS, {name.replace(GPU, str(gpu)) for name in self.pipeline.reclaims for gpu in gpus})

    # -- code ---------------------------------------------------------------------------------------------

    def code(self, worker: str, circuit: str, gpu: int = 0) -> tuple[ops.Op, ...]:
        """The bound steps of a worker for a circuit on a GPU. Raises ScenarioError with the place of what is wrong."""
        key = (worker, circuit, gpu)
        found = self._code.get(key)
        if found is None:
            found = self._code[key] = Binder(self, worker, self.circuits[circuit], gpu).code()
        return found

    def require_prices(self) -> None:
        """Raises ScenarioError for a step that has no price: no calibration, or none of its law."""
        calibration = self.scenario.calibration
        if calibration is None:
            hint = "name one, such as calibrations/reference.yaml, or make one with `cuzk calibrate`"
            raise self.scenario.error(("calibration",), f"a simulation needs the costs of the steps: {hint}")
        for worker in self.pipeline.workers:
            for op in every_op(self.code(worker, self.scenario.circuit.name)):
                if isinstance(op, (ops.Run, ops.Copy)) and op.price is None:
                    missing = f"calibration '{calibration.name}' has no cost of '{op.law}'{suggestion(op.law, calibration.costs)}"
                    raise self.error(op.place, missing)


def every_op(code: Iterable[ops.Op]) -> Iterator[ops.Op]:
    """Every bound step, those in branches too."""
    for op in code:
        yield op
        if isinstance(op, ops.TryAlloc):
            yield from every_op(op.then)
            yield from every_op(op.otherwise)


def limit_permit(worker: str) -> str:
    """The permit that a worker kind with a `limit` claims for as long as it runs."""
    return f"limit:{worker}"


def bind(scenario: Scenario) -> Program:
    """The pipeline of a scenario (a preset built from its policy, or the steps that the file itself gives), bound to its machine,
    circuits and calibration.

    Raises ScenarioError, with the place: an unknown preset, pool, buffer, lock, permit, channel or worker; options that do not go
    together; a formula without a value; steps that could be walked for ever; a calibration's parameter that means something else.
    """
    pipeline, policy = _pipeline_of(scenario)
    refuse_contradictions(scenario, pipeline, policy)
    _refuse_double_meanings(scenario, policy)
    program = Program(scenario, pipeline, policy)
    _refuse_missing_places(program)
    _ = program.residents, program.permits, program.channels
    for worker in pipeline.workers:
        for circuit in program.circuits:
            program.code(worker, circuit)
    return program


def _pipeline_of(scenario: Scenario) -> tuple[Pipeline, Policy]:
    given = scenario.pipeline
    known = ", ".join(PRESETS)
    if isinstance(given, dict):
        pipeline = scenario.parse("pipeline", Pipeline)
        if pipeline.preset not in PRESETS:
            raise scenario.error(("pipeline", "preset"), f"no preset {pipeline.preset!r}; there are {known}")
        if (found := endless(pipeline)) is not None:
            raise scenario.error(("pipeline", "workers", found[0]), found[1])
        return pipeline, preset_policy(pipeline.preset, scenario.policy)
    if given not in PRESETS:
        raise scenario.error(("pipeline",), f"no preset {given!r}; there are {known}")
    policy = preset_policy(given, scenario.policy)
    return build(given, policy), policy


def _refuse_double_meanings(scenario: Scenario, policy: Policy) -> None:
    if scenario.calibration is None:
        return
    taken = {**scenario.circuit.names(), **policy.numbers(), **scenario.machine.names()}
    for name in scenario.calibration.parameters:
        if name in taken:
            raise scenario.error(("calibration", "parameters", name), f"'{name}' is a count of the scenario already")


def _refuse_missing_places(program: Program) -> None:
    """Pools and locks that the machine does not have."""
    for name, spec in program.pipeline.buffers.items():
        for pool in [spec.pool.replace(GPU, str(gpu)) for gpu in range(max(1, program.gpus))]:
            if pool == "vram:0" and not program.gpus:
                raise program.error(("buffers", name, "pool"), "the machine has no GPU, and this pipeline needs one")
            if pool not in program.pools:
                message = f"there is no pool {pool!r}; there are {', '.join(program.pools)}"
                raise program.error(("buffers", name, "pool"), message)
    for name, lock in program.pipeline.locks.items():
        if lock.per == "gpu" and not program.gpus:
            raise program.error(("locks", name), "a lock of each GPU, and the machine has none")

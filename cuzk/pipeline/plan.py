"""Numbers for a pipeline on a machine: what `compile(scenario)` returns and both interpreters start from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cuzk.errors import InputError
from cuzk.model.circuit import Circuit
from cuzk.model.formula import Formula
from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.pipeline.arbiter import Arbiter, Order
from cuzk.pipeline.check import endless
from cuzk.pipeline.presets import PHASES, build, preset_policy
from cuzk.pipeline.steps import BufferSpec, Pipeline

GPU = "$gpu"
MOST_WORKERS = 1 << 16


@dataclass(frozen=True)
class Plan:
    """A pipeline bound to a scenario: every formula can be evaluated, every `$gpu` named."""

    scenario: Scenario
    pipeline: Pipeline
    policy: Policy

    @cached_property
    def gpus(self) -> int:
        return len(self.scenario.machine.gpus)

    @cached_property
    def circuits(self) -> dict[str, Circuit]:
        """The circuits of the workload by name."""
        return {circuit.name: circuit for circuit in self.scenario.circuits()}

    @cached_property
    def pools(self) -> dict[str, int]:
        """Capacity of each pool in bytes: what others hold or the system reserves is not part of it."""
        machine = self.scenario.machine
        host = {"ram": machine.usable_ram, "pinned": machine.usable_ram}
        return host | {f"vram:{i}": gpu.vram - gpu.reserved for i, gpu in enumerate(machine.gpus)}

    def names(self, circuit: Circuit, gpu: int = 0) -> dict[str, Any]:
        """What formulas may refer to: the circuit's counts, the policy's numbers, the machine's."""
        machine, policy = self.scenario.machine, self.policy
        whole = any(worker.start == "proof" for worker in self.pipeline.workers.values())
        names: dict[str, Any] = {**circuit.names(), **policy.numbers()}
        names |= self.scenario.calibration.parameters if self.scenario.calibration else {}
        names["circuits"] = circuit.partitions if whole else 1
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
        return self.number(self.pipeline.buffers[buffer].size, self.names(circuit, gpu), "buffers", buffer, "size")

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
            raise self.scenario.error(("pipeline", *loc), f"{error}{hint}") from None

    @property
    def _calibration_name(self) -> str:
        return f"'{self.scenario.calibration.name}'" if self.scenario.calibration else "(none)"

    def residents(self) -> list[tuple[str, str, int]]:
        """(buffer, pool, bytes) of all that is there before the start: keys, matrices, contexts."""
        rows: list[tuple[str, str, int]] = []
        for name, spec in self.pipeline.buffers.items():
            if spec.scope != "run":
                continue
            for pool, gpu in self._pools_of(spec):
                sizes = [(c.name, self.size(name, c, gpu)) for c in self.circuits.values()]
                of_circuit = len(sizes) > 1 and bool(spec.size.names & set(self.scenario.circuit.names()))
                rows += [(f"{name} {c}", pool, n) for c, n in sizes] if of_circuit else [(name, pool, sizes[0][1])]
        return [row for row in rows if row[2] > 0]

    def _pools_of(self, spec: BufferSpec) -> list[tuple[str, int]]:
        if GPU not in spec.pool:
            return [(spec.pool, 0)]
        return [(spec.pool.replace(GPU, str(gpu)), gpu) for gpu in range(self.gpus)]

    @property
    def in_flight(self) -> int | None:
        """Proofs that may be in flight at once (j). None: all that have arrived, where arrivals are open and j is not given."""
        open_arrivals = self.scenario.workload.arrivals != "closed"
        return None if open_arrivals and self.scenario.policy.j is None else self.policy.j or 1

    def arbiter(self, seed: int | None = None) -> Arbiter:
        """A fresh arbiter with this plan's pools, locks, permits and channels; residents not yet allocated."""
        names = self.names(self.scenario.circuit)
        locks: dict[str, bool] = {}
        for name, lock in self.pipeline.locks.items():
            instances = [f"{name}:{gpu}" for gpu in range(self.gpus)] if lock.per == "gpu" else [name]
            locks |= dict.fromkeys(instances, lock.order == "barging")
        permits: dict[str, tuple[int, Order]] = {
            name: (self.number(permit.count, names, "permits", name, "count"), permit.order)
            for name, permit in self.pipeline.permits.items()
        }
        for name, worker in self.pipeline.workers.items():
            if worker.limit is not None:
                permits[limit_permit(name)] = (worker.limit, "fifo")
        return Arbiter(
            pools=self.pools,
            locks=locks,
            permits=permits,
            channels={
                name: None
                if channel.capacity is None
                else self.number(channel.capacity, names, "channels", name, "capacity", least=1)
                for name, channel in self.pipeline.channels.items()
            },
            parents={"pinned": "ram"},
            reclaiming=self._reclaiming,
            seed=self.scenario.seed if seed is None else seed,
        )

    @property
    def _reclaiming(self) -> set[str]:
        return {name.replace(GPU, str(gpu)) for name in self.pipeline.reclaims for gpu in range(max(1, self.gpus))}

    def claim_instance(self, name: str, gpu: int) -> str:
        """The arbiter's name of a lock or permit for an actor bound to `gpu`."""
        lock = self.pipeline.locks.get(name)
        return f"{name}:{gpu}" if lock is not None and lock.per == "gpu" else name

    def worker_count(self, worker: str) -> int:
        """Instances of a pool worker per GPU or host."""
        names = self.names(self.scenario.circuit)
        return self.number(self.pipeline.workers[worker].count, names, "workers", worker, "count", most=MOST_WORKERS)


def limit_permit(worker: str) -> str:
    """The permit that a worker kind with a `limit` claims for as long as it runs."""
    return f"limit:{worker}"


def compile(scenario: Scenario, *, unending: bool = False) -> Plan:
    """The pipeline of a scenario: a preset built from its policy, or the steps that the file itself gives.

    Raises ScenarioError for a preset that does not exist, and (unless `unending`) for steps that could be walked for ever.
    """
    given = scenario.pipeline
    if isinstance(given, dict):
        pipeline = scenario.parse("pipeline", Pipeline)
        if pipeline.preset not in PHASES:
            raise scenario.error(("pipeline", "preset"), f"no preset {pipeline.preset!r}; there are {', '.join(PHASES)}")
        if not unending and (found := endless(pipeline)) is not None:
            raise scenario.error(("pipeline", "workers", found[0]), found[1])
        return Plan(scenario, pipeline, _policy(scenario, pipeline.preset))
    if given not in PHASES:
        raise scenario.error(("pipeline",), f"no preset {given!r}; there are {', '.join(PHASES)}")
    policy = _policy(scenario, given)
    return Plan(scenario, build(given, policy), policy)


def _policy(scenario: Scenario, preset: str) -> Policy:
    """The scenario's policy with no option open. Raises ScenarioError for options that do not go together."""
    policy = preset_policy(preset, scenario.policy)
    if policy.key_tables == "pair-sums" and policy.srs != "vram":
        message = f"pair-sums lie behind the key's points in VRAM (policy.srs: vram, not {policy.srs})"
        raise scenario.error(("policy", "key_tables"), message)
    return policy

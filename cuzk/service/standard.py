"""The prover that `cuzk serve` uses: this machine, keys of a folder, the CPU or a GPU, costs that it measures itself."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuzk.errors import CuzkError, InputError
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import Scenario
from cuzk.service.config import Settings
from cuzk.service.forecast import Forecaster
from cuzk.service.keys import KeyStore, folder_keys
from cuzk.service.prover import Slot
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.service.pipeline import PipelineProver

log = logging.getLogger("cuzk.service")
BASES = {"cpu": "own-cpu", "cuda": "own-cuda"}


def host_scenario(settings: Settings, device: str) -> Scenario:
    """This machine with the settings' policy; RAM is the budget that was given, or what is free less the margin."""
    from cuzk.host.machine import look, machine_of
    from cuzk.model.circuit import Circuit
    from cuzk.model.machine import Gpu

    machine = machine_of(look(), "here")
    budget = settings.ram_bytes if settings.ram_bytes is not None else machine.usable_ram - settings.margin_bytes
    if budget <= 0:
        raise InputError(f"nothing is left for proofs: {machine.usable_ram / 2**30:.1f} GiB are free, the margin is "
                         f"{settings.margin_bytes / 2**30:.1f} GiB")  # fmt: skip
    gpus = machine.gpus
    if device == "cpu":  # what would lie on a GPU lies in RAM: a third of the budget is booked for that
        gpus = (Gpu(name="host", vram=budget // 3, sms=16, pcie_h2d=1e10, pcie_d2h=1e10),)
        budget -= budget // 3
    elif settings.devices:
        missing = [n for n in settings.devices if n >= len(gpus)]
        if missing:
            raise InputError(f"gpus.devices: there is no GPU {missing[0]}: {len(gpus)} found")
        gpus = tuple(gpus[n] for n in settings.devices)
    machine = machine.model_copy(update={"ram": budget, "reserved": 0, "hugepages": 0, "cgroup_limit": None, "gpus": gpus})
    circuit = Circuit.model_validate({"name": "any", "constraints": 1024, "aux": 1024, "inputs": 1, "partitions": 1,
                                      "density_a_aux": 1024, "density_b_aux": 1024,
                                      "provenance": {"*": "replaced by that of each key"}})  # fmt: skip
    # on a GPU what is left open is chosen by what fits the card, when the key is known (cuzk.pipeline.fitting)
    policy: dict[str, Any] = {"pw": settings.pw, "gw": settings.gw, "j": 2}
    if device == "cpu":
        policy = {"pw": settings.pw or max(1, min(4, machine.cores)), "gw": settings.gw or 2, "j": 2}
    scenario = Scenario.model_validate({"name": "serve", "machine": machine, "circuit": circuit, "pipeline": "own"})
    return scenario.with_policy(**policy)


def standard_prover(settings: Settings, *, device: str = "cpu", scenario: Scenario | None = None,
                    calibration: Calibration | None = None) -> tuple[PipelineProver, Forecaster]:  # fmt: skip
    """The prover, and the forecaster that learns from its runs unless it was given a calibration. Raises InputError,
    HardwareMissing."""
    from cuzk.service.pipeline import PipelineProver

    if not os.path.isdir(settings.params):
        raise InputError(f"--params {settings.params}: no such folder ({settings.params_from} says so)")
    make_device: Any = None
    if device == "cuda":
        from cuzk.exec.cuda import CudaProver as make_device
    own = scenario or host_scenario(settings, device)
    forecaster = Forecaster(calibration, width=own.policy.j or 1)
    learner = _Learner(forecaster, device) if calibration is None else None
    budget = settings.key_bytes if settings.key_bytes is not None else own.machine.usable_ram
    keys = KeyStore(folder_keys(settings.params), budget, settings.min_idle_s)
    slots = [Slot(number, gpu.name, gpu.vram, gpu.vram - gpu.reserved) for number, gpu in enumerate(own.machine.gpus)]
    extra = {} if make_device is None else {"make_device": make_device}
    prover = PipelineProver(keys, own, threads=settings.threads, slots=slots, observe=learner, **extra)
    return prover, forecaster


@dataclass(frozen=True)
class HostOfService:
    """A host of `cuzk serve --ray`: its own machine, the same folder of keys on each."""

    settings: Settings
    device: str
    scenario: Scenario | None = None

    def prover(self) -> PipelineProver:
        return standard_prover(self.settings, device=self.device, scenario=self.scenario)[0]


class _Learner:
    """Makes a calibration from the first runs, beside the service's work."""

    def __init__(self, forecaster: Forecaster, device: str) -> None:
        self._forecaster, self._device = forecaster, device

    def __call__(self, scenario: Scenario, events: list[Event]) -> None:
        threading.Thread(target=self._learn, args=(scenario, [events]), name="calibrate", daemon=True).start()

    def _learn(self, scenario: Scenario, runs: list[list[Event]]) -> None:
        try:
            self._forecaster.learn(measured_calibration(runs, scenario, self._device))
        except CuzkError as error:
            log.warning("no calibration from this run why=%r", str(error))


def measured_calibration(runs: list[list[Event]], scenario: Scenario, device: str) -> Calibration:
    """The costs of this machine's steps from the events of some runs, as `cuzk calibrate TRACE` makes them from their files."""
    from cuzk.accuracy.library import load_calibration
    from cuzk.trace.costs import calibration_data, cost_table

    base = load_calibration(BASES[device])
    cores = scenario.machine.cores
    demand = {step: _cores(law, cores) for step, law in base.costs.items()}
    table = cost_table(runs, cores=cores, demand=demand)
    laws = {step: law.model_dump(mode="json") for step, law in base.costs.items()}
    note = f"{len(runs)} run(s) of {scenario.circuit.name} in this service"
    data = calibration_data(table, laws, name="measured-here", machine=scenario.machine.name, software=device, note=note)
    kept = base.model_dump(mode="json")
    data = {"contention": kept["contention"], "latency": kept["latency"], "memory": kept["memory"], **data}
    data["parameters"] = kept["parameters"]
    return Calibration.model_validate(data)


def _cores(law: Any, cores: int) -> float:
    if law.gpu or law.link:
        return 0.0
    return float(law.cores.evaluate({"cores": cores})) if law.cores.names <= {"cores"} else 1.0

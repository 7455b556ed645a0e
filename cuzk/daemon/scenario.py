"""The daemon's settings on a machine as a scenario: what bounds synthesis, what the byte budget hands out, who works the GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuzk.daemon.toml import Note, Settings
from cuzk.errors import InputError
from cuzk.model.circuit import Circuit
from cuzk.model.dump import yaml_text
from cuzk.model.machine import Machine
from cuzk.model.units import GIB, bytes_text, fmt_gib

PARTITION_BYTES = 14 * GIB
"""The daemon's reservation for a PoRep partition before its synthesis; 13 come back when the GPU's start call returns."""
MOST_SYNTHESIS = 18
"""The meaning of `max_parallel_synthesis: 0`."""
LEAST_SYNTHESIS = 2
MAX_PENDING = 10
"""Proofs that Curio has under way at once, where its own MaxPending is not changed."""
QUEUE = 4096
"""The queue before the GPUs has no limit; this many sets are more than can be in flight."""
SWITCHES = ("CUZK_GPU_THREADS", "CUZK_DISABLE_PCE", "CUZK_DISABLE_SPLIT_PROVE")
"""Variables of its environment that change what the daemon does."""


@dataclass
class Imported:
    data: dict[str, Any]
    """The scenario, as its file has it."""
    notes: list[Note] = field(default_factory=list)
    budget_bytes: int = 0
    synthesis_workers: int = 0

    def text(self, comment: str) -> str:
        lines = [f"# {line}".rstrip() for line in comment.splitlines()]
        return "\n".join([*lines, yaml_text(self.data)])


def scenario_of(settings: Settings, machine: Machine, circuit: Circuit, *, machine_file: str, circuit_file: str,
                calibration_file: str, environment: dict[str, str] | None = None) -> Imported:  # fmt: skip
    """Raises InputError for a device that the machine does not have or a variable that the daemon does not know."""
    env = environment or {}
    for name in env:
        if name not in SWITCHES:
            raise InputError(f"{name} is no variable that changes what the daemon does ({', '.join(SWITCHES)})")
    out = Imported({}, list(settings.notes))

    def note(key: str, message: str) -> None:
        out.notes.append(Note(settings.given.get(key, 1), key, message, "modelled"))

    total = settings["memory.total_budget"]
    out.budget_bytes = max(0, machine.ram - settings["memory.safety_margin"]) if total == "auto" else total
    most = settings["pipeline.max_parallel_synthesis"] or MOST_SYNTHESIS
    out.synthesis_workers = max(LEAST_SYNTHESIS, min(out.budget_bytes // PARTITION_BYTES, most))
    policy = _policy(settings, machine, circuit, env, out, note)
    whole = not settings["pipeline.enabled"]
    split = env.get("CUZK_DISABLE_SPLIT_PROVE") != "1"
    pipeline = "phase2" if whole else "phase12" if split else "phase11"
    if whole:
        note("pipeline.enabled", "monolithic: one worker a GPU makes whole proofs with the reference library")
    out.data = {
        "version": 1,
        "machine": _machine(settings, machine, machine_file, note),
        "circuit": circuit_file,
        "pipeline": pipeline,
        "policy": policy,
        "workload": {"proofs": MAX_PENDING},
        "calibration": calibration_file,
        "seed": 1,
    }
    note("policy.j", f"Curio has up to {MAX_PENDING} proofs under way (its MaxPending): the daemon itself sets no limit")
    note("synthesis", "the daemon builds the matrices (PCE) and counts their memory, but synthesises without them: "
         "calibrate on its own log (cuzk calibrate --log) rather than on runs that use them")  # fmt: skip
    out.notes.sort(key=lambda n: n.line)
    return out


def _policy(settings: Settings, machine: Machine, circuit: Circuit, env: dict[str, str], out: Imported,
            note: Any) -> dict[str, Any]:  # fmt: skip
    threads = settings["gpus.gpu_threads"]
    if threads == 0 and env.get("CUZK_GPU_THREADS", "").isdigit():
        threads = int(env["CUZK_GPU_THREADS"])
    whole = not settings["pipeline.enabled"]
    policy: dict[str, Any] = {
        "pw": 1 if whole else out.synthesis_workers,
        "gw": 1 if whole else max(1, settings["gpus.gpu_workers_per_device"]),
        "j": MAX_PENDING,
        "gt": min(4096, threads or machine.threads),
        "order": "by-proof",
    }
    if whole:
        return policy
    policy |= {"permit_returns": "after-synthesis", "channel_capacity": QUEUE}
    depth = settings["pipeline.max_gpu_queue_depth"]
    if depth:
        note("pipeline.max_gpu_queue_depth", f"paced: modelled as never more than {depth} finished sets before the GPUs; "
             "the byte budget beside it is left out")  # fmt: skip
        policy |= {"admission": "queue-target", "queue_target": min(4096, depth)}
    elif out.budget_bytes > machine.usable_ram:
        note("memory.total_budget", f"hands out {fmt_gib(out.budget_bytes)} where the machine has "
             f"{fmt_gib(machine.usable_ram)}: it bounds nothing, and is left out")  # fmt: skip
    else:
        resident = circuit.srs_bytes + circuit.pce_bytes
        if out.budget_bytes < resident + PARTITION_BYTES:
            note("memory.total_budget", f"{fmt_gib(out.budget_bytes)} do not hold key and matrices ({fmt_gib(resident)}) and one "
                 "partition: the daemon would wait for ever")  # fmt: skip
        policy |= {
            "admission": "byte-budget",
            "budget_margin": bytes_text(machine.usable_ram - out.budget_bytes),
            "budget_partition": bytes_text(PARTITION_BYTES),
        }
    if settings["scheduler.max_batch_size"] > 1:
        note("scheduler.max_batch_size", "batches of several sectors are not modelled: each proof goes alone")
    if settings["pipeline.synthesis_concurrency"] > 1:
        note("pipeline.synthesis_concurrency", "covers parsing and key loading only, which take no time in the model")
    if settings["synthesis.threads"]:
        note("synthesis.threads", "the shared pool of synthesis threads is not modelled: partitions share the machine's cores")
    return policy


def _machine(settings: Settings, machine: Machine, machine_file: str, note: Any) -> Any:
    """The file, or the machine with only the GPUs that the daemon uses."""
    devices = settings["gpus.devices"]
    for device in devices:
        if device >= len(machine.gpus):
            line = settings.given["gpus.devices"]
            raise InputError(f"{settings.path}:{line}: gpus.devices: no GPU {device}: '{machine.name}' has {len(machine.gpus)}")
    if not machine.gpus:
        raise InputError(f"machine '{machine.name}' has no GPU: the daemon needs one")
    if not devices or sorted(set(devices)) == list(range(len(machine.gpus))):
        return machine_file
    note("gpus.devices", f"{len(set(devices))} of the machine's {len(machine.gpus)} GPUs")
    dumped = machine.model_dump(mode="json", exclude_defaults=True)
    return {"extends": machine_file, "gpus": [dumped["gpus"][device] for device in sorted(set(devices))]}

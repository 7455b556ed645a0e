"""`run`: a scenario for real, on one device, with its trace and its result."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzk import __version__
from cuzk.errors import InputError
from cuzk.exec.device import Device
from cuzk.exec.engine import Engine
from cuzk.exec.host import available_bytes
from cuzk.exec.null import Burn, NullDevice
from cuzk.exec.proofs import ProofWriter, Some
from cuzk.exec.result import RunResult, outcome_of, result_of
from cuzk.exec.sampler import Sampler
from cuzk.model.circuit import Circuit
from cuzk.model.policy import Matrices
from cuzk.model.policy import Witness as WitnessForm
from cuzk.model.scenario import Scenario
from cuzk.native.memory import process_resident_bytes
from cuzk.pipeline.check import check
from cuzk.pipeline.presets import PRESETS, preset_policy
from cuzk.pipeline.program import Program, bind
from cuzk.pipeline.sets import ProofRun
from cuzk.trace.event import Event
from cuzk.trace.jsonl import TraceWriter

if TYPE_CHECKING:
    from cuzk.groth16.assignments import Assignments

Progress = Callable[[ProofRun], None]


@dataclass(frozen=True)
class Proving:
    """The needs of real proofs: files, and how."""

    key: str
    witnesses: tuple[str, ...]
    r1cs: str | None = None
    threads: int | None = None
    insecure_seed: int | None = None
    c1: tuple[str, ...] = ()
    """C1 outputs in place of witnesses: proof p is that of number p modulo their number."""
    makers: int = 0
    """Processes that make the values of C1 outputs; 0: the run's own threads do."""
    numbers: tuple[int, ...] = ()
    """Only these of the scenario's proofs; all where it is empty."""


def run(scenario: Scenario, device: Device, *, trace_path: str | os.PathLike[str] | None = None,
        progress: Progress | None = None, measured: dict[str, Any] | None = None) -> RunResult:  # fmt: skip
    """Run `scenario` on `device` and close it. The scenario's machine is the one whose books are kept.

    A failed run is a result too (`RunResult.error`); only what is wrong before the start is raised: InputError for a
    pipeline with faults, a step without a cost or without a body.
    """
    program = bind(scenario)
    refuse_faults(program)
    header = header_of(program, device.name) | (measured or {})
    events: list[Event] = []
    device.open(program)
    trace = TraceFile(TraceWriter(trace_path, header) if trace_path is not None else None, lambda why: engine.halt(why))

    def sink(event: Event) -> None:
        events.append(event)
        trace(event)

    try:
        engine = Engine(program, device, sink, progress)
        sampler = Sampler(engine)
        with interruptible(engine.interrupt), sampler:
            engine.run()
        result = result_of(program, device.name, outcome_of(engine, sampler), events, measured or {})
    finally:
        device.close()
        trace.close()
    return result


class TraceFile:
    """The trace of a run on a disk that may fill: then the run is halted with the file's name, and no cut file stays."""

    def __init__(self, writer: TraceWriter | None, halt: Callable[[InputError], None]) -> None:
        self._writer, self._halt = writer, halt
        self._broken = False

    def __call__(self, event: Event) -> None:
        if self._writer is not None and not self._broken:
            try:
                self._writer(event)
            except OSError as error:
                self._broken = True
                self._halt(InputError(f"{self._writer.path}: {error.strerror or error}"))

    def close(self) -> None:
        """The file gets its name, if it is whole."""
        if self._writer is not None:
            if self._broken:
                self._writer.abandon()
                return
            try:
                self._writer.close()
            except OSError as error:  # what was buffered found no room
                raise InputError(f"{self._writer.path}: {error.strerror or error}") from error


def refuse_faults(program: Program) -> None:
    """Raises InputError for a pipeline that would not run to its end."""
    faults = [f"{finding.path}: {finding.message}" for finding in check(program) if finding.severity == "error"]
    if faults:
        raise InputError("the pipeline has faults, and would not run to its end:\n" + "\n".join(faults))


def header_of(program: Program, device: str) -> dict[str, Any]:
    """The header: all that a reader of the trace needs to know of the run. `device`: its name."""
    scenario = program.scenario
    return {
        "clock": "wall", "cuzk": __version__, "scenario": scenario.name, "scenario_hash": scenario.hash(),
        "device": device, "pipeline": program.pipeline.name, "machine": scenario.machine.name,
        "host": {"cpus": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "policy": {k: v for k, v in program.policy.model_dump(mode="json").items() if v is not None},
    }  # fmt: skip


@contextmanager
def interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C (and a polite kill) unwinds the run; a second one ends the process the hard way."""
    if threading.current_thread() is not threading.main_thread():
        with nullcontext():
            yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(number: int, frame: Any) -> None:
        interrupt()
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ----------------------------------------------------------------- null device


TIME_SCALE = 1 / 16
"""The scale of time where a scenario is scaled to fit: touching pages takes real time, however short the steps pretend to be."""


SCALED_BYTES = 2 << 30
"""The most that a scenario takes that is scaled to fit: touching it must not outlast the steps."""


def null_device(scenario: Scenario, scale: float | None, time_scale: float | None,
                burn: Burn) -> tuple[NullDevice, Scenario, list[str]]:  # fmt: skip
    """The null device, the scenario with its RAM capped to what this machine has, and notes for the user.

    `scale` None: the largest power of two at which the scenario's memory comes to 2 GiB at most, or 1 if all of it fits in
    half of what is free here; `time_scale` None: 1/16 for a scaled scenario.
    """
    available = available_bytes()
    machine = scenario.machine
    vram = sum(gpu.vram for gpu in machine.gpus)
    notes = []
    if scale is None:
        scale = 1.0
        if machine.usable_ram + vram > available / 2:
            while (machine.usable_ram + vram) * scale > min(available / 2, SCALED_BYTES):
                scale /= 2
        if scale < 1:
            notes.append(f"scaled to 1/{round(1 / scale)} of the bytes (--scale to choose)")
    if time_scale is None:
        time_scale = 1.0 if scale == 1 else TIME_SCALE
    room = int(available * 0.9 / scale) - vram
    if room < machine.usable_ram:
        if room <= 0:
            raise InputError(f"at scale {scale:g} not even the devices' memory fits this machine: choose a smaller --scale")
        notes.append(f"RAM capped at {room / 2**30:.1f} GiB of the scenario's {machine.usable_ram / 2**30:.1f}: this machine "
                     f"has no more at scale {scale:g}")  # fmt: skip
        scenario = with_ram_cap(scenario, room)
    return NullDevice(scale, time_scale, burn), scenario, notes


def with_ram_cap(scenario: Scenario, cap_bytes: int) -> Scenario:
    """The scenario on a machine whose usable RAM is at most `cap_bytes`."""
    machine = scenario.machine
    if cap_bytes >= machine.usable_ram:
        return scenario
    capped = machine.model_copy(update={"ram": cap_bytes, "reserved": 0, "cgroup_limit": None})
    return scenario.model_copy(update={"machine": capped})


# ------------------------------------------------------------------ cpu device


@dataclass(frozen=True)
class Prepared:
    """A scenario bound to a key and its witnesses; nothing has run yet."""

    scenario: Scenario
    """With the key's circuit and the quotient that will be used."""
    key: Any
    device: Any
    """None, as is the key, if a worker process has them."""
    measured: dict[str, Any]
    supervisor: Any = None
    numbers: tuple[int, ...] = ()
    """The proofs' own numbers, where the run makes only some of the scenario's."""


def prepare(scenario: Scenario, proving: Proving, *, ram_cap_bytes: int | None = None,
            make_device: Callable[..., Device] | None = None, worker: bool | None = None) -> Prepared:  # fmt: skip
    """Open key and witnesses. The circuit's counts are the key's, its partitions the scenario's; whether its matrices are a
    template and its witnesses bits is theirs to say. `make_device`: CpuDevice (the default), or one that takes the same
    arguments.

    `worker`: whether a process of its own opens them and proves, which is replaced when its device is lost (None: as
    `make_device.in_worker` says; then `make_device` must be importable under its name).

    Raises InputError, FormatError.
    """
    if getattr(make_device, "in_worker", False) if worker is None else worker:
        from cuzk.exec.supervisor import Supervisor
        from cuzk.exec.worker import Job

        supervisor = Supervisor(Job(scenario, proving, ram_cap_bytes, make_device))
        return Prepared(supervisor.ready.scenario, None, None, supervisor.ready.measured, supervisor, proving.numbers)
    idle_bytes = process_resident_bytes()
    # NumPy's BLAS is not used; its threads would only take time and memory
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from cuzk.groth16.load import load_key, open_witness

    if scenario.workload.circuits:
        raise InputError("a run with a key proves one circuit; the scenario's workload mixes several")
    given: Assignments | list[Any]
    if proving.c1 and os.path.isdir(proving.c1[0]):
        from cuzk.jobs import open_jobs

        key, given = open_jobs(proving.key, proving.c1)
    elif proving.c1:
        key, given = open_sectors(proving.key, proving.c1, proving.makers)
    else:
        key = load_key(proving.key, proving.r1cs)
        given = [open_witness(path)(key) for path in proving.witnesses]
    return bind_key(scenario, key, given, proving, idle_bytes=idle_bytes, ram_cap_bytes=ram_cap_bytes, make_device=make_device)


def open_sectors(key_path: str, paths: tuple[str, ...], makers: int = 0) -> tuple[Any, Assignments]:
    """The key of some C1 outputs' circuit, and what is proved: all of them checked here, and read again when their proof
    begins. Raises InputError, FormatError with the place of a fault."""
    from cuzk.porep.job import SectorFiles
    from cuzk.porep.processes import SectorProcesses
    from cuzk.porep.proving import load_porep_key

    sectors = SectorProcesses(paths, makers) if makers else SectorFiles(paths)
    return load_porep_key(key_path, sectors.maker), sectors


def bind_key(scenario: Scenario, key: Any, given: Assignments | list[Any], proving: Proving, *, idle_bytes: int,
         ram_cap_bytes: int | None = None, make_device: Callable[..., Device] | None = None) -> Prepared:  # fmt: skip
    """`prepare` with an open key and open witnesses (or what makes them); of `proving` only how, not what. Witnesses of
    field elements for a template become bits. `idle_bytes`: resident before any of it was opened."""
    from cuzk.exec.cpu import CpuDevice
    from cuzk.groth16.assignments import Ready
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.groth16.template.bits import BitWitness
    from cuzk.groth16.template.system import TemplateSystem

    quotient = key.require_quotient(scenario.policy.quotient)
    matrices: Matrices = "csr"
    if isinstance(key.system, TemplateSystem):
        matrices, template = "template", key.system.template
        if isinstance(given, list):
            given = [w if isinstance(w, BitWitness) else BitWitness.of_std(template, w) for w in given]
    assignments: Assignments = Ready(given) if isinstance(given, list) else given
    if proving.numbers:
        assignments = Some(assignments, proving.numbers)
        scenario = scenario.model_copy(update={"workload": scenario.workload.model_copy(update={"proofs": len(proving.numbers)})})
    witnesses = list(assignments.examples())
    circuit = circuit_of(key, witnesses, assignments.partitions or scenario.circuit.partitions)
    form: WitnessForm = "bits" if all(isinstance(w, BitWitness) for w in witnesses) else "field"
    facts: dict[str, Any] = {"quotient": quotient, "matrices": matrices, "witness": form}
    scenario = scenario.model_copy(update={"circuit": circuit})
    suited = None
    if (suit := getattr(make_device, "suit", None)) is not None:
        scenario, suited = suit(scenario, facts)
    scenario = suited or own_pipeline(scenario).with_policy(**facts)
    if ram_cap_bytes is not None:
        scenario = with_ram_cap(scenario, ram_cap_bytes)
    seed = proving.insecure_seed
    blinding = Blinding.random if seed is None else lambda: Blinding.from_seed(seed)
    device = (make_device or CpuDevice)(key, assignments, quotient, idle_bytes, proving.threads, blinding)
    measured = {"idle_bytes": idle_bytes, "quotient": quotient, "private": seed is None, "development_key": key.development}
    return Prepared(scenario, key, device, measured, None, proving.numbers)


def prove_with(prepared: Prepared, out_dir: str | os.PathLike[str] | None = None, *,
               trace_path: str | os.PathLike[str] | None = None, progress: Progress | None = None) -> RunResult:  # fmt: skip
    """Real proofs through the pipeline, each partition verified by an independent pairing before it counts. A proof all of whose
    partitions are verified has its files written into `out_dir` at once."""
    device = prepared.device
    verified = 0
    with ProofWriter(None if out_dir is None else Path(out_dir), prepared.numbers) as writer:

        def made(number: int, parts: dict[int, Any]) -> None:
            nonlocal verified
            verified += len(parts)
            writer.put(number, parts)

        def on_proof(proof: ProofRun) -> None:
            made(proof.number, device.take_proof(proof.number))
            if progress is not None:
                progress(proof)

        if prepared.supervisor is not None:
            result: RunResult = prepared.supervisor.prove(trace_path, progress, made)
        else:
            result = run(prepared.scenario, device, trace_path=trace_path, progress=on_proof, measured=prepared.measured)
    result.document["measured"]["verified_partitions"] = verified
    if out_dir is not None:
        result.document["measured"]["files"] = [path for _, path in sorted(writer.files.items())]
    return result


def own_pipeline(scenario: Scenario) -> Scenario:
    """The scenario with our own executor's pipeline where it names a preset of the reference prover: the options that the preset
    sets stay, steps and buffers are what is really run. A pipeline that the file itself gives stays as it is."""
    given = scenario.pipeline
    if not isinstance(given, str) or given not in PRESETS or PRESETS[given].is_own:
        return scenario
    return scenario.model_copy(update={"pipeline": "own", "policy": preset_policy(given, scenario.policy)})


def circuit_of(key: Any, witnesses: list[Any], partitions: int) -> Circuit:
    """The counts of a key's circuit, and the shares of its witnesses: the ones of the first, the most full-size values. What is
    kept as a field element counts as one whatever its value."""
    import numpy as np

    from cuzk.groth16.prover.steps import classified
    from cuzk.groth16.template.bits import BitWitness
    from cuzk.groth16.template.system import TemplateSystem

    system = key.system
    inputs = key.n_public + 1
    nnz_a, nnz_b, nnz_c = system.nonzeros()
    density_a_aux, density_b_input, density_b_aux = system.densities()
    ones, tail, _ = classified(witnesses[0], None)
    tails = [len(tail)]
    for witness in witnesses:
        if isinstance(witness, BitWitness):
            fields = (witness.inputs_mont, witness.prefix_fields_mont, witness.body_fields_mont)
            tails.append(sum(a.size // 4 for a in fields))
        elif witness is not witnesses[0]:
            tails.append(len(classified(witness, None)[1]))
    full_size = max(tails) / key.n_wires
    one_share = min(int(np.bitwise_count(ones).sum(dtype=np.int64)) / key.n_wires, 1 - full_size)
    queries = [q for q in (key.a_query, key.b_g1_query, key.b_g2_query, key.l_query, key.l_c_free_query) if q is not None]
    points = [q.points for q in queries] + [h for h in (key.h_odd, key.h_monomial) if h is not None]
    # rows fill more than half of the domain, or the domain would be another one
    rows = max(system.rows, key.domain // 2 + 1 if key.domain > 1 else 1)
    return Circuit(
        name=Path(str(key.path)).stem, constraints=rows, aux=max(1, key.n_wires - inputs), inputs=inputs,
        nnz_a=nnz_a, nnz_b=nnz_b, nnz_c=nnz_c, density_a_aux=density_a_aux, density_b_input=density_b_input,
        density_b_aux=density_b_aux, full_size_share=full_size, ones_share=one_share, partitions=partitions,
        srs=sum(p.nbytes for p in points), **{"pce_template" if isinstance(system, TemplateSystem) else "pce": system.nbytes},
        provenance={"*": f"counted in {key.path}"},
    )  # fmt: skip


def progress_line(total: int) -> Progress | None:
    """A line on stderr that counts proofs, if that is a terminal."""
    if not sys.stderr.isatty():
        return None
    done = 0

    def show(proof: ProofRun) -> None:
        nonlocal done
        done += 1
        end = "\r\033[K" if done >= total else ""
        took = (proof.completed_s or 0.0) - proof.admitted_s
        sys.stderr.write(f"\r\033[K{done} of {total} proofs, the last one took {took:.1f} s{end}")
        sys.stderr.flush()

    return show

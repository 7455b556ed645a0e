"""Measured runs of the stand-alone prover as scenarios, and their back-test."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from cuzk.accuracy.backtest import Backtest, Row, summary
from cuzk.accuracy.predict import banded
from cuzk.accuracy.scenarios import circuit, machine
from cuzk.accuracy.stage_laws import StageFit, fit_stages
from cuzk.accuracy.timelines import Run, Runs, read_runs
from cuzk.analysis.bands import OUTSIDE_ERROR
from cuzk.analysis.sweeps import in_parallel
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.model.circuit import Circuit
from cuzk.model.machine import Machine
from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.model.workload import Workload
from cuzk.pipeline.program import Program, bind
from cuzk.sim.costs import Draw
from cuzk.sim.options import Options
from cuzk.sim.run import run_program

MACHINE = "h200-16c-126g"
METRICS = {
    "s_per_partition": "s_per_partition_overall",
    "peak_vram_bytes": "peak_vram_bytes",
    "rss_growth_bytes": "peak_rss_bytes",
}


def scenario_of(run: Run, runs: Runs, calibration: Calibration) -> Scenario:
    """The scenario of a measured run."""
    settings = run.settings
    own = settings.get("inputs") == "own"
    size = _circuit(run, runs)
    gap_s = float(settings.get("arrival_ms") or 0) / 1000.0
    partitions = int(settings["partitions"])
    policy = Policy(
        gw=int(settings["gw"]),
        prove_api="monolithic" if settings.get("api") == "monolithic" else "split",
        prestage="off" if settings.get("memory") == "pageable" else None,
    )
    return Scenario(
        name=run.id,
        machine=_machine(run, runs, size, calibration),
        circuit=size,
        policy=policy,
        pipeline="supraseal-own" if own else "supraseal",
        workload=Workload(proofs=partitions, arrivals=tuple(i * gap_s for i in range(partitions))),
        calibration=calibration,
        seed=1,
    )


def _circuit(run: Run, runs: Runs) -> Circuit:
    """The counts of the run's setup; without one, those of the 32 GiB circuit scaled to its domain."""
    lgd, found = int(run.settings["domain_log2"]), runs.setup(run)
    whole = circuit("porep-32g")
    scale = 2.0 ** (lgd - 27)
    counts = {"n_con": whole.constraints, "n_aux": whole.aux, "a": whole.a, "b": whole.b_g1}
    rows = {k: int((found or {}).get(k) or v * scale) for k, v in counts.items()}
    inputs = min(whole.inputs, rows["a"] - 1, rows["n_con"] - 1)
    return Circuit(
        name=f"domain-2^{lgd}",
        constraints=rows["n_con"],
        aux=rows["n_aux"],
        inputs=inputs,
        density_a_aux=min(rows["n_aux"], rows["a"] - inputs),
        density_b_aux=min(rows["n_aux"], rows["b"] - 1),
        full_size_share=float((found or {}).get("sig") or 100) / 10_000,
        srs=(found or {}).get("srs_bytes"),
        partitions=1,
    )


def _machine(run: Run, runs: Runs, size: Circuit, calibration: Calibration) -> Machine:
    known = machine(MACHINE)
    sets = int(run.settings.get("distinct_witnesses") or 1)
    templates = sets * (96 * size.constraints + 32 * size.aux)
    gpu = known.gpus[0]
    vram = int(runs.machine.get("vram_total_bytes") or gpu.vram)
    changes: dict[str, Any] = {"vram": vram, "context": int(runs.machine.get("vram_context_bytes") or gpu.context)}
    cap = run.settings.get("free_vram_cap_bytes")
    if cap:
        extra = (
            calibration.parameters.get("context_base", 0.0)
            + calibration.parameters.get("context_per_srs_byte", 0.0) * size.srs_bytes
        )
        changes["reserved"] = max(0, vram - int(cap) - int(changes["context"] + extra))
    if run.settings.get("emulated_total_vram_bytes"):
        changes["reported"] = int(run.settings["emulated_total_vram_bytes"])
    ram = int(runs.machine.get("mem_total_kb") or 0) * 1024 or known.ram
    return known.model_copy(update={"gpus": (gpu.model_copy(update=changes),), "ram": ram, "reserved": min(templates, ram - 1)})


def measured(run: Run) -> dict[str, float | str]:
    """The figures of a run that can be scored."""
    given = run.measured
    out: dict[str, float | str] = {}
    verdict = given.get("verdict")
    if isinstance(verdict, str):
        out["verdict"] = "ok" if verdict == "ok" else "oom"
    pace = _positive(given.get("s_per_partition_overall"))
    if verdict == "ok" and pace:
        out["s_per_partition"] = pace
    peak = _positive(given.get("peak_vram_minus_hold_bytes") or given.get("peak_vram_bytes"))
    if peak:
        out["peak_vram_bytes"] = peak
    start, top = _positive(given.get("rss_at_start_bytes")), _positive(given.get("peak_rss_bytes"))
    if start and top > start:
        out["rss_growth_bytes"] = top - start
    return out


def _positive(value: Any) -> float:
    """The figure; 0 for what is none, or not above 0."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else 0.0


@dataclass(frozen=True)
class RunSample:
    s_per_partition: float | None
    peak_vram_bytes: float
    rss_growth_bytes: float
    oom: bool


def sample_run(program: Program, seed: int, errors: int | None, extra: float) -> RunSample:
    result = run_program(program, seed, Options(draw=Draw(errors, extra)))
    resident = sum(resident.nbytes for resident in program.residents if resident.pool in ("ram", "pinned"))
    vram = result.peaks["vram:0"]
    # the driver's pool takes all that is left before it gives up, and keeps it
    top = vram.capacity_bytes if result.oom is not None and result.oom.pool == "vram:0" else vram.resident_bytes
    return RunSample(result.s_per_proof, top, max(0, result.peaks["ram"].resident_bytes - resident), result.oom is not None)


def backtest_runs(
    folder: str,
    calibration: Calibration,
    seeds: int = 21,
    *,
    processes: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Backtest:
    """Predict every run of a folder."""
    runs = read_runs(folder)
    out = Backtest(runs.path, calibration.name, warnings=list(runs.warnings), faults=list(runs.faults))
    out.rows = predicted_rows(runs, calibration, seeds, out, processes=processes, progress=progress)
    return out


def predicted_rows(
    runs: Runs,
    calibration: Calibration,
    seeds: int,
    out: Backtest,
    *,
    chosen: Iterable[str] | None = None,
    processes: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    wanted = set(chosen) if chosen is not None else None
    todo = [(run, m) for run in runs.runs if (wanted is None or run.id in wanted) and (m := measured(run))]
    out.not_scored += [(r.id, "*", "no figure that is scored") for r in runs.runs if not measured(r)]
    programs = [bind(scenario_of(run, runs, calibration)) for run, _ in todo]
    far = [_outside(program) for program in programs]
    jobs = [
        partial(sample_run, p, 1 + n, 1 + n if n else None, OUTSIDE_ERROR if f and n else 0.0)
        for p, f in zip(programs, far, strict=True)
        for n in range(seeds)
    ]
    if progress:
        progress(f"{len(programs)} runs x {seeds} seeds")
    samples = in_parallel(jobs, processes)
    rows: list[Row] = []
    used = set(calibration.points)
    for i, (run, figures) in enumerate(todo):
        mine, note = samples[i * seeds : (i + 1) * seeds], "; ".join(far[i])
        for metric, value in figures.items():
            if metric == "verdict":
                says = "oom" if sum(s.oom for s in mine) * 2 >= len(mine) else "ok"
                rows.append(Row(run.id, metric, value, says, None, None, run.id in used, note=note))
            else:
                found = banded([getattr(s, metric) for s in mine], metric, calibration)
                p50, p5, p95 = (found.p50, found.p5, found.p95) if found else (None, None, None)
                rows.append(Row(run.id, metric, value, p50, p5, p95, run.id in used, note=note))
    return rows


def _outside(program: Program) -> list[str]:
    scenario = program.scenario
    names = {k: v for k, v in program.names(scenario.circuit).items() if isinstance(v, (int, float))}
    return scenario.calibration.outside(names) if scenario.calibration else []


def with_residuals(found: StageFit, runs: Runs) -> StageFit:
    """The fit with what it misses the runs by, robustly, as parameters: `residual_METRIC`."""
    rows = predicted_rows(
        runs, found.calibration, 5, Backtest(runs.path, found.calibration.name), chosen=found.calibration.points
    )
    spread: dict[str, float] = {}
    for metric in METRICS:
        errors = [abs(e) for row in rows if row.metric == metric and (e := row.error) is not None]
        # the laws' own errors already spread the times
        if errors and metric != "s_per_partition":
            spread[f"residual_{metric}"] = round(max(0.005, 1.4826 * statistics.median(errors)), 5)
    parameters = {**found.calibration.parameters, **spread}
    found.calibration = found.calibration.model_copy(update={"parameters": parameters})
    return found


def left_out(runs: Runs, seeds: int = 11) -> dict[str, Any]:
    """Each run predicted by laws fitted without it: the document that the back-test shows beside its own rows."""
    rows: list[Row] = []
    for run in runs.runs:
        others = [r.id for r in runs.runs if r.id != run.id]
        try:
            without = fit_stages(runs, used=others).calibration
        except InputError:
            continue
        rows += predicted_rows(runs, without, seeds, Backtest(runs.path, without.name), chosen=[run.id])
    return {
        "how": "Each run is predicted by laws fitted to the other runs.",
        "summary": summary(rows),
        "rows": [
            {"id": r.id, "metric": r.metric, "error": r.error, "verdict": r.predicted if r.error is None else None} for r in rows
        ],
    }

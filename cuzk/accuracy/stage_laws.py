"""A calibration of the stand-alone prover from its timelines: one law a stage, in the size of the domain.

    t(n) = t24 · (n / 2^24)^p      through the medians of the runs, by least squares of logarithms

Stages scale nearly linearly, so p is drawn to 1 where few sizes were measured. What repeats of one run differ by is the
law's error (drawn once a run for bands); what partitions of one run differ by is its jitter.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cuzk.accuracy.timelines import Partition, Run, Runs
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration

BASE_LOG2 = 24
POWER_SPREAD = 0.15
"""Standard deviation of p around 1 before anything is measured."""
LEAST_ERROR = 0.01
FEW_ERROR = 0.05
"""Least error of a law through so few runs that they fit it whatever they are."""
LOCK_WAKE_S = 2e-4
"""Assumed; only its ratio to the worker's way back to the lock matters, and that is measured."""

Pick = Callable[[Partition], float | None]


def _column(name: str) -> Pick:
    return lambda part: part.get(name)


def _less(whole: str, part: str) -> Pick:
    def pick(p: Partition) -> float | None:
        a, b = p.get(whole), p.get(part)
        return a - b if a is not None and b is not None and a > b else None

    return pick


def _epilogue(part: Partition) -> float | None:
    ended, begun, b_g2 = part.get("fin1"), part.get("fin0"), part.get("b_g2_t")
    if ended is None or begun is None or b_g2 is None:
        return None
    return max(0.0005, ended - max(begun, b_g2))


def _pinned(run: Run) -> bool:
    return run.settings.get("memory") != "pageable"


def _own(run: Run) -> bool:
    return run.settings.get("inputs") == "own"


@dataclass(frozen=True)
class Stage:
    law: str
    pick: Pick
    runs: Callable[[Run], bool]
    cores: str = "0"
    gpu: float = 0.0
    fallback: str = ""
    """Formula where no run shows the stage."""
    why: str = ""
    like: str = ""
    """Stage that it is taken to be like where no run shows it."""


STAGES = [
    Stage("prep_msm", _column("prep"), _pinned, cores="1"),
    Stage("prep_msm_pageable", _column("prep"), lambda r: not _pinned(r), cores="1", like="prep_msm"),
    Stage("ntt_h", _less("ntt_h_total", "msm_h"), _pinned, gpu=1.0),
    Stage(
        "ntt_h_pageable",
        _less("ntt_h_total", "msm_h"),
        lambda r: not _pinned(r),
        gpu=1.0,
        fallback="96*constraints / 5.5e9",
        why="a, b and c at the rate of a pageable copy",
    ),
    Stage("msm_h", _column("msm_h"), lambda r: not (_own(r) and _pinned(r)), gpu=1.0),
    Stage("batch_add", _column("batch_add"), lambda r: True, gpu=1.0),
    Stage("tail_msm", _column("tail"), lambda r: True, gpu=1.0),
    Stage("b_g2_msm", _column("b_g2"), lambda r: True, cores="max(1, cores - 2)"),
    Stage("epilogue", _epilogue, lambda r: True, cores="1"),
    Stage("dealloc_native", _column("dealloc"), lambda r: True, cores="1"),
    Stage(
        "copy_inputs",
        _less("ready", "synth0"),
        _own,
        cores="1",
        fallback="(96*constraints + 32*aux) / 5e9",
        why="four threads that copy into fresh pages",
    ),
]


@dataclass
class Law:
    """One fitted stage."""

    t24_s: float
    power: float
    power_error: float
    error: float
    jitter: float
    runs: int
    domains: list[int]


@dataclass
class StageFit:
    calibration: Calibration
    laws: dict[str, Law]
    notes: list[str] = field(default_factory=list)


def fit_stages(runs: Runs, name: str = "h200-supraseal", used: Iterable[str] | None = None) -> StageFit:
    """Raises InputError if no run has a timeline of partitions that came out."""
    chosen = set(used) if used is not None else None
    good = [r for r in runs.runs if r.timeline and _came_out(r) and (chosen is None or r.id in chosen)]
    if not good:
        raise InputError(f"{runs.path}: no run with a timeline of partitions that came out")
    notes: list[str] = []
    laws: dict[str, Law] = {}
    costs: dict[str, Any] = {}
    for stage in STAGES:
        law = _fit(stage, good)
        if law is None:
            what = f"assumed: as {stage.like}" if stage.like else f"assumed: {stage.why}" if stage.fallback else "no law for it"
            notes.append(f"{stage.law}: no run shows it; {what}")
            if stage.like in costs:
                costs[stage.law] = costs[stage.like]
            if stage.fallback:
                costs[stage.law] = {
                    "seconds": stage.fallback,
                    "cores": stage.cores,
                    "gpu": stage.gpu,
                    "jitter": 0.1,
                    "provenance": f"assumed: {stage.why}",
                }
            continue
        laws[stage.law] = law
        costs[stage.law] = _cost(stage, law)
        if len(law.domains) < 2:
            notes.append(f"{stage.law}: one domain only (2^{law.domains[0]}): its power is assumed")
    registering = _registering(good, laws)
    if registering is not None and "msm_h" in costs:
        notes.append(f"msm_h beside the registration of other sets: {registering:.2f} times as long")
    won, chances = overtakes(good)
    share = (won + 0.5) / (chances + 1.0) if chances else 0.2
    costs["gpu_overhead"] = {
        "seconds": round(-math.log(share) * LOCK_WAKE_S, 9),
        "cores": "1",
        "provenance": f"measured: who unlocked took the mutex again in {won} of {chances} cases with a waiter",
    }
    context = _context(runs, notes)
    lgd = sorted({int(r.settings["domain_log2"]) for r in good})
    machine = runs.machine
    data = {
        "name": name,
        "software": str(machine.get("curio", "supraseal")),
        "machine": "h200-16c-126g",
        "gpu": str(machine.get("gpu", "")),
        "description": "stages of the stand-alone reference prover as laws in the domain, fitted to its timelines",
        "phases": ["supraseal", "supraseal-own"],
        "costs": costs,
        "parameters": context,
        "range": {"domain": [2 ** lgd[0], 2 ** lgd[-1]], "gw": [1, max(int(r.settings["gw"]) for r in good)]},
        "latency": {"lock_wake": LOCK_WAKE_S, "provenance": "assumed: only its ratio to gpu_overhead matters"},
        "contention": {"cores_exponent": 1.0, "provenance": "assumed: work beyond the cores shares them evenly"},
        "points": [r.id for r in good],
    }
    return StageFit(Calibration.model_validate(data), laws, notes)


def _came_out(run: Run) -> bool:
    return bool(run.measured.get("verdict", "ok") == "ok")


def _medians(stage: Stage, runs: list[Run]) -> list[tuple[int, float, list[float]]]:
    """(log2 domain, median, all values) of each run that shows the stage."""
    rows = []
    for run in runs:
        if run.timeline is None or not stage.runs(run):
            continue
        values = [v for p in run.timeline.partitions if (v := stage.pick(p)) is not None and v > 0]
        if values:
            centre = (
                statistics.fmean(values)
                if stage.law in ("copy_inputs", "epilogue", "dealloc_native")
                else statistics.median(values)
            )
            rows.append((int(run.settings["domain_log2"]), centre, values))
    return rows


def _fit(stage: Stage, runs: list[Run]) -> Law | None:
    rows = _medians(stage, runs)
    if not rows:
        return None
    import numpy as np

    x = np.array([(lgd - BASE_LOG2) * math.log(2.0) for lgd, _, _ in rows])
    y = np.log([centre for _, centre, _ in rows])
    spread = 0.1
    for _ in range(4):  # the spread of the runs decides how much the power's prior weighs
        a = np.vstack([np.column_stack([np.ones_like(x), x]) / spread, [[0.0, 1.0 / POWER_SPREAD]]])
        b = np.concatenate([y / spread, [1.0 / POWER_SPREAD]])
        solution, *_ = np.linalg.lstsq(a, b, rcond=None)
        residual = y - solution[0] - solution[1] * x
        spread = max(LEAST_ERROR, float(np.sqrt(np.sum(residual**2) / max(1, len(rows) - 2))))
    covariance = np.linalg.inv(a.T @ a)
    if len(rows) < 4:
        spread = max(spread, FEW_ERROR)
    within = [v / centre - 1.0 for _, centre, values in rows for v in values if len(values) > 2]
    jitter = 1.4826 * statistics.median(map(abs, within)) if within else 0.05
    return Law(
        float(np.exp(solution[0])),
        float(solution[1]),
        float(np.sqrt(covariance[1, 1])),
        spread,
        min(jitter, 0.5),
        len(rows),
        sorted({lgd for lgd, _, _ in rows}),
    )


def _cost(stage: Stage, law: Law) -> dict[str, Any]:
    where = ", ".join(f"2^{d}" for d in law.domains)
    return {
        "seconds": f"{law.t24_s:.6g} * (domain/2**{BASE_LOG2})**{law.power:.4f}",
        "cores": stage.cores,
        "gpu": stage.gpu,
        "jitter": round(law.jitter, 4),
        "provenance": {
            "seconds": {
                "source": "fit",
                "note": f"medians of {law.runs} runs at {where}; power ± {law.power_error:.2f}",
                "error": round(law.error, 4),
            },
            "jitter": "measured: spread of the partitions of a run",
            "*": "assumed",
        },
    }


def _registering(runs: list[Run], laws: dict[str, Law]) -> float | None:
    """By how much msm_h takes longer where sets are registered during the run."""
    law = laws.get("msm_h")
    ratios = []
    for run in runs:
        if law is None or run.timeline is None or not (_own(run) and _pinned(run)):
            continue
        values = [v for p in run.timeline.partitions if (v := p.get("msm_h"))]
        if values:
            ratios.append(statistics.fmean(values) / (law.t24_s * 2.0 ** (law.power * (run.settings["domain_log2"] - BASE_LOG2))))
    return statistics.fmean(ratios) if ratios else None


def overtakes(runs: Iterable[Run]) -> tuple[int, int]:
    """(times that a worker which had just unlocked took the mutex although another one waited, times that one waited)."""
    won = chances = 0
    for run in runs:
        parts = [p for p in (run.timeline.partitions if run.timeline else []) if p.get("lock_t") is not None]
        asked = {i: p.times_s["lock_t"] - p.times_s.get("mutex_wait", 0.0) for i, p in enumerate(parts)}
        order = sorted(range(len(parts)), key=lambda i: parts[i].times_s["lock_t"])
        for now, after in itertools.pairwise(order):
            unlocked = parts[now].get("held_t")
            if unlocked is None:
                continue
            waiting = [
                i
                for i in range(len(parts))
                if i != now and asked[i] < unlocked - 0.005 and parts[i].times_s["lock_t"] >= unlocked - 0.002
            ]
            if waiting:
                chances += 1
                won += parts[after].get("w") == parts[now].get("w")
    return won, chances


def _context(runs: Runs, notes: list[str]) -> dict[str, float]:
    """VRAM that setting up takes beyond the bare context: a fixed part, and one that grows with the registered key."""
    rows: dict[float, list[float]] = defaultdict(list)
    for s in runs.setups:
        if all(isinstance(s.get(k), (int, float)) for k in ("srs_bytes", "vram_ctx_mib", "vram_after_setup_mib")):
            rows[float(s["srs_bytes"])].append((s["vram_after_setup_mib"] - s["vram_ctx_mib"]) * 2.0**20)
    if not rows:
        notes.append("no setup says what the context takes: nothing is added to it")
        return {"context_base": 0.0, "context_per_srs_byte": 0.0}
    points = [(x, statistics.fmean(ys)) for x, ys in sorted(rows.items())]
    if len(points) == 1:
        return {"context_base": points[0][1], "context_per_srs_byte": 0.0}
    slope, intercept = statistics.linear_regression([x for x, _ in points], [y for _, y in points])
    return {"context_base": round(intercept), "context_per_srs_byte": round(slope, 9)}

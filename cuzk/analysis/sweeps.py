"""Many scenarios at once: every combination of some policy values, on several processes."""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from cuzk.model.scenario import Scenario
from cuzk.sim.result import SimResult
from cuzk.sim.run import simulate

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Told (done, of how many) now and then."""
_jobs: Sequence[Callable[[], Any]] = ()


@dataclass(frozen=True)
class SweepRow:
    settings: dict[str, Any]
    result: SimResult


def sweep(scenario: Scenario, axes: Mapping[str, Iterable[Any]], *, seed: int | None = None,
          processes: int | None = None, progress: Progress | None = None) -> list[SweepRow]:  # fmt: skip
    """Simulate every combination of policy values, such as `{"pw": range(1, 25), "gw": [1, 2, 3]}`.

    Each row equals the single run of its scenario, bit for bit. `processes`: default one per core.
    """
    names = list(axes)
    combinations = [dict(zip(names, values, strict=True)) for values in itertools.product(*(list(axes[n]) for n in names))]

    variants = [scenario.with_policy(**settings) for settings in combinations]
    results = in_parallel([partial(_simulated, v, seed) for v in variants], processes, progress)
    for result, variant in zip(results, variants, strict=True):
        result.scenario = variant
    return [SweepRow(settings, result) for settings, result in zip(combinations, results, strict=True)]


def _simulated(scenario: Scenario, seed: int | None) -> SimResult:
    return bare(simulate(scenario, seed=seed))


def bare(result: SimResult) -> SimResult:
    """Without its scenario, which every process has."""
    result.scenario = None  # type: ignore[assignment]
    return result


def in_parallel(jobs: Sequence[Callable[[], T]], processes: int | None = None,
                progress: Progress | None = None) -> list[T]:  # fmt: skip
    """The results of `jobs`, in order. They run in forked processes, so they need not be picklable, but results must."""
    global _jobs
    workers = min(len(jobs), processes or len(os.sched_getaffinity(0)))
    if workers < 2 or multiprocessing.current_process().daemon:
        return _collect((job() for job in jobs), len(jobs), progress)
    _jobs = jobs
    try:
        # large jobs first would need to know them; small chunks keep the processes even
        with multiprocessing.get_context("fork").Pool(workers, _depend_on_the_parent, (os.getpid(),)) as pool:
            chunk = max(1, min(64, len(jobs) // (workers * 16)))
            return _collect(pool.imap(_run, range(len(jobs)), chunksize=chunk), len(jobs), progress)
    finally:
        _jobs = ()


def _collect(results: Iterable[T], total: int, progress: Progress | None) -> list[T]:
    out: list[T] = []
    for result in results:
        out.append(result)
        if progress is not None:
            progress(len(out), total)
    return out


_PR_SET_PDEATHSIG = 1


def _depend_on_the_parent(parent: int) -> None:
    """Ctrl-C reaches every process of a terminal: the parent ends the others, without a word from each. If it is killed, they
    end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # killed meanwhile
        os._exit(1)


def _run(index: int) -> Any:
    return _jobs[index]()

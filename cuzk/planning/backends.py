"""The places where rows are made: forked processes of this machine (the default), or joblib's backends loky, dask and ray.

joblib, dask and ray are extras: `pip install 'cuzk[sweep]'`, `'cuzk[dask]'`, `'cuzk[ray]'`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from cuzk.analysis.sweeps import in_parallel
from cuzk.errors import HardwareMissing, InputError
from cuzk.model.scenario import Scenario
from cuzk.planning.row import Row, simulated

NAMES = ("fork", "loky", "dask", "ray")


class Backend(Protocol):
    """Makes the rows of some scenarios, in order."""

    def rows(self, scenarios: Sequence[Scenario], seeds: int) -> list[Row]: ...

    @property
    def workers(self) -> int: ...


class Fork:
    def __init__(self, workers: int | None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))

    def rows(self, scenarios: Sequence[Scenario], seeds: int) -> list[Row]:
        return in_parallel([partial(simulated, s, seeds) for s in scenarios], self.workers)


class Joblib:
    """Chunks of scenarios through joblib, so that far workers are asked seldom."""

    def __init__(self, joblib: Any, workers: int) -> None:
        self._joblib, self.workers = joblib, workers

    def rows(self, scenarios: Sequence[Scenario], seeds: int) -> list[Row]:
        size = max(1, min(32, len(scenarios) // (4 * self.workers) or 1))
        chunks = [list(scenarios[i : i + size]) for i in range(0, len(scenarios), size)]
        task = self._joblib.delayed(_chunk)
        done = self._joblib.Parallel()(task(chunk, seeds) for chunk in chunks)
        return [row for rows in done for row in rows]


def _chunk(scenarios: list[Scenario], seeds: int) -> list[Row]:
    return [simulated(scenario, seeds) for scenario in scenarios]


@contextlib.contextmanager
def backend(name: str, workers: int | None = None, address: str | None = None) -> Iterator[Backend]:
    """One of `NAMES`; `address`: of a scheduler of dask or a head of ray that runs already, else a local one is started.

    Raises HardwareMissing where the extra is not installed, InputError for a name or an address that do not go together.
    """
    if name not in NAMES:
        raise InputError(f"no backend '{name}'; there are {', '.join(NAMES)}")
    if address and name not in ("dask", "ray"):
        raise InputError(f"an address goes with dask or ray, not with {name}")
    if name == "fork":
        yield Fork(workers)
        return
    count = workers or len(os.sched_getaffinity(0))
    joblib = _extra("joblib", "sweep")
    with contextlib.ExitStack() as stack:
        if name == "loky":
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=count))
        elif name == "dask":
            distributed = _extra("distributed", "dask")
            client = distributed.Client(address) if address else distributed.Client(
                distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
            )  # fmt: skip
            stack.callback(client.shutdown if not address else client.close)
            stack.enter_context(joblib.parallel_config(backend="dask", wait_for_workers_timeout=30))
        else:
            ray = _extra("ray", "ray")
            _extra("ray.util.joblib", "ray").register_ray()
            ray.init(address=address, num_cpus=None if address else count, include_dashboard=False, log_to_driver=False,
                     configure_logging=False)  # fmt: skip
            stack.callback(ray.shutdown)
            stack.enter_context(joblib.parallel_config(backend="ray", n_jobs=count))
        yield Joblib(joblib, count)


def _extra(module: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise HardwareMissing(f"{module} is not installed: pip install 'cuzk[{extra}]' ({error})") from None

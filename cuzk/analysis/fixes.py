"""Changes of a scenario's policy, each simulated: which is the smallest that fits, and what the nearest would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.sim.result import SimResult
from cuzk.sim.run import simulate

SEEDS = 3
"""A change counts as a fix if it fits under this many seeds."""
NO_SLOWER = 1.02
"""The first change in order is taken that fits and is at most this much slower than the fastest."""

Settings = dict[str, Any]
Trying = Callable[[str], None]
"""Told of every change that is about to be simulated, as `name=value`."""


@dataclass(frozen=True)
class Change:
    """One change and what it does."""

    settings: Settings
    why: str
    result: SimResult
    pool: str | None = None
    """The pool that ran out without it."""

    @property
    def set(self) -> str:
        """The arguments of `--set`."""
        return " --set ".join(f"policy.{name}={value}" for name, value in self.settings.items())

    @property
    def tightest(self) -> tuple[str, int, int]:
        """(pool, resident peak, capacity) of `pool`, or of the one that comes nearest to its limit."""
        if self.pool in self.result.peaks:
            peak = self.result.peaks[self.pool]
            return self.pool, peak.resident_bytes, peak.capacity_bytes
        rows = [(peak.resident_bytes / peak.capacity_bytes, name, peak) for name, peak in self.result.peaks.items()]
        _, name, peak = max(rows, key=lambda row: (row[0], row[1]))
        return name, peak.resident_bytes, peak.capacity_bytes

    def to_json(self) -> dict[str, Any]:
        pool, peak_bytes, capacity_bytes = self.tightest
        return {
            "set": self.set, "why": self.why, "verdict": self.result.verdict,
            "oom_pool": self.result.oom.pool if self.result.oom else None,
            "pool": pool, "peak_bytes": peak_bytes, "capacity_bytes": capacity_bytes,
            "peak_ram_bytes": self.result.peak_ram_bytes,
            "s_per_proof": None if self.result.s_per_proof is None else round(self.result.s_per_proof, 6),
        }  # fmt: skip


def suggest_fix(scenario: Scenario, result: SimResult | None = None, *, seeds: int = SEEDS,
                trying: Trying = lambda change: None) -> Change | None:  # fmt: skip
    """The smallest change with which `scenario` fits, or None if none of those tried does.

    Single options first, then fewer permits, workers and proofs in flight. Each is simulated with `seeds` seeds; `trying` is
    told of each.
    """
    result = simulate(scenario) if result is None else result
    pool = result.oom.pool if result.oom else None
    fitting = [replace(found, pool=pool) for found in _tried(scenario, result.seed, seeds, trying) if found is not None]
    paces = [change.result.s_per_proof or float("inf") for change in fitting]
    for change, pace in zip(fitting, paces, strict=True):
        if pace <= NO_SLOWER * min(paces):
            return change
    return None


def _tried(scenario: Scenario, seed: int, seeds: int, trying: Trying) -> Iterator[Change | None]:
    policy = bind(scenario).policy

    def if_fits(settings: Settings, why: str) -> Change | None:
        trying(", ".join(f"{name}={value}" for name, value in settings.items()))
        return _if_fits(scenario, settings, why, seed, seeds)

    for settings, why in switches(scenario, policy):
        yield if_fits(settings, why)
    for option, why in (("pw", "fewer syntheses at once"), ("gw", "fewer GPU workers"), ("j", "fewer proofs in flight")):
        yield _largest_that_fits(option, getattr(policy, option), why, if_fits)


def switches(scenario: Scenario, policy: Policy) -> list[tuple[Settings, str]]:
    """The options that move one line of the pipeline, where they are not set so already."""
    if not isinstance(scenario.pipeline, str):
        return []
    found: list[tuple[Settings, str]] = []
    if policy.permit_returns == "after-synthesis":
        found.append(({"permit_returns": "after-send"}, "a set that waits for the channel keeps its permit"))
    if policy.channel_capacity != 1:
        found.append(({"channel_capacity": 1}, "fewer finished sets wait in the channel"))
    if policy.prove_api == "split" and policy.free_abc == "after-finish":
        found.append(({"free_abc": "after-start"}, "a, b and c go as soon as the GPU is done with them"))
    if policy.free_d_bc == "after-unlock":
        found.append(({"free_d_bc": "before-unlock"}, "no worker finds d_bc of another in its way"))
    if policy.prestage == "before-mutex":
        found.append(({"prestage": "inside-mutex"}, "only the holder of the mutex allocates"))
    if policy.gpu_locks == "compute+memory":
        found.append(({"gpu_locks": "one"}, "one lock covers allocation and kernels"))
    if policy.admission == "byte-budget":
        found.append(({"admission": "permits"}, "permits bound the peak, a budget by settled size does not"))
    return found


def _largest_that_fits(
    option: str, now: int | None, why: str, if_fits: Callable[[Settings, str], Change | None]
) -> Change | None:
    """The largest value of a number below `now` with which it fits; near values one by one, then by halves."""
    if now is None or now < 2:
        return None
    near = list(range(now - 1, max(0, now - 5), -1))
    bad = now
    for value in near:
        found = if_fits({option: value}, why)
        if found is not None:
            return found
        bad = value
    good: Change | None = None
    low = 0
    while bad - low > 1:
        middle = (bad + low) // 2
        found = if_fits({option: middle}, why)
        if found is not None:
            good, low = found, middle
        else:
            bad = middle
    return good


def _if_fits(scenario: Scenario, settings: Settings, why: str, seed: int, seeds: int) -> Change | None:
    changed = scenario.with_policy(**settings)
    first = simulate(changed, seed=seed)
    if not first.fits or not all(simulate(changed, seed=seed + n).fits for n in range(1, seeds)):
        return None
    return Change(settings, why, first)


def nearest_changes(scenario: Scenario, seed: int | None = None) -> list[Change]:
    """Each of the nearest changes, simulated once, whether it fits or not."""
    policy = bind(scenario).policy
    tries = switches(scenario, policy)
    for option, what in (("pw", "permits of synthesis"), ("gw", "GPU workers"), ("j", "proofs in flight")):
        now = getattr(policy, option)
        if now is not None:
            tries += [({option: value}, f"{what}: {value} instead of {now}") for value in (now - 1, now + 1) if value > 0]
    return [Change(settings, why, simulate(scenario.with_policy(**settings), seed=seed)) for settings, why in tries]

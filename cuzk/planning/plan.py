"""The search for settings: lines of settings simulated short, the best of them whole, the best of those under many seeds.

A line is one combination of all options but `pw`, walked upwards. It ends where memory runs out at two values in a row (more
sets at once take no less), or where three values in a row bring no speed and only take memory; more proofs in flight are tried
for as long as they bring speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cuzk.analysis.bands import uncertainty
from cuzk.analysis.sweeps import Progress, bare, in_parallel
from cuzk.errors import InputError
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.planning.candidate import Candidate
from cuzk.planning.space import Axes, Settings, axes_of, count, lines, resolved
from cuzk.sim import simulate
from cuzk.sim.result import SimResult

Goal = Literal["throughput", "latency", "ram", "usd", "joule"]
GOALS: tuple[Goal, ...] = ("throughput", "latency", "ram", "usd", "joule")
SHORT_PROOFS = 4
"""Proofs of the short runs, beyond those in flight."""
NO_GAIN = 0.002
"""A pace that is better by less than this share is no better."""
ALIKE = 0.005
ALIKE_BYTES = 1 << 30
FINALISTS, SEEDS = 16, 20


@dataclass
class Wanted:
    """The purpose of a plan and its limits."""

    goal: Goal = "throughput"
    deadline_s: float | None = None
    """The workload must be done by then."""
    ram_margin: float = 0.05
    """Share of the RAM that stays free, at the P95 of the peak."""
    vram_margin: float = 0.02
    top: int = 8
    seeds: int = SEEDS


@dataclass
class Found:
    """The outcome of a search."""

    best: list[Candidate] = field(default_factory=list)
    pareto: list[Candidate] = field(default_factory=list)
    """Settings that fit and that nothing beats in both pace and RAM."""
    rejected: list[tuple[Candidate, str]] = field(default_factory=list)
    """Finalists that are not recommended, and why."""
    considered: int = 0
    simulated: int = 0
    invalid: int = 0
    """Settings whose options do not go together."""


def plan(scenario: Scenario, wanted: Wanted, axes: Mapping[str, list[Any]] | None = None, *, processes: int | None = None,
         progress: Progress | None = None) -> Found:  # fmt: skip
    """Search `axes` (default: the options that matter) for settings that fit with the margins, best for the goal."""
    grid = axes_of(scenario, axes)
    out = Found(considered=count(grid))
    walks = list(lines(grid))
    found = in_parallel([lambda s=s: _walk(scenario, s, grid) for s in walks], processes, progress)  # type: ignore[misc]
    fitting: list[Candidate] = []
    for walked in found:
        if walked is None:
            out.invalid += len(grid["pw"]) * len(grid["j"])
            continue
        out.simulated += len(walked)
        fitting += [Candidate(whole, scenario.with_policy(**whole), result) for whole, result in walked if result.fits]
    finalists = _finalists(fitting, wanted)
    runs = in_parallel([lambda c=c: bare(simulate(c.scenario)) for c in finalists], processes)  # type: ignore[misc]
    out.simulated += len(runs)
    whole_runs = []
    for candidate, result in zip(finalists, runs, strict=True):
        result.scenario = candidate.scenario
        whole_runs.append(Candidate(candidate.settings, candidate.scenario, result))
    out.pareto = front([c for c in whole_runs if not _against(c, wanted)])
    _judge(out, whole_runs, wanted, processes)
    return out


Walk = list[tuple[Settings, SimResult]]


def _walk(scenario: Scenario, settings: Settings, grid: Axes) -> Walk | None:
    """All that is worth trying of one combination; None if its options do not go together. Results come without scenarios."""
    if resolved(scenario, settings) is None:
        return None
    out: Walk = []
    best = float("inf")
    for j in sorted(grid["j"]):
        line = _line(_shortened(scenario, j), settings | {"j": j}, grid["pw"])
        if line is None:
            return None
        out += line
        fastest = min((_pace(result) for _, result in line if result.fits), default=float("inf"))
        if line and fastest > best * (1 - NO_GAIN):
            break  # more proofs in flight only take memory
        best = min(best, fastest)
    return out


def _line(short: Scenario, settings: Settings, values: list[int]) -> Walk | None:
    """Values of `pw` upwards, until memory runs out twice in a row or three in a row bring no speed."""
    out: Walk = []
    best, flat, failed = float("inf"), 0, 0
    for pw in values:
        try:
            result = bare(simulate(short.with_policy(**settings, pw=pw)))
        except InputError:
            return None
        out.append((settings | {"pw": pw}, result))
        if not result.fits:
            failed += 1
            if failed == 2:
                break
            continue
        failed = 0
        pace = _pace(result)
        flat = 0 if pace < best * (1 - NO_GAIN) else flat + 1
        best = min(best, pace)
        if flat == 3:
            break
    return out


def _pace(result: SimResult) -> float:
    return result.steady_s_per_proof or result.s_per_proof or float("inf")


def _shortened(scenario: Scenario, j: int) -> Scenario:
    """The same with fewer proofs, where it has more than tell the pace."""
    workload = scenario.workload
    most = j + SHORT_PROOFS
    if workload.arrivals != "closed" or workload.proofs <= most:
        return scenario
    return scenario.model_copy(update={"workload": workload.with_(proofs=most)})


def rank(candidate: Candidate, goal: Goal) -> tuple[float, ...]:
    """Smaller is better; ties of pace go to the smaller memory."""
    match goal:
        case "latency":
            return (_step(candidate.latency_s), candidate.ram_bytes)
        case "ram":
            return (round(candidate.ram_bytes / ALIKE_BYTES), candidate.pace_s)
        case _:  # on one machine what is faster is also cheaper and takes less energy a proof
            return (_step(candidate.pace_s), candidate.ram_bytes)


def _finalists(fitting: list[Candidate], wanted: Wanted) -> list[Candidate]:
    """The best of the short runs: by the goal, and along the front of pace and memory, settings that run alike only once."""
    unlike = _unlike(fitting, wanted)
    chosen = unlike[: FINALISTS // 2]
    chosen += [c for c in front(unlike) if c not in chosen][: FINALISTS - len(chosen)]
    return chosen


def _unlike(candidates: list[Candidate], wanted: Wanted) -> list[Candidate]:
    """Best first; of those that run alike only the simplest."""
    seen: set[tuple[int, int]] = set()
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (rank(c, wanted.goal), _simplicity(c))):
        mark = (_step(candidate.pace_s), round(candidate.ram_bytes / ALIKE_BYTES))
        if mark not in seen:
            seen.add(mark)
            kept.append(candidate)
    return kept


def _step(seconds: float) -> int:
    """Times within about half a percent of each other are equal for all purposes."""
    return round(math.log(max(seconds, 1e-9)) / ALIKE) if math.isfinite(seconds) else 1 << 30


def _simplicity(candidate: Candidate) -> tuple[int, int, int]:
    """Order of settings that run alike: fewer workers and proofs in flight first."""
    settings = candidate.settings
    return settings.get("gw", 1), settings.get("j", 1), settings.get("pw", 1)


def front(candidates: list[Candidate]) -> list[Candidate]:
    """Those that nothing beats in both pace and RAM, fastest first."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (round(c.pace_s, 2), c.ram_bytes)):
        if not kept or candidate.ram_bytes < 0.999 * kept[-1].ram_bytes:
            kept.append(candidate)
    return kept


def _judge(out: Found, candidates: list[Candidate], wanted: Wanted, processes: int | None) -> None:
    """Sort the whole runs into recommended and rejected; those near the top get bands."""
    for candidate in _unlike(candidates, wanted):
        if len(out.best) == wanted.top:
            break
        why = _against(candidate, wanted)
        if not why:
            if wanted.seeds > 1:
                candidate.bands = uncertainty(candidate.scenario, wanted.seeds, processes=processes)
                out.simulated += wanted.seeds
            why = _against(candidate, wanted)
        if why:
            out.rejected.append((candidate, why))
        else:
            out.best.append(candidate)


def _against(candidate: Candidate, wanted: Wanted) -> str:
    """Why a setting is not recommended; empty: nothing is against it."""
    if candidate.verdict != "fits":
        reason = candidate.bands.reason if candidate.bands else ""
        return reason or f"{candidate.result.oom.pool if candidate.result.oom else 'memory'} runs out"
    if wanted.deadline_s is not None and candidate.result.makespan_s > wanted.deadline_s:
        return f"done after {candidate.result.makespan_s:.0f} s, beyond the deadline of {wanted.deadline_s:.0f} s"
    for pool, share in candidate.margins().items():
        if pool == "pinned":
            continue
        least = wanted.vram_margin if pool.startswith("vram") else wanted.ram_margin
        if share < least:
            return f"{pool}: {share:.1%} stay free at the peak (P95), less than {least:.0%}"
    return ""


def neighbours(scenario: Scenario, best: Candidate, wanted: Wanted, processes: int | None = None) -> list[dict[str, Any]]:
    """The nearest other settings, each simulated whole, and why it loses."""
    policy = bind(best.scenario).policy
    tries: list[Settings] = []
    for name in ("pw", "gw", "j"):
        value = getattr(policy, name)
        if value is not None:
            tries += [{name: other} for other in (value - 1, value + 1) if other >= 1]
    for name, values in axes_of(scenario).items():
        here = getattr(policy, name, None)
        if name not in ("pw", "gw", "j"):
            tries += [{name: value} for value in values if value != here]
    tries = [change for change in tries if resolved(best.scenario, change) is not None]
    variants = [best.scenario.with_policy(**change) for change in tries]
    runs = in_parallel([lambda v=v: bare(simulate(v)) for v in variants], processes)  # type: ignore[misc]
    rows = []
    for change, variant, result in zip(tries, variants, runs, strict=True):
        result.scenario = variant
        other = Candidate(best.settings | change, variant, result)
        rows.append({
            "change": [f"policy.{name}={value}" for name, value in change.items()],
            "verdict": result.verdict, "s_per_proof": None if result.s_per_proof is None else round(result.s_per_proof, 6),
            "peak_ram_bytes": result.peak_ram_bytes, "why": _loses(other, best, wanted),
        })  # fmt: skip
    return rows


def _loses(other: Candidate, best: Candidate, wanted: Wanted) -> str:
    against = _against(other, wanted)
    if against:
        return against
    pace = other.batch_pace_s / best.batch_pace_s - 1
    ram = (other.ram_bytes - best.ram_bytes) / 2**30
    if abs(pace) < NO_GAIN and abs(ram) < 0.5:
        return "the same"
    return f"{pace:+.1%} s/proof, {ram:+.1f} GiB of RAM"

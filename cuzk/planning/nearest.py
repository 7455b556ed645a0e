"""When nothing fits: the pool that is too small, what the least of all settings needs, and the nearest that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.errors import InputError
from cuzk.model.catalogue import Catalogue
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.planning.space import Settings, axes_of, last_resorts, resolved, words
from cuzk.sim import simulate
from cuzk.sim.result import SimResult

GIB = 1 << 30
PLENTY = 1 << 45
RAM_SIZES = tuple(GIB * gib for gib in (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096))
STEP = GIB // 4
LEAST: Settings = {"pw": 1, "gw": 1, "j": 1}


@dataclass(frozen=True)
class Nearest:
    """The nearest thing that fits. `change`: arguments of `--set`; `machine`: what it would have to have."""

    change: list[str]
    machine: dict[str, Any] | None
    pool: str
    need_bytes: int
    limit_bytes: int
    why: str

    def to_json(self) -> dict[str, Any]:
        return {
            "change": self.change, "machine": self.machine, "pool": self.pool, "need_bytes": self.need_bytes,
            "limit_bytes": self.limit_bytes, "why": self.why,
        }  # fmt: skip


def nearest(scenario: Scenario, catalogue: Catalogue) -> Nearest:
    """The smallest setting of the scenario's options, what it lacks, and what would cure it."""
    smallest = _smallest(scenario)
    lacking = simulate(smallest)
    pool = lacking.oom.pool if lacking.oom else "ram"
    needs = {"ram": _ram_need(smallest), "vram": _vram_need(smallest)}
    kind = "vram" if pool.startswith("vram") else "ram"
    limit = lacking.peaks[pool].capacity_bytes if pool in lacking.peaks else scenario.machine.usable_ram
    if lacking.fits:  # something fits, but not with the margins or in time
        return Nearest(
            words(_settings(smallest)), None, pool, needs[kind], limit, "the smallest setting fits, without the margins"
        )
    policy = bind(smallest).policy
    for change in last_resorts(policy):
        if resolved(smallest, change) is None:
            continue
        found = _run(smallest.with_policy(**change))
        if found is not None and found.fits:
            peak = max(
                p.resident_bytes for name, p in found.peaks.items() if name.startswith("vram" if kind == "vram" else "ram")
            )
            settings = {**_settings(smallest), **change}
            pace = f"{found.s_per_proof:.1f} s/proof" if found.s_per_proof else "no pace"
            why = f"fits with {peak / GIB:.1f} GiB of {kind} and makes {pace}; not every prover has the option"
            return Nearest(words(settings), None, pool, needs[kind], limit, why)
    return Nearest([], _machine(scenario, needs, catalogue), pool, needs[kind], limit,
                   f"the smallest setting needs {needs[kind] / GIB:.1f} GiB of {kind}")  # fmt: skip


def _smallest(scenario: Scenario) -> Scenario:
    """One set at a time; of the other options of the axes those with which the host and the card hold least."""
    changed = scenario.with_policy(**LEAST)
    options = {name: values for name, values in axes_of(scenario).items() if name not in LEAST}
    if "srs" in options:
        return min((v for v in _variants(changed, options)), key=lambda v: _vram_need(v), default=changed)
    return changed.with_policy(channel_capacity=1) if "channel_capacity" in options else changed


def _variants(scenario: Scenario, options: dict[str, list[Any]]) -> list[Scenario]:
    """The placements that take least VRAM: key and matrices on the host, each processor once."""
    found = []
    for processor in ("gpu", "cpu"):
        change: Settings = {"srs": "mmap", "pce": "pageable", "key_tables": "none"}
        change |= {name: processor for name in ("matvec", "prep_msm", "b_g2_msm") if name in options}
        if resolved(scenario, change) is not None:
            found.append(scenario.with_policy(**change))
    return found


def _settings(scenario: Scenario) -> Settings:
    """Every option that the scenario gives."""
    return {name: value for name, value in scenario.policy.model_dump(mode="json").items() if value is not None}


def _run(scenario: Scenario, *, unlimited: bool = False) -> SimResult | None:
    short = scenario.model_copy(update={"workload": scenario.workload.with_(proofs=1, arrivals="closed")})
    try:
        return simulate(short, unlimited_ram=unlimited)
    except InputError:
        return None


def _ram_need(scenario: Scenario) -> int:
    """Peak of RAM, key included, with nothing to limit it."""
    machine = scenario.machine.model_copy(update={"ram": PLENTY, "cgroup_limit": None})
    found = _run(scenario.model_copy(update={"machine": machine}), unlimited=True)
    return found.peak_ram_bytes if found else 0


def _vram_need(scenario: Scenario) -> int:
    """The least VRAM of each card with which one proof comes out, to a quarter of a GiB."""
    machine = scenario.machine
    if not machine.gpus:
        return 0

    def fits(nbytes: int) -> bool:
        taken = max(gpu.reserved + gpu.context for gpu in machine.gpus)
        if nbytes <= taken:
            return False
        cards = tuple(gpu.model_copy(update={"vram": nbytes, "reported": None}) for gpu in machine.gpus)
        there = machine.model_copy(update={"gpus": cards, "ram": PLENTY, "cgroup_limit": None})
        found = _run(scenario.model_copy(update={"machine": there}))
        return found is not None and found.fits

    low, high = 0, STEP
    while not fits(high):
        low, high = high, 2 * high
        if high > 1 << 42:
            return high
    while high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP or STEP
        low, high = (low, middle) if fits(middle) else (middle, high)
        if high - low <= STEP:
            break
    return high


def _machine(scenario: Scenario, needs: dict[str, int], catalogue: Catalogue) -> dict[str, Any]:
    """The least RAM that is sold and the cheapest card that hold the needs, where the present ones do not."""
    machine = scenario.machine
    found: dict[str, Any] = {}
    taken = machine.reserved + machine.hugepages
    if needs["ram"] > machine.usable_ram and machine.ram - taken >= needs["ram"]:
        found["cgroup_limit_bytes"] = -(-needs["ram"] // GIB) * GIB
    elif needs["ram"] > machine.usable_ram:
        found["ram_bytes"] = next((size for size in RAM_SIZES if size - taken >= needs["ram"]), needs["ram"] + taken)
    if machine.gpus and needs["vram"] > min(gpu.vram - gpu.reserved for gpu in machine.gpus):
        cards = sorted((c for c in catalogue.cards if c.vram >= needs["vram"]), key=lambda c: c.price_usd)
        found |= {"card": cards[0].name, "vram_bytes": cards[0].vram} if cards else {"vram_bytes": needs["vram"]}
    return found

"""The cheapest machines for a target: hosts × cards × RAM of a catalogue, simulated; what cannot do it is cut first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cuzk.analysis.sweeps import Progress, bare, in_parallel
from cuzk.errors import InputError
from cuzk.model.catalogue import Card, Catalogue, Host
from cuzk.model.machine import Gpu, Machine
from cuzk.model.scenario import Scenario
from cuzk.planning.basis import basis
from cuzk.planning.space import Settings, words
from cuzk.sim import simulate
from cuzk.sim.result import SimResult

GIB = 1 << 30
RAM_SIZES = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
GPUS = (1, 2, 3, 4, 6, 8)
PW = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
SYSTEM_RAM = 5 * GIB
RAM_MARGIN = 0.05
NO_GAIN = 0.005
SLACK = 0.1
"""An ideal run is short: it may be slower than the truth by this."""
BATCH = 4
IDLE_SHARE = 0.25
"""A card's share of its power while it waits. Assumed."""
YEAR_S = 365.25 * 86400.0


@dataclass
class Sized:
    """One machine with the best settings found for it."""

    host: Host
    card: Card
    gpus: int
    ram_bytes: int
    hosts: int
    """Such machines that together make the target."""
    settings: Settings
    result: SimResult
    s_per_proof: float
    """All hosts together."""
    usd: float
    watts: float
    basis: dict[str, Any] = field(default_factory=dict)

    def usd_per_proof(self, catalogue: Catalogue) -> float:
        hourly = self.usd / (catalogue.years * YEAR_S / 3600.0) + self.hosts * self.host.usd_per_hour
        energy = self.joule_per_proof / 3.6e6 * catalogue.electricity_usd_per_kwh
        return hourly / 3600.0 * self.s_per_proof + energy

    @property
    def joule_per_proof(self) -> float:
        return self.watts * self.s_per_proof

    def to_json(self, catalogue: Catalogue) -> dict[str, Any]:
        error = self.basis.get("error", 0.0)
        return {
            "name": self.name, "host": self.host.name, "card": self.card.name, "hosts": self.hosts, "gpus": self.gpus,
            "ram_bytes": self.ram_bytes, "policy": self.settings, "set": words(self.settings),
            "s_per_proof": round(self.s_per_proof, 6),
            "s_per_proof_band": {"p5": round(self.s_per_proof * (1 - 1.645 * error), 6), "p50": round(self.s_per_proof, 6),
                                 "p95": round(self.s_per_proof * (1 + 1.645 * error), 6)},
            "usd": self.usd, "usd_per_proof": round(self.usd_per_proof(catalogue), 6),
            "joule_per_proof": round(self.joule_per_proof, 3),
            "peak_ram_bytes": self.result.peak_ram_bytes, "bottleneck": self.result.bottleneck,
            "basis": self.basis.get("basis"), "basis_why": self.basis.get("why"),
        }  # fmt: skip

    @property
    def name(self) -> str:
        many = f"{self.hosts} × " if self.hosts > 1 else ""
        return f"{many}{self.host.name}, {self.gpus} × {self.card.name}, {self.ram_bytes // GIB} GiB"


@dataclass
class Sizing:
    machines: list[Sized]
    gain: list[dict[str, Any]]
    """The cheapest machine with one to as many GPUs as its host takes: pace, and what stops it."""
    considered: int
    simulated: int


def size(scenario: Scenario, target_s: float, catalogue: Catalogue, *, most_hosts: int = 1, cards: list[str] | None = None,
         top: int = 5, processes: int | None = None, progress: Progress | None = None) -> Sizing:  # fmt: skip
    """The `top` cheapest machines, a host and card each once, that make a proof every `target_s`.

    Raises InputError: an empty catalogue, a card that is not in it.
    """
    chosen = [catalogue.card(name) for name in cards] if cards else list(catalogue.cards)
    if not chosen or not catalogue.hosts:
        raise InputError("the catalogue has no cards or no hosts")
    ideal = in_parallel([lambda c=c: _card_pace(scenario, c) for c in chosen], processes)  # type: ignore[misc]
    hosts = in_parallel([lambda h=h: _host_pace(scenario, h) for h in catalogue.hosts], processes)  # type: ignore[misc]
    entries: list[tuple[float, Host, Card, dict[int, float]]] = []
    for host, host_pace in zip(catalogue.hosts, hosts, strict=True):
        for card, card_pace in zip(chosen, ideal, strict=True):
            many = [n for n in GPUS if n <= host.gpus_most]
            bounds = {n: _cheapest(host, card, n, (host_pace, card_pace), target_s, most_hosts) for n in many}
            if math.isfinite(min(bounds.values())):
                entries.append((min(bounds.values()), host, card, bounds))
    entries.sort(key=lambda entry: entry[0])
    machines: list[Sized] = []
    simulated, done = len(chosen) + len(catalogue.hosts), 0
    batch = max(BATCH, 2 * (processes or 1))
    while done < len(entries):
        enough = sorted(machine.usd for machine in machines)[:top]
        if len(enough) == top and enough[-1] <= entries[done][0]:
            break  # whatever is left costs more than these do
        if progress is not None:
            progress(done, len(entries))
        part = entries[done : done + batch]
        jobs = [partial(_pair, scenario, host, card, bounds, target_s, most_hosts) for _, host, card, bounds in part]
        for sized, runs in in_parallel(jobs, processes):
            simulated += runs
            machines += [sized] if sized is not None else []
        done += len(part)
    if progress is not None:
        progress(len(entries), len(entries))
    machines.sort(key=lambda machine: machine.usd)
    for sized in machines[:top]:
        there = machine_of(sized.host, sized.card, sized.gpus, sized.ram_bytes)
        sized.basis = basis(scenario.model_copy(update={"machine": there}))
    gain = _gain(scenario, machines[0]) if machines else []
    considered = len(catalogue.hosts) * len(chosen) * len(GPUS) * len(RAM_SIZES)
    return Sizing(machines[:top], gain, considered, simulated)


def _card_pace(scenario: Scenario, card: Card) -> float:
    """The pace of one card on a host that never binds; infinite where the card has no room."""
    host = Host(name="ideal", cores=1024, smt=2, dram_bandwidth=1e15, ram_most=1 << 50, gpus_most=1)
    return _ideal(scenario, machine_of(host, card, 1, 1 << 45))


def _host_pace(scenario: Scenario, host: Host) -> float:
    """The pace of a host whose GPUs never bind and whose RAM has no end."""
    fast = Card(name="ideal", capability="9.0", sms=4096, clock_mhz=10_000.0, imad=1024.0, vram=1 << 45, memory_bandwidth=1e15,
                link_generation=6, link_width=16, power_w=0.0, price_usd=0.0)  # fmt: skip
    return _ideal(scenario, machine_of(host, fast, 4, 1 << 45))


def _ideal(scenario: Scenario, machine: Machine) -> float:
    _, result, _ = best_setting(scenario, machine)
    pace = (result.steady_s_per_proof or result.s_per_proof) if result is not None else None
    return math.inf if pace is None else pace


def _cheapest(host: Host, card: Card, gpus: int, paces: tuple[float, float], target_s: float, most_hosts: int) -> float:
    """A lower bound of the price of enough such hosts, if nothing but the paces bound; infinite: too many."""
    pace = max(paces[0], paces[1] / gpus) * (1 - SLACK)
    if not math.isfinite(pace):
        return math.inf
    hosts = max(1, math.ceil(pace / target_s - 1e-9))
    each = host.price_usd + RAM_SIZES[0] * host.ram_usd_per_gib + gpus * card.price_usd
    return hosts * each if hosts <= most_hosts else math.inf


def machine_of(host: Host, card: Card, gpus: int, ram_bytes: int) -> Machine:
    """A machine of the catalogue as the simulator takes it."""
    return Machine(
        name=f"{host.name}-{gpus}x{card.name}-{ram_bytes // GIB}g".replace(" ", "-").lower(),
        ram=ram_bytes,
        reserved=SYSTEM_RAM,
        cores=host.cores,
        smt=host.smt,
        dram_bandwidth=host.dram_bandwidth,
        gpus=tuple(Gpu.model_validate({**card.gpu(), "card": None}) for _ in range(gpus)),
        provenance={"*": "catalogue"},
    )


def _pair(
    scenario: Scenario, host: Host, card: Card, bounds: dict[int, float], target_s: float, most_hosts: int
) -> tuple[Sized | None, int]:
    """The cheapest of one host and one card: fewest cards first, least RAM first. And how many runs it took."""
    best: Sized | None = None
    runs = 0
    for gpus, bound in bounds.items():
        if not math.isfinite(bound) or (best is not None and bound >= best.usd):
            continue
        reached = math.inf
        fewest = max(1, round(bound / (host.price_usd + RAM_SIZES[0] * host.ram_usd_per_gib + gpus * card.price_usd)))
        for gib in RAM_SIZES:
            ram = gib * GIB
            if ram > host.ram_most:
                break
            usd = host.price_usd + gib * host.ram_usd_per_gib + gpus * card.price_usd
            if best is not None and fewest * usd >= best.usd:
                break  # more RAM only costs more
            found = best_setting(scenario, machine_of(host, card, gpus, ram))
            runs += found[2]
            if found[1] is None:
                continue
            pace = found[1].steady_s_per_proof or found[1].s_per_proof or math.inf
            hosts = math.ceil(pace / target_s - 1e-9)
            if hosts <= most_hosts and (best is None or hosts * usd < best.usd):
                best = _sized(host, card, gpus, ram, hosts, found[0], found[1], pace, hosts * usd)
            if pace > reached * (1 - NO_GAIN):
                break  # RAM does not bind any more
            reached = min(reached, pace)
    return best, runs


def _sized(host: Host, card: Card, gpus: int, ram: int, hosts: int, settings: Settings, result: SimResult, pace: float,
           usd: float) -> Sized:  # fmt: skip
    busy = [result.shares.get(f"gpu:{gpu}", 0.0) for gpu in range(gpus)]
    cards = sum(card.power_w * (IDLE_SHARE + (1 - IDLE_SHARE) * min(1.0, share)) for share in busy)
    return Sized(host, card, gpus, ram, hosts, settings, result, pace / hosts, usd, hosts * (host.power_w + cards))


def best_setting(scenario: Scenario, machine: Machine) -> tuple[Settings, SimResult | None, int]:
    """The fastest number of partition workers on a machine that keeps the RAM margin; None where none fits. And the runs."""
    best: tuple[Settings, SimResult | None] = ({}, None)
    fastest, flat, runs = math.inf, 0, 0
    gpus = len(machine.gpus)
    for pw in PW:
        settings: Settings = {"pw": pw, "j": max(2, math.ceil(pw / scenario.circuit.partitions) + 1)}
        if isinstance(scenario.pipeline, str) and scenario.pipeline.startswith("phase"):
            settings |= {"gw": 2, "channel_capacity": 1, "permit_returns": "after-gpu-start"}
        there = scenario.model_copy(update={"machine": machine}).with_policy(**settings)
        proofs = min(12, settings["j"] + 2 + gpus)
        there = there.model_copy(update={"workload": there.workload.with_(proofs=proofs, arrivals="closed")})
        try:
            result = bare(simulate(there))
        except InputError:
            break
        runs += 1
        if not result.fits or result.peak_ram_bytes > (1 - RAM_MARGIN) * machine.usable_ram:
            break
        pace = result.steady_s_per_proof or result.s_per_proof or math.inf
        if pace < fastest * (1 - NO_GAIN):
            fastest, flat, best = pace, 0, (settings, result)
        else:
            flat += 1
            if flat == 2:
                break
    return best[0], best[1], runs


def _gain(scenario: Scenario, machine: Sized) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before = None
    for gpus in range(1, machine.host.gpus_most + 1):
        _, result, _ = best_setting(scenario, machine_of(machine.host, machine.card, gpus, machine.ram_bytes))
        if result is None:
            rows.append({"gpus": gpus, "s_per_proof": None, "gain": None, "stops": "does not fit"})
            continue
        pace = result.steady_s_per_proof or result.s_per_proof
        gain = None if before is None or pace is None else round(before / pace - 1, 4)
        rows.append({"gpus": gpus, "s_per_proof": None if pace is None else round(pace, 6), "gain": gain,
                     "stops": f"{result.bottleneck['resource']}: {result.bottleneck['why']}"})  # fmt: skip
        before = pace
    return rows

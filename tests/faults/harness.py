"""Planted faults, the same in a simulated and in a real run, and what must hold whatever they strike.

F1  every set ends once: none is left, in flight or attached
F2  the books return to zero
F3  no lock, permit or slot is lost, nobody is left waiting
F4  a proof that was out stays out: nothing fails it later
F5  only what a fault concerns fails
F6  every other proof comes out
F7  simulator and executor agree on what fails and what comes out
F8  both traces are sentences of the program, in the keys of the schema
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from cuzk.errors import ScenarioError
from cuzk.exec.device import Allocation, Work
from cuzk.exec.null import NullDevice
from cuzk.pipeline.core import RunCore
from cuzk.pipeline.faults import FaultPlan
from cuzk.pipeline.grammar import violations
from cuzk.pipeline.program import Program, bind
from cuzk.sim.engine import Engine as Simulator
from cuzk.sim.options import Options
from cuzk.trace.event import Event
from cuzk.trace.schema import faults_of
from tests.unit.exec.playing import Played, scenario
from tests.unit.exec.test_policies import OPTIONS

PHASES = ("own", "phase7", "phase8", "phase9", "phase10", "phase11", "phase12", "phase12-prefix")
ROOM = ("machine.ram=8TiB", "machine.gpus.0.vram=200GiB", "circuit.partitions=3", "workload.proofs=4")
INVARIANTS = ("F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8")


class PlannedDevice(NullDevice):
    """The null device, which fails where a plan says so."""

    def __init__(self, plan: FaultPlan) -> None:
        super().__init__(scale=1e-7, time_scale=2e-5)
        self._plan = plan

    def perform(self, work: Work) -> None:
        super().perform(work)
        error = None if work.is_copy else self._plan.step_done(work.pset, work.name)
        if error is not None:
            raise error

    def allocate(self, request: Allocation) -> Any:
        if request.pset is not None and (refusal := self._plan.refused(request.pset, request.buffer)) is not None:
            raise refusal
        return super().allocate(request)


@dataclass
class Report:
    """One seed: where faults struck, and which invariants were broken, with the reason."""

    seed: int
    struck: list[str] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    compared: bool = False
    """The same faults struck in both, so that their outcomes can be compared."""

    def hold(self, invariant: str, true: bool, why: str) -> None:
        if not true:
            self.breaches.append(f"{invariant}: {why}")


def drawn_program(seed: int) -> Program:
    """A preset under a random policy, with room enough that nothing but the faults fails."""
    rng = random.Random(f"program {seed}")
    while True:
        policy: dict[str, Any] = {"pw": rng.randint(1, 6), "gw": rng.randint(1, 3), "j": rng.randint(1, 3)}
        policy |= {name: rng.choice(values) for name, values in OPTIONS.items() if rng.random() < 0.4}
        # admission by bytes knows nothing of this much memory, and a try that fails is another path
        policy |= {"admission": "permits", "prestage": rng.choice(["off", "inside-mutex"])}
        try:
            return bind(scenario(rng.choice(PHASES), *ROOM).with_policy(**policy))
        except ScenarioError:
            continue


def run_seed(seed: int) -> Report:
    """Simulate and run one program with one plan of faults."""
    report, program = Report(seed), drawn_program(seed)
    plan = FaultPlan.drawn(program, seed)
    simulated_plan = plan.again()
    simulator = Simulator(program, program.scenario.seed, Options(trace=True, faults=simulated_plan))
    simulator.run()
    played = Played(program, PlannedDevice(plan))
    report.struck = [str(fault) for fault in plan.struck]
    _judge(report, "run", program, played.engine.core, played.events, plan, ended=True)
    _judge(report, "sim", program, simulator.core, simulator.events or [], simulated_plan, ended=simulator.core.failure is None)
    if set(plan.struck) == set(simulated_plan.struck):  # else one fault came before another could strike: a matter of pace
        real, predicted = _outcome(played.engine.core), _outcome(simulator.core)
        report.compared = True
        if played.engine.core.failure is None or simulator.core.failure is None:
            report.hold("F7", real == predicted, f"run {real}, sim {predicted}")
        else:  # who had failed alone when the host's memory ended the run is a matter of pace, too
            same = type(played.engine.core.failure) is type(simulator.core.failure)
            report.hold("F7", same, "they end for different reasons")
    return report


def _outcome(core: RunCore) -> tuple[set[int], bool]:
    return {number for number, _ in core.failures}, core.failure is None


def _judge(report: Report, who: str, program: Program, core: RunCore, events: list[Event], plan: FaultPlan, ended: bool) -> None:
    proofs = range(program.scenario.workload.proofs)
    if ended:
        report.hold("F1", not core.open_sets and not core.in_flight, f"{who}: {core.open_sets} sets never end")
        residents = {name: 0 for name in core.books.pools}
        if who == "sim":  # what is resident stays until the process ends
            kept = [event for event in events if event.kind == "alloc" and event.proof is None]
            for event in kept:
                residents[event.pool or ""] += event.bytes or 0
        live = {name: pool.live for name, pool in core.books.pools.items()}
        report.hold("F2", live == residents, f"{who}: {live} is live, {residents} should be")
        lost = [name for name in core.arbiter.claims if core.arbiter.held(name)]
        report.hold("F3", not lost and not core.arbiter.waiting() and not core.arbiter.lying(), f"{who}: {lost} are lost")
    out: dict[int, int] = {}
    for place, event in enumerate(events):
        if event.kind == "complete" and event.partition == -1 and event.proof is not None:
            out[event.proof] = place
    whole = [p.number for p in core.proofs if p.completed_s is not None]
    report.hold("F4", sorted(whole) == sorted(out), f"{who}: {whole} are out, the trace says {sorted(out)}")
    failed = {number for number, _ in core.failures}
    concerned = {fault.proof for fault in plan.struck}
    report.hold("F5", failed <= concerned, f"{who}: {failed - concerned} failed, and no fault struck them")
    if core.failure is None:
        missing = [number for number in proofs if number not in out and number not in concerned]
        report.hold("F6", not missing, f"{who}: {missing} never come out")
    wrong = [fault for event in events for fault in faults_of(event)] + violations(program, events)
    report.hold("F8", not wrong, f"{who}: {wrong[:2]}")

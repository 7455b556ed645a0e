"""`simulate`: one scenario, one run, one result."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cuzk.model.scenario import Scenario
from cuzk.pipeline import ops
from cuzk.pipeline.program import Program, bind, every_op
from cuzk.sim.bottleneck import bottleneck, shares
from cuzk.sim.engine import Engine
from cuzk.sim.options import Options
from cuzk.sim.result import Holders, Oom, Peak, SimResult
from cuzk.trace.throughput import Throughput, throughput

PAGE_BYTES = 1 << 12


def simulate(scenario: Scenario, *, seed: int | None = None, trace: bool = False,
             unlimited_ram: bool = False) -> SimResult:  # fmt: skip
    """Run `scenario` once in simulated time. `trace`: keep every event in `result.events`. `unlimited_ram`: go on
    beyond the host's memory, for the peak that would have been.

    Raises InputError: no calibration, a step without a cost, a pipeline that deadlocks.
    """
    return run_program(bind(scenario), seed, Options(trace=trace, unlimited_ram=unlimited_ram))


def run_program(program: Program, seed: int | None = None, options: Options = Options()) -> SimResult:  # noqa: B008
    """The run of `simulate`, for a bound scenario."""
    engine = Engine(program, program.scenario.seed if seed is None else seed, options)
    engine.run()
    return result_of(engine)


def result_of(engine: Engine) -> SimResult:
    """The result of a finished run."""
    program, core = engine.program, engine.core
    done = core.completion_s
    whole = [proof for proof in core.proofs if proof.completed_s is not None]
    all_out = len(whole) == program.scenario.workload.proofs
    oom = _oom(engine)
    used = shares(engine)
    workers = sum(program.pool_workers.values())
    pace = throughput(done, len(whole), workers) if all_out else Throughput()
    return SimResult(
        scenario=program.scenario,
        seed=engine.seed,
        verdict="oom" if oom else "fits",
        oom=oom,
        s_per_proof=pace.s_per_proof,
        steady_s_per_proof=pace.steady_s_per_proof,
        prove_s=sum(proof.gpu_call_s for proof in whole) / len(whole) if all_out else None,
        peaks=_peaks(engine),
        bottleneck=bottleneck(engine, oom, used),
        completions=len(done),
        deallocations=core.deallocations,
        failed_proofs=len(core.failures),
        admitted=_admitted(engine),
        idle_gpus=_idle_gpus(engine, used),
        makespan_s=done[-1] if done else engine.env.now,
        proof_s=[proof.completed_s - proof.admitted_s for proof in whole if proof.completed_s is not None],
        waited_s={name: round(seconds, 6) for name, seconds in sorted(engine.waited.items())},
        shares=used,
        pw=program.policy.pw,
        calibration=engine.calibration.name,
        warnings=_warnings(program),
        events=engine.events,
        simulated_events=engine.rates.started,
    )


def _oom(engine: Engine) -> Oom | None:
    if engine.core.oom is None:
        return None
    at_s, error = engine.core.oom
    ledger = engine.ledger
    level, capacity, holders = error.level_bytes, error.capacity_bytes, error.holders
    if error.pool == "ram":
        # the limit is the machine's: what the allocator's pages take beside the sets counts on the level's side
        capacity = engine.program.pools["ram"]
        level = min(capacity, ledger.with_slack(level))
        holders = _adding_up(holders, level)
    return Oom(error.pool, error.buffer, at_s, error.request_bytes, level, capacity, holders, error.proof, error.partition)


def _adding_up(holders: Holders, level: int) -> Holders:
    """The holders of a level of RAM, with a row for what the allocator's pages exceed them by."""
    slack = level - sum(nbytes for _, _, nbytes in holders)
    rows = [*holders, ("allocator slack", 1, slack)] if slack >= PAGE_BYTES else holders
    return sorted(rows, key=lambda row: (-row[2], row[0]))


def _peaks(engine: Engine) -> dict[str, Peak]:
    ledger, peaks = engine.ledger, {}
    for name, pool in engine.books.pools.items():
        capacity = engine.program.pools[name]
        if name == "ram":
            # pages that come evenly reach the limit between two bytes
            most = ledger.peak_resident if engine.options.unlimited_ram else min(ledger.peak_resident, pool.capacity)
            levels = (pool.peak_live, ledger.with_slack(pool.peak_reserved), ledger.with_slack(most))
            peaks[name] = Peak(*levels, ledger.peak_resident_at, capacity, _adding_up(ledger.peak_holders, levels[2]))
        else:
            holders = sorted(((b, c, n) for b, (c, n) in pool.peak_held.items()), key=lambda row: (-row[2], row[0]))
            levels = (pool.peak_live, pool.peak_reserved, pool.peak_reserved)
            peaks[name] = Peak(*levels, pool.peak_reserved_at, capacity, holders)
    return peaks


def _admitted(engine: Engine) -> int:
    permits = engine.program.pipeline.permits
    most = [engine.arbiter.most_held(name) for name in permits if name == "byte_budget"]
    most = most or [engine.arbiter.most_held(name) for name in permits]
    return max(most, default=0)


def _idle_gpus(engine: Engine, used: dict[str, float]) -> int:
    """Devices that the work as it flows could do without."""
    gpus = engine.program.gpus
    busy = sum(_device_share(used, gpu) for gpu in range(gpus))
    return max(0, gpus - math.ceil(busy - 1e-9)) if gpus else 0


def _device_share(used: dict[str, float], gpu: int) -> float:
    return max((share for name, share in used.items() if name.endswith(f":{gpu}")), default=0.0)


def _warnings(program: Program) -> list[str]:
    scenario = program.scenario
    calibration = scenario.calibration
    if calibration is None:
        return []
    names = {k: v for k, v in program.names(scenario.circuit).items() if isinstance(v, (int, float))}
    warnings = [f"outside the calibrated range: {what}" for what in calibration.outside(names)]
    phase = scenario.pipeline if isinstance(scenario.pipeline, str) else program.pipeline.name
    if calibration.phases and phase not in calibration.phases:
        warnings.append(f"'{calibration.name}' was made for {', '.join(calibration.phases)}, not for {phase}")
    if calibration.machine != scenario.machine.name:
        warnings.append(f"'{calibration.name}' was measured on {calibration.machine}, not on {scenario.machine.name}")
    return warnings + list(dict.fromkeys(unmeasured(program)))


def unmeasured(program: Program) -> Iterator[str]:
    """The prices that are not measured."""
    for worker in program.pipeline.workers:
        for op in every_op(program.code(worker, program.scenario.circuit.name)):
            if isinstance(op, (ops.Run, ops.Copy)) and op.price is not None and op.price.unmeasured:
                yield op.price.unmeasured

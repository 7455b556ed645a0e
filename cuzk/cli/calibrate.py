"""`cuzk calibrate`: the costs of a machine from what was measured on it.

    cuzk calibrate --points FILE            fit to measured runs of a whole system (default: the library's)
    cuzk calibrate --runs DIR               stage laws of the stand-alone prover from its timelines
    cuzk calibrate TRACE… -o FILE           from traces of `cuzk run`
    cuzk calibrate --log FILE -o FILE       from the log of a running daemon

It says what it will cost before it starts. Without -o nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.model.calibration import Calibration, CostLaw


OWN_BASES = {"cpu": "own-cpu", "cuda": "own-cuda"}
"""Device of a trace -> what its steps use, where that is cuzk's own prover."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("calibrate", help="fit a calibration", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="traces of cuzk run (JSONL)")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--points", nargs="?", const="", metavar="FILE", help="measured points (YAML)")
    source.add_argument("--runs", metavar="DIR", help="measured runs of the stand-alone prover")
    source.add_argument("--log", metavar="FILE", help="the log of a daemon: CUZK_TIMING and TIMELINE lines")
    parser.add_argument("--recipe", metavar="FILE", help="with --points: what may be fitted, and from where")
    parser.add_argument("--base", metavar="FILE", help="with traces or a log: the calibration whose other laws are kept")
    parser.add_argument("--scenario", metavar="FILE", help="with a log: what the daemon ran (cuzk import cuzk.toml): "
                        "laws are scaled until simulating it gives the log's times under load")  # fmt: skip
    parser.add_argument("--circuit", metavar="FILE", help="with a log: the circuit it is of (default: porep-32g)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="POLICY=VALUE",
                        help="with a log: the policy that the daemon ran with, e.g. --set gt=32 (repeatable)")  # fmt: skip
    parser.add_argument("--cores", type=int, metavar="N", help="with traces: cores that the run had (default: this machine's)")
    parser.add_argument("--name", help="name of the calibration")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="with --points: rounds of the fit (default 4)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="with --points: runs a point in the fit (default 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the calibration (YAML)")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    given = [args.points is not None, bool(args.runs), bool(args.log), bool(args.traces)]
    if sum(given) != 1:
        raise InputError("one source is needed: --points, --runs, --log or traces")
    if args.points is not None:
        return _points(args)
    if args.runs:
        return _runs(args)
    return _log(args) if args.log else _traces(args)


def _finish(args: argparse.Namespace, text: str, document: dict[str, Any], lines: list[str]) -> int:
    from cuzk.report.files import write_text

    if args.output:
        write_text(args.output, text)
    print(json.dumps({"schema_version": 1, **document}, indent=2) if args.json else "\n".join(lines))
    if args.output:
        print(f"written: {args.output}", file=sys.stderr)
    return 0


def _points(args: argparse.Namespace) -> int:
    from cuzk.accuracy.fit import cost_ahead, cross_validate, fit, problem
    from cuzk.accuracy.fit_report import cross_validation, fit_document, fit_lines, residual_spread
    from cuzk.accuracy.library import place, reference_points
    from cuzk.accuracy.measured_points import read_points
    from cuzk.accuracy.recipe import read_recipe
    from cuzk.accuracy.written import fitted
    from cuzk.report.files import write_text
    from cuzk.report.progress import done, say

    points = read_points(args.points or reference_points())
    for line in [*points.warnings, *points.faults]:
        print(line, file=sys.stderr)
    recipe = read_recipe(args.recipe or place("data", "reference", "fit.yaml"))
    task = problem(points, recipe, seeds=max(1, args.seeds))
    print(f"fit: {cost_ahead(task, args.rounds)}", file=sys.stderr, flush=True)
    found = fit(task, rounds=args.rounds, say=say)
    rows = cross_validate(task, found, say)
    done()
    document = fit_document(task, found, rows)
    output = args.output or f"{recipe.name}.yaml"
    ids = sorted({target.point for target in task.targets})
    files = [os.path.basename(path) for path in (points.path, recipe.path)]
    how = f"--rounds {args.rounds} --seeds {task.seeds}"
    head = f"Fitted by: cuzk calibrate --points {files[0]} {how}; parameters and bounds in {files[1]}"
    text = fitted(recipe, found, ids, residual_spread(rows), output, head)
    if args.output:
        write_text(args.output.removesuffix(".yaml") + ".cv.json", json.dumps(cross_validation(task, rows), indent=1) + "\n")
    code = _finish(args, text, document, fit_lines(document))
    return 2 if points.faults else code


def _runs(args: argparse.Namespace) -> int:
    from cuzk.accuracy.runs import left_out, with_residuals
    from cuzk.accuracy.stage_laws import fit_stages
    from cuzk.accuracy.timelines import read_runs
    from cuzk.accuracy.written import whole
    from cuzk.report.files import write_text

    runs = read_runs(args.runs)
    for line in [*runs.warnings, *runs.faults]:
        print(line, file=sys.stderr)
    print(f"fit: {len(runs.runs)} runs, some seconds", file=sys.stderr)
    found = with_residuals(fit_stages(runs, args.name or "h200-supraseal"), runs)
    laws = {
        name: {"t24_s": law.t24_s, "power": law.power, "power_error": law.power_error, "run_to_run": law.error,
               "jitter": law.jitter, "runs": law.runs, "domains": law.domains}
        for name, law in found.laws.items()
    }  # fmt: skip
    lines = [
        f"{name:<18} {law.t24_s:.4g} s at 2^24, power {law.power:.3f} ± {law.power_error:.3f}, runs differ by {law.error:.1%}, "
        f"partitions by {law.jitter:.1%} ({law.runs} runs)"
        for name, law in found.laws.items()
    ]
    if args.output:
        write_text(args.output.removesuffix(".yaml") + ".cv.json", json.dumps(left_out(runs), indent=1) + "\n")
    head = "Fitted by: cuzk calibrate --runs DIR, from the timelines of the stand-alone prover"
    document = {"calibration": found.calibration.name, "laws": laws, "notes": found.notes}
    return _finish(args, whole(found.calibration, head), document, [*lines, *(f"note: {n}" for n in found.notes)])


def _log(args: argparse.Namespace) -> int:
    from cuzk.accuracy.log_laws import fit_log
    from cuzk.accuracy.written import whole
    from cuzk.errors import InputError
    from cuzk.model.circuit import Circuit
    from cuzk.model.scenario import load_part
    from cuzk.trace.daemon_log import read_log

    log = read_log(args.log)
    size = load_part(args.circuit, "circuit", Circuit) if args.circuit else None
    settings = _settings(args.overrides)
    if args.scenario:
        from cuzk.accuracy.log_loop import fit_log_in_scenario
        from cuzk.model.scenario import load_scenario

        if args.circuit:
            raise InputError("--circuit does not go with --scenario, which says what was proved")
        scenario = load_scenario(args.scenario, [f"policy.{text.removeprefix('policy.')}" for text in args.overrides])
        base = scenario.calibration if scenario.calibration is not None and not args.base else _base(args)
        found = fit_log_in_scenario(log, base, scenario, args.name or "daemon-log")
    else:
        found = fit_log(log, _base(args), size=size, policy=settings, name=args.name or "daemon-log")
    lines = [f"{law:<16} {after:.4g} s from {n} times (base {before:.4g} s)" for law, (n, after, before) in found.taken.items()]
    lines += [f"note: {note}" for note in found.notes]
    lines += [f"dropped: {n} x {what}" for what, n in sorted(log.dropped.items()) if n]
    document = {
        "calibration": found.calibration.name,
        "laws": {law: {"seconds": after, "base_seconds": before if before == before else None, "times": n}
                 for law, (n, after, before) in found.taken.items()},
        "notes": found.notes, "lines": log.lines, "dropped": {k: n for k, n in log.dropped.items() if n},
    }  # fmt: skip
    head = f"Written by: cuzk calibrate --log; {log.lines} lines, over {_base(args).name}"
    return _finish(args, whole(found.calibration, head), document, lines)


def _settings(overrides: list[str]) -> dict[str, Any]:
    """Options of a policy from `--set POLICY=VALUE`. Raises ScenarioError, which names the option."""
    from cuzk.errors import InputError
    from cuzk.model.policy import Policy
    from cuzk.model.validate import validate
    from cuzk.model.yamlpos import Node, Pos, Problems, plain_scalar

    nodes: dict[Any, Node] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError("--set takes POLICY=VALUE, e.g. --set gt=32")
        pos = Pos(f"--set {text}")
        try:
            nodes[key.strip().removeprefix("policy.")] = Node(plain_scalar(value.strip()), pos, pos)
        except ValueError as error:
            raise InputError(f"--set {text}: {error}") from None
    problems = Problems()
    policy = validate(Policy, Node(nodes, Pos("--set")), problems, at=("policy",))
    problems.raise_if_any()
    return policy.model_dump(exclude_none=True) if policy is not None else {}


def _base(args: argparse.Namespace, otherwise: str = "reference") -> Calibration:
    from cuzk.accuracy.library import load_calibration

    return load_calibration(args.base or otherwise)


def _cores_of(law: CostLaw, cores: int) -> float:
    """Cores that a step keeps busy on a host with `cores` of them; none for one that waits for a GPU or a link. A law that
    depends on more than that counts as one."""
    if law.gpu or law.link:
        return 0.0
    return float(law.cores.evaluate({"cores": cores})) if law.cores.names <= {"cores"} else 1.0


def _traces(args: argparse.Namespace) -> int:
    from cuzk.accuracy.written import whole
    from cuzk.errors import InputError
    from cuzk.model.calibration import Calibration
    from cuzk.trace.costs import calibration_data, cost_table
    from cuzk.trace.curves import resident_beside_live
    from cuzk.trace.jsonl import read_trace

    traces = [read_trace(path) for path in args.traces]
    for path, trace in zip(args.traces, traces, strict=True):
        if trace.header.get("clock") != "wall":
            raise InputError(f"{path}: a predicted trace: only a measured one (clock: wall) says what steps cost")
    machines = {str(t.header.get("machine", "")) for t in traces}
    devices = {str(t.header.get("device", "")) for t in traces}
    if len(machines) > 1 or len(devices) > 1:
        raise InputError(f"the traces are of different machines or devices: {', '.join(sorted(machines | devices))}")
    header = traces[0].header
    base = _base(args, OWN_BASES.get(str(header.get("device")), "reference"))
    laws = {step: law.model_dump(mode="json") for step, law in base.costs.items()}
    cores = args.cores or int((header.get("host") or {}).get("cpus") or os.cpu_count() or 1)
    demand = {step: _cores_of(law, cores) for step, law in base.costs.items()}
    table = cost_table([t.events for t in traces], cores=cores, demand=demand)
    circuits = sorted({row.circuit for row in table if row.circuit})
    if not table:
        raise InputError(f"{args.traces[0]}: no step begins and ends in it")
    if len(circuits) > 1:
        raise InputError(f"the traces are of several circuits ({', '.join(circuits)}): calibrate on one")
    note = f"{len(traces)} trace(s) of {circuits[0] if circuits else 'a circuit without a name'} on {header.get('device', '?')}"
    data = calibration_data(table, laws, name=args.name or "measured", machine=machines.pop() or base.machine,
                            software=str(header.get("device") or "cuzk"), note=note)  # fmt: skip
    kept = base.model_dump(mode="json")
    data = {"contention": kept["contention"], "latency": kept["latency"], "memory": kept["memory"], **data}
    beside = resident_beside_live([t.events for t in traces])
    if beside is not None and str(header.get("device")) in OWN_BASES:
        data["memory"] = {"process_ram": f"{beside}B", "provenance": {"process_ram": f"measured: {note}", "*": "assumed: none"}}
    data["parameters"] = kept["parameters"]
    calibration = Calibration.model_validate(data)
    lines = [f"{row.step:<18} {row.seconds + row.gap_s:.6f} s  ± {row.jitter:.1%}, {row.n} runs" for row in table]
    unknown = sorted({row.step for row in table} - set(laws))
    lines += [f"note: {step} is in the trace, but not in the base calibration: not taken" for step in unknown]
    document = {"calibration": calibration.name, "steps": [row.to_json() for row in table], "not_taken": unknown}
    return _finish(args, whole(calibration, f"Written by: cuzk calibrate, from {note}"), document, lines)

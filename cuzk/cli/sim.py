"""`cuzk sim SCENARIO`: does it fit, how fast is it, what binds, and what to change.

Exit code 0 when it fits (or is risky), 3 when memory runs out; with --check 0 or 4: whether the file's own claims came out.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load, seed

if TYPE_CHECKING:
    from cuzk.model.scenario import Scenario
    from cuzk.sim import SimResult

MOST_RUNS = 100_000
FIX_SEEDS = 12
"""Seeds of a change that would fit: whether it does so surely is part of the answer."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("sim", help="predict a scenario", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--seed", type=seed, help="seed of the jitter (default: the scenario's)")
    parser.add_argument("--seeds", type=_count, metavar="N", help="run N seeds: P5, P50, P95 and the probability of an OOM")
    parser.add_argument("--explore", type=_count, metavar="N", help="run N legal wake orders: the worst peak of them")
    parser.add_argument("--bench", type=_count, metavar="N", help="time N simulations in this process")
    parser.add_argument("--check", action="store_true", help="judge the scenario's own checks")
    parser.add_argument("--no-fix", action="store_true", help="do not look for the smallest change that would fit")
    parser.add_argument("--trace", metavar="FILE", help="write the events as JSONL")
    parser.add_argument("--html", metavar="FILE", help="write a page with curves and lanes")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= MOST_RUNS:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_RUNS:,}, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from cuzk.planning.service import enriched, notes
    from cuzk.report.files import usable
    from cuzk.report.verdict import summary
    from cuzk.sim import simulate

    for path in (args.trace, args.html):
        if path is not None:
            usable(path)
    scenario = load(args)
    result = simulate(scenario, seed=args.seed, trace=bool(args.trace or args.html))
    if isinstance(scenario.pipeline, dict):
        _vet(scenario, result)
    _enrich(args, scenario, result)
    result.warnings += notes(scenario)
    result.extra |= enriched(scenario, result)
    document = result.to_json()
    if args.trace:
        from cuzk.trace.jsonl import write_trace

        write_trace(args.trace, result.trace_header(), result.events or [])
    if args.html:
        from cuzk.report.page import write_page
        from cuzk.report.verdict import verdict_line

        bands = {pool: (band["p5"], band["p95"]) for pool, band in document.get("uncertainty", {}).get("peaks", {}).items()}
        write_page(args.html, [("predicted", result.events or [])], title=f"cuzk sim {scenario.name}",
                   verdict=verdict_line(document), verdict_class=document["verdict"], bands=bands,
                   texts=[("The answer", summary(document)), *_deploy(scenario, document)])  # fmt: skip
    failed = _judge(args, scenario, result, document)
    print(json.dumps(document, indent=2, sort_keys=False) if args.json else "\n".join([summary(document), *failed]))
    if args.check:
        return 4 if failed else 0
    return 3 if document["verdict"] == "oom" else 0


def _deploy(scenario: Scenario, document: dict[str, Any]) -> list[tuple[str, str]]:
    """The settings to run, and the daemon's file of them where it is a daemon's pipeline."""
    from cuzk.daemon.emit import toml_text
    from cuzk.pipeline.program import bind

    fix = document.get("smallest_change")
    policy = bind(scenario).policy
    texts = [("The change that fits", f"--set {fix['set']}")] if fix else []
    if isinstance(scenario.pipeline, str) and scenario.pipeline.startswith("phase") and scenario.machine.gpus:
        texts.append(("As the daemon's configuration", toml_text(policy, scenario.machine, scenario.circuit)))
    return texts


def _vet(scenario: Scenario, result: SimResult) -> None:
    """A pipeline that a user wrote can run here and still be wrong on a machine: what `cuzk check` says of it is noted."""
    from cuzk.cli.check import findings
    from cuzk.pipeline.program import bind

    errors = [row for row in findings(bind(scenario)) if row["severity"] == "error"]
    result.warnings += [f"cuzk check: {row['where']}: {row['message']}" for row in errors]


def _enrich(args: argparse.Namespace, scenario: Scenario, result: SimResult) -> None:
    """The document gets the parts that were asked for beside the plain run."""
    from cuzk.analysis.bands import explore, uncertainty
    from cuzk.analysis.fixes import suggest_fix
    from cuzk.report.progress import counter, done, say

    if args.seeds:
        uncertainty(scenario, args.seeds, progress=counter("seed")).apply_to(result)
    if args.explore:
        explore(scenario, args.explore, progress=counter("order")).apply_to(result)
    if args.bench:
        result.extra["bench"] = _bench(args, scenario)
    if not result.fits and not args.no_fix:
        fix = suggest_fix(scenario, result, trying=lambda change: say(f"does it fit with {change}?"))
        done()
        result.extra["smallest_change"] = fix.to_json() if fix else None
        if fix:
            sure = uncertainty(fix.result.scenario, FIX_SEEDS)
            result.extra["smallest_change"] |= {"verdict": sure.verdict, "p_oom": round(sure.p_oom, 6), "reason": sure.reason}


def _bench(args: argparse.Namespace, scenario: Scenario) -> dict[str, float]:
    import statistics
    import time

    from cuzk.sim import simulate

    times = []
    for _ in range(args.bench):
        start = time.perf_counter()
        simulate(scenario, seed=args.seed)
        times.append(time.perf_counter() - start)
    return {"median_s": statistics.median(times), "min_s": min(times), "max_s": max(times), "n": args.bench}


def _judge(args: argparse.Namespace, scenario: Scenario, result: SimResult, document: dict[str, Any]) -> list[str]:
    if not args.check:
        return []
    from cuzk.analysis.checks import judge

    claims = judge(scenario, result)
    document["checks"] = [claim.to_json() for claim in claims]
    return [f"check failed: {claim}" for claim in claims if not claim.holds]

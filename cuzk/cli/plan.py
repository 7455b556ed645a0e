"""`cuzk plan SCENARIO`: which settings to run on this machine, and why not others.

Every option that matters for the scenario's pipeline is searched (`--pw`, `--gw`, `--j` and `--over` name the values); the
best are simulated whole, then under many seeds. Settings that fit with the margins are recommended, best for the goal first.

Exit code 3 when nothing does: then the pool, its need and the nearest option or machine are named.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load

if TYPE_CHECKING:
    from cuzk.model.scenario import Scenario
    from cuzk.planning.plan import Found, Wanted

MOST_VALUES = 4096
GOALS = ("throughput", "latency", "ram", "usd", "joule")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("plan", help="which settings to run", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--pw", type=_values, metavar="VALUES", help="such as 1-24 or 8,10,12")
    parser.add_argument("--gw", type=_values, metavar="VALUES", help="GPU workers a device")
    parser.add_argument("--j", type=_values, metavar="VALUES", help="proofs in flight")
    parser.add_argument("--over", action="append", default=[], metavar="OPTION=VALUES",
                        help="values of another policy option, e.g. srs=vram,pinned (repeatable)")  # fmt: skip
    parser.add_argument("--goal", choices=GOALS, default="throughput", help="default throughput")
    parser.add_argument("--deadline", type=_duration, metavar="TIME", help="the whole workload must be done by then, e.g. 2h")
    parser.add_argument("--ram-margin", type=_margin, default=0.05, metavar="PERCENT", help="RAM that stays free (default 5)")
    parser.add_argument("--vram-margin", type=_margin, default=0.02, metavar="PERCENT", help="VRAM that stays free (default 2)")
    parser.add_argument("--seeds", type=_number, default=20, metavar="N", help="seeds of each recommendation (default 20)")
    parser.add_argument("--top", type=_number, default=5, metavar="N", help="show so many (default 5)")
    parser.add_argument("--catalogue", metavar="FILE", help="cards and prices in place of the library's")
    parser.add_argument("--emit", choices=["scenario", "cuzk-toml"], help="print the best setting as a file instead")
    parser.add_argument("--html", metavar="FILE", help="write a page")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("-o", "--output", metavar="FILE", help="with --emit: the file")


def _number(text: str) -> int:
    """A whole number from 1."""
    found = _values(text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"must be one number from 1 to {MOST_VALUES}, not {text!r}")
    return found[0]


def _values(text: str) -> list[int]:
    """`1-24` or `8,10,12`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = (first, last or first)
        if not all(end.isascii() and end.isdigit() and 1 <= int(end) <= MOST_VALUES for end in ends) or len(part) > 9:
            raise argparse.ArgumentTypeError(f"must be numbers from 1 to {MOST_VALUES}, such as 1-24 or 8,10,12, not {text!r}")
        found += range(int(ends[0]), int(ends[1]) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} has no value in it: the lower end comes first")
    return sorted(set(found))


def _margin(text: str) -> float:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a percentage, not {text!r}") from None
    if not 0 <= value < 100:
        raise argparse.ArgumentTypeError(f"must be 0 or more and below 100, not {text!r}")
    return value / 100


def _duration(text: str) -> float:
    from cuzk.model.units import parse_seconds

    try:
        value = parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.model.catalogue import default_catalogue, load_catalogue
    from cuzk.planning.plan import Wanted, plan
    from cuzk.report.files import usable
    from cuzk.report.plan_text import plan_text
    from cuzk.report.progress import counter, done

    if args.output and not args.emit:
        raise InputError("-o names the file of --emit")
    for path in (args.output, args.html):
        if path:
            usable(path)
    catalogue = load_catalogue(args.catalogue) if args.catalogue else default_catalogue()
    scenario = load(args)
    wanted = Wanted(args.goal, args.deadline, args.ram_margin, args.vram_margin, args.top, args.seeds)
    try:
        found = plan(scenario, wanted, _axes(args), progress=counter("line"))
    finally:
        done()
    document = _document(scenario, found, wanted, catalogue)
    if args.html:
        from cuzk.report.plan_page import write_plan_page

        write_plan_page(args.html, document, _toml(found, scenario) if found.best else "")
    if args.emit and found.best:
        _emit(args, scenario, found)
    else:
        print(json.dumps(document, indent=2) if args.json else plan_text(document))
    return 0 if found.best else 3


def _axes(args: argparse.Namespace) -> dict[str, list[Any]]:
    """The axes that the command line gives. Raises InputError for an option that the policy does not have."""
    from cuzk.errors import InputError
    from cuzk.model.formula import suggestion
    from cuzk.model.policy import Policy
    from cuzk.model.yamlpos import plain_scalar
    from cuzk.planning.grid import parse_axis

    axes: dict[str, list[Any]] = {name: getattr(args, name) for name in ("pw", "gw", "j") if getattr(args, name)}
    for text in args.over:
        axis = parse_axis(text)
        name = axis.key.removeprefix("policy.")
        if name not in Policy.model_fields:
            raise InputError(f"--over {text}: no option '{name}' of the policy{suggestion(name, Policy.model_fields)}")
        axes[name] = [plain_scalar(value) for value in axis.values]
    return axes


def _document(scenario: Scenario, found: Found, wanted: Wanted, catalogue: Any) -> dict[str, Any]:
    from cuzk.planning.basis import basis
    from cuzk.planning.nearest import nearest
    from cuzk.planning.plan import neighbours

    best = found.best[0] if found.best else None
    document: dict[str, Any] = {
        "schema_version": 2,
        "scenario": scenario.name,
        "goal": wanted.goal,
        "deadline_s": wanted.deadline_s,
        "margins": {"ram": wanted.ram_margin, "vram": wanted.vram_margin},
        "considered": found.considered,
        "simulated": found.simulated,
        "invalid": found.invalid,
        "recommendations": [candidate.to_json(basis(candidate.scenario)) for candidate in found.best],
        "bottleneck": best.result.bottleneck if best else None,
        "neighbours": neighbours(scenario, best, wanted) if best else [],
        "pareto": [
            {"policy": c.settings, "s_per_proof": c.result.s_per_proof, "peak_ram_bytes": c.ram_bytes, "verdict": c.verdict}
            for c in found.pareto
        ],
        "rejected": [{"policy": c.settings, "s_per_proof": c.result.s_per_proof, "peak_ram_bytes": c.ram_bytes, "why": why}
                     for c, why in found.rejected],
        "nearest": None,
    }  # fmt: skip
    if best is None:
        document["nearest"] = nearest(scenario, catalogue).to_json()
    return document


def _toml(found: Found, scenario: Scenario) -> str:
    from cuzk.daemon.emit import toml_text
    from cuzk.pipeline.program import bind

    best = found.best[0]
    policy = bind(best.scenario).policy
    return toml_text(policy, scenario.machine, scenario.circuit, f"Written by: cuzk plan {scenario.name}")


def _emit(args: argparse.Namespace, scenario: Scenario, found: Found) -> None:
    from cuzk.model.dump import yaml_text
    from cuzk.report.files import write_text

    if args.emit == "cuzk-toml":
        text = _toml(found, scenario)
    else:
        best = found.best[0].scenario
        data = best.model_dump(mode="json", exclude={"checks", "description"}, exclude_defaults=True)
        text = f"# The best setting of: cuzk plan {args.scenario}\n" + yaml_text({"version": 1, **data})
    if args.output:
        write_text(args.output, text)
        print(f"written: {args.output}", file=sys.stderr)
    else:
        print(text, end="")

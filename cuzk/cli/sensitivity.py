"""`cuzk sensitivity SCENARIO`: how much each figure moves the answer.

cuzk sensitivity s.yaml                        each figure 10 % lower and higher, the largest swing first (a tornado)
cuzk sensitivity s.yaml --sobol 64             all at once: Sobol indices (needs SALib: pip install 'cuzk[sweep]')
"""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load

if TYPE_CHECKING:
    from cuzk.planning.row import Row
    from cuzk.planning.sensitivity import Bar, Index

BAR = 24


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("sensitivity", help="how much each figure moves the answer", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--by", type=_share, default=0.1, metavar="PERCENT", help="how far each figure goes (default 10)")
    parser.add_argument("--metric", default="s_per_proof", metavar="NAME",
                        help="s_per_proof (default), peak_ram_bytes, peak_vram_bytes, prove_s or makespan_s")  # fmt: skip
    parser.add_argument("--sobol", type=_samples, metavar="N", help="Sobol indices from N samples (a power of two) a figure")
    parser.add_argument("--top", type=_samples, default=20, metavar="N", help="show so many (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _share(text: str) -> float:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a percentage, not {text!r}") from None
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"must be above 0 and below 100, not {text!r}")
    return value / 100


def _samples(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1 << 16:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {1 << 16:,}, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.model.formula import suggestion
    from cuzk.planning.sensitivity import METRICS, sobol, tornado
    from cuzk.report.progress import counter

    if args.metric not in METRICS:
        raise InputError(f"no metric '{args.metric}'{suggestion(args.metric, METRICS)}")
    scenario = load(args)
    head = {"schema_version": 1, "scenario": scenario.name, "by": args.by, "metric": args.metric}
    if args.sobol:
        if args.sobol & (args.sobol - 1):
            raise InputError(f"--sobol {args.sobol}: must be a power of two")
        indices = sobol(scenario, args.by, args.metric, args.sobol, progress=counter("run"))
        indices.sort(key=lambda index: -index.total)
        document = {**head, "samples": args.sobol, "indices": [vars(index) for index in indices]}
        print(json.dumps(document, indent=2) if args.json else _sobol_text(indices[: args.top], args))
        return 0
    plain, bars = tornado(scenario, args.by, progress=counter("run"))
    bars.sort(key=lambda bar: (-bar.swing(args.metric), bar.factor))
    document = {**head, "plain": plain, "bars": [{"factor": b.factor, "low": b.low, "high": b.high} for b in bars]}
    print(json.dumps(document, indent=2) if args.json else _tornado_text(plain, bars[: args.top], args))
    return 0


def _tornado_text(plain: Row, bars: list[Bar], args: argparse.Namespace) -> str:
    metric = args.metric
    lines = [
        f"{metric} {_figure(metric, plain.get(metric))} ({plain['verdict'].upper()}), each figure {args.by:.0%} lower and higher",
        "",
    ]
    widest = max((bar.swing(metric) for bar in bars if math.isfinite(bar.swing(metric))), default=0.0)
    lines.append(f"{'figure':<26}  {'lower':>10}  {'higher':>10}  swing")
    for bar in bars:
        swing = bar.swing(metric)
        drawn = "out of memory on one side" if not math.isfinite(swing) else "█" * round(BAR * swing / widest) if widest else ""
        cells = [_figure(metric, row.get(metric)) if row["verdict"] != "invalid" else "invalid" for row in (bar.low, bar.high)]
        lines.append(f"{bar.factor:<26}  {cells[0]:>10}  {cells[1]:>10}  {drawn}".rstrip())
    return "\n".join(lines)


def _sobol_text(indices: list[Index], args: argparse.Namespace) -> str:
    lines = [f"share of the variance of {args.metric}, every figure within ± {args.by:.0%} ({args.sobol} samples a figure)", "",
             f"{'figure':<26}  {'alone':>16}  {'with others':>16}"]  # fmt: skip
    lines += [f"{i.factor:<26}  {i.first:>7.1%} ± {i.first_conf:>5.1%}  {i.total:>7.1%} ± {i.total_conf:>5.1%}" for i in indices]
    return "\n".join(lines)


def _figure(metric: str, value: float | None) -> str:
    from cuzk.report.verdict import gib

    if value is None:
        return "–"
    return gib(value) if metric.endswith("_bytes") else f"{value:.2f} s"

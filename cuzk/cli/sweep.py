"""`cuzk sweep SCENARIO --over KEY=VALUES …`: every combination of some values of any keys, simulated.

cuzk sweep s.yaml --over policy.pw=4-16 --over machine.ram=256GiB,512GiB -o table.csv --html explore.html

Rows are cached by content (scenario, seeds, version of cuzk): a second run makes only what is new, and Ctrl-C keeps what is done.
Combinations whose options do not go together are rows with the verdict `invalid`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario

if TYPE_CHECKING:
    from cuzk.planning.sweep import Sweep

SHOWN = 20


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("sweep", help="simulate every combination of some values", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--over", action="append", default=[], metavar="KEY=VALUES", required=True,
                        help="an axis: policy.pw=1-24, policy.srs=pinned,vram, machine.ram=1TiB,512GiB (repeatable)")  # fmt: skip
    parser.add_argument("--seeds", type=_few, default=1, metavar="N", help="seeds a setting: P5, P95 and P(OOM) (default 1)")
    parser.add_argument("--backend", default="fork", metavar="NAME", help="fork (default), loky, dask or ray")
    parser.add_argument("--address", metavar="ADDRESS", help="with dask or ray: a cluster that runs already")
    parser.add_argument("--workers", type=_few, metavar="N", help="default: one a core")
    parser.add_argument("--cache", metavar="FILE", help="rows that are there already (default ~/.cache/cuzk/sweeps.jsonl)")
    parser.add_argument("--no-cache", action="store_true", help="simulate everything again, keep nothing")
    parser.add_argument("-o", "--output", metavar="FILE", help="the table: .csv, .json or .parquet")
    parser.add_argument("--html", metavar="FILE", help="a page to explore the table, without a network")
    parser.add_argument("--json", action="store_true", help="print the table as one JSON document")


def _few(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1000, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.model.scenario import ScenarioFile
    from cuzk.planning.backends import backend
    from cuzk.planning.cache import default_path
    from cuzk.planning.grid import parse_axis
    from cuzk.planning.sweep import sweep
    from cuzk.report.files import usable
    from cuzk.report.progress import counter, done
    from cuzk.report.tables import table_file, write_table

    if args.no_cache and args.cache:
        raise InputError("--cache and --no-cache do not go together")
    if args.output:
        table_file(args.output)
    if args.html:
        usable(args.html)
    axes = [parse_axis(text) for text in args.over]
    place = None if args.no_cache else Path(args.cache) if args.cache else default_path()
    file = ScenarioFile(args.scenario)
    with backend(args.backend, args.workers, args.address) as workers:
        try:
            found = sweep(file, axes, workers, overrides=args.overrides, seeds=args.seeds, cache_path=place,
                          progress=counter("setting"))  # fmt: skip
        finally:
            done()
    rows = found.table()
    document = {"schema_version": 1, "scenario": str(args.scenario), "set": args.overrides, "seeds": args.seeds,
                "axes": {axis.key: list(axis.values) for axis in axes}, "simulated": found.made}  # fmt: skip
    if args.output:
        write_table(args.output, rows, document)
    if args.html:
        from cuzk.report.explorer import write_explorer

        write_explorer(args.html, document, rows)
    print(json.dumps({**document, "rows": rows}, indent=2) if args.json else _text(found))
    return 0


def _text(found: Sweep) -> str:
    from cuzk.report.verdict import gib

    verdicts = [str(row["verdict"]) for _, row in found.rows]
    parts = [f"{verdicts.count(v)} {v}" for v in ("fits", "risky", "oom", "invalid") if v in verdicts]
    lines = [f"{len(found.rows)} settings: {', '.join(parts)}; {found.made} simulated now"]
    fit = [
        (setting, row) for setting, row in found.rows if row["verdict"] in ("fits", "risky") and row["s_per_proof"] is not None
    ]
    fit.sort(key=lambda item: (round(item[1]["s_per_proof"], 3), item[1]["peak_ram_bytes"]))
    if fit:
        lines += ["", f"{'s/proof':>8}  {'RAM':>10}  {'verdict':<7}  {'binds':<20}  setting (the fastest {min(SHOWN, len(fit))})"]
    for setting, row in fit[:SHOWN]:
        words = " ".join(f"--set {key}={value}" for key, value in setting.items())
        lines.append(f"{row['s_per_proof']:>8.2f}  {gib(row['peak_ram_bytes']):>10}  {row['verdict']:<7}  "
                     f"{row['bottleneck']:<20}  {words}")  # fmt: skip
    return "\n".join(lines)

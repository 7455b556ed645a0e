"""`cuzk diff A B`: two scenarios, where they differ, and what each difference does when it alone is taken over to A."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.planning.diff import Diff
    from cuzk.planning.row import Row

WIDEST = 38


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("diff", help="two scenarios: what differs", description=__doc__)
    parser.add_argument("a", metavar="A", help="a scenario file")
    parser.add_argument("b", metavar="B", help="another")
    parser.add_argument("--set-a", dest="sets_a", action="append", default=[], metavar="PATH=VALUE", help="override a value of A")
    parser.add_argument("--set-b", dest="sets_b", action="append", default=[], metavar="PATH=VALUE", help="override a value of B")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.model.scenario import load_scenario
    from cuzk.planning.diff import diff

    found = diff(load_scenario(args.a, args.sets_a), load_scenario(args.b, args.sets_b))
    if args.json:
        rows = [{"key": d.key, "a": d.a, "b": d.b, "alone": d.alone} for d in found.differences]
        document = {"schema_version": 1, "a": found.a, "b": found.b, "differences": rows, "untried": found.untried}
        print(json.dumps(document, indent=2))
    else:
        print(_text(found))
    return 0


def _text(found: Diff) -> str:
    lines = [f"A  {_answer(found.a)}", f"B  {_answer(found.b)}", ""]
    if not found.differences:
        return "\n".join([*lines[:2], "nothing differs that decides the result"])
    lines.append(f"{'key':<34}  {'A':<{WIDEST}}  {'B':<{WIDEST}}  A with B's value alone")
    for d in found.differences:
        effect = "not simulated" if d.alone is None else _effect(found.a, d.alone)
        lines.append(f"{d.key:<34}  {_short(d.a):<{WIDEST}}  {_short(d.b):<{WIDEST}}  {effect}")
    return "\n".join(lines)


def _answer(row: Row) -> str:
    from cuzk.report.verdict import gib

    if row["verdict"] == "invalid":
        return f"INVALID    {row['error']}"
    pace = f"{row['s_per_proof']:.2f} s/proof" if row.get("s_per_proof") is not None else f"{row['oom_pool']} runs out"
    return f"{row['verdict'].upper():<8}  {pace}, RAM {gib(row['peak_ram_bytes'])}, binds {row['bottleneck']}"


def _effect(before: Row, after: Row) -> str:
    if after["verdict"] == "invalid":
        return f"no scenario: {after['error']}"
    if before.get("s_per_proof") is None or after.get("s_per_proof") is None:
        return _answer(after)
    pace = after["s_per_proof"] / before["s_per_proof"] - 1
    ram = (after["peak_ram_bytes"] - before["peak_ram_bytes"]) / 2**30
    return f"{after['verdict'].upper():<6} s/proof {pace:+.1%}, RAM {ram:+.1f} GiB"


def _short(value: Any) -> str:
    text = "–" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"

"""`cuzk size --target "40 s/proof"`: the cheapest machines of a catalogue that make the target, and what each further GPU brings.

cuzk size --target "100 proofs/h" --hosts 3                    up to three hosts
cuzk size scenario.yaml --target "40 s/proof" --card "RTX 4090"    the circuit, pipeline and calibration of a scenario
cuzk size --target "40 s/proof" --catalogue mine.yaml          own cards, hosts and prices

Without a scenario: a 32 GiB PoRep on the reference prover (phase 12), its calibration carried to other cards by their rates. Exit
code 3 when no machine makes the target.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

DEFAULT = "phase12-pw10.yaml"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("size", help="which machine to buy", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("scenario", nargs="?", help="circuit, pipeline and calibration (its machine is not used)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="PATH=VALUE",
                        help="override a value of the scenario (repeatable)")  # fmt: skip
    parser.add_argument("--target", action="append", default=[], metavar="PACE", help="'40 s/proof' or '100 proofs/h'")
    parser.add_argument("--hosts", type=_few, default=1, metavar="N", help="up to so many equal hosts (default 1)")
    parser.add_argument("--card", action="append", default=[], metavar="NAME", help="only this card (repeatable)")
    parser.add_argument("--catalogue", metavar="FILE", help="cards, hosts and prices in place of the library's")
    parser.add_argument("--top", type=_few, default=5, metavar="N", help="show so many (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _few(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1000, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from cuzk.model.catalogue import default_catalogue, load_catalogue
    from cuzk.model.scenario import load_scenario
    from cuzk.planning.size import size
    from cuzk.planning.target import one_target
    from cuzk.report.plan_text import size_text
    from cuzk.report.progress import counter, done

    target_s = one_target(args.target)
    catalogue = load_catalogue(args.catalogue) if args.catalogue else default_catalogue()
    cards = [catalogue.card(name).name for name in args.card]
    if args.scenario:
        scenario = load_scenario(args.scenario, args.overrides)
    else:
        scenario = load_scenario(_library_file(), ["pipeline=phase12", *args.overrides])
    try:
        found = size(scenario, target_s, catalogue, most_hosts=args.hosts, cards=cards, top=args.top, progress=counter("machine"))
    finally:
        done()
    document = {
        "schema_version": 1, "target_s_per_proof": target_s, "scenario": scenario.name, "considered": found.considered,
        "simulated": found.simulated, "machines": [sized.to_json(catalogue) for sized in found.machines], "gain": found.gain,
        "notes": _notes(scenario, catalogue),
    }  # fmt: skip
    print(json.dumps(document, indent=2) if args.json else size_text(document))
    return 0 if found.machines else 3


def _library_file() -> str:
    from cuzk.errors import InputError
    from cuzk.model.files import library

    place = library()
    if place is None:
        raise InputError("the library of scenarios is missing: name a scenario")
    return str(place / DEFAULT)


def _notes(scenario: Any, catalogue: Any) -> list[str]:
    pipeline = scenario.pipeline if isinstance(scenario.pipeline, str) else "a pipeline of its own"
    calibration = scenario.calibration.name if scenario.calibration else "none"
    return [
        f"circuit {scenario.circuit.name}, {pipeline}, calibration {calibration}",
        f"prices spread over {catalogue.years:g} years, electricity {catalogue.electricity_usd_per_kwh:g} USD/kWh; those of "
        "hosts and of data-centre cards are assumed unless the catalogue says otherwise",
        "cores of another processor count as those of the calibrated machine",
    ]

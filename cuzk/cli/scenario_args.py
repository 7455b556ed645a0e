"""Arguments that every verb on a scenario shares."""

from __future__ import annotations

import argparse

from cuzk.model.scenario import Scenario, load_scenario


def add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", help="a scenario file (YAML)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="PATH=VALUE",
                        help="override a value, e.g. --set policy.pw=12 (repeatable)")  # fmt: skip


def load(args: argparse.Namespace) -> Scenario:
    """Raises ScenarioError with every fault of the file and of the overrides."""
    return load_scenario(args.scenario, args.overrides)

"""Arguments that every verb on a scenario shares."""

from __future__ import annotations

import argparse

from cuzk.model.scenario import Scenario, load_scenario

MOST_SEED = 2**63 - 1


def seed(text: str) -> int:
    """A seed given on the command line, within what a scenario file may say."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^63 - 1, not {text!r}")
    return int(text)


def add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", help="a scenario file (YAML)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="PATH=VALUE",
                        help="override a value, e.g. --set policy.pw=12 (repeatable)")  # fmt: skip


def load(args: argparse.Namespace) -> Scenario:
    """Raises ScenarioError with every fault of the file and of the overrides."""
    return load_scenario(args.scenario, args.overrides)

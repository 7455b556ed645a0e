"""The recipes in CONTRIBUTING.md are true: the files that they name are there, with the names in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
LINE = re.compile(r"^- `([^`]+)`(?: \(([^)]*)\))?", re.MULTILINE)
PLACEHOLDER = re.compile(r"NEW|NOUN")


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_names_what_is_there(title):
    lines = LINE.findall(RECIPES[title])
    there = [(path, names) for path, names in lines if not PLACEHOLDER.search(path)]
    assert there
    for path, names in there:
        assert (ROOT / path).is_file(), f"{title}: {path} is not there"
        text = (ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"`([^`]+)`", names):
            assert name in text, f"{title}: {path} has no {name}"
    for path, _ in lines:
        if PLACEHOLDER.search(path) and "NOUN" not in path:
            assert (ROOT / path).parent.is_dir(), f"{title}: there is no folder for {path}"


def test_there_is_a_recipe_for_what_people_add():
    wanted = {
        "a verb of the command line", "a verb of the pipeline", "a stage", "a buffer", "a policy option", "a file format",
        "a kernel", "a column of the plan",
    }  # fmt: skip
    assert {title.removeprefix("Add ") for title in RECIPES} >= wanted

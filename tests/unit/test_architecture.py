"""docs/architecture.md is true: each invariant is held by a test that cites it, each room is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_invariants_are_numbered_and_each_is_cited():
    numbers = [int(n) for n in re.findall(r"^- \*\*INV-(\d+)\*\*", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers
    cited = set()
    for path in (ROOT / "tests").rglob("*.py"):
        cited |= {int(n) for n in re.findall(r"INV-(\d+)", path.read_text(encoding="utf-8"))}
    assert cited == set(numbers), "a test cites each by `# INV-n`, and none that the page does not have"


def test_every_room_is_on_the_page():
    rooms = set(re.findall(r"^\| `cuzk/(\w+)` ", PAGE, re.MULTILINE))
    there = {init.parent.name for init in (ROOT / "cuzk").glob("*/__init__.py")}
    assert there <= rooms, f"rooms without a row: {there - rooms}"
    assert rooms <= there, f"rows without a room: {rooms - there}"


ROOTS, SUFFIXES = "cuzk|tests|scenarios|benchmarks|kernels|docs|schemas", "py|yaml|md|jsonl?|hpp|cuh?|cpp|png|sh"
NAMED = re.compile(rf"(?<![\w/.-])(?<!-o )((?:{ROOTS})/[\w/.-]+\.(?:{SUFFIXES}))\b")
WRITTEN_FROM = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "cuzk").rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
]


def test_files_that_prose_names_are_there():
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in WRITTEN_FROM
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if not re.search(r"NEW|NOUN", name) and not (ROOT / name).exists()
    ]
    assert not wrong, "\n".join(wrong)


def test_links_between_pages_lead_somewhere():
    wrong = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                wrong.append(f"{path.relative_to(ROOT)}: {target}")
    assert not wrong, "\n".join(wrong)

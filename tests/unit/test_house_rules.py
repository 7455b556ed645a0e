"""The architecture is a test: import contracts, types, lint, file sizes."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_LINES = 400


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)


# INV-16
def test_import_contracts():
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(script)], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_strict():
    done = run("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


def test_lint():
    done = run("ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_one_shape_of_code():
    done = run("ruff", "format", "--check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


# INV-17
@pytest.mark.parametrize("module", ["cuzk.cli.main", "cuzk.pipeline.program", "cuzk.groth16", "cuzk.gpu", "cuzk.exec"])
def test_heavy_imports_are_lazy(module):
    code = f"import sys, {module}; print(*sorted({{'cupy', 'plotly', 'simpy', 'scipy'}} & set(sys.modules)))"
    done = run_code(code)
    assert done.stdout.strip() == "", f"{module} imports {done.stdout}"


def run_code(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)


def test_files_stay_readable():
    suffixes = {".py", ".cpp", ".hpp", ".cu", ".cuh"}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    files = [ROOT / name for name in listed if name and Path(name).suffix in suffixes]
    if not files:
        pytest.skip("not a git checkout: no list of the project's files")
    long = {str(f.relative_to(ROOT)): n for f in files if f.exists() and (n := len(f.read_text().splitlines())) > MAX_LINES + 50}
    assert not long, f"over {MAX_LINES + 50} lines: {long}"


SENTENCES_BACKWARDS = re.compile(r"\s*(Of|From|As|What|Whose|Which|Where|How)\b")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string that stands alone: docstrings, and those below a constant or a field."""
    for node in ast.walk(ast.parse(path.read_text())):
        for statement in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else ():
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    yield statement.lineno, text


def test_docstrings_are_in_the_order_of_english():
    files = [(path, str(path.relative_to(ROOT))) for path in sorted((ROOT / "cuzk").rglob("*.py"))]
    wrong = [
        f"{name}:{line}: {text.split(chr(10))[0]}"
        for path, name in files
        for line, text in docstrings(path)
        if SENTENCES_BACKWARDS.match(text)
    ]
    assert not wrong, "begin with the subject:\n" + "\n".join(wrong)


def test_module_lists_of_packages_are_true():
    wrong = []
    for init in sorted((ROOT / "cuzk").rglob("__init__.py")):
        name, text = str(init.relative_to(ROOT)), ast.get_docstring(ast.parse(init.read_text())) or ""
        if len(re.findall(r"^\s*\w+\.py[ ,]", text, re.MULTILINE)) < 2:
            continue
        listed = set(re.findall(r"\b(\w+\.py)\b", text))
        there = {path.name for path in init.parent.glob("*.py")} - {"__init__.py"}
        wrong += [f"{name}: {module} is listed and not there" for module in sorted(listed - there)]
        wrong += [f"{name}: {module} is not listed" for module in sorted(there - listed)]
        folders = re.findall(r"^\s*(\w+)/ ", text, re.MULTILINE)
        wrong += [f"{name}: {folder}/ is listed and not there" for folder in folders if not (init.parent / folder).is_dir()]
    assert not wrong, "\n".join(wrong)

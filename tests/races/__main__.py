"""`python -m tests.races [--rounds N]`: the host library and its driver under ThreadSanitizer. Exit 1 on a race or a
wrong result.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "races"
FLAGS = ("-std=c++17", "-O1", "-g", "-fsanitize=thread", "-pthread")


def sources() -> list[Path]:
    """The library's sources as CMakeLists.txt names them, and the driver."""
    found = re.search(r"set\(CUZK_SOURCES ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert found is not None, "CMakeLists.txt names no sources"
    names = [*found[1].split(), "kernels/abi/guard.cpp", "tests/races/driver.cpp"]
    return [ROOT / name for name in names]


def build(compiler: str) -> Path:
    """The driver, linked with the library. Raises CalledProcessError."""
    BUILD.mkdir(parents=True, exist_ok=True)

    def compile_one(source: Path) -> Path:
        out = BUILD / (source.relative_to(ROOT).as_posix().replace("/", "-") + ".o")
        newest = max(path.stat().st_mtime for path in [source, *(ROOT / "kernels").rglob("*.hpp")])
        if not out.exists() or out.stat().st_mtime < newest:
            subprocess.run([compiler, *FLAGS, "-c", str(source), "-o", str(out)], check=True)
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources()))
    subprocess.run([compiler, *FLAGS, *map(str, objects), "-o", str(BUILD / "driver")], check=True)
    return BUILD / "driver"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, metavar="N")
    args = parser.parse_args()
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        print("no C++ compiler", file=sys.stderr)
        return 2
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=0 exitcode=66 second_deadlock_stack=1"}
    done = subprocess.run([str(build(compiler)), str(args.rounds)], env=environment, capture_output=True, text=True)
    races = done.stderr.count("WARNING: ThreadSanitizer")
    if done.returncode not in (0, 1) or races:
        print(done.stderr[-8000:], file=sys.stderr)
    print(done.stdout.strip() + f"; {races} races")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())

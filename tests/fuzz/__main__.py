"""`python -m tests.fuzz [--runs N] [TARGET …]`: every reader under a coverage-guided fuzzer, executions and faults as a table.

Python readers run under atheris, the C++ functions that see untrusted arrays under libFuzzer with address and undefined-behaviour
sanitizers (clang++ is needed; CXX_FUZZ names it). Inputs that reach new code are kept in build/fuzz/TARGET, faults in
build/fuzz/faults. Exit 1 on any fault.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.readers import TARGETS
from tests.fuzz.seeds import seeds

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "fuzz"
NATIVE = {"native-points": "points.cpp", "native-matrices": "matrices.cpp", "native-json": "json.cpp"}
FLAGS = ("-std=c++17", "-O2", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined", "-pthread")
COUNT = re.compile(r"stat::number_of_executed_units:\s*(\d+)|#(\d+)\s+DONE")


def compiler() -> str | None:
    """A clang++ with libFuzzer, or None."""
    names = (os.environ.get("CXX_FUZZ", ""), "clang++", *(f"clang++-{n}" for n in range(22, 10, -1)))
    return next((found for name in names if name and (found := shutil.which(name))), None)


def build(name: str, clang: str) -> Path:
    """The fuzzer of a native target. Raises CalledProcessError."""
    from concurrent.futures import ThreadPoolExecutor

    objects = BUILD / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"set\(CUZK_SOURCES ([^)]*)\)", text)
    assert found is not None, "CMakeLists.txt names no sources"
    sources = [ROOT / source for source in found[1].split()] + [ROOT / "tests" / "fuzz" / "native" / NATIVE[name]]

    def compile_one(source: Path) -> Path:
        out = objects / (source.relative_to(ROOT).as_posix().replace("/", "-") + ".o")
        newest = max(path.stat().st_mtime for path in [source, *(ROOT / "kernels").rglob("*.hpp")])
        if not out.exists() or out.stat().st_mtime < newest:
            subprocess.run([clang, *FLAGS, "-c", str(source), "-o", str(out)], check=True)
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = list(pool.map(compile_one, sources))
    program = BUILD / name
    program.mkdir(exist_ok=True)
    subprocess.run([clang, *FLAGS, *map(str, compiled), "-o", str(program / "fuzzer")], check=True)
    return program / "fuzzer"


def fuzz(name: str, command: list[str], corpus: Path, runs: int, seconds: int | None) -> tuple[int, float, str | None]:
    """(executions, seconds, the fault) of one target."""
    faults = BUILD / "faults"
    faults.mkdir(parents=True, exist_ok=True)
    options = [f"-runs={runs}", "-print_final_stats=1", f"-artifact_prefix={faults}/{name}-", "-timeout=20", "-rss_limit_mb=4096"]
    options += [f"-max_total_time={seconds}"] if seconds else []
    start = time.monotonic()
    done = subprocess.run([*command, str(corpus), *options], cwd=ROOT, capture_output=True, text=True, errors="replace")
    log = done.stdout + done.stderr
    (BUILD / f"{name}.log").write_text(log, encoding="utf-8")
    counts = [int(a or b) for a, b in COUNT.findall(log)]
    fault = None
    if done.returncode:
        lines = [
            line
            for line in log.splitlines()
            if "ERROR" in line or "Error" in line or "Exception" in line or "runtime error" in line
        ]
        fault = (lines or log.splitlines() or [f"ended with {done.returncode}"])[-1].strip()
    return max(counts, default=0), time.monotonic() - start, fault


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join([*TARGETS, *NATIVE])}")
    parser.add_argument("--runs", type=int, default=1_000_000, metavar="N", help="executions of each (default 10^6)")
    parser.add_argument("--seconds", type=int, metavar="S", help="at most so long for each")
    args = parser.parse_args()
    unknown = [name for name in args.targets if name not in TARGETS and name not in NATIVE]
    if unknown:
        parser.error(f"no target {unknown[0]!r}")
    wanted = args.targets or [*TARGETS, *NATIVE]
    start_from, clang, failed, total = seeds(), compiler(), 0, 0
    for name in wanted:
        corpus = BUILD / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(start_from.get(name, [bytes(64)])):
            (corpus / f"seed-{number}").write_bytes(data)
        if name in NATIVE:
            if clang is None:
                print(f"{name:<16} not run: no clang++ with libFuzzer (CXX_FUZZ names one)")
                continue
            command = [str(build(name, clang)), "-max_len=2048"]
        else:
            command = [sys.executable, "-m", "tests.fuzz.readers", name]
        executions, took_s, fault = fuzz(name, command, corpus, args.runs, args.seconds)
        total += executions
        failed += fault is not None
        print(f"{name:<16} {executions:>9,} executions in {took_s:6.0f} s   {fault or 'no fault'}", flush=True)
    print(f"{total:,} executions, {failed} targets with faults" + (f": see {BUILD / 'faults'}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""compute-sanitizer over the GPU tests of small sizes: `python benchmarks/gpu_sanitize.py [-o FILE.json] [--tool racecheck]`.

Every tool runs the same tests in a process of its own, all at once: memcheck (bad addresses), racecheck (shared memory),
initcheck (device memory that nothing wrote), synccheck (barriers). The tests compare every result with the host library as
always, so "no errors" is said of kernels that did their work. Exit code 4 if a tool found something or a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Under a tool a kernel takes 10 to 1,000 times its time, so sizes are small; they still fill several blocks. File -> tests.
SMALL = {
    "test_msm.py": [
        *(f"test_random[{n}-{group}]" for n in (1, 3, 100, 4097) for group in ("g1", "g2")),
        *(f"test_batch_add[1000-0.5-{group}-{sums}]" for group in ("g1", "g2") for sums in (False, True)),
    ],
    "test_ntt.py": [
        *(f"test_against_host[{log_n}]" for log_n in (1, 4, 9, 11, 13)),
        *(f"test_quotients[{kind}-{log_n}]" for kind in ("c-free", "odd-coset", "bellman") for log_n in (1, 4, 9, 13)),
    ],
    "test_r1cs.py": [
        *(f"test_scan[{others}-{n}]" for others in ("0.0", "0.013", "1.0") for n in (1, 64, 1000, 1025)),
        *(f"test_csr[{others}-{kind}-3000]" for others in ("0.013", "1.0") for kind in ("uint16", "uint32")),
    ],
    "test_split.py": [
        *(f"test_split[shares{shares}-{n}]" for shares in range(3) for n in (1, 1000, 1025)),
        "test_a_template_by_wire",
        "test_points[g1-12]",
        "test_points[g2-24]",
    ],
    "test_small.py": ["test_the_same_bytes_as_on_the_host[mul]"],
    "test_streams.py": [
        *(f"test_an_msm_of_points_that_pass_by[{n}-{kind}]" for n in ("3000-4096",) for kind in ("staged", "copy")),
        "test_sets_that_get_on_at_any_time_share_what_passes[1500-staged]",
        "test_sets_that_get_on_at_any_time_share_what_passes[1500-copy]",
    ],
}
FOUND = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


def start(tool: str, log: Path, files: list[str]) -> list[tuple[str, subprocess.Popen[bytes], Path]]:
    """One process a test file."""
    started = []
    for name, chosen in ((name, SMALL[name]) for name in files):
        out = log / f"{tool}-{name}.txt"
        command = [
            "compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--launch-timeout", "0",
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/gpu/{name}::{test}" for test in chosen),
        ]  # fmt: skip
        with open(out, "wb") as sink:
            # a session of its own: at the end of the time the tool and what it runs go together
            options = {"cwd": ROOT, "stdout": sink, "stderr": subprocess.STDOUT, "start_new_session": True}
            started.append((name, subprocess.Popen(command, **options), out))
    return started


def outcome(tool: str, name: str, process: subprocess.Popen[bytes], out: Path, deadline: float) -> dict[str, Any]:
    row: dict[str, Any] = {"tool": tool, "tests": name}
    try:
        row["exit_code"] = process.wait(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        row["exit_code"] = None  # out of time: says nothing
    text = out.read_text(errors="replace")
    counts = [int(a or b) for a, b in FOUND.findall(text)]
    row["found"] = max(counts) if counts else None
    passed = re.search(r"(\d+) passed", text)
    row["passed"] = int(passed.group(1)) if passed else 0
    row["clean"] = row["exit_code"] == 0 and row["found"] == 0 and row["passed"] > 0
    if not row["clean"]:
        row["log"] = "\n".join(line for line in text.splitlines() if line.startswith(("=====", "E  ")) or "Error" in line)[:4000]
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this one (may be repeated)")
    parser.add_argument("--file", action="append", choices=SMALL, help="only the tests of this file (may be repeated)")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for everything (240)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    if shutil.which("compute-sanitizer") is None:
        print("compute-sanitizer is not installed (it comes with the CUDA toolkit)", file=sys.stderr)
        return 5
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        deadline = time.monotonic() + options.timeout
        running = [
            (tool, *each) for tool in options.tool or TOOLS for each in start(tool, Path(folder), options.file or list(SMALL))
        ]
        for tool, name, process, out in running:
            rows.append(outcome(tool, name, process, out, deadline))
            row = rows[-1]
            print(f"{tool:10s} {name:14s} {'clean' if row['clean'] else 'NOT CLEAN'}: {row['found']} found, "
                  f"{row['passed']} tests passed, exit {row['exit_code']}", flush=True)  # fmt: skip
            if "log" in row:
                print(row["log"], file=sys.stderr)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["clean"] for row in rows) else 4


if __name__ == "__main__":
    sys.exit(main())

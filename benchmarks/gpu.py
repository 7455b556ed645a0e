#!/usr/bin/env python3
"""Builds, checks and times the GPU kernels: `python benchmarks/gpu.py [-o docs/performance.json] [--only msm_g1]`.

Every case runs on fresh random data, is checked against an independent result before it is timed, and is timed from an
idle device to a complete result (wall clock, so the host's part counts). `sustained_ms` is the mean of back-to-back runs
for about a second, with the SM clock read under that load: short runs look faster than a chip at its power limit is.

`--porep` adds whole partitions through the executor (benchmarks/porep_gpu.py: 4 minutes, 54 GB of memory, or its JSON if that is
at hand). Writes one JSON document (`-o`) and beside it the same as Markdown; with `--only`, rows of an existing document that
are not measured again are kept. Exit code 4 if a check fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_cases import Case, all_cases

from cuzk.errors import CuzkError


class Clock:
    """SM clock in MHz through NVML, None where that is missing."""

    def __init__(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:
            self._nvml = None

    def mhz(self) -> int | None:
        return None if self._nvml is None else int(self._nvml.nvmlDeviceGetClockInfo(self._handle, 1))


def time_case(case: Case, device: Any, clock: Clock, runs: int, sustain_s: float) -> dict[str, Any]:
    """One result row; `checked` is False if the independent check disagrees (such a row has no times)."""
    seed = int(np.random.SeedSequence().entropy) % 2**63
    prepared = case.prepare(device, np.random.default_rng(seed))
    row: dict[str, Any] = {"name": case.name, "seed": seed, "note": case.note}
    try:
        stream = device.stream()

        def once() -> float:
            begin = time.perf_counter()
            prepared.start(stream)
            prepared.finish()
            return (time.perf_counter() - begin) * 1e3

        once()
        row["checked"] = bool(prepared.check())
        if not row["checked"]:
            return row
        times = [once() for _ in range(runs)]
        middle = statistics.median(times)
        repeats = max(2, min(200, int(sustain_s * 1e3 / middle)))
        begin = time.perf_counter()
        for _ in range(repeats):
            prepared.start(stream)
            mhz = clock.mhz()  # the work is enqueued, not done: the clock under load
            prepared.finish()
        sustained = (time.perf_counter() - begin) * 1e3 / repeats
        row |= {
            "median_ms": round(middle, 3),
            "min_ms": round(min(times), 3),
            "max_ms": round(max(times), 3),
            "runs": runs,
            "sustained_ms": round(sustained, 3),
            "sm_clock_mhz": mhz,
            "peer_ms": case.peer_ms,
            "goal_ms": case.goal_ms,
            "ceiling_ms": round(case.ceiling_ms, 3),
            "ratio_to_peer": None if case.peer_ms is None else round(middle / case.peer_ms, 3),
            "ratio_to_ceiling": round(middle / case.ceiling_ms, 3),
        }
    finally:
        prepared.free()
    return row


PARTITION = {
    "porep_partition_gpu_2^27": (2500, 900, "GPU steps of one partition of a 32 GiB sector, key in VRAM"),
    "porep_partition_alone_2^27": (5400, 1500, "from its start to its verified proof, nothing beside it"),
    "porep_proof_10_partitions": (46000, 12000, "sustained; the peer without synthesis, gw=1"),
}
"""Row -> the peer's ms, the goal, what it is."""


def partition_rows(path: str) -> list[dict[str, Any]]:
    """Rows from what benchmarks/porep_gpu.py wrote to `path`; made first if that is empty."""
    with tempfile.TemporaryDirectory() as folder:
        if not path:
            path = str(Path(folder) / "porep.json")
            script = Path(__file__).resolve().parent / "porep_gpu.py"
            subprocess.run([sys.executable, str(script), "-o", path], stdout=subprocess.DEVNULL, check=False)
        try:
            document = json.loads(Path(path).read_text())
            alone, sustained = document["runs"]
        except (OSError, ValueError, KeyError) as fault:
            return [{"name": name, "checked": False, "error": f"no result: {fault}"} for name in PARTITION]
    proof_ms = {"median": sustained["s_per_proof"] * 1e3, "count": sustained["proofs"]}
    figures = (alone["gpu_steps_ms"], alone["start_to_proof_ms"], proof_ms)
    whole = document["challenges"] == 18 and document["log_domain"] == 27
    rows = []
    for (name, (peer_ms, goal_ms, note)), run, figure in zip(PARTITION.items(), (alone, alone, sustained), figures, strict=True):
        median = round(figure["median"], 3)
        rows.append({
            "name": name, "note": note, "checked": whole and run["exit_code"] == 0, "median_ms": median,
            "min_ms": figure.get("min", median), "max_ms": figure.get("max", median), "runs": figure["count"],
            "peer_ms": peer_ms, "goal_ms": goal_ms, "ratio_to_peer": round(median / peer_ms, 3), "ratio_to_ceiling": None,
        })  # fmt: skip
    return rows


def versions(device: Any) -> dict[str, str]:
    import cupy

    import cuzk

    return {
        "cuzk": getattr(cuzk, "__version__", "source tree"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cupy": cupy.__version__,
        "cuda_runtime": str(cupy.cuda.runtime.runtimeGetVersion()),
        "cuda_driver": str(cupy.cuda.runtime.driverGetVersion()),
    }


def machine(device: Any) -> dict[str, Any]:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(device.device_id)
    _, total = device.memory_info()
    return {
        "gpu": properties["name"].decode(),
        "multiprocessors": device.multiprocessors,
        "vram_gib": round(total / 2**30, 1),
        "cpu": platform.processor() or platform.machine(),
    }


def markdown(document: dict[str, Any]) -> str:
    missed = [row["name"] for row in document["results"] if row.get("goal_ms") and row.get("median_ms", 0) > row["goal_ms"]]
    whole = " --porep" if any(row["name"] in PARTITION for row in document["results"]) else ""
    lines = [
        "# The kernels",
        "",
        f"Measured on {document['machine']['gpu']}, {document['date']}, by",
        f"`python benchmarks/gpu.py{whole} -o docs/performance.json`:",
        "data resident on the device, fresh random input, every result checked before it is timed. Peer: what sppark's",
        "templates and the reference prover reached on such a machine. Ceiling: counted multiplications or bytes at the chip's",
        "measured rates. What each version gave, and what bounds it: [MSM and batch addition](performance-log-msm.md),",
        "[transforms and products](performance-log-ntt.md).",
        "",
        f"Goals missed: {', '.join(missed) or 'none'}.",
        "",
        "| work | median ms | min–max | sustained ms (MHz) | peer ms | ratio to peer | ratio to ceiling | goal ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in document["results"]:
        if "median_ms" not in row:
            lines.append(f"| {row['name']} | {row.get('error', 'WRONG RESULT')} | | | | | | |")
            continue
        lines.append(
            f"| {row['name']} | {row['median_ms']:.2f} | {row['min_ms']:.2f}–{row['max_ms']:.2f} "
            f"| {_sustained(row)} | {row['peer_ms'] or '–'} | {row['ratio_to_peer'] or '–'} "
            f"| {row['ratio_to_ceiling'] or '–'} | {row['goal_ms'] or '–'} |"
        )
    return "\n".join(lines) + "\n"


def _sustained(row: dict[str, Any]) -> str:
    return f"{row['sustained_ms']:.2f} ({row['sm_clock_mhz']})" if "sustained_ms" in row else "–"


def _kept(path: Path | None, renewed: set[str]) -> list[dict[str, Any]]:
    """Rows of an earlier run that this one does not measure again."""
    if path is None or not path.exists():
        return []
    return [row for row in json.loads(path.read_text())["results"] if row["name"] not in renewed]


def _write(path: Path, document: dict[str, Any]) -> None:
    for target, text in (
        (path, json.dumps(document, indent=1) + "\n"),
        (path.with_suffix(".md"), markdown(document)),
    ):
        scratch = target.with_name(target.name + ".tmp")
        scratch.write_text(text)
        scratch.replace(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="JSON file; the Markdown goes beside it")
    parser.add_argument("--only", action="append", default=[], help="names that start so (may be repeated)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sustain", type=float, default=1.0, help="seconds of back-to-back runs a case")
    parser.add_argument("--porep", nargs="?", const="", metavar="JSON", help="whole partitions too")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    cases = [c for c in all_cases() if not options.only or any(c.name.startswith(p) for p in options.only)]
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    from cuzk.gpu.device import CudaDevice

    try:
        device = CudaDevice()
    except CuzkError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    clock, results = Clock(), _kept(options.output, {c.name for c in cases}) if options.only else []
    document = {
        "schema_version": 1,
        "machine": machine(device),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "versions": versions(device),
        "results": results,
    }
    for case in cases:
        try:
            row = time_case(case, device, clock, options.runs, options.sustain)
        except CuzkError as fault:
            row = {"name": case.name, "checked": False, "error": str(fault)}
        results.append(row)
        shown = f"{row['median_ms']:10.2f} ms" if "median_ms" in row else str(row.get("error", "WRONG RESULT"))
        print(f"{case.name:28s} {shown}", file=sys.stderr, flush=True)
        if options.output:  # after every case: a run that is cut short keeps what it has
            _write(options.output, document)
    device.trim()
    if options.porep is not None:
        results += partition_rows(options.porep)
        if options.output:
            _write(options.output, document)
    print(markdown(document), end="")
    return 0 if all(r.get("checked") for r in results) else 4


if __name__ == "__main__":
    sys.exit(main())

"""`cuzk doctor`: what this machine has, and what of cuzk works on it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

GPU_QUERY = "name,memory.total,memory.used,driver_version,compute_cap,pcie.link.gen.max"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("doctor", help="what this machine has", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    report = {"schema_version": 1, "cpu": _cpu(), "memory": _memory(), "gpus": _gpus(), "library": _library(),
              "tools": {tool: shutil.which(tool) is not None for tool in ("nvcc", "node", "g++")}}  # fmt: skip
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print(_text(report))
    return 0


def _cpu() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return {"model": model, "cores_usable": usable, "machine": platform.machine(), "python": platform.python_version()}


def _memory() -> dict[str, Any]:
    import psutil

    from cuzk.exec.host import memory_limit_bytes

    memory = psutil.virtual_memory()
    return {"total_bytes": memory.total, "available_bytes": memory.available, "cgroup_limit_bytes": memory_limit_bytes()}


def _gpus() -> list[dict[str, str]]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={GPU_QUERY}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    keys = GPU_QUERY.split(",")
    return [dict(zip(keys, (cell.strip() for cell in line.split(",")), strict=True)) for line in done.stdout.splitlines()]


def _library() -> dict[str, Any]:
    from cuzk.errors import CuzkError

    try:
        from cuzk import native

        return {"found": True, **native.info()}
    except (CuzkError, OSError, ImportError) as error:
        return {"found": False, "why": str(error)}


def _text(report: dict[str, Any]) -> str:
    from cuzk.model.units import fmt_gib

    cpu, memory, library = report["cpu"], report["memory"], report["library"]
    limit = memory["cgroup_limit_bytes"]
    lines = [
        f"cpu       {cpu['model']}, {cpu['cores_usable']} usable cores, Python {cpu['python']}",
        f"ram       {fmt_gib(memory['total_bytes'])}, {fmt_gib(memory['available_bytes'])} available, "
        + (f"container limit {fmt_gib(limit)}" if limit else "no container limit"),
    ]
    lines += [
        f"gpu {index}     {gpu['name']}, {gpu['memory.total']}, {gpu['memory.used']} used, driver {gpu['driver_version']}, "
        f"compute capability {gpu['compute_cap']}"
        for index, gpu in enumerate(report["gpus"])
    ] or ["gpu       none: planning, simulation and proving on the CPU work without one"]
    if library["found"]:
        has = ", ".join(name for name, found in library["cpu"].items() if found) or "nothing beyond the baseline"
        lines.append(f"library   variant {library['variant']} of {library['directory']}; the CPU has {has}")
    else:
        lines.append(f"library   missing: {library['why']}")
    lines.append("tools     " + ", ".join(f"{tool} {'yes' if found else 'no'}" for tool, found in report["tools"].items()))
    return "\n".join(lines)

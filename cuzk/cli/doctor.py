"""`cuzk doctor`: what this machine has, and what of cuzk works on it.

cuzk doctor                              a summary
cuzk doctor --measure                    with the DRAM's and each link's rate, measured (seconds; memory for the copies)
cuzk doctor --emit machine [--measure]   this machine as a file that a scenario can name: `machine: here.yaml`
cuzk doctor --selftest                   the library's arithmetic, and each GPU's, against independent ones: edge values and
                                         10^7 field operations (half a minute); exit 1 on any difference
cuzk doctor --compile [sm_XY]            compiles all kernels for the GPU here (or for one of that architecture), so that no
                                         first proof waits for the compiler
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.host.machine import Found


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("doctor", help="what this machine has", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--emit", choices=["machine"], help="print a machine file instead")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the machine file there (with --emit)")
    parser.add_argument("--name", help="the machine's name in that file (default: the host's)")
    parser.add_argument("--measure", action="store_true", help="measure DRAM and links")
    parser.add_argument("--selftest", action="store_true", help="compare the arithmetic of this machine with independent ones")
    parser.add_argument("--operations", type=int, default=10_000_000, metavar="N", help="of the self-test (default: 10^7)")
    parser.add_argument("--compile", nargs="?", const="", metavar="ARCH", help="compile the kernels (default: for GPU 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.host.machine import look, machine_of, measure
    from cuzk.report.files import usable, write_text

    if args.selftest:
        return _selftest(args)
    if args.compile is not None:
        return _compile(args)
    if args.output and not args.emit:
        raise InputError("-o names the file of --emit machine")
    if args.output:
        usable(args.output)
    found = look()
    if args.measure:
        measure(found)
    machine = machine_of(found, args.name)
    if args.emit and not args.json:
        from cuzk.model.dump import part_text

        text = part_text("machine", machine, "This machine. Written by: cuzk doctor --emit machine" + " --measure" * args.measure)
        for line in found.refused:
            print(f"not measured: {line}", file=sys.stderr)
        if args.output:
            write_text(args.output, text)
        else:
            print(text, end="")
        return 0
    report = _report(found) | {"machine": machine.model_dump(mode="json", exclude_defaults=True)}
    print(json.dumps(report, indent=2) if args.json else _text(report))
    return 0


def _compile(args: argparse.Namespace) -> int:
    import re
    import time

    from cuzk.errors import InputError
    from cuzk.gpu import module

    arch = args.compile or module.require_device_arch(0)
    if not re.fullmatch(r"sm_\d{2,3}", arch):
        raise InputError(f"--compile {arch}: an architecture is named like sm_90")
    start = time.perf_counter()
    paths = module.compile_all(arch)
    document = {"arch": arch, "folder": str(module.cache_dir()), "files": [path.name for path in paths],
                "took_s": round(time.perf_counter() - start, 3)}  # fmt: skip
    text = f"{len(paths)} modules for {arch} in {document['folder']} ({document['took_s']} s)"
    print(json.dumps(document, indent=2) if args.json else text)
    return 0


def _selftest(args: argparse.Namespace) -> int:
    from cuzk import native
    from cuzk.cli.proving import print_json, terminal_progress
    from cuzk.errors import HardwareMissing, InputError
    from cuzk.groth16.selftest import run_host

    if args.operations < 1:
        raise InputError("--operations must be at least 1")
    progress = terminal_progress()
    host = run_host(args.operations, progress)
    places = [(f"host library, variant {native.info()['variant']}", host)]
    try:
        from cuzk.gpu.device import CudaDevice
        from cuzk.groth16.gpu.selftest import run_device

        device = CudaDevice()
        places.append((f"GPU of {device.arch}", run_device(device, args.operations, progress)))
    except HardwareMissing as missing:
        print(f"cuzk: no GPU tested: {missing}", file=sys.stderr)
    wrong = [line for _, report in places for line in report.wrong]
    if args.json:
        print_json(
            {"wrong": wrong, "places": [{"place": place, "compared": r.compared, "took_s": r.took_s} for place, r in places]}
        )
    else:
        for place, report in places:
            print(f"{place}: {sum(report.compared.values()):,} comparisons in {report.took_s:.1f} s, {len(report.wrong)} wrong")
        print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def _report(found: Found) -> dict[str, Any]:
    from dataclasses import asdict

    from cuzk.host.memory import available_bytes

    memory, cpu = found.memory, found.cpu
    return {
        "schema_version": 1,
        "cpu": {"model": cpu.model, "cores_usable": cpu.cores_usable, "cores": cpu.cores, "threads": cpu.threads,
                "quota": cpu.quota, "numa_nodes": [asdict(node) for node in cpu.nodes],
                "machine": platform.machine(), "python": platform.python_version()},
        "memory": {
            "total_bytes": memory.total_bytes, "available_bytes": available_bytes(), "hugepages_bytes": memory.hugepages_bytes,
            "swap_bytes": memory.swap_bytes,
            "cgroup_limit_bytes": min((group.limit_bytes for group in found.groups), default=None),
            "control_groups": [asdict(group) for group in found.groups], "dram_bytes_per_s": found.dram_bytes_per_s},
        "gpus": [asdict(gpu) | {"rates": asdict(found.links[gpu.index]) if gpu.index in found.links else None}
                 for gpu in found.gpus],
        "not_measured": found.refused,
        "library": _library(),
        "tools": {tool: shutil.which(tool) is not None for tool in ("nvcc", "node", "g++")},
    }  # fmt: skip


def _library() -> dict[str, Any]:
    from cuzk.errors import CuzkError

    try:
        from cuzk import native

        return {"found": True, **native.info()}
    except (CuzkError, OSError, ImportError) as error:
        return {"found": False, "why": str(error)}


def _text(report: dict[str, Any]) -> str:
    cpu, library = report["cpu"], report["library"]
    lines = [f"cpu       {cpu['model']}, {cpu['cores_usable']} usable cores, {cpu['threads']} threads, Python {cpu['python']}"]
    if len(cpu["numa_nodes"]) > 1:
        lines.append(f"numa      {len(cpu['numa_nodes'])} nodes")
    lines += _memory_lines(report["memory"])
    for gpu in report["gpus"]:
        lines += _gpu_lines(gpu)
    if not report["gpus"]:
        lines.append("gpu       none: planning, simulation and proving on the CPU work without one")
    lines += [f"note      not measured: {line}" for line in report["not_measured"]]
    if library["found"]:
        has = ", ".join(name for name, found in library["cpu"].items() if found) or "nothing beyond the baseline"
        lines.append(f"library   variant {library['variant']} of {library['directory']}; the CPU has {has}")
    else:
        lines.append(f"library   missing: {library['why']}")
    lines.append("tools     " + ", ".join(f"{tool} {'yes' if found else 'no'}" for tool, found in report["tools"].items()))
    return "\n".join(lines)


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    from cuzk.model.units import fmt_gib

    limit = memory["cgroup_limit_bytes"]
    lines = [f"ram       {fmt_gib(memory['total_bytes'])}, {fmt_gib(memory['available_bytes'])} available, "
             + (f"container limit {fmt_gib(limit)}" if limit else "no container limit")]  # fmt: skip
    if limit:
        tight = min(memory["control_groups"], key=lambda group: group["limit_bytes"] - group["usage_bytes"])
        lines.append(f"          {fmt_gib(tight['usage_bytes'])} charged to the container, "
                     f"{fmt_gib(tight['reclaimable_bytes'])} of it cache that counts as free")  # fmt: skip
    if memory["hugepages_bytes"]:
        lines.append(f"          {fmt_gib(memory['hugepages_bytes'])} set aside for huge pages")
    if memory["dram_bytes_per_s"]:
        lines.append(f"          {memory['dram_bytes_per_s'] / 1e9:.0f} GB/s read and written while every core copies")
    return lines


def _gpu_lines(gpu: dict[str, Any]) -> list[str]:
    from cuzk.model.units import fmt_gib

    lines = [f"gpu {gpu['index']}     {gpu['name']}, {fmt_gib(gpu['vram_bytes'])}, {fmt_gib(gpu['used_bytes'])} used, "
             f"driver {gpu['driver']}, compute capability {gpu['compute_capability']}"]  # fmt: skip
    lines += [f"          {holder['name']} (pid {holder['pid']}) holds "
              + (fmt_gib(holder["bytes"]) if holder["bytes"] is not None else "memory, how much is not told")
              for holder in gpu["holders"]]  # fmt: skip
    if rates := gpu["rates"]:
        figures = [f"{rates[name] / 1e9:.1f}" for name in ("h2d", "d2h", "h2d_pageable", "memory")]
        lines.append("          {} GB/s up, {} down, {} from pageable memory; {} within its memory".format(*figures))
    return lines

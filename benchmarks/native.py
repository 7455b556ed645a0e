"""Bulk operations of the host library on this machine, each result checked: wall and CPU time, every variant the CPU can run.

    python benchmarks/native.py [--log-n 16] [--threads N] [--variants ifma,adx] [--json]

Random scalars, distinct points with known logarithms; an MSM is compared with the generator times the sum of the logarithms, a
transform with the value at one point by powers and a dot product. Times are the best of three.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cuzk import native
from cuzk.native import _library


def measure(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """Result, wall and CPU seconds of the best of three runs."""
    best = (np.empty(0), float("inf"), 0.0)
    for _ in range(3):
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if wall < best[1]:
            best = (result, wall, cpu)
    return best


def rows(log_n: int, threads: int) -> list[dict[str, Any]]:
    """One measurement a row: what, how many items, wall_s, cpu_s, cpu_ns an item."""
    rng = np.random.default_rng(1)
    out: list[dict[str, Any]] = []

    def scalars(n: int) -> np.ndarray:
        return rng.integers(0, 2**62, (n, 4), dtype=np.uint64)

    def report(name: str, items: int, work: Callable[[], np.ndarray], check: Callable[[np.ndarray], bool]) -> np.ndarray:
        result, wall, cpu = measure(work)
        if not check(result):
            raise SystemExit(f"{name}: wrong result")
        out.append({"what": name, "items": items, "wall_s": wall, "cpu_s": cpu, "cpu_ns": cpu / items * 1e9})
        return result

    def group(name: str, n: int) -> None:
        fixed, msm = getattr(native, f"fixed_base_{name}"), getattr(native, f"msm_{name}")
        scale, check = getattr(native, f"scale_{name}"), getattr(native, f"check_{name}")
        logs, s, few = scalars(n), scalars(n), n // 16
        points = report(f"fixed_base_{name}", n, lambda: fixed(logs, threads=threads), lambda p: check(p[:64]) == -1)
        # mont logs times std scalars give std.
        total = native.fr_dot_mont(native.fr_from_std(logs), s)
        report(f"msm_{name}", n, lambda: msm(points, s, threads=threads), lambda p: np.array_equal(p, fixed(total)))
        p_few, s_few = points[:few], s[:few]
        product = native.fr_mul(native.fr_from_std(logs[:few]), s_few)
        report(f"scale_{name}", few, lambda: scale(p_few, s_few, threads=threads), lambda p: np.array_equal(p, fixed(product)))
        report(f"check_{name}", few, lambda: np.array([check(p_few, threads=threads)]), lambda r: r[0] == -1)

    group("g1", 1 << log_n)
    group("g2", 1 << (log_n - 2))

    size = 16 << log_n
    a, x = scalars(size), scalars(1)
    powers = native.fr_powers_mont(x, size)
    report("ntt coset", size, lambda: native.ntt(a.copy(), coset=x, threads=threads),
           lambda y: np.array_equal(y[:1], native.fr_dot_mont(a, powers)))  # fmt: skip
    back = native.ntt(a.copy(), coset=x)
    report("inverse ntt coset", size, lambda: native.ntt(back.copy(), inverse=True, coset=x, threads=threads),
           lambda y: np.array_equal(y, a))  # fmt: skip
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log-n", type=int, default=16, help="points of an MSM in G1 (default 16); others follow")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--variants", default=",".join(_library.VARIANTS))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    threads = args.threads or len(os.sched_getaffinity(0))

    if "," not in args.variants:
        info = native.info()
        table = rows(args.log_n, threads)
        if args.json:
            print(json.dumps({"variant": info["variant"], "threads": threads, "rows": table}))
            return 0
        print(f"{info['variant']}, {threads} threads")
        for r in table:
            wall, cpu = r["wall_s"] * 1e3, r["cpu_s"] * 1e3
            print(f"  {r['what']:<18} {r['items']:>9}  {wall:9.1f} ms  {cpu:9.1f} CPU-ms  {r['cpu_ns']:9.0f} CPU-ns each")
        return 0
    # A process of its own each, since a process keeps the library that it loaded.
    status = 0
    for variant in args.variants.split(","):
        command = [sys.executable, __file__, "--log-n", str(args.log_n), "--threads", str(threads), "--variants", variant]
        environment = {**os.environ, "CUZK_NATIVE_VARIANT": variant}
        status |= subprocess.run(command + ["--json"] * args.json, env=environment).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())

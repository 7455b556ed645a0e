#!/usr/bin/env python3
"""Proofs of small circuits on one GPU: `python benchmarks/small_gpu.py -o docs/small-h200.json [--log-n 14 --log-n 20]`.

Each size is a circuit of mostly 0/1 values under a c-free development key, proved by recorded graphs (cuzk.groth16.gpu.small), in
a process of its own: the first proof from the start of the process, warm proofs one by one, and many at a time. Every proof is
verified by an independent pairing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
STARTED_S = time.perf_counter()


def measure(key_file: str, witness_file: str, log_n: int, lanes: int, many: int) -> dict[str, Any]:
    """In a fresh process."""
    from cuzk.gpu.device import CudaDevice
    from cuzk.groth16.gpu.small import SmallProver
    from cuzk.groth16.load import load_key, open_witness

    key = load_key(key_file)
    values = open_witness(witness_file)(key)
    device = CudaDevice()
    loaded_s = time.perf_counter()
    prover = SmallProver(device, key, lanes=1)
    placed_s = time.perf_counter()
    prover.prove(values)
    first_s = time.perf_counter() - STARTED_S
    warm, made, graph = [], [], []
    for _ in range(20):
        start = time.perf_counter()
        prover.prove(values)
        warm.append(time.perf_counter() - start)
    for _ in range(20):
        start = time.perf_counter()
        prover.make(values)
        made.append(time.perf_counter() - start)
        start = time.perf_counter()
        prover._lanes[0].launch(values)
        prover._lanes[0].sums()
        graph.append(time.perf_counter() - start)
    prover.free()
    row: dict[str, Any] = {
        "log_n": log_n, "rows": key.system.rows, "wires": key.n_wires, "first_proof_s": round(first_s, 3),
        "of_it_import_and_load_s": round(loaded_s - STARTED_S, 3), "of_it_key_to_gpu_and_graph_s": round(placed_s - loaded_s, 3),
        **{name: ms(values) for name, values in (("warm_ms", warm), ("unverified_ms", made), ("gpu_and_join_ms", graph))},
        "warm_ms_max": round(1e3 * max(warm), 3), "many": {},
    }  # fmt: skip
    for each in sorted({1, 2, 4, lanes}):
        prover = SmallProver(device, key, lanes=each)
        prover.prove_all([values] * each, threads=each)
        start = time.perf_counter()
        proofs = prover.prove_all([values] * many, threads=2 * each)
        took_s = time.perf_counter() - start
        row["many"][each] = round(len(proofs) / took_s, 1)
        prover.free()
    row["proofs_per_s"] = max(row["many"].values())
    row["verified_proofs"] = 1 + 20 + many * len(row["many"])
    return row


def ms(seconds: list[float]) -> float:
    return round(1e3 * statistics.median(seconds), 3)


def make(folder: Path, log_n: int) -> tuple[str, str]:
    """A circuit of almost 2^log_n constraints, its witness and a key."""
    from benchmarks.executor import cuzk

    pce, wtns, key = (str(folder / f"{log_n}.{suffix}") for suffix in ("pce", "wtns", "ckey"))
    steps = (
        ("circuit", "bits", "--constraints", str((1 << log_n) - 3), "--pce", pce, "--wtns", wtns),
        ("setup", pce, "-o", key, "--quotients", "c-free"),
    )
    for args in steps:
        code, document = cuzk(*args)
        if code:
            raise SystemExit(f"cuzk {' '.join(args)}: exit code {code}: {document}")
    return key, wtns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log-n", type=int, action="append", metavar="N", help="sizes (default: 14, 16, 18, 20)")
    parser.add_argument("--lanes", type=int, default=8, help="proofs at a time, at most (8)")
    parser.add_argument("--many", type=int, default=200, help="proofs of a batch at 2^14; fewer of larger ones (200)")
    parser.add_argument("--measure", nargs=2, metavar=("KEY", "WITNESS"), help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.measure:
        (log_n,) = options.log_n
        print(json.dumps(measure(*options.measure, log_n, options.lanes, max(16, options.many >> max(0, log_n - 14)))))
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for log_n in options.log_n or (14, 16, 18, 20):
            files = make(Path(folder), log_n)
            command = [
                sys.executable,
                __file__,
                "--log-n",
                str(log_n),
                "--lanes",
                str(options.lanes),
                "--many",
                str(options.many),
            ]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
            done = subprocess.run([*command, "--measure", *files], capture_output=True, text=True, env=environment)
            if done.returncode:
                print(done.stderr[-3000:], file=sys.stderr)
                return 1
            rows.append(json.loads(done.stdout))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""cuzk beside snarkjs on the same files in one run: whole processes for `prove`, setup from the same circuit, ratios.

    python benchmarks/beside_snarkjs.py --sizes 2^10 2^14 2^16 --repeat 3 [--ptau FILE] [--node-modules DIR]

Circuits are the built-in ones, keys are ours, every proof is verified by the other side's verifier. Needs node with snarkjs
installed (npm install snarkjs); DIR defaults to the cache of the interop tests.
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

CACHE = Path(os.environ.get("CUZK_INTEROP_CACHE", Path.home() / ".cache" / "cuzk" / "interop")) / "node_modules"


def timed(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process. Raises RuntimeError with its output if it fails."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def size(text: str) -> int:
    base, _, exponent = text.partition("^")
    return int(base) ** int(exponent or 1)


def measure(folder: Path, circuit: str, constraints: int, args: argparse.Namespace) -> dict:
    """One row: medians over the repeats, runs of both sides taken in turn."""
    cuzk = [sys.executable, "-m", "cuzk"]
    snarkjs = [str(args.node_modules / ".bin" / "snarkjs")]
    files = {name: str(folder / f"{circuit}{constraints}.{name}") for name in ("r1cs", "wtns", "zkey", "json", "ckey")}
    timed([*cuzk, "circuit", circuit, "--constraints", str(constraints), "--r1cs", files["r1cs"], "--wtns", files["wtns"]])
    ours_setup, _ = timed([*cuzk, "setup", files["r1cs"], "-o", files["zkey"], "--vkey", files["json"]])
    timed([*cuzk, "setup", files["r1cs"], "-o", files["ckey"]])
    runs: dict[str, list[tuple[float, float]]] = {"cuzk": [], "snarkjs": [], "cuzk c-free": []}
    ours, theirs = folder / "ours", (str(folder / "proof.json"), str(folder / "public.json"))
    for _ in range(args.repeat):
        runs["cuzk"].append(timed([*cuzk, "prove", files["zkey"], files["wtns"], "-o", str(ours)]))
        runs["snarkjs"].append(timed([*snarkjs, "groth16", "prove", files["zkey"], files["wtns"], *theirs]))
        runs["cuzk c-free"].append(timed([*cuzk, "prove", files["ckey"], files["wtns"], "-o", str(folder / "free")]))
    timed([*snarkjs, "groth16", "verify", files["json"], str(ours / "public.json"), str(ours / "proof.json")])
    timed([*cuzk, "verify", files["json"], theirs[1], theirs[0]])
    row: dict = {"circuit": circuit, "constraints": constraints, "setup_s": ours_setup}
    for name, values in runs.items():
        row[name] = {"wall_s": statistics.median(w for w, _ in values), "cpu_s": statistics.median(c for _, c in values)}
    row["ratio"] = row["snarkjs"]["wall_s"] / row["cuzk"]["wall_s"]
    row["cpu_ratio"] = row["snarkjs"]["cpu_s"] / row["cuzk"]["cpu_s"]
    if args.ptau:
        key = str(folder / "theirs.zkey")
        setups = {
            "snarkjs_setup": timed([*snarkjs, "groth16", "setup", files["r1cs"], args.ptau, key]),
            "phase2_setup": timed([*cuzk, "setup", files["r1cs"], "--ptau", args.ptau, "-o", str(folder / "p2.zkey")]),
        }
        row |= {name: {"wall_s": wall, "cpu_s": cpu} for name, (wall, cpu) in setups.items()}
        row["setup_ratio"] = row["snarkjs_setup"]["wall_s"] / row["phase2_setup"]["wall_s"]
        row["setup_cpu_ratio"] = row["snarkjs_setup"]["cpu_s"] / row["phase2_setup"]["cpu_s"]
        row["setup_files_identical"] = Path(key).read_bytes() == (folder / "p2.zkey").read_bytes()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=size, default=[1000, 1 << 14], metavar="N")
    parser.add_argument("--circuits", nargs="+", default=["mimc", "bits"], metavar="NAME")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ptau", help="also time setup from this prepared .ptau on both sides")
    parser.add_argument("--node-modules", type=Path, default=CACHE)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for circuit in args.circuits:
            for constraints in args.sizes:
                print(json.dumps(measure(Path(folder), circuit, constraints, args)), flush=True)


if __name__ == "__main__":
    main()

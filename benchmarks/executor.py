"""The executor on this machine: real proofs through the pipeline, flat memory, faults, and its prediction beside it.

    python benchmarks/executor.py --device cuda -o docs/executor-h200.json   (a GPU)
    python benchmarks/executor.py --device cpu --log-constraints 14          (anywhere)

Every proof is verified by an independent pairing before it counts. Each part is a process of its own, as a user would start it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
SCENARIO = """
version: 1
machine: machines/h200-16c-126g.yaml
circuit: circuits/porep-32g.yaml
pipeline: phase12
policy: {policy}
workload: {{proofs: {proofs}}}
"""
MANY = 50


def cuzk(*args: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON document of one verb, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "cuzk", *args, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, {"stderr": done.stderr.strip()[-2000:]}


class Bench:
    """Runs verbs of cuzk and keeps what they say."""

    def __init__(self, device: str, work: Path) -> None:
        self.device, self.work = device, work
        self.results: list[dict[str, Any]] = []

    def scenario(self, policy: str, proofs: int) -> str:
        path = self.work / "scenario.yaml"
        path.write_text(SCENARIO.format(policy=policy, proofs=proofs))
        return str(path)

    def prove(self, name: str, key: str, witness: str, policy: str, proofs: int, *extra: str,
              device: str = "") -> dict[str, Any]:  # fmt: skip
        """One `cuzk run` with proofs; what it said, shortened."""
        out = self.work / name
        args = ["--key", key, "--witness", witness, "--device", device or self.device, "-o", str(out), *extra]
        code, document = cuzk("run", self.scenario(policy, proofs), *args)
        measured = document.get("measured", {})
        row = {
            "name": name, "policy": policy, "proofs": proofs, "exit_code": code,
            "verified_partitions": measured.get("verified_partitions"),
            **{k: document.get("throughput", {}).get(k) for k in ("s_per_proof", "steady_s_per_proof", "prove_s")},
            "peaks": {p: {k: v[k] for k in ("live_bytes", "resident_bytes")} for p, v in document.get("peaks", {}).items()},
            "oom": (document.get("oom") or {}).get("pool"), "stderr": document.get("stderr"),
        }  # fmt: skip
        self.say(row)
        return row

    def say(self, row: dict[str, Any]) -> None:
        self.results.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)


def fixtures(bench: Bench) -> None:
    """Keys that snarkjs made."""
    for name in ("mul", "chain1k", "checked16k"):
        folder = FIXTURES / name
        key = folder / f"{name}.zkey"
        if not key.exists():
            import lzma

            key = bench.work / f"{name}.zkey"
            key.write_bytes(lzma.decompress((folder / f"{name}.zkey.xz").read_bytes()))
        bench.prove(f"fixture-{name}", str(key), str(folder / f"{name}.wtns"), "{pw: 2, gw: 2, j: 2}", 1)


def flat(bench: Bench) -> None:
    """Many proofs in one process: what the driver reports at the tenth proof and at the last."""
    folder = FIXTURES / "chain1k"
    row = bench.prove("flat", str(folder / "chain1k.zkey"), str(folder / "chain1k.wtns"), "{pw: 2, gw: 2, j: 2}", MANY)
    samples: dict[str, list[tuple[float, int]]] = {}
    trace = bench.work / "flat" / "trace.jsonl"
    for line in trace.read_text().splitlines()[1:] if trace.exists() else []:
        event = json.loads(line)
        if event["kind"] == "sample" and event.get("resident"):
            samples.setdefault(event["pool"], []).append((event["t"], event["resident"]))
    row["resident_max_of_thirds_bytes"] = {
        pool: [max(level for _, level in part) for part in _thirds(values)]
        for pool, values in samples.items() if len(values) >= 3
    }  # fmt: skip
    print(json.dumps(row["resident_max_of_thirds_bytes"]), file=sys.stderr)


def _thirds(values: list[tuple[float, int]]) -> list[list[tuple[float, int]]]:
    n = len(values)
    return [values[: n // 3], values[n // 3 : 2 * n // 3], values[2 * n // 3 :]]


def larger(bench: Bench, log_constraints: int) -> None:
    """A circuit with mostly 0/1 values under a c-free key: CPU, GPU, key in VRAM or streamed; then prediction."""
    constraints = str((1 << log_constraints) - 3)
    pce, wtns, key = (str(bench.work / f"bits.{suffix}") for suffix in ("pce", "wtns", "ckey"))
    for name, args in (("circuit", ("bits", "--constraints", constraints, "--pce", pce, "--wtns", wtns)),
                       ("setup", (pce, "-o", key, "--quotients", "c-free"))):  # fmt: skip
        begun = time.perf_counter()
        code, document = cuzk(name, *args)
        bench.say({"name": f"{name}-2^{log_constraints}", "exit_code": code, "s": round(time.perf_counter() - begun, 2),
                   "stderr": document.get("stderr")})  # fmt: skip
        if code:
            return
    policies = {"streamed": "{pw: 2, gw: 2, j: 2, srs: pinned}"}
    if bench.device == "cuda":
        bench.prove("larger-on-cpu", key, wtns, "{pw: 1, gw: 1, j: 1}", 1, device="cpu")
        policies |= {
            "resident": "{pw: 2, gw: 2, j: 2, srs: vram}",
            "all-on-gpu": "{pw: 2, gw: 2, j: 2, srs: vram, pce: vram, matvec: gpu, b_g2_msm: gpu}",
        }
    for name, policy in policies.items():
        bench.prove(f"larger-{name}", key, wtns, policy, 3)
    _predict(bench, key, wtns, next(reversed(policies)), next(reversed(policies.values())))


def _predict(bench: Bench, key: str, wtns: str, name: str, policy: str) -> None:
    """Calibrate on one run's trace, predict another setting before running it."""
    calibration = str(bench.work / "calibration.yaml")
    code, document = cuzk("calibrate", str(bench.work / f"larger-{name}" / "trace.jsonl"), "-o", calibration)
    if code:
        bench.say({"name": "calibrate", "exit_code": code, "stderr": document.get("stderr")})
        return
    for setting in ("pw: 4, gw: 1, j: 3", "pw: 5, gw: 2, j: 3"):
        other = policy.replace("pw: 2, gw: 2, j: 2", setting)
        row = bench.prove("predicted", key, wtns, other, 4, "--calibration", calibration)
        run = json.loads((bench.work / "predicted" / "run.json").read_text()) if not row["exit_code"] else {}
        predicted = run.get("predicted", {})
        row["predicted"] = {
            "s_per_proof": predicted.get("throughput", {}).get("s_per_proof"),
            "peaks": {pool: peak["resident_bytes"] for pool, peak in predicted.get("peaks", {}).items()},
        }
        print(json.dumps(row["predicted"]), file=sys.stderr)


def faults(bench: Bench) -> None:
    """A context that a kernel spoils, really: the proofs in flight fail, and a fresh process makes the others. Too little VRAM,
    really: the proof fails cleanly, and the next one in the same process comes out."""
    if bench.device != "cuda":
        return
    import cupy

    sys.path.insert(0, str(ROOT))
    from cuzk.exec.cuda import CudaProver
    from cuzk.exec.run import Proving, prepare, prove_with
    from cuzk.model import load_scenario

    folder = FIXTURES / "chain1k"
    proving = Proving(str(folder / "chain1k.zkey"), (str(folder / "chain1k.wtns"),))
    scenario = load_scenario(bench.scenario("{pw: 1, gw: 1, j: 1}", 1))

    def once(label: str) -> Any:
        result = prove_with(prepare(scenario, proving, make_device=CudaProver, worker=False), bench.work / label)
        free, total = cupy.cuda.runtime.memGetInfo()
        bench.say({"name": f"fault-{label}", "exit_code": result.exit_code, "oom": (result.document["oom"] or {}).get("pool"),
                   "error": str(result.error) if result.error else None, "vram_used_after_bytes": total - free})  # fmt: skip

    _lost(bench, proving)
    once("before")
    free, _ = cupy.cuda.runtime.memGetInfo()
    ballast = cupy.cuda.runtime.malloc(free - (200 << 20))
    once("starved")
    cupy.cuda.runtime.free(ballast)
    once("after")


def _lost(bench: Bench, proving: Any) -> None:
    from cuzk.exec.run import prepare, prove_with
    from cuzk.model import load_scenario
    from tests.gpu.spoiling import FAULTS, spoiling

    scenario = load_scenario(bench.scenario("{pw: 2, gw: 2, j: 2}", 6))
    for fault in FAULTS:
        for lives in (1, 9):
            out = bench.work / f"lost-{fault}-{lives}"
            out.mkdir(exist_ok=True)
            prepared = prepare(scenario, proving, make_device=spoiling(out / "spoiled", fault, lives), worker=True)
            begun = time.perf_counter()
            result = prove_with(prepared, out, trace_path=out / "trace.jsonl")
            measured = result.document["measured"]
            bench.say({"name": f"fault-lost-{fault}", "processes_spoiled_at_most": lives, "exit_code": result.exit_code,
                       "failures": result.document["failures"], "verified_partitions": measured["verified_partitions"],
                       "worker_restarts": measured["worker_restarts"], "s": round(time.perf_counter() - begun, 2)})  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--log-constraints", type=int, default=20, help="of the larger circuit (20)")
    parser.add_argument("--keep", metavar="DIR", help="leave proofs and traces there")
    parser.add_argument("--only", help="comma-separated parts: fixtures, flat, larger, faults")
    parser.add_argument("-o", "--output", metavar="FILE")
    args = parser.parse_args()
    parts: dict[str, Callable[[Bench], None]] = {
        "fixtures": fixtures, "flat": flat, "faults": faults,
        "larger": lambda bench: larger(bench, args.log_constraints)}  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.keep or temporary)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(args.device, work)
        for name, part in parts.items():
            if not args.only or name in args.only.split(","):
                part(bench)
    document = {"date": time.strftime("%Y-%m-%d"), "device": args.device, "host": platform.machine(),
                "cores": os.cpu_count(), "results": bench.results}  # fmt: skip
    text = json.dumps(document, indent=1)
    if args.output:
        Path(args.output).write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A PoRep partition of real size through the executor on a GPU: setup, partitions one by one, proofs of ten partitions.

    python benchmarks/porep_gpu.py -o docs/porep-h200.json                       (one GPU, 16 cores, 54 GB in /dev/shm)
    python benchmarks/porep_gpu.py --sector 2KiB --challenges 1 --device cpu     (anywhere)

A development key (nobody's secrets but this machine's) and a synthetic sector that satisfies the circuit are made in the work
folder, or taken from there. Every partition is verified by an independent pairing before it counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.executor import SCENARIO, cuzk  # noqa: E402
from cuzk.groth16.load import load_key, open_witness  # noqa: E402
from cuzk.model.units import parse_bytes as read_bytes  # noqa: E402
from cuzk.native.memory import process_resident_bytes  # noqa: E402
from cuzk.trace.event import Event  # noqa: E402
from cuzk.trace.spans import spans  # noqa: E402

ON_GPU = "srs: vram, pce: vram, quotient: c-free, matvec: gpu, prep_msm: gpu, b_g2_msm: gpu"
SUSTAINED = "pw: 3, gw: 2, j: 2, prestage: before-mutex"
"""The next partition's bits are uploaded while this one is proved: memory for two is there."""
LEAN = (
    "",
    *(
        f"pw: 4, gw: {gw}, j: 2, srs: {srs}, pce: vram, quotient: c-free, matvec: gpu, prep_msm: gpu, b_g2_msm: gpu"
        for srs, gw in (("split", 2), ("split", 3), ("mmap", 3))
    ),
)
"""Policies for a GPU that does not hold the key: what fits, chosen by itself; then sets on it, and where the key is."""
ON_CPU = "srs: mmap, quotient: c-free"
GPU_STEPS = ("upload", "prep_msm", "matvec", "ntt_h", "msm_h", "batch_add", "tail_msm", "b_g2_msm")
SHM = Path("/dev/shm")
_START_S = time.perf_counter()


def say(text: str) -> None:
    print(f"[{time.perf_counter() - _START_S:7.1f} s] {text}", file=sys.stderr, flush=True)


class Every:
    """A setup's progress, a line now and then."""

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds, self._last_s = seconds, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now_s = time.perf_counter()
        if now_s - self._last_s >= self._seconds or done == total:
            self._last_s = now_s
            say(f"{what}: {done:,} of {total:,}")


# ------------------------------------------------------------------------ case


def make(sector: str, challenges: int | None, key: Path, witness: Path) -> dict[str, float]:
    """Writes the key and the witness of one partition; what each part took."""
    from cuzk.circuits.porep.shape import shape
    from cuzk.groth16.formats.cwit import write_cwit
    from cuzk.groth16.setup.development import setup_development
    from cuzk.groth16.template.system import TemplateSystem
    from cuzk.porep.ids import SectorIds, porep_id
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.synthetic import SyntheticSector

    wanted = shape(sector).with_challenges(challenges)
    took: dict[str, float] = {}
    start_s = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start_s
        took[name] = round(time.perf_counter() - start_s, 3)
        start_s = time.perf_counter()
        say(f"{name}: {took[name]:.1f} s")

    maker = PartitionMaker(wanted)
    lap("template_s")
    made = SyntheticSector(wanted, SectorIds(porep_id=porep_id(wanted, "1.1")), bytes(32))
    values = maker.witness(made, made.nodes)
    lap("witness_s")
    maker.require_satisfied(values)
    lap("check_s")
    write_cwit(witness, values)
    setup_development(TemplateSystem(maker.template), key, quotients=("c-free",), progress=Every())
    lap("setup_s")
    return took


def work_folder(given: str | None, need_bytes: int) -> tuple[Path, bool]:
    """Where key and witness go, and whether to remove it: the folder that was named, memory if there is room, or the disk."""
    if given:
        Path(given).mkdir(parents=True, exist_ok=True)
        return Path(given), False
    roomy = SHM.is_dir() and shutil.disk_usage(SHM).free > need_bytes
    return Path(tempfile.mkdtemp(prefix="porep-", dir=SHM if roomy else None)), True


# ------------------------------------------------------------------------ runs


def prove(name: str, key: Any, witness: Any, policy: str, proofs: int, partitions: int, work: Path,
          traces: Path, make_device: Any, warm: int, learn_from: Path | None = None,
          vram_bytes: int | None = None) -> dict[str, Any]:  # fmt: skip
    """One run, as `cuzk run` does it, predicted first if there is an earlier run's trace to learn from. The first `warm`
    partitions do not count in the steps' times. `vram_bytes`: what the books have of a GPU."""
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.model import load_scenario

    path = work / "scenario.yaml"
    path.write_text(SCENARIO.format(policy="{" + policy + "}", proofs=proofs))
    scenario = load_scenario(path)
    scenario = scenario.model_copy(update={"circuit": scenario.circuit.model_copy(update={"partitions": partitions})})
    if vram_bytes is not None:
        capped = tuple(gpu.model_copy(update={"vram": vram_bytes}) for gpu in scenario.machine.gpus)
        scenario = scenario.model_copy(update={"machine": scenario.machine.model_copy(update={"gpus": capped})})
    idle_bytes = process_resident_bytes()
    bound = bind_key(scenario, key, [witness], Proving(str(key.path), ()), idle_bytes=idle_bytes, make_device=make_device)
    trace = traces / f"{name}.jsonl"
    say(f"{name}: {proofs} proofs of {partitions}, {policy}")
    predicted = predict(bound.scenario, learn_from, work / "calibration.yaml") if learn_from else None
    result = prove_with(bound, work / name, trace_path=trace)
    document = result.document
    row = {
        "name": name, "policy": policy or f"chosen: {chosen_of(bound.scenario.policy)}",
        "proofs": proofs, "partitions_a_proof": partitions, "exit_code": result.exit_code,
        "error": str(result.error) if result.error else None, "load_s": document["measured"]["load_s"],
        "verified_partitions": document["measured"]["verified_partitions"], **document["throughput"],
        "makespan_s": document["makespan_s"],
        "peaks": {p: {k: v[k] for k in ("live_bytes", "resident_bytes", "resident_is")} for p, v in document["peaks"].items()},
        **times(result.events, warm), "predicted": predicted,
    }  # fmt: skip
    say(f"{name}: exit code {row['exit_code']}, {row['verified_partitions']} partitions verified, loaded in {row['load_s']} s, "
        f"{row['s_per_proof']} s/proof, steps {row['gpu_steps_ms']}, to proof {row['start_to_proof_ms']} ms")  # fmt: skip
    for step, figures in row["step_ms"].items():
        say(f"    {step:16} {figures['median']:10.3f} ms  ({figures['min']:.3f} to {figures['max']:.3f})")
    return row


def chosen_of(policy: Any) -> str:
    """The options that say where things are and how many there are."""
    names = ("pw", "gw", "j", "srs", "pce", "matvec", "prep_msm", "b_g2_msm")
    return ", ".join(f"{name}: {getattr(policy, name)}" for name in names)


def lean_row(cap: str, row: dict[str, Any]) -> dict[str, Any]:
    """What is told of a run with little VRAM."""
    level = row["peaks"].get("vram:0", {})
    return {
        "vram": cap, "policy": row["policy"], "vram_cap_bytes": read_bytes(cap), "vram_peak_bytes": level.get("resident_bytes"),
        "booked_peak_bytes": level.get("live_bytes"), "s_per_proof": row["s_per_proof"],
        "predicted_s_per_proof": (row["predicted"] or {}).get("s_per_proof"), "load_s": row["load_s"],
        "verified_partitions": row["verified_partitions"], "exit_code": row["exit_code"], "error": row["error"],
        "ram_peak_bytes": row["peaks"].get("ram", {}).get("resident_bytes"), "step_ms": row["step_ms"],
        "start_to_proof_ms": row["start_to_proof_ms"], "gpu_idle_ms": row["gpu_idle_ms"],
    }  # fmt: skip


def predict(scenario: Any, learn_from: Path, calibration: Path) -> dict[str, Any]:
    """What the simulator says of a run that has not begun, with the step times of an earlier one."""
    from cuzk.model.calibration import Calibration
    from cuzk.model.scenario import load_part
    from cuzk.sim import simulate

    code, document = cuzk("calibrate", str(learn_from), "-o", str(calibration))
    if code:
        raise RuntimeError(f"cuzk calibrate {learn_from}: exit code {code}: {document}")
    learnt = load_part(str(calibration), "calibration", Calibration)
    found = simulate(scenario.model_copy(update={"calibration": learnt})).to_json()
    told = {"verdict": found["verdict"], "s_per_proof": found["throughput"]["s_per_proof"],
            "peaks": {pool: peak["resident_bytes"] for pool, peak in found["peaks"].items()}}  # fmt: skip
    say(f"    predicted from {learn_from.name}: {told}")
    return told


def times(events: Sequence[Event], warm: int = 0) -> dict[str, Any]:
    """Each step's time, the GPU's share of a partition and from a partition's start to its proof, in ms; and of the run from its
    first GPU step to its last how long the GPU had none."""
    found = sorted(spans(events), key=lambda span: span.start)
    started: dict[Any, float] = {}
    for span in found:
        started.setdefault((span.proof, span.partition), span.start)
    complete = {(event.proof, event.partition): event.t for event in events if event.kind == "complete"}
    counted = dict.fromkeys(list(started)[warm:], 0.0)
    steps: dict[str, list[float]] = defaultdict(list)
    for span in found:
        part = (span.proof, span.partition)
        if part in counted:
            steps[span.name].append(span.seconds)
            counted[part] += span.seconds * (span.name in GPU_STEPS)
    return {
        "step_ms": {name: spread(values) for name, values in steps.items()},
        "gpu_steps_ms": spread(list(counted.values())),
        "start_to_proof_ms": spread([complete[part] - started[part] for part in counted if part in complete]),
        "gpu_idle_ms": round(1e3 * idle([(span.start, span.end) for span in found if span.name in GPU_STEPS]), 3),
    }


def spread(values: list[float]) -> dict[str, float]:
    """In milliseconds."""
    if not values:
        return {}
    figures = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(1e3 * value, 3) for name, value in figures.items()} | {"count": len(values)}


def idle(intervals: list[tuple[float, float]]) -> float:
    """Time between the first start and the last end that no interval covers."""
    gap, end = 0.0, None
    for begin, finish in sorted(intervals):
        if end is not None and begin > end:
            gap += begin - end
        end = finish if end is None else max(end, finish)
    return gap


def gpu_facts() -> dict[str, str]:
    query = "name,driver_version,memory.total,clocks.sm,power.draw"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return {}
    return dict(zip(query.split(","), (v.strip() for v in done.stdout.split("\n")[0].split(",")), strict=False))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sector", default="32GiB", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB (default: 32GiB)")
    parser.add_argument("--challenges", type=int, metavar="K", help="copies in the partition (default: the sector's)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--work", metavar="DIR", help="keep key and witness there, and take them from there (default: memory)")
    parser.add_argument("--traces", metavar="DIR", help="keep the traces there (default: with key and witness)")
    parser.add_argument("--alone", type=int, default=4, metavar="N", help="partitions one by one, the first not counted (4)")
    parser.add_argument("--proofs", type=int, default=3, metavar="N", help="proofs in the sustained run (default: 3)")
    parser.add_argument("--partitions", type=int, default=10, metavar="N", help="of a proof in the sustained run (default: 10)")
    parser.add_argument("--sustained", default=SUSTAINED, metavar="POLICY", help=f"default: {SUSTAINED}")
    parser.add_argument("--policy", default="", metavar="POLICY", help="of all runs, besides: 'key_tables: pair-sums'")
    parser.add_argument("--vram", action="append", default=[], metavar="SIZE", help="only runs with so little of it (16GiB)")
    parser.add_argument("--lean", action="append", default=[], metavar="POLICY", help=f"with --vram, may be repeated: {LEAN[1]}")
    parser.add_argument("-o", "--output", metavar="FILE", help="JSON")
    args = parser.parse_args()
    copies = args.challenges or (18 if args.sector in ("32GiB", "64GiB") else 2)
    work, temporary = work_folder(args.work, copies * 3 << 30)
    traces = Path(args.traces or work)
    traces.mkdir(parents=True, exist_ok=True)
    say(f"work folder {work}")
    stem = f"{args.sector}-{copies}"
    key_file, witness_file = work / f"{stem}.ckey", work / f"{stem}.cwit"
    document: dict[str, Any] = {
        "schema_version": 1, "sector": args.sector, "challenges": copies,
        "cores": os.cpu_count(), "python": platform.python_version(),
        "gpu": gpu_facts() if args.device == "cuda" else {}, "made": {}, "runs": [],
    }  # fmt: skip
    code = 0
    try:
        if not (key_file.exists() and witness_file.exists()):
            document["made"] = make(args.sector, args.challenges, key_file, witness_file)
        key = load_key(key_file)
        witness = open_witness(witness_file)(key)
        document |= {"wires": key.n_wires, "rows": key.system.rows, "log_domain": key.log_domain,
                     "key_bytes": key_file.stat().st_size, "witness_bytes": witness.nbytes}  # fmt: skip
        say(f"{key.n_wires:,} wires, domain 2^{key.log_domain}, key {key_file.stat().st_size:,} bytes")
        make_device, placed = None, ON_CPU
        if args.device == "cuda":
            from cuzk.exec.cuda import CudaProver as make_device  # type: ignore[assignment]

            placed = ON_GPU
        runs = [("alone", "pw: 1, gw: 1, j: 1", args.alone, 1, 1), ("sustained", args.sustained, args.proofs, args.partitions, 0)]
        for cap in args.vram:
            for number, lean in enumerate(args.lean or LEAN):
                name = f"lean-{cap}-{number}"
                shape = (key, witness, lean, args.proofs, args.partitions, work, traces, make_device, 0)
                row = prove(name, *shape, vram_bytes=read_bytes(cap))
                document["runs"].append(lean_row(cap, row))
                code = code or row["exit_code"]
        if args.vram:
            runs = []
        earlier: Path | None = None
        for name, policy, proofs, partitions, warm in runs:
            if proofs:
                policy = ", ".join(part for part in (policy, placed, args.policy) if part)
                warm = min(warm, proofs - 1)
                row = prove(name, key, witness, policy, proofs, partitions, work, traces, make_device, warm, earlier)
                earlier = traces / f"{name}.jsonl"
                document["runs"].append(row)
                code = code or row["exit_code"]
    finally:
        if args.output:
            Path(args.output).write_text(json.dumps(document, indent=1) + "\n")
        if temporary:
            shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(document, indent=1))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())

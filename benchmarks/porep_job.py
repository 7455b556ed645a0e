"""The operator's job on a GPU: from the JSON of a C1 output to the chain's proof, all its partitions different.

    python benchmarks/porep_job.py -o docs/job-h200.json                 (one GPU, 16 cores, 54 GB in /dev/shm)
    python benchmarks/porep_job.py --sector 2KiB --device cpu            (anywhere)

A development key and the C1 outputs of two synthetic sectors are made in the work folder, or taken from there. Each proof reads
its C1 output and checks it in full, makes the values of each partition in the pipeline, proves it, and verifies it by an
independent pairing under the sector's public inputs: all of that is inside the measured time. Runs:

    first, alone   one proof at a time; the first one counts from before the key is opened (its pages are cached), with the device
                   opened, kernels compiled and the key loaded; the next one from its admission to its last verified partition
    sustained      two proofs in flight; s_per_proof is from the first proof's end to the last one's, s_per_proof_with_fill all

host_peak_bytes: the most that a run's process had resident above its idle state (the key is mapped and not counted), and what the
processes that make values had.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.executor import SCENARIO  # noqa: E402
from benchmarks.porep_gpu import ON_CPU, ON_GPU, Every, gpu_facts, say, times, work_folder  # noqa: E402
from cuzk.native.memory import process_resident_bytes  # noqa: E402

SUSTAINED = "pw: 4, gw: 2, j: 2, prestage: before-mutex"
MAKERS = 4
ALONE = "pw: 4, gw: 2, j: 1, prestage: before-mutex"


def make_key(sector: str, path: Path) -> float:
    from cuzk.circuits.porep.shape import shape
    from cuzk.groth16.setup.development import setup_development
    from cuzk.groth16.template.system import TemplateSystem
    from cuzk.porep.partition import PartitionMaker

    start_s = time.perf_counter()
    setup_development(TemplateSystem(PartitionMaker(shape(sector)).template), path, quotients=("c-free",), progress=Every())
    return time.perf_counter() - start_s


def make_c1(sector: str, number: int, path: Path) -> None:
    """The C1 output of a made-up sector: other ids, labels, challenges for each number."""
    from cuzk.circuits.porep.shape import shape
    from cuzk.porep.c1.model import Owner
    from cuzk.porep.c1.write import sector_c1, write_c1
    from cuzk.porep.ids import SectorIds, porep_id
    from cuzk.porep.synthetic import SyntheticSector

    wanted, seed = shape(sector), hashlib.sha256(b"seed %d" % number).digest()
    ids = SectorIds(Owner.of_miner(1000, number).prover_id, number, bytes([number + 1] * 32), porep_id(wanted, "1.1"))
    write_c1(sector_c1(SyntheticSector(wanted, ids, seed, None, rng_seed=number + 1), seed), path)


def run(
    name: str,
    key_file: Path,
    c1_files: list[Path],
    policy: str,
    proofs: int,
    work: Path,
    make_device: Any,
    makers: int,
) -> dict[str, Any]:
    """One run of the executor on C1 outputs; from before anything is opened."""
    from cuzk.exec.run import Proving, bind_key, open_sectors, prove_with
    from cuzk.model import load_scenario

    path = work / "scenario.yaml"
    path.write_text(SCENARIO.format(policy="{" + policy + "}", proofs=proofs))
    idle_bytes = process_resident_bytes()
    start_s = time.perf_counter()
    key, sectors = open_sectors(str(key_file), tuple(map(str, c1_files)), makers)
    proving = Proving(str(key_file), ())
    bound = bind_key(load_scenario(path), key, sectors, proving, idle_bytes=idle_bytes, make_device=make_device)
    opened_s = time.perf_counter() - start_s
    say(f"{name}: {proofs} proofs of {bound.scenario.circuit.partitions}, {policy}; opened in {opened_s:.2f} s")
    done_s: list[float] = []
    result = prove_with(bound, work / name, trace_path=work / f"{name}.jsonl",
                        progress=lambda proof: done_s.append(time.perf_counter() - start_s))  # fmt: skip
    document = result.document
    row = {
        "name": name, "policy": policy, "makers": makers, "proofs": proofs, "exit_code": result.exit_code,
        "error": str(result.error) if result.error else None, "load_s": document["measured"]["load_s"],
        "first_done_s": done_s[0] if done_s else None, "verified_partitions": document["measured"]["verified_partitions"],
        **document["throughput"], "makespan_s": document["makespan_s"], "latencies_s": latencies(result),
        "peaks": {p: {k: v[k] for k in ("live_bytes", "resident_bytes", "resident_is")} for p, v in document["peaks"].items()},
        "makers_peak_bytes": sectors.peak_bytes() if makers else 0,
        **times(result.events), **verified(key, sectors, work / name, proofs),
    }  # fmt: skip
    say(f"{name}: exit code {row['exit_code']} {row['error'] or ''}, first proof after {row['first_done_s']} s, "
        f"{row['s_per_proof']} s/proof, latencies {row['latencies_s']}, {row['proofs_verified']} proofs verified")  # fmt: skip
    for step, figures in row["step_ms"].items():
        say(f"    {step:16} {figures['median']:10.3f} ms  ({figures['min']:.3f} to {figures['max']:.3f})")
    return row


def latencies(result: Any) -> list[float]:
    """Each proof's time from its first step to its last verified partition."""
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for event in result.events:
        if event.proof is not None and event.proof >= 0:
            first.setdefault(event.proof, event.t)
            if event.kind == "complete":
                last[event.proof] = max(last.get(event.proof, 0.0), event.t)
    return [round(last[proof] - first[proof], 3) for proof in sorted(last)]


def verified(key: Any, sectors: Any, folder: Path, proofs: int) -> dict[str, Any]:
    """Written proofs, each verified as a whole under its sector's public inputs; how many statements differ."""
    from cuzk.groth16.formats.proof import read_proofs
    from cuzk.groth16.verify import Verifier

    verifier = Verifier(key.verifying_key())
    good, sizes, statements = 0, set(), set()
    for number in range(proofs):
        file = folder / f"proof-{number:03d}.bin"
        if not file.exists():
            continue
        made = read_proofs(file)
        publics = [sectors.public_inputs(number, part) for part in range(len(made))]
        sectors.done(number)
        sizes.add(file.stat().st_size)
        statements |= {(number, tuple(public)) for public in publics}
        good += len(made) == sectors.partitions and verifier.first_invalid(made, publics) < 0
    return {"proofs_verified": good, "proof_bytes": sorted(sizes), "distinct_partitions": len(statements) // max(1, proofs)}


def witness_cpu_s(c1_file: Path, count: int = 5) -> dict[str, float]:
    """CPU time of one partition's values, by one thread alone; of reading and checking the whole C1 output."""
    from cuzk.porep.c1 import read
    from cuzk.porep.c1.opening import c1_witness
    from cuzk.porep.partition import PartitionMaker

    begin = time.process_time()
    found = read(c1_file)
    read_s = time.process_time() - begin
    found.check()
    check_s = time.process_time() - begin - read_s
    maker = PartitionMaker(found.shape)
    took = []
    for partition in range(count):
        begin = time.process_time()
        c1_witness(maker, found, partition % found.partitions)
        took.append(time.process_time() - begin)
    return {"witness": statistics.median(took), "read": read_s, "check": check_s}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sector", default="32GiB", help="2KiB, 8MiB, 512MiB, 32GiB or 64GiB (default: 32GiB)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--work", metavar="DIR", help="keep key and C1 outputs there, and take them from there (default: memory)")
    parser.add_argument("--key", metavar="KEY.ckey", help="a key that is there already")
    parser.add_argument("--alone", type=int, default=2, metavar="N", help="proofs one at a time (default: 2)")
    parser.add_argument("--proofs", type=int, default=4, metavar="N", help="proofs in the sustained run (default: 4)")
    parser.add_argument("--makers", type=int, default=MAKERS, metavar="N", help=f"processes that make values (default: {MAKERS})")
    parser.add_argument("--compare", type=int, metavar="N", help="a second sustained run with so many of them")
    parser.add_argument("--policy", default="", metavar="POLICY", help="of all runs, besides: 'key_tables: pair-sums'")
    parser.add_argument("-o", "--output", metavar="FILE", help="JSON")
    args = parser.parse_args()
    large = args.sector in ("32GiB", "64GiB")
    work, temporary = work_folder(args.work, (54 if large else 3) << 30)
    say(f"work folder {work}")
    key_file = Path(args.key) if args.key else work / f"{args.sector}.ckey"
    c1_files = [work / f"{args.sector}-c1-{number}.json" for number in range(2)]
    document: dict[str, Any] = {
        "schema_version": 1, "s_per_proof": None, "first_proof_s": None, "latency_s": None, "host_peak_bytes": None,
        "witness_cpu_s": None, "all_verified": False, "distinct_partitions": None, "sector": args.sector,
        "cores": os.cpu_count(), "python": platform.python_version(), "gpu": gpu_facts() if args.device == "cuda" else {},
        "runs": [],
    }  # fmt: skip
    code = 0
    try:
        if not key_file.exists():
            document["setup_s"] = make_key(args.sector, key_file)
            say(f"setup: {document['setup_s']:.1f} s")
        for number, path in enumerate(c1_files):
            if not path.exists():
                make_c1(args.sector, number, path)
        cpu = witness_cpu_s(c1_files[0])
        document |= {"witness_cpu_s": cpu["witness"], "read_cpu_s": cpu["read"], "check_cpu_s": cpu["check"],
                     "c1_bytes": c1_files[0].stat().st_size, "key_bytes": key_file.stat().st_size}  # fmt: skip
        say(f"CPU seconds: {cpu}")
        make_device, placed = None, ON_CPU
        if args.device == "cuda":
            from cuzk.exec.cuda import CudaProver as make_device  # type: ignore[assignment]

            placed = ON_GPU
        runs = [("alone", ALONE, args.alone, args.makers), ("sustained", SUSTAINED, args.proofs, args.makers)]
        if args.compare is not None:
            runs.append(("compared", SUSTAINED, args.proofs, args.compare))
        for name, policy, proofs, makers in runs:
            if proofs:
                policy = ", ".join(part for part in (policy, placed, args.policy) if part)
                row = run(name, key_file, c1_files, policy, proofs, work, make_device, makers)
                document["runs"].append(row)
                code = code or row["exit_code"]
        _summary(document)
    finally:
        if args.output:
            Path(args.output).write_text(json.dumps(document, indent=1) + "\n")
        if temporary:
            shutil.rmtree(work, ignore_errors=True)
    print(json.dumps({key: value for key, value in document.items() if key != "runs"}, indent=1))
    return int(code)


def _summary(document: dict[str, Any]) -> None:
    rows = {row["name"]: row for row in document["runs"]}
    alone, sustained = rows.get("alone"), rows.get("sustained")
    if alone is not None:
        document |= {"first_proof_s": alone["first_done_s"], "latency_s": (alone["latencies_s"] or [None])[-1]}
    if sustained is not None:
        document |= {"s_per_proof": sustained["steady_s_per_proof"] or sustained["s_per_proof"],
                     "s_per_proof_with_fill": sustained["s_per_proof"]}  # fmt: skip
    if rows:
        peak = max(row["peaks"]["ram"]["resident_bytes"] for row in rows.values())
        makers = max(row["makers_peak_bytes"] for row in rows.values())
        document |= {"host_peak_bytes": peak + makers, "makers_peak_bytes": makers}
    document["all_verified"] = bool(rows) and all(row["proofs_verified"] == row["proofs"] for row in rows.values())
    document["distinct_partitions"] = min((row["distinct_partitions"] for row in rows.values()), default=None)


if __name__ == "__main__":
    sys.exit(main())

"""`cuzk demo`: the whole tour in a few minutes, on this machine.

1  predicts the out-of-memory that the reference system had, and what avoids it
2  proves a small circuit through the same pipeline, and verifies every proof
3  plays a scaled proof in real memory and time: calibrates on one run, predicts two others before they run, and compares
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cuzk.exec.result import RunResult
    from cuzk.model.calibration import Calibration
    from cuzk.model.scenario import Scenario
    from cuzk.sim import SimResult

SPIN: Final = "spin"
BUSY = 0.75
"""A run that gets less than this share of the cores has to share them with other work (alone it gets about 0.85: waking
threads and the interpreter's lock take the rest)."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("demo", help="the whole tour in a few minutes", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", default="out/demo", help="for proofs, traces and the page (out/demo)")
    parser.add_argument("--json", action="store_true", help="print one JSON document; the story goes to stderr")


def run(args: argparse.Namespace) -> int:
    from cuzk.report.files import write_text

    root = _root()
    out = Path(args.output)
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        document = _tour(root, out)
    text = json.dumps(document, indent=2)
    write_text(out / "demo.json", text + "\n")
    if args.json:
        print(text)
    return 0


def _tour(root: Path, out: Path) -> dict[str, Any]:
    started = time.perf_counter()
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    _say(f"cuzk demo: {cores} cores, load {load:.1f}" + (" (busy: the comparisons below suffer)" if load > 0.75 * cores else ""))
    _predict_reference(root)
    _prove(root, out)
    rows = _measure(root, out, cores)
    _say(f"\n{out}: proofs, traces (cuzk compare, cuzk plot), and the page {out / 'demo.html'}")
    _say(f"all of it took {time.perf_counter() - started:.0f} s")
    return {"schema_version": 1, "load": load, "cores": cores, "runs": rows}


def _root() -> Path:
    """The checkout: scenarios and fixtures lie beside the package. Raises InputError."""
    import cuzk
    from cuzk.errors import InputError

    root = Path(cuzk.__file__).resolve().parents[1]
    if not (root / "scenarios" / "pw12.yaml").is_file() or not (root / "tests" / "fixtures").is_dir():
        raise InputError("the demo runs from a checkout: scenarios/ and tests/fixtures/ are not beside the package")
    return root


def _say(text: str = "") -> None:
    print(text, flush=True)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"  … {text}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- 1: the prediction


def _predict_reference(root: Path) -> None:
    from cuzk.model.scenario import load_scenario
    from cuzk.report.verdict import holders, verdict_line
    from cuzk.sim import simulate

    _say("\n1  A Filecoin PoRep prover with 755 GiB RAM, twelve partition workers, a permit that comes back after synthesis")
    before = simulate(load_scenario(root / "scenarios/pw12.yaml")).to_json()
    _say(f"   scenarios/pw12.yaml        {verdict_line(before)}")
    if before["oom"]:
        _say(f"                              held by {holders(before['oom']['holders'], 4)}")
    after = simulate(load_scenario(root / "scenarios/pw12-fixed.yaml")).to_json()
    _say("   the same with the permit held until the set is handed over, and 512 GiB:")
    _say(f"   scenarios/pw12-fixed.yaml  {verdict_line(after)}; {after['throughput']['s_per_proof']:.1f} s/proof")


# --------------------------------------------------------------------- 2: real proofs


def _prove(root: Path, out: Path) -> None:
    from cuzk.exec.run import Proving, prepare, progress_line, prove_with
    from cuzk.model.scenario import load_scenario

    scenario = load_scenario(root / "scenarios/demo-proofs.yaml")
    fixture = root / "tests/fixtures/chain1k/chain1k"
    _say(f"\n2  Real Groth16 proofs (1,000 constraints, a snarkjs key), {scenario.workload.proofs} proofs of "
         f"{scenario.circuit.partitions} partitions, through the same pipeline on the CPU")  # fmt: skip
    prepared = prepare(scenario, Proving(f"{fixture}.zkey", (f"{fixture}.wtns",)))
    folder = out / "proofs"
    folder.mkdir(exist_ok=True)
    result = prove_with(prepared, folder, trace_path=folder / "trace.jsonl", progress=progress_line(scenario.workload.proofs))
    if result.error is not None:
        raise result.error
    measured, counts = result.document["measured"], result.document["counts"]
    _say(f"   {measured['verified_partitions']} partitions proved, each verified by an independent pairing; "
         f"{result.document['throughput']['s_per_proof']:.2f} s/proof; deallocations {counts['deallocations']}")  # fmt: skip


# -------------------------------------------------------------- 3: predicted against measured


def _measure(root: Path, out: Path, cores: int) -> list[dict[str, Any]]:
    from cuzk.model.scenario import load_scenario
    from cuzk.report.page import Section, write_sections

    overrides = [f"machine.cores={cores}"]
    first, steady, pile_up = (
        load_scenario(root / f"scenarios/demo-{name}.yaml", overrides) for name in ("calibrate", "steady", "pile-up")
    )
    _say("\n3  A PoRep partition at 1/128 (about 155 MiB each) on the null device: real memory, touched; real cores, burnt")
    ran = _run(first, out / "calibrate.jsonl")
    calibration = _calibrate(first, ran, cores)
    _say(f"   calibrated on one run ({_policy(first)}): {len(calibration.costs)} steps, "
         f"{ran.document['throughput']['s_per_proof']:.2f} s/proof, peak {_gib(_peak(ran.document))}")  # fmt: skip
    rows, pages = [], []
    for name, scenario in (("steady", steady), ("pile-up", pile_up)):
        predicted = _simulate(scenario, calibration, out / f"{name}-predicted.jsonl")
        _say(f"   {name}: {_policy(scenario)}, RAM {_gib(scenario.machine.usable_ram)}")
        _say(f"      predicted   {_line(predicted.to_json())}")
        measured = _run(scenario, out / f"{name}-measured.jsonl")
        _say(f"      measured    {_line(measured.document)}")
        rows.append(_row(name, predicted.to_json(), measured.document))
        _say(f"      error       {_errors(rows[-1])}")
        sides = [("predicted", predicted.events or []), ("measured", measured.events)]
        pages.append(Section(sides, f"{name}: {_policy(scenario)}", _errors(rows[-1]), measured.document["verdict"]))
    _progress("writing the page")
    write_sections(out / "demo.html", pages, title="cuzk demo: predicted and measured")
    return rows


def _run(scenario: Scenario, trace: Path) -> RunResult:
    from cuzk.exec.null import NullDevice
    from cuzk.exec.run import progress_line, run

    return run(scenario, NullDevice(burn=SPIN), trace_path=trace, progress=progress_line(scenario.workload.proofs),
               measured={"scale": 1.0, "time_scale": 1.0, "burn": SPIN})  # fmt: skip


def _calibrate(scenario: Scenario, ran: RunResult, cores: int) -> Calibration:
    """The costs that a trace shows; which resource a step uses is taken from the scenario's own calibration."""
    from cuzk.model.calibration import Calibration
    from cuzk.trace.costs import calibration_data, cost_table, effective_cores

    assert scenario.calibration is not None
    if ran.error is not None:
        raise ran.error
    laws = {step: law.model_dump(mode="json") for step, law in scenario.calibration.costs.items()}
    demand = {step: float(not law.gpu and not law.link) for step, law in scenario.calibration.costs.items()}
    table = cost_table([ran.events], cores=cores, demand=demand)
    got = effective_cores(ran.events, cores=cores, demand=demand)
    if got < BUSY * cores:
        _say(f"   other work on this machine leaves {got:.1f} of {cores} cores: predicted with those")
    data = calibration_data(table, laws, name="demo-measured", machine=scenario.machine.name, software="null device",
                            note="the calibration run of this demo",
                            core_share=got / cores if got < BUSY * cores else 1.0)  # fmt: skip
    return Calibration.model_validate(data)


def _simulate(scenario: Scenario, calibration: Calibration, trace: Path) -> SimResult:
    from cuzk.sim import simulate
    from cuzk.trace.jsonl import write_trace

    result = simulate(scenario.model_copy(update={"calibration": calibration}), trace=True)
    write_trace(trace, result.trace_header(), result.events or [])
    return result


def _policy(scenario: Scenario) -> str:
    policy = scenario.policy
    return f"{scenario.pipeline}, pw={policy.pw}, gw={policy.gw}, j={policy.j}, {scenario.workload.proofs} proofs"


def _peak(document: dict[str, Any]) -> int:
    """RAM and VRAM of the null device are both memory of this process; the RAM's peak above the idle baseline."""
    return int(document["peaks"]["ram"]["resident_bytes"])


def _gib(nbytes: float) -> str:
    return f"{nbytes / 2**30:.2f} GiB"


def _line(document: dict[str, Any]) -> str:
    pace, oom = document["throughput"]["s_per_proof"], document["oom"]
    parts = [document["verdict"].upper()]
    if oom:
        top = ", ".join(f"{row['count']} × {row['buffer']}" for row in oom["holders"][:3])
        parts.append(f"{oom['pool']} is full at {oom['at_s']:.1f} s, held by {top}")
    elif pace is not None:
        parts.append(f"{pace:.3f} s/proof")
    parts.append(f"peak RAM {_gib(_peak(document))} above idle")
    return "; ".join(parts)


def _row(name: str, predicted: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    def pair(key: str, p: float | None, m: float | None) -> dict[str, Any]:
        return {f"{key}_predicted": p, f"{key}_measured": m, f"{key}_error": p / m - 1 if p is not None and m else None}

    row = {"name": name, "verdict_predicted": predicted["verdict"], "verdict_measured": measured["verdict"]}
    row |= pair("peak_ram_bytes", _peak(predicted), _peak(measured))
    if predicted["oom"] and measured["oom"]:
        return row | pair("oom_at_s", predicted["oom"]["at_s"], measured["oom"]["at_s"])
    return row | pair("s_per_proof", predicted["throughput"]["s_per_proof"], measured["throughput"]["s_per_proof"])


def _errors(row: dict[str, Any]) -> str:
    same = "the verdicts agree" if row["verdict_predicted"] == row["verdict_measured"] else "THE VERDICTS DIFFER"
    labels = {"peak_ram_bytes": "peak", "s_per_proof": "s/proof", "oom_at_s": "time of the OOM"}
    errors = [f"{label} {row[f'{key}_error']:+.1%}" for key, label in labels.items() if row.get(f"{key}_error") is not None]
    return "; ".join([same, *errors])

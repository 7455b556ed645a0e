"""Curves, spans, comparison, costs and the export, against sums done by hand and against what the simulator was given."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.cli.main import main
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import Scenario, load_scenario
from cuzk.sim import simulate
from cuzk.trace.compare import compare, side_of_document, side_of_trace
from cuzk.trace.costs import calibration_data, cost_table, effective_cores
from cuzk.trace.curves import Curve, distance, pool_curves
from cuzk.trace.event import Event
from cuzk.trace.perfetto import perfetto
from cuzk.trace.spans import spans, step_times
from cuzk.trace.throughput import throughput

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"
LEVELS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=12)


def curve(points: list[tuple[int, int]]) -> Curve:
    made = Curve()
    for t, level in sorted(points, key=lambda point: point[0]):
        made.add(float(t), level)
    return made


@given(one=LEVELS, other=LEVELS)
def test_distance_is_the_area_between(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = curve(one), curve(other)
    by_hand = sum(abs(a.at(t) - b.at(t)) for t in range(30))  # levels change at whole seconds only
    assert distance(a, b, 30.0) == by_hand
    assert distance(b, a, 30.0) == by_hand
    assert distance(a, a, 30.0) == 0
    assert a.area(30.0) == sum(a.at(t) for t in range(30))


def test_distance_with_one_stretched() -> None:
    a, b = curve([(0, 4), (10, 0)]), curve([(0, 4), (5, 0)])
    assert distance(a, b, 10.0) == 20
    assert distance(a, b, 10.0, stretch=2.0) == 0


def test_peaks_of_one_instant_are_not_lost() -> None:
    events = [Event(1.0, "alloc", "a", pool="ram", live=7, reserved=9), Event(1.0, "free", "a", pool="ram", live=2, reserved=9),
              Event(1.5, "sample", pool="ram", resident=5),
              Event(2.0, "oom", "b", pool="ram", live=99, reserved=99, capacity=10)]  # fmt: skip
    ram = pool_curves(events)["ram"]
    assert ram.peaks == {"live": 7, "reserved": 9, "resident": 5}
    assert (ram.live.at(1.2), ram.resident.at(1.2), ram.resident.at(3)) == (2, 0, 5)


def step(t: float, kind: str, name: str, worker: str, proof: int = 0, partition: int = 0, **more: object) -> Event:
    return Event(t, kind, name, worker, proof=proof, partition=partition, **more)  # type: ignore[arg-type]


def test_spans_pair_what_belongs_together() -> None:
    events = [step(0, "begin", "witness", "w:0"), step(1, "begin", "witness", "w:1", partition=1),
              step(2, "end", "witness", "w:0"), step(2, "wait", "lock", "w:0"),
              step(5, "end", "witness", "w:1", partition=1), step(6, "grant", "lock", "w:0"),
              step(7, "begin", "ntt_h", "w:0")]  # fmt: skip
    found = spans(events, waits=True)
    assert [(s.name, s.kind, s.seconds) for s in found] == [("witness", "run", 2), ("witness", "run", 4), ("lock", "wait", 4)]
    assert step_times(events)["witness"].median_s == 3


def test_throughput_by_hand() -> None:
    assert throughput([], 0, 1).s_per_proof is None
    pace = throughput([10, 12, 14, 16, 18, 20], proofs=3, workers=1)
    assert pace.s_per_proof == 20 / 3
    assert pace.steady_s_per_proof == pytest.approx((20 - 12) / 4 * 6 / 3)


@cache
def demo(*overrides: str) -> Scenario:
    return load_scenario(SCENARIOS / "demo-steady.yaml", ("workload.proofs=3", "circuit.partitions=5", *overrides))


def without_jitter(scenario: Scenario) -> Scenario:
    assert scenario.calibration is not None
    laws = {name: law.model_copy(update={"jitter": 0.0}) for name, law in scenario.calibration.costs.items()}
    return scenario.model_copy(update={"calibration": scenario.calibration.model_copy(update={"costs": laws})})


@pytest.mark.parametrize("cores", [2, 3, 64])
def test_costs_come_back_out_of_a_trace(cores: int) -> None:
    """A simulated run with contention for the cores: the table is the laws that the simulator was given."""
    scenario = without_jitter(demo(f"machine.cores={cores}", "policy.gw=1"))
    calibration = scenario.calibration
    assert calibration is not None
    result = simulate(scenario, trace=True)
    demand = {name: 0.0 if law.gpu or law.link else 1.0 for name, law in calibration.costs.items()}
    rows = {row.step: row for row in cost_table([result.events or []], cores=cores, demand=demand)}
    from cuzk.pipeline.program import bind

    names = bind(scenario).names(scenario.circuit)
    checked = 0
    for name, law in calibration.costs.items():
        if name in rows and not law.link and name not in ("gpu_sync", "gpu_overhead"):
            assert rows[name].seconds == pytest.approx(law.seconds.evaluate(names), rel=1e-4, abs=1e-5), name
            assert rows[name].jitter == pytest.approx(0, abs=1e-3)
            checked += 1
    assert checked >= 12
    if cores == 2:
        assert rows["witness"].wall_s > 1.5 * rows["witness"].seconds  # it was contended


def test_jitter_of_the_proofs_and_within_them_are_told_apart() -> None:
    events = []
    for proof, centre in enumerate((10.0, 12.0, 14.0, 16.0)):
        for part in range(10):
            worker, start = f"w:{proof}.{part}", 100.0 * part + 1000.0 * proof
            own = centre * (1 + 0.001 * (part - 4.5))
            events.append(step(start, "begin", "witness", worker, proof, part))
            events.append(step(start + own, "end", "witness", worker, proof, part))
    (row,) = cost_table([events], cores=64)
    assert row.n == 40
    assert 0.001 < row.jitter < 0.01
    assert 0.1 < row.group_jitter < 0.3


def test_processor_time_is_the_work_where_it_is_known() -> None:
    """A machine that was busy with something else: ten seconds by the clock, one of work, half a second of allocations before."""
    events = [step(0, "begin", "pin_pages", "gpu:0.0", cpu_s=1.0), step(1, "end", "pin_pages", "gpu:0.0", cpu_s=1.25),
              step(6, "begin", "prep", "gpu:0.0", cpu_s=1.75), step(16, "end", "prep", "gpu:0.0", cpu_s=2.75)]  # fmt: skip
    rows = {row.step: row for row in cost_table([events], cores=1)}
    assert (rows["prep"].seconds, rows["prep"].wall_s, rows["prep"].gap_s) == (1.0, 10.0, 0.5)
    assert rows["pin_pages"].seconds == 0.25


@pytest.mark.parametrize(("got", "cores"), [(0.8, 2), (1.5, 2), (2.0, 2), (3.0, 4)])
def test_the_cores_that_a_run_got_come_back(got: float, cores: int) -> None:
    """Five threads that start together and share `got` cores evenly, each with a second of work."""
    events = []
    for lane in range(5):
        events.append(step(0, "begin", "witness", f"w:{lane}", 0, lane, cpu_s=0.0))
        events.append(step(5 / got, "end", "witness", f"w:{lane}", 0, lane, cpu_s=1.0))
    assert effective_cores(events, cores=cores) == pytest.approx(got, rel=1e-3)
    (row,) = cost_table([events], cores=cores)
    assert row.seconds == 1.0


def test_a_lane_that_was_idle_between_two_sets_is_no_gap() -> None:
    events = [step(0, "begin", "witness", "w:0"), step(1, "end", "witness", "w:0"),
              step(50, "begin", "witness", "w:0", partition=1), step(51, "end", "witness", "w:0", partition=1),
              step(51.5, "begin", "matvec", "w:0", partition=1), step(52, "end", "matvec", "w:0", partition=1)]  # fmt: skip
    rows = {row.step: row for row in cost_table([events], cores=4)}
    assert (rows["witness"].gap_s, rows["matvec"].gap_s) == (0.0, 0.5)


def test_the_gap_before_device_work_is_the_hosts() -> None:
    events = [step(0, "begin", "device_free", "gpu:0.0"), step(1, "end", "device_free", "gpu:0.0"),
              step(3, "begin", "msm_h", "gpu:0.0", stream="compute"),
              step(9, "end", "msm_h", "gpu:0.0", stream="compute")]  # fmt: skip
    rows = {row.step: row for row in cost_table([events], cores=4, demand={"msm_h": 0.0})}
    assert (rows["device_free"].gap_s, rows["msm_h"].gap_s, rows["msm_h"].seconds) == (2.0, 0.0, 6.0)


def test_a_calibration_from_a_trace_predicts_the_run_that_it_came_from() -> None:
    scenario = without_jitter(demo())
    calibration = scenario.calibration
    assert calibration is not None
    result = simulate(scenario, trace=True)
    demand = {name: 0.0 if law.gpu or law.link else 1.0 for name, law in calibration.costs.items()}
    table = cost_table([result.events or []], cores=scenario.machine.cores, demand=demand)
    laws = {name: law.model_dump(mode="json") for name, law in calibration.costs.items()}
    data = calibration_data(table, laws, name="again", machine="demo", software="test", note="a test")
    again = simulate(scenario.model_copy(update={"calibration": Calibration.model_validate(data)}))
    assert again.s_per_proof == pytest.approx(result.s_per_proof, rel=0.01)
    assert again.peaks["ram"].live_bytes == result.peaks["ram"].live_bytes


def test_comparison_of_a_run_with_itself_and_with_another() -> None:
    slow = simulate(demo(), trace=True)
    fast = simulate(demo("policy.pw=2"), trace=True)
    same = compare(side_of_trace("a", slow.events or []), side_of_trace("b", slow.events or []))
    assert same["throughput"]["s_per_proof"]["error"] == 0
    assert all(row["error"] == 0 for levels in same["peaks"].values() for row in levels.values())
    assert all(row["distance"] == 0 for levels in same["curves"].values() for row in levels.values())
    assert all(row["error"] in (0, None) for row in same["steps"])
    sides = [side_of_trace(label, result.events or []) for label, result in (("p", fast), ("m", slow), ("r", fast))]
    other = compare(*sides)
    ram = other["peaks"]["ram"]["live_bytes"]
    assert ram["predicted"] == fast.peaks["ram"].live_bytes and ram["measured"] == slow.peaks["ram"].live_bytes
    assert ram["error"] == pytest.approx(ram["predicted"] / ram["measured"] - 1)
    assert ram["cost_error"] == 0 and ram["scheduling_error"] == ram["error"]
    assert other["throughput"]["s_per_proof"]["predicted"] == pytest.approx(fast.s_per_proof, abs=1e-5)
    assert other["curves"]["ram"]["live"]["distance"] > 0
    assert other["curves"]["ram"]["live"]["replay_distance"] == other["curves"]["ram"]["live"]["distance"]


def test_a_document_compares_as_its_trace_does() -> None:
    result = simulate(demo(), trace=True)
    by_trace, by_document = side_of_trace("t", result.events or []), side_of_document("d", result.to_json())
    assert by_trace.throughput.s_per_proof == pytest.approx(by_document.throughput.s_per_proof)
    assert by_trace.throughput.steady_s_per_proof == pytest.approx(by_document.throughput.steady_s_per_proof, rel=1e-4)
    assert by_trace.peaks["ram"]["live"] == by_document.peaks["ram"]["live"]
    assert by_trace.deallocations == by_document.deallocations
    assert by_trace.completions == by_document.completions


def test_compare_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    steady = str(SCENARIOS / "demo-steady.yaml")
    base = ["sim", steady, "--set", "workload.proofs=2", "--no-fix"]
    assert main([*base, "--trace", str(first)]) == 0
    assert main([*base, "--trace", str(second), "--set", "policy.pw=1"]) == 0
    capsys.readouterr()
    assert main(["compare", str(first), str(first), "--gate"]) == 0
    assert "s/proof" in capsys.readouterr().out
    assert main(["compare", str(first), str(second), "--gate", "1"]) == 4
    assert "gate missed: peak ram" in capsys.readouterr().out
    assert main(["compare", str(first), str(second), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["peaks"]["ram"]["live_bytes"]["predicted"] > document["peaks"]["ram"]["live_bytes"]["measured"]
    assert main(["compare", str(first), steady]) == 2
    assert main(["compare", str(first), str(tmp_path / "nothing")]) == 2
    assert main(["compare", str(first), str(second), "--scenario", steady, "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert "replay" in replayed["throughput"]["s_per_proof"]


def test_export_opens_every_span_on_a_named_track() -> None:
    result = simulate(demo(), trace=True)
    document = perfetto({"clock": "sim"}, result.events or [])
    json.dumps(document)
    rows = document["traceEvents"]
    named = {(row["pid"], row["tid"]) for row in rows if row["ph"] == "M" and row["name"] == "thread_name"}
    slices = [row for row in rows if row["ph"] == "X"]
    assert len(slices) == len(spans(result.events or [], waits=True))
    assert {(row["pid"], row["tid"]) for row in slices} <= named
    assert all(row["dur"] >= 0 for row in slices)
    counters = {row["name"] for row in rows if row["ph"] == "C"}
    assert "ram live, GiB" in counters and "vram:0 live, GiB" in counters

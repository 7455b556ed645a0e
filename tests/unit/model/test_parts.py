"""Machine, circuit, policy, workload, calibration: figures and what is refused."""

import itertools
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cuzk.errors import InputError
from cuzk.model import Calibration, Circuit, Contention, CostLaw, Formula, Gpu, Machine, Origin, Policy, Workload
from cuzk.model import policy as options
from cuzk.model.dump import part_text
from cuzk.model.units import GIB, UNITS_REQUIRED
from cuzk.model.validate import validate
from cuzk.model.workload import Interval, Poisson
from cuzk.model.yamlpos import Problems, parse

COUNTS: dict[str, Any] = {
    "name": "porep", "constraints": 130_278_869, "aux": 130_169_893, "inputs": 328, "nnz_a": 309_405_051, "nnz_b": 130_327_340,
    "nnz_c": 282_656_500, "density_a_aux": 129_753_292, "density_b_aux": 33_112_281, "full_size_share": 0.013, "partitions": 10,
}  # fmt: skip
GPU: dict[str, Any] = {"name": "g", "vram": "16GiB", "sms": 70, "pcie_h2d": "50GB/s", "pcie_d2h": "50GB/s"}
MACHINE: dict[str, Any] = {"name": "m", "ram": "755GiB", "reserved": "95GiB", "cores": 96, "smt": 2, "gpus": [GPU]}


def test_porep_sizes_follow_from_its_counts() -> None:
    circuit = Circuit.model_validate(COUNTS)
    assert (circuit.domain, circuit.log2_domain, circuit.h, circuit.l) == (2**27, 27, 134_217_727, 130_169_893)
    assert (circuit.a, circuit.b_g1, circuit.b_g2) == (129_753_620, 33_112_282, 33_112_282)
    # A published key file is that many bytes of points, five length words and the verifying key of 32,356 bytes.
    assert circuit.srs_bytes + 5 * 4 + 32_356 == 47_373_928_632
    assert round(circuit.pce_bytes / GIB, 1) == 25.7
    assert round(3 * circuit.vector_bytes / GIB, 2) == 11.65 and round(circuit.witness_bytes / GIB, 2) == 3.88
    names = circuit.names()
    assert Formula("96*(h+l+a+b_g1) + 192*b_g2").size(names) == names["srs"] == circuit.srs_bytes


@given(st.integers(1, 2**32))
def test_the_domain_is_the_next_power_of_two(constraints: int) -> None:
    circuit = Circuit.model_validate({**COUNTS, "constraints": constraints})
    assert circuit.domain >= constraints > circuit.domain // 2 and circuit.domain & (circuit.domain - 1) == 0


def test_a_copy_of_a_circuit_is_computed_anew() -> None:
    circuit = Circuit.model_validate(COUNTS)
    assert circuit.names()["domain"] == 2**27
    assert circuit.with_(constraints=1000).names()["domain"] == circuit.model_copy(update={"constraints": 1000}).domain == 1024


@pytest.mark.parametrize(
    "change",
    [
        {"constraints": 0}, {"aux": -1}, {"inputs": 0}, {"density_a_aux": 130_169_894}, {"density_b_aux": 130_169_894},
        {"density_b_input": 329}, {"full_size_share": 1.1}, {"full_size_share": 0.6, "ones_share": 0.5}, {"partitions": 0},
        {"constraints": 1 << 51}, {"constraints": 5.0}, {"constraints": "5"}, {"nnz": 3},
    ],
)  # fmt: skip
def test_circuits_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Circuit.model_validate(COUNTS | change)


def test_usable_memory() -> None:
    machine = Machine.model_validate(MACHINE)
    assert machine.usable_ram == 660 * GIB and machine.threads == 192
    assert machine.with_(cgroup_limit=64 * GIB).usable_ram == 64 * GIB
    assert machine.with_(cgroup_limit=700 * GIB).usable_ram == 660 * GIB
    gpu = Gpu.model_validate(GPU | {"reserved": "1GiB", "context": "512MiB"})
    assert gpu.usable_vram == 29 * GIB // 2


def test_equal_gpus_may_be_counted() -> None:
    machine = Machine.model_validate(MACHINE | {"gpus": [GPU | {"count": 3}, GPU | {"name": "other"}]})
    assert [gpu.name for gpu in machine.gpus] == ["g", "g", "g", "other"] and {gpu.count for gpu in machine.gpus} == {1}
    assert Machine.model_validate(machine.model_dump(mode="json"), context=UNITS_REQUIRED) == machine


@pytest.mark.parametrize(
    "change",
    [
        {"ram": "95GiB"}, {"reserved": "755GiB"}, {"cgroup_limit": "0B"}, {"cores": 0}, {"smt": 9}, {"dram_bandwidth": "0GB/s"},
        {"gpus": [GPU | {"reserved": "16GiB"}]}, {"gpus": [GPU | {"reserved": "15GiB", "context": "1GiB"}]},
        {"gpus": [GPU | {"count": 0}]}, {"gpus": [GPU | {"vram": "0B"}]}, {"ram": -5}, {"ram": float("nan")},
    ],
)  # fmt: skip
def test_machines_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Machine.model_validate(MACHINE | change)


def test_a_policy_takes_from_its_preset_what_it_leaves_open() -> None:
    preset = Policy(pw=10, gw=2, dealloc="async-serialised", permit_returns="after-send", srs="pinned")
    policy = Policy(pw=12, dealloc_host="inline").over(preset)
    assert (policy.pw, policy.gw, policy.permit_returns, policy.srs) == (12, 2, "after-send", "pinned")
    assert (policy.dealloc_native, policy.dealloc_host) == ("async-serialised", "inline")
    assert Policy(dealloc="async").over(preset).dealloc_native == "async"


def test_options_are_flags_in_formulas() -> None:
    numbers = Policy(pw=12, prestage="inside-mutex", gpu_locks="compute+memory", channel_capacity="pw").numbers()
    assert numbers["prestage_inside_mutex"] == 1 and numbers["prestage_off"] == numbers["prestage_before_mutex"] == 0
    assert numbers["gpu_locks_compute_memory"] == 1 and numbers["channel_capacity"] == 12
    assert "srs_vram" not in numbers and "srs" not in numbers
    assert Formula("0.54 if prestage_off else 1.37").evaluate(numbers) == 1.37
    assert set(numbers) <= Policy.number_names()
    assert not Policy.number_names() & Circuit.model_validate(COUNTS).names().keys()


def test_every_spelling_of_every_option() -> None:
    for literal in (options.Prestage, options.FreeDBC, options.PermitReturns, options.Dealloc, options.Quotient):
        assert all(value == value.lower() and "_" not in value for value in get_args(literal))
    for value in get_args(options.PermitReturns):
        assert Policy(permit_returns=value).permit_returns == value
    with pytest.raises(ValidationError):
        Policy.model_validate({"permit_returns": "after_send"})


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5, "PW", [1], "1"])
def test_channel_capacities_that_are_none(capacity: object) -> None:
    with pytest.raises(ValidationError, match="must be"):
        Policy.model_validate({"channel_capacity": capacity})


arrivals = st.one_of(
    st.just("closed"),
    st.floats(1e-3, 1e3).map(lambda rate: {"poisson": f"{rate!r}/s"}),
    st.integers(1, 100).map(lambda n: {"interval": f"{n}s", "jitter": "500ms"}),
)


@given(arrivals, st.integers(1, 50), st.integers(0, 2**32), st.sampled_from(["random", "rotate"]))
def test_a_plan_is_complete_ordered_and_repeatable(form: Any, proofs: int, seed: int, mix: str) -> None:
    entries = [{"circuit": COUNTS | {"name": str(i)}, "weight": 1.0 + i, "priority": i} for i in range(3)]
    workload = Workload.model_validate({"proofs": proofs, "arrivals": form, "circuits": entries, "mix": mix})
    plan = workload.plan(seed)
    assert len(plan) == proofs and plan == workload.plan(seed)
    times = [arrival.at_s for arrival in plan]
    assert times == [None] * proofs if form == "closed" else all(a <= b for a, b in itertools.pairwise(times))  # type: ignore[operator]
    assert all(arrival.priority == arrival.entry for arrival in plan)


def test_a_mix_dealt_out_keeps_its_proportions() -> None:
    entries = [{"circuit": COUNTS | {"name": str(i)}, "weight": weight} for i, weight in enumerate((3.0, 1.0))]
    workload = Workload.model_validate({"proofs": 8, "circuits": entries, "mix": "rotate"})
    assert [arrival.entry for arrival in workload.plan(0)].count(1) == 2


def test_forms_of_arrivals() -> None:
    assert Workload.model_validate({"arrivals": ["0s", "40s"]}).proofs == 2
    assert Workload.model_validate({"arrivals": {"poisson": "90/h"}}).arrivals == Poisson(poisson=0.025)
    assert Workload.model_validate({"arrivals": {"interval": "40s"}}).arrivals == Interval(interval=40.0)
    for wrong in ({"poissn": "1/s"}, "open", 5, None, {"interval": "0s"}, ["5s", "1s"], {"poisson": "1/s", "interval": "1s"}):
        with pytest.raises(ValidationError):
            Workload.model_validate({"arrivals": wrong})
    with pytest.raises(ValidationError, match="2 times for 3 proofs"):
        Workload.model_validate({"proofs": 3, "arrivals": ["0s", "40s"]})


LAW: dict[str, Any] = {"seconds": "1.5s", "cores": 4, "provenance": "document: a table"}
CALIBRATION: dict[str, Any] = {"name": "k", "software": "s", "machine": "m", "costs": {"witness": LAW}}


# INV-19
def test_provenance_of_every_number() -> None:
    law = CostLaw.model_validate(LAW)
    assert law.origin("seconds") == Origin(source="document", note="a table")
    split = CostLaw.model_validate(LAW | {"provenance": {"seconds": "measured", "*": {"source": "fit", "error": 0.02}}})
    assert split.origin("seconds").source == "measured" and split.origin("cores").error == 0.02
    assert split.origin("jitter").source == "fit"
    assert CostLaw(provenance={}).origin("cores").source == "assumed"
    for wrong in (
        {},
        {"seconds": "document"},
        "hearsay",
        {"secnds": "document", "*": "fit"},
        {"*": {"source": "fit", "error": 2.0}},
    ):
        with pytest.raises(ValidationError):
            CostLaw.model_validate(LAW | {"provenance": wrong})


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 1.5}, {"seconds": "-1s"}, {"seconds": ""},
        {"dram": 1.5}, {"gpu": -0.1}, {"link": "up"}, {"jitter": "5%"},
        {"bytes": 12}, {"range": {"pw": [3, 1]}}, {"range": {"pw": [1]}}, {"range": {"pw": [1, 2, 3]}}, {"cost": 1},
    ],
)  # fmt: skip
def test_laws_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CostLaw.model_validate(LAW | change, context=UNITS_REQUIRED)


def test_the_contention_law() -> None:
    contention = Contention.model_validate({"dram_exponent": 4.0, "provenance": "assumed"})
    assert contention.dram_slowdown(0.0) == 1.0
    assert contention.dram_slowdown(1.0) == pytest.approx(2**0.25)
    assert contention.dram_slowdown(50.0) == pytest.approx(50.0)
    assert contention.speed(0.0, 3.0) == 1.0 and contention.speed(1.0, 2.0) == 0.5
    assert contention.speed(0.5, 3.0) == 0.5


def test_a_step_without_a_cost_and_values_out_of_range() -> None:
    calibration = Calibration.model_validate(CALIBRATION | {"range": {"pw": [1, 20]}})
    assert calibration.law("witness").seconds.evaluate({}) == 1.5
    with pytest.raises(InputError, match="no cost of 'witnes'; did you mean 'witness'"):
        calibration.law("witnes")
    assert calibration.outside({"pw": 20, "gw": 9}) == []
    assert calibration.outside({"pw": 21}) == ["pw = 21 is outside 1…20"]


def test_a_calibration_written_loads_back_equal() -> None:
    data = CALIBRATION | {
        "costs": {
            "upload": {"link": "h2d", "bytes": "96*constraints", "rate": "10GB/s", "provenance": "document: 'quoted': # odd"},
            "witness": LAW | {"seconds": "25.8 * aux/130169893", "range": {"pw": [1, 20]}},
        },
        "contention": {"pcie_dram": 0.167, "provenance": "derived"},
        "latency": {"lock_wake": "17ms", "provenance": "document"},
        "memory": {"process_ram": "100MiB", "provenance": "document"},
        "parameters": {"q": 4.25},
        "points": ["p8-sweep-pw10", "7", "null"],
    }
    calibration = Calibration.model_validate(data, context=UNITS_REQUIRED)
    problems = Problems()
    tree = parse(part_text("calibration", calibration, "made by a test"), "f", problems)
    assert tree is not None and not problems, problems.found
    inner = tree.child("calibration")
    assert inner is not None
    assert validate(Calibration, inner, problems) == calibration, problems.found

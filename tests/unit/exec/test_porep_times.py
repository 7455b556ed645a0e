"""What the benchmark of a PoRep partition reads from a trace."""

import importlib.util
from pathlib import Path

import pytest

from cuzk.trace.event import Event

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "porep_gpu.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("porep_gpu", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def step(name, begin_s, end_s, partition, stream="compute"):
    place = {"name": name, "worker": "gpu:0.0", "stream": stream, "proof": 0, "partition": partition}
    return [{"t": begin_s, "kind": "begin", **place}, {"t": end_s, "kind": "end", **place}]


def test_times_of_a_trace(benchmark):
    events = [
        *step("witness", 0.0, 0.1, 0, None), *step("msm_h", 0.1, 0.7, 0),
        {"t": 0.9, "kind": "complete", "proof": 0, "partition": 0},
        *step("witness", 0.5, 0.8, 1, None), *step("msm_h", 0.8, 1.3, 1), *step("tail_msm", 1.4, 1.5, 1, None),
        {"t": 2.0, "kind": "complete", "proof": 0, "partition": 1}, {"t": 2.0, "kind": "complete", "proof": 0, "partition": -1},
    ]  # fmt: skip
    trace = [Event(**event) for event in sorted(events, key=lambda event: event["t"])]
    found = benchmark.times(trace)
    assert found["step_ms"]["msm_h"] == {"median": 550.0, "min": 500.0, "max": 600.0, "count": 2}
    assert found["gpu_steps_ms"] == {"median": 600.0, "min": 600.0, "max": 600.0, "count": 2}
    assert found["start_to_proof_ms"] == {"median": 1200.0, "min": 900.0, "max": 1500.0, "count": 2}
    assert found["gpu_idle_ms"] == pytest.approx(200.0)  # between the two MSMs, and before the tail
    assert benchmark.times(trace, warm=1)["step_ms"]["msm_h"] == {"median": 500.0, "min": 500.0, "max": 500.0, "count": 1}

"""Laws that hold for every pipeline and policy: random ones are walked with an arbiter that is watched at each call."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.model.policy import _choices
from cuzk.model.scenario import Scenario, load_scenario
from cuzk.pipeline.check import check
from cuzk.pipeline.presets.reference_prover.phases import PHASES
from cuzk.pipeline.program import bind
from cuzk.sim.engine import Engine
from cuzk.sim.options import Options
from cuzk.sim.run import result_of

SECONDS = st.sampled_from([0.0, 0.001, 0.5, 1.0, 2.5])
SIZES = st.sampled_from(["1MiB", "1GiB", "3GiB", "6GiB"])


class Watched(Engine):
    """A run whose arbiter is checked after every call."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.allocated: Counter[tuple[int, int, str]] = Counter()
        self.freed: Counter[tuple[int, int, str]] = Counter()
        self.grants: dict[str, list[Any]] = {}
        self.queued: dict[str, list[Any]] = {}
        for name in ("alloc", "free", "acquire", "release", "put", "get", "trim", "touched"):
            self._watch(name)

    def _watch(self, name: str) -> None:
        owner = self.arbiter if hasattr(self.arbiter, name) else self.books
        real = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = real(*args, **kwargs)
            if name in ("alloc", "free") and args[0].proof < 0:
                pass  # resident from the start
            elif name == "alloc":
                self.allocated[args[0].proof, args[0].partition, args[1]] += 1
            elif name == "free":
                self.freed[args[0].proof, args[0].partition, args[1]] += 1
            self.invariants()
            return result

        setattr(owner, name, call)

    def invariants(self) -> None:
        for pool in self.books.pools.values():
            assert pool.live >= 0 and pool.cached >= 0 and pool.untouched >= 0
            assert pool.untouched <= pool.live
            assert pool.live == sum(size for _, size, _ in pool.held.values())
            if pool.name.startswith("vram"):
                assert pool.live + pool.cached <= pool.capacity
        for claim in self.arbiter._claims.values():
            assert 0 <= claim.free <= claim.units and claim.held >= 0
        for channel in self.arbiter._channels.values():
            assert channel.capacity is None or len(channel.items) <= channel.capacity
            assert not (channel.items and channel.getters), "a set waits while somebody waits for one"


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, Any]:
    """Tasks behind a permit, a channel, GPU workers with a lock, a branch, streams, spawned helpers, in legal order."""
    device = [f"d{i}" for i in range(draw(st.integers(0, 3)))]
    host = [f"h{i}" for i in range(draw(st.integers(1, 3)))]
    buffers: dict[str, Any] = {
        name: {"pool": "vram:$gpu", "size": draw(SIZES), "allocator": draw(st.sampled_from(["direct", "cached"]))}
        for name in device
    }
    for name in host:
        buffers[name] = {"pool": draw(st.sampled_from(["ram", "pinned"])), "size": draw(SIZES)}
        if draw(st.booleans()):
            buffers[name]["touched_by"] = "synth"
    give_back, send = [{"release": "slots"}], [{"put": "ready"}]
    ends = draw(st.sampled_from([[*give_back, *send], [*send, *give_back]]))
    task = [{"acquire": "slots"}, {"alloc": host}, {"run": "synth"}, *ends]
    gpu: list[dict[str, Any]] = [{"get": "ready"}]
    spawned: dict[str, Any] = {}
    helper = draw(st.booleans())
    if helper:
        gpu.append({"spawn": "helper", "as": "helper"})
        spawned["helper"] = {"start": "spawned", "steps": [{"run": "help"}], "limit": draw(st.sampled_from([None, 1, 2]))}
    locked = draw(st.booleans())
    body: list[dict[str, Any]] = []
    if device:
        if draw(st.booleans()):
            body.append({"trim": "vram:$gpu"})
        if draw(st.booleans()):
            body.append({"try_alloc": device, "guard": draw(SIZES), "then": [{"run": "fast"}], "else": [{"alloc": device}]})
        else:
            body.append({"alloc": device})
    body += [{"run": "kernel", "on": "s"}, {"record": "e", "on": "s"}]
    if draw(st.booleans()):
        body += [{"stream_wait": "e", "on": "t"}, {"run": "kernel", "on": "t"}, {"record": "f", "on": "t"}, {"wait": "f"}]
    body.append({"wait": "e"})
    freeing = [{"free": device}] if device else []
    late = draw(st.booleans())
    body += [] if late else freeing
    gpu += [{"acquire": "gpu_mutex"}, *body, {"release": "gpu_mutex"}] if locked else body
    gpu += freeing if late else []
    if helper:
        gpu.append({"join": "helper"})
    finish = [{"run": "finish"}, {"complete": "partition"}, {"run": "dealloc_host"}, {"free": host}]
    if draw(st.booleans()):
        spawned["finisher"] = {"start": "spawned", "steps": finish, "limit": draw(st.sampled_from([None, 1]))}
        gpu.append({"spawn": "finisher", "moves": True})
    else:
        gpu += finish
    return {
        "name": "random", "buffers": buffers,
        "locks": {"gpu_mutex": {"per": draw(st.sampled_from(["gpu", "host"])),
                                "order": draw(st.sampled_from(["fifo", "barging"]))}},
        "permits": {"slots": {"count": draw(st.integers(1, 4)),
                              "order": draw(st.sampled_from(["fifo", "by-proof", "random"]))}},
        "channels": {"ready": {"capacity": draw(st.sampled_from([1, 2, 5, None]))}},
        "workers": {
            "task": {"start": "partition", "steps": task},
            "gpu": {"start": "pool", "per": "gpu", "count": draw(st.integers(1, 3)), "steps": gpu}, **spawned,
        },
    }  # fmt: skip


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    steps = ["synth", "fast", "kernel", "help", "finish", "dealloc_host"]
    costs = {
        name: {
            "seconds": draw(SECONDS), "cores": draw(st.integers(0, 4)), "dram": draw(st.sampled_from([0.0, 0.5, 1.0])),
            "dram_demand": draw(st.sampled_from([0.0, 0.3, 1.0])), "jitter": draw(st.sampled_from([0.0, 0.2])),
            "gpu": 1.0 if name == "kernel" else 0.0, "provenance": "assumed",
        }
        for name in steps
    }  # fmt: skip
    arrivals: Any = draw(st.sampled_from(["closed", {"interval": 1.0}, {"poisson": 0.5}]))
    circuit = {"name": "c", "constraints": 9, "aux": 9, "density_a_aux": 9, "density_b_aux": 9,
               "partitions": draw(st.integers(1, 4)), "srs": "0B", "pce": "0B"}  # fmt: skip
    return Scenario.model_validate({
        "name": "random",
        "machine": {"name": "m", "ram": draw(st.sampled_from(["20GiB", "400GiB"])), "cores": 4,
                    "gpus": [{"name": "g", "vram": "16GiB", "sms": 1, "pcie_h2d": "1GiB/s", "pcie_d2h": "1GiB/s",
                              "count": draw(st.integers(1, 2))}]},
        "circuit": circuit, "pipeline": draw(pipelines()), "policy": {"j": draw(st.integers(1, 3))},
        "workload": {"proofs": draw(st.integers(1, 5)), "arrivals": arrivals}, "seed": draw(st.integers(0, 3)),
        "calibration": {"name": "r", "software": "r", "machine": "m", "costs": costs, "latency": {
            "lock_wake": draw(SECONDS), "channel_wake": draw(SECONDS), "spawn": draw(SECONDS), "provenance": "assumed"}},
    })  # fmt: skip


def walked(scenario: Scenario, shuffle: int | None = None) -> Watched:
    engine = Watched(bind(scenario), scenario.seed, Options(trace=True, shuffle=shuffle))
    engine.run()
    return engine


def ran_out_of_ram(run: Watched) -> bool:
    """The host's memory ends a run wherever it is, also after a device's has failed some proofs."""
    return any(event.kind == "oom" and event.pool in ("ram", "pinned") for event in run.events)


LAWS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# INV-2
@LAWS
@given(scenarios(), st.sampled_from([None, 1, 2]))
def test_what_is_taken_is_given_back(scenario, shuffle):
    assert not [f for f in check(bind(scenario)) if f.severity == "error"]
    run = walked(scenario, shuffle)
    assert all(count == 1 for count in run.allocated.values() if count), "a buffer of a set was allocated twice"
    assert all(count == 1 for count in run.freed.values())
    if ran_out_of_ram(run):
        return
    assert run.allocated == run.freed
    for pool in run.books.pools.values():
        assert pool.live == 0 and pool.untouched == 0
    for claim in run.arbiter._claims.values():
        assert claim.free == claim.units and claim.held == 0 and not claim.waiters
    assert not any(channel.items or channel.putters for channel in run.arbiter._channels.values())


# INV-5
@LAWS
@given(scenarios(), st.sampled_from([None, 1]))
def test_every_partition_comes_out_once_or_its_proof_has_failed(scenario, shuffle):
    run = walked(scenario, shuffle)
    if ran_out_of_ram(run):
        return
    out = Counter((e.proof, e.partition) for e in run.events if e.kind == "complete" and e.partition >= 0)
    assert all(count == 1 for count in out.values())
    for proof in run.core.proofs:
        parts = [part for number, part in out if number == proof.number]
        if proof.failure is None:
            assert sorted(parts) == list(range(scenario.circuit.partitions))
            assert proof.completed_s is not None and proof.completed_s >= proof.admitted_s >= proof.arrived_s
    assert len(run.core.proofs) == scenario.workload.proofs


# INV-6
@LAWS
@given(scenarios())
def test_the_clock_never_goes_back_and_work_takes_at_least_its_time(scenario):
    run = walked(scenario)
    times = [event.t for event in run.events]
    assert times == sorted(times)
    costs = scenario.calibration.costs
    begun = {}
    for event in run.events:
        key = (event.worker, event.stream, event.name, event.proof, event.partition)
        if event.kind == "begin":
            begun[key] = event.t
        elif event.kind == "end" and not costs[event.name].jitter:
            assert event.t - begun[key] >= costs[event.name].seconds.evaluate({}) * (1 - 1e-9)


# INV-1
@LAWS
@given(scenarios(), st.integers(0, 2))
def test_the_same_seed_gives_the_same_bytes(scenario, seed):
    def once():
        engine = Engine(bind(scenario), seed, Options(trace=True))
        engine.run()
        return json.dumps([result_of(engine).to_json(), [event.to_json() for event in engine.events]])

    assert once() == once()


# INV-4
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=8), st.integers(1, 3))
def test_fifo_serves_in_the_order_of_asking(work, permits):
    """No starvation: grants of a fifo permit come in the order of the claims."""
    pipeline = {
        "name": "fifo", "buffers": {}, "permits": {"slots": {"count": permits}}, "channels": {"ready": {}},
        "workers": {
            "task": {"start": "partition", "steps": [
                {"acquire": "slots"}, {"run": "synth"}, {"release": "slots"}, {"put": "ready"}]},
            "gpu": {"start": "pool", "steps": [{"get": "ready"}, {"complete": "partition"}]},
        },
    }  # fmt: skip
    circuit = {"name": "c", "constraints": 9, "aux": 9, "density_a_aux": 9, "density_b_aux": 9, "srs": "0B", "pce": "0B",
               "partitions": len(work)}  # fmt: skip
    scenario = Scenario.model_validate({
        "machine": {"name": "m", "ram": "9GiB", "cores": 4}, "circuit": circuit, "pipeline": pipeline,
        "calibration": {"name": "r", "software": "r", "machine": "m",
                        "costs": {"synth": {"seconds": 1.0, "jitter": 0.3, "cores": 0, "provenance": "assumed"}}},
    })  # fmt: skip
    run = walked(scenario)
    order = [event.partition for event in run.events if event.kind == "begin"]
    assert order == sorted(order)


REFERENCE = load_scenario(Path(__file__).parents[2] / "scenarios" / "pw12.yaml", ["workload.proofs=2"])
PARTITIONED = [phase for phase in PHASES if phase.startswith("phase") and phase != "phase2"]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_the_presets_keep_the_laws_under_any_policy(data):
    options = {name: [value for value, _ in values] for name, values in _choices().items() if name != "dealloc"}
    # what has no cost in the documents' calibration is left out
    options |= {"matvec": ["cpu"], "b_g2_msm": ["cpu"], "pce": ["pageable"], "srs": ["pinned"], "key_tables": ["none"]}
    chosen = {name: data.draw(st.sampled_from(values), label=name) for name, values in sorted(options.items())}
    chosen |= {"pw": data.draw(st.integers(1, 12)), "gw": data.draw(st.integers(1, 3)), "j": data.draw(st.integers(1, 2))}
    chosen["channel_capacity"] = data.draw(st.sampled_from([1, 3, "pw"]))
    phase = data.draw(st.sampled_from(PARTITIONED), label="phase")
    run = walked(REFERENCE.model_copy(update={"pipeline": phase}).with_policy(**chosen))
    if run.core.oom is None:
        assert len(run.core.completion_s) == 20
        assert set(run.core.deallocations.values()) == {20}
        assert run.allocated == run.freed

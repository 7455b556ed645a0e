"""Order, waiting and memory in runs that can be worked out by hand."""

import json

import pytest

from cuzk.errors import InputError, ScenarioError
from cuzk.sim import simulate
from tests.unit.sim.small import GIB, circuit_of, scenario, two_workers

ONE = {"seconds": 1.0}


def events(result, *kinds):
    return [(e.t, e.kind, e.name, e.proof, e.partition) for e in result.events if e.kind in kinds]


def test_a_full_channel_holds_its_senders_and_their_memory():
    task = [{"alloc": "set"}, {"run": "work"}, {"put": "ready"}]
    gpu = [{"get": "ready"}, {"run": "prove"}, {"free": "set"}, {"complete": "partition"}]
    buffers = {"set": {"pool": "ram", "size": "1GiB"}}
    costs = {"work": ONE, "prove": {"seconds": 10.0}}
    result = simulate(scenario(two_workers(task, gpu, buffers), costs, partitions=5))
    assert result.makespan_s == pytest.approx(51.0)
    assert result.peaks["ram"].live_bytes == 5 * GIB
    # one with the worker, one in the channel, three wait: 10+20+30 s after the first was taken
    assert result.waited_s["ready"] == pytest.approx(10.0 + 20.0 + 30.0 + 1.0)


def test_a_permit_through_the_send_bounds_the_sets():
    gpu = [{"get": "ready"}, {"run": "prove"}, {"free": "set"}, {"complete": "partition"}]
    buffers = {"set": {"pool": "ram", "size": "1GiB"}}
    costs = {"work": ONE, "prove": {"seconds": 10.0}}

    def peak(task):
        pipeline = two_workers([{"acquire": "slots"}, {"alloc": "set"}, {"run": "work"}, *task], gpu, buffers, permits=2)
        return simulate(scenario(pipeline, costs, partitions=8)).peaks["ram"].live_bytes // GIB

    assert peak([{"release": "slots"}, {"put": "ready"}]) == 8
    assert peak([{"put": "ready"}, {"release": "slots"}]) == 4  # two with permits, one in the channel, one proved


def test_a_lock_lets_one_in_at_a_time():
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"run": "prove"}, {"release": "gpu_mutex"}, {"complete": "partition"}]
    result = simulate(scenario(two_workers([{"put": "ready"}], gpu, workers=3, capacity=9), {"prove": ONE}, partitions=3))
    assert result.makespan_s == pytest.approx(3.0)
    assert result.waited_s["gpu_mutex:0"] == pytest.approx(1.0 + 2.0)


def test_a_lock_takes_time_to_wake_the_next():
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"run": "prove"}, {"release": "gpu_mutex"}, {"complete": "partition"}]
    pipeline = two_workers([{"put": "ready"}], gpu, workers=2, capacity=9)
    result = simulate(scenario(pipeline, {"prove": ONE}, partitions=2, latency={"lock_wake": "0.5s"}))
    assert result.makespan_s == pytest.approx(2.5)


def test_a_barging_lock_goes_to_who_comes_first():
    # the one who unlocks is back at once, the one who waits needs time to wake: it is overtaken every time
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"run": "prove"}, {"release": "gpu_mutex"}, {"complete": "partition"}]
    locks = {"gpu_mutex": {"per": "gpu", "order": "barging"}}
    pipeline = two_workers([{"put": "ready"}], gpu, workers=2, capacity=9, locks=locks)
    result = simulate(scenario(pipeline, {"prove": ONE}, partitions=6, latency={"lock_wake": "1ms"}), trace=True)
    runs = [e.worker for e in result.events if e.kind == "begin" and e.name == "prove"]
    assert runs == ["gpu:0.0"] * 5 + ["gpu:0.1"]
    assert result.completions == 6


def test_streams_work_in_order_and_beside_each_other():
    gpu = [
        {"get": "ready"}, {"run": "copy_in", "on": "copy"}, {"record": "in", "on": "copy"}, {"run": "early", "on": "compute"},
        {"stream_wait": "in", "on": "compute"}, {"run": "late", "on": "compute"}, {"record": "out", "on": "compute"},
        {"run": "host"}, {"wait": "out"}, {"complete": "partition"},
    ]  # fmt: skip
    costs = {"copy_in": {"seconds": 3.0}, "early": ONE, "late": {"seconds": 2.0}, "host": {"seconds": 1.5}}
    result = simulate(scenario(two_workers([{"put": "ready"}], gpu), costs, partitions=1), trace=True)
    begins = {e.name: e.t for e in result.events if e.kind == "begin"}
    assert begins == {"copy_in": 0.0, "early": 0.0, "host": 0.0, "late": 3.0}
    assert result.makespan_s == pytest.approx(5.0)


def test_a_free_behind_an_event_waits_for_it():
    gpu = [
        {"get": "ready"}, {"alloc": "d"}, {"run": "kernel", "on": "s", "uses": ["d"]}, {"record": "done", "on": "s"},
        {"free": "d", "after": "done"}, {"complete": "partition"},
    ]  # fmt: skip
    buffers = {"d": {"pool": "vram:$gpu", "size": "1GiB"}}
    result = simulate(scenario(two_workers([{"put": "ready"}], gpu, buffers), {"kernel": ONE}, partitions=1), trace=True)
    assert [e.t for e in result.events if e.kind == "free"] == [1.0]


def test_spawned_workers_run_beside_and_are_joined():
    gpu = [{"get": "ready"}, {"spawn": "prep", "as": "p"}, {"run": "prove"}, {"join": "p"}, {"complete": "partition"}]
    prep = {"prep": {"start": "spawned", "steps": [{"run": "scan"}]}}
    pipeline = two_workers([{"put": "ready"}], gpu, workers_too=prep)
    result = simulate(scenario(pipeline, {"prove": ONE, "scan": {"seconds": 3.0}}, partitions=1))
    assert result.makespan_s == pytest.approx(3.0)
    assert result.waited_s["p"] == pytest.approx(2.0)


def test_a_limit_of_spawned_workers_makes_them_wait():
    gpu = [{"get": "ready"}, {"spawn": "finish", "moves": True}]
    finish = {"finish": {"start": "spawned", "limit": 2, "steps": [{"run": "work"}, {"complete": "partition"}]}}
    pipeline = two_workers([{"put": "ready"}], gpu, capacity=9, workers_too=finish)
    assert simulate(scenario(pipeline, {"work": ONE}, partitions=6)).makespan_s == pytest.approx(3.0)


def test_pages_become_resident_while_they_are_written():
    task = [{"alloc": "set"}, {"run": "write"}, {"free": "set"}, {"put": "ready"}]
    gpu = [{"get": "ready"}, {"complete": "partition"}]
    buffers = {"set": {"pool": "ram", "size": "4GiB", "touched_by": "write"}, "more": {"pool": "ram", "size": "1GiB"}}
    other = {"peek": {"start": "partition", "steps": [{"run": "half"}, {"alloc": "more"}, {"free": "more"}, {"put": "ready"}]}}
    pipeline = two_workers(task, gpu, buffers, workers_too=other, capacity=9)
    costs = {"write": {"seconds": 8.0}, "half": {"seconds": 4.0}}
    result = simulate(scenario(pipeline, costs, partitions=1), trace=True)
    at_half = next(e for e in result.events if e.kind == "alloc" and e.name == "more")
    assert (at_half.live, at_half.resident) == (5 * GIB, 3 * GIB)
    assert result.peaks["ram"].resident_bytes == pytest.approx(4 * GIB, abs=1)


def test_ram_runs_out_when_the_pages_come_not_when_they_are_promised():
    task = [{"alloc": "set"}, {"run": "write"}, {"put": "ready"}]
    gpu = [{"get": "ready"}, {"free": "set"}, {"complete": "partition"}]
    buffers = {"set": {"pool": "ram", "size": "4GiB", "touched_by": "write"},
               "key": {"pool": "ram", "size": "2GiB", "scope": "run"}}  # fmt: skip
    pipeline = two_workers(task, gpu, buffers, capacity=9)
    result = simulate(scenario(pipeline, {"write": {"seconds": 8.0}}, partitions=3, ram="8GiB"))
    assert result.verdict == "oom" and result.oom.pool == "ram"
    assert result.oom.at_s == pytest.approx(8.0 * 6 / 12)  # 6 GiB of 12 are touched
    assert sum(row[2] for row in result.oom.holders) == pytest.approx(8 * GIB, abs=8)
    assert result.s_per_proof is None


def test_device_memory_that_runs_out_fails_the_proof_and_others_go_on():
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"alloc": "d"}, {"run": "prove"}, {"free": "d"},
           {"release": "gpu_mutex"}, {"complete": "partition"}]  # fmt: skip
    buffers = {"d": {"pool": "vram:$gpu", "size": "constraints * 1048576"}}
    pipeline = two_workers([{"run": "work"}, {"put": "ready"}], gpu, buffers, workers=2)
    mix = [{"circuit": circuit_of("small", 3, 1000)}, {"circuit": circuit_of("large", 3, 100_000)}]
    made = scenario(pipeline, {"work": ONE, "prove": ONE}, proofs=6, mix=mix, policy={"j": 2})
    made = made.model_copy(update={"workload": made.workload.with_(mix="rotate")})
    result = simulate(made, trace=True)
    assert result.verdict == "oom" and result.oom.pool == "vram:0"
    assert result.failed_proofs == 3 and result.completions == 9
    live = {}
    for event in result.events:
        if event.live is not None and event.kind in ("alloc", "free"):
            live[event.pool] = event.live
    assert live["vram:0"] == 0


def test_residents_that_do_not_fit_are_named_at_the_start():
    buffers = {"srs": {"pool": "pinned", "size": "40GiB", "scope": "run"},
               "pce": {"pool": "ram", "size": "30GiB", "scope": "run"}}  # fmt: skip
    pipeline = two_workers([{"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}], buffers)
    result = simulate(scenario(pipeline, {}, partitions=1))
    assert (result.verdict, result.oom.pool, result.oom.buffer, result.oom.at_s) == ("oom", "ram", "pce", 0.0)
    assert result.oom.holders == [("srs", 1, 40 * GIB)]
    json.dumps(result.to_json())


def test_a_cache_serves_its_own_allocator_until_it_is_trimmed():
    buffers = {"q": {"pool": "vram:$gpu", "size": "10GiB", "allocator": "cached"},
               "t": {"pool": "vram:$gpu", "size": "8GiB"}}  # fmt: skip
    steps = [{"get": "ready"}, {"alloc": "q"}, {"run": "w"}, {"free": "q"}, {"alloc": "t"}, {"free": "t"},
             {"complete": "partition"}]  # fmt: skip
    trimmed = [*steps[:4], {"trim": "vram:$gpu"}, *steps[4:]]
    costs = {"w": ONE}
    assert simulate(scenario(two_workers([{"put": "ready"}], steps, buffers), costs)).verdict == "oom"
    assert simulate(scenario(two_workers([{"put": "ready"}], trimmed, buffers), costs)).verdict == "fits"


def test_trimming_waits_for_the_whole_device():
    gpu = [{"get": "ready"}, {"run": "kernel", "on": "s"}, {"record": "e", "on": "s"}, {"trim": "vram:$gpu"},
           {"run": "host"}, {"wait": "e"}, {"complete": "partition"}]  # fmt: skip
    costs = {"kernel": {"seconds": 5.0, "gpu": 1.0, "cores": 0}, "host": ONE}
    assert simulate(scenario(two_workers([{"put": "ready"}], gpu), costs, partitions=1)).makespan_s == pytest.approx(6.0)


def test_the_branch_takes_the_other_arm_below_the_guard():
    branch = {"try_alloc": "d", "guard": "7GiB", "then": [{"run": "fast"}], "else": [{"alloc": "d"}, {"run": "slow"}]}
    gpu = [{"get": "ready"}, branch, {"free": "d"}, {"complete": "partition"}]
    buffers = {"d": {"pool": "vram:$gpu", "size": "10GiB"}}
    costs = {"fast": ONE, "slow": {"seconds": 5.0}}
    for vram, expected in (("17GiB", 1.0), ("16GiB", 5.0)):
        result = simulate(scenario(two_workers([{"put": "ready"}], gpu, buffers), costs, partitions=1, vram=vram))
        assert result.makespan_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arrivals", "policy", "expected"),
    [
        ([0.0, 10.0, 11.0], {}, 13.0),  # one at a time through the GPU: the third waits for the second
        ({"interval": 5.0}, {}, 12.0),
        ("closed", {"j": 1}, 6.0),
        ([0.0, 0.0, 0.0], {"j": 1}, 6.0),
    ],
)
def test_arrivals(arrivals, policy, expected):
    pipeline = two_workers([{"run": "work"}, {"put": "ready"}], [{"get": "ready"}, {"run": "prove"}, {"complete": "partition"}])
    made = scenario(pipeline, {"work": ONE, "prove": ONE}, partitions=1, proofs=3, arrivals=arrivals, policy=policy)
    assert simulate(made).makespan_s == pytest.approx(expected)


def test_poisson_arrivals_follow_the_seed():
    pipeline = two_workers([{"run": "work"}, {"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}])
    made = scenario(pipeline, {"work": ONE}, proofs=5, arrivals={"poisson": 0.1})
    assert simulate(made, seed=1).makespan_s == simulate(made, seed=1).makespan_s != simulate(made, seed=2).makespan_s


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    costs = {"work": {"seconds": 1.0, "jitter": 0.1, "group_jitter": 0.1}}
    made = scenario(two_workers([{"run": "work"}, {"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}]), costs)
    first, again, other = (json.dumps(simulate(made, seed=s).to_json()) for s in (1, 1, 2))
    assert first == again != other


def test_group_jitter_keeps_a_proof_in_lockstep():
    costs = {"work": {"seconds": 1.0, "group_jitter": 0.2}}
    made = scenario(two_workers([{"run": "work"}, {"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}], capacity=99),
                    costs, partitions=4, proofs=3, policy={"j": 3})  # fmt: skip
    result = simulate(made, trace=True)
    ends = {}
    for event in result.events:
        if event.kind == "end":
            ends.setdefault(event.proof, set()).add(round(event.t, 9))
    assert [len(times) for times in ends.values()] == [1, 1, 1]
    assert len(set().union(*ends.values())) == 3


def test_a_deadlock_is_said_with_who_waits_for_what():
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"acquire": "slots"}, {"release": "slots"}, {"release": "gpu_mutex"},
           {"complete": "partition"}]  # fmt: skip
    task = [{"acquire": "slots"}, {"put": "ready"}]  # never gives its permit back
    pipeline = two_workers(task, gpu, permits=1)
    with pytest.raises(InputError, match=r"deadlocks at 0\.000 s: .*waits for slots"):
        simulate(scenario(pipeline, {}))


def test_a_leak_is_said():
    pipeline = two_workers([{"alloc": "a"}, {"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}],
                           {"a": {"pool": "ram", "size": "1GiB"}})  # fmt: skip
    with pytest.raises(InputError, match=r"still holds a"):
        simulate(scenario(pipeline, {}))


def test_a_step_without_a_cost_is_said_with_a_suggestion():
    pipeline = two_workers([{"run": "witnes"}, {"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}])
    with pytest.raises(InputError, match=r"no cost of 'witnes'.*did you mean 'witness'"):
        simulate(scenario(pipeline, {"witness": ONE}))


def test_no_calibration_is_said():
    made = scenario(two_workers([{"put": "ready"}], [{"get": "ready"}, {"complete": "partition"}]), {})
    with pytest.raises(ScenarioError, match="needs the costs of the steps"):
        simulate(made.model_copy(update={"calibration": None}))


GET = [{"get": "ready"}, {"complete": "partition"}]
BUFFER = {"a": {"pool": "ram", "size": "1GiB"}}


@pytest.mark.parametrize(
    ("task", "gpu", "buffers", "message"),
    [
        ([{"put": "raedy"}], GET, {}, r"workers\.task\.steps\.0: there is no channel 'raedy'; did you mean 'ready'"),
        ([{"acquire": "x"}, {"put": "ready"}], GET, {}, r"steps\.0: there is no lock or permit 'x'"),
        ([{"spawn": "x"}, {"put": "ready"}], GET, {}, r"steps\.0: there is no worker 'x'"),
        ([{"alloc": "x"}, {"put": "ready"}], GET, {}, r"steps\.0: there is no buffer 'x'"),
        ([{"alloc": "a"}, {"alloc": "a"}, {"put": "ready"}], GET, BUFFER, r"steps\.1: p0\.0 allocates a twice"),
        ([{"alloc": "a"}, {"free": ["a", "a"]}, {"put": "ready"}], GET, BUFFER, r"steps\.1: p0\.0 frees a, which"),
        ([{"release": "slots"}, {"put": "ready"}], GET, {}, r"steps\.0: p0\.0 releases slots, which it does not hold"),
        ([{"acquire": "slots", "n": 99}, {"put": "ready"}], GET, {}, r"steps\.0: asks for 99 units of slots, .* 10 in all"),
        ([{"put": "ready"}], [{"run": "work"}], {}, r"workers\.gpu\.steps: a pool worker begins with a get"),
        ([{"put": "ready"}], GET, {"a": {"pool": "vran:0", "size": "1GiB"}}, r"buffers\.a\.pool: there is no pool 'vran:0'"),
    ],
)
def test_a_fault_of_the_pipeline_is_said_with_its_place(task, gpu, buffers, message):
    with pytest.raises(ScenarioError, match=message):
        simulate(scenario(two_workers(task, gpu, buffers), {"work": ONE}))


def test_a_machine_without_a_gpu_is_said():
    made = scenario(two_workers([{"put": "ready"}], GET, {"a": {"pool": "vram:$gpu", "size": "1GiB"}}), {})
    with pytest.raises(ScenarioError, match="the machine has no GPU"):
        simulate(made.model_copy(update={"machine": made.machine.with_(gpus=())}))


@pytest.mark.parametrize(
    ("arrivals", "policy", "proofs", "partitions", "resource"),
    [
        ("closed", {"j": 1}, 8, 2, "j"),
        ({"interval": 50.0}, {}, 8, 2, "arrivals"),
        ("closed", {"j": 8}, 8, 8, "gpu_mutex:0"),
    ],
)
def test_what_binds(arrivals, policy, proofs, partitions, resource):
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"run": "prove"}, {"release": "gpu_mutex"}, {"complete": "partition"}]
    task = [{"acquire": "slots"}, {"run": "work"}, {"release": "slots"}, {"put": "ready"}]
    made = scenario(two_workers(task, gpu, workers=2), {"work": {"seconds": 3.0}, "prove": ONE}, arrivals=arrivals,
                    policy=policy, proofs=proofs, partitions=partitions)  # fmt: skip
    assert simulate(made).bottleneck["resource"] == resource


def test_the_permits_bind_when_the_gpu_waits_for_them():
    gpu = [{"get": "ready"}, {"acquire": "gpu_mutex"}, {"run": "prove"}, {"release": "gpu_mutex"}, {"complete": "partition"}]
    task = [{"acquire": "slots"}, {"run": "work"}, {"release": "slots"}, {"put": "ready"}]
    costs = {"work": {"seconds": 9.0}, "prove": ONE}
    made = scenario(two_workers(task, gpu, permits=1), costs, policy={"j": 8}, proofs=8)
    assert simulate(made).bottleneck["resource"] == "slots"
    shared = {"work": {"seconds": 9.0, "dram": 1.0, "dram_demand": 0.9}, "prove": ONE}
    made = scenario(two_workers(task, gpu, permits=4), shared, policy={"j": 8}, proofs=8)
    assert simulate(made).bottleneck["resource"] == "dram"
    many = {"work": {"seconds": 9.0, "cores": 5}, "prove": ONE}
    made = scenario(two_workers(task, gpu, permits=4), many, policy={"j": 8}, proofs=8)
    assert simulate(made).bottleneck["resource"] == "cores"

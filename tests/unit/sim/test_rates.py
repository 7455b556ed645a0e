"""Shared rates against the laws worked out by hand."""

import pytest

from cuzk.sim import simulate
from tests.unit.sim.small import scenario, two_workers

TAKE = [{"get": "ready"}, {"complete": "partition"}]


def makespan(costs, task=({"run": "work"}, {"put": "ready"}), gpu=tuple(TAKE), workers=1, **more):
    pipeline = two_workers(list(task), list(gpu), capacity=99, workers=workers)
    return simulate(scenario(pipeline, costs, **more)).makespan_s


def test_alone_a_step_takes_its_time():
    assert makespan({"work": {"seconds": 3.0}}, partitions=1) == pytest.approx(3.0)


def test_independent_steps_do_not_slow_each_other():
    assert makespan({"work": {"seconds": 3.0}}, partitions=8) == pytest.approx(3.0)


@pytest.mark.parametrize(("n", "demand", "share", "q"), [(1, 0.5, 1.0, 4.0), (4, 0.5, 1.0, 4.0), (6, 0.25, 0.5, 2.0)])
def test_memory_bound_steps_slow_each_other_by_the_law(n, demand, share, q):
    slowdown = (1 + (n * demand) ** q) ** (1 / q)
    expected = 2.0 * ((1 - share) + share * slowdown)
    costs = {"work": {"seconds": 2.0, "dram": share, "dram_demand": demand}}
    assert makespan(costs, partitions=n, contention={"dram_exponent": q}) == pytest.approx(expected, rel=1e-12)


def test_a_step_that_ends_leaves_its_bandwidth_to_the_rest():
    # short and long together at slowdown 2 (q=1, D=1) until short ends; then D=0.5, slowdown 1.5
    task = [{"run": "short"}, {"put": "ready"}]
    gpu = [{"get": "ready"}, {"complete": "partition"}]
    more = {"twin": {"start": "partition", "steps": [{"run": "long"}, {"put": "ready"}]}}
    pipeline = two_workers(task, gpu, capacity=9, workers_too=more)
    costs = {name: {"seconds": s, "dram": 1.0, "dram_demand": 0.5} for name, s in (("short", 1.0), ("long", 3.0))}
    result = simulate(scenario(pipeline, costs, partitions=1, contention={"dram_exponent": 1.0}))
    # 1 s of short takes 2 s; long has done 1 of 3 s then; 2 s more at 1.5
    assert result.makespan_s == pytest.approx(2.0 + 2.0 * 1.5)


def test_more_threads_than_cores_share_them():
    assert makespan({"work": {"seconds": 1.0, "cores": 4}}, partitions=4, cores=8) == pytest.approx(2.0)
    assert makespan({"work": {"seconds": 1.0, "cores": 4}}, partitions=2, cores=8) == pytest.approx(1.0)


def test_kernels_of_two_workers_share_one_device():
    gpu = [{"get": "ready"}, {"run": "kernel"}, {"complete": "partition"}]
    costs = {"kernel": {"seconds": 1.0, "gpu": 1.0, "cores": 0}}
    assert makespan(costs, task=[{"put": "ready"}], gpu=gpu, workers=2) == pytest.approx(2.0)
    assert makespan(costs, task=[{"put": "ready"}], gpu=gpu, workers=1, gpus=2) == pytest.approx(1.0)


def test_copies_share_a_direction_of_the_link():
    gpu = [{"get": "ready"}, {"copy": "d", "from": ["h"]}, {"complete": "partition"}]
    buffers = {"d": {"pool": "vram:$gpu", "size": "2GiB", "scope": "gpu"}, "h": {"pool": "ram", "size": "2GiB", "scope": "run"}}
    costs = {"upload": {"cores": 0}}

    def seconds(workers):
        pipeline = two_workers([{"put": "ready"}], gpu, buffers, capacity=9, workers=workers)
        return simulate(scenario(pipeline, costs, partitions=2)).makespan_s

    assert seconds(1) == pytest.approx(4.0)
    assert seconds(2) == pytest.approx(4.0)


def test_a_slower_memory_limits_a_copy_and_leaves_the_rest_of_the_link():
    gpu = [{"get": "ready"}, {"copy": "d", "from": ["h"], "cost": "upload_pageable"}, {"complete": "partition"}]
    buffers = {"d": {"pool": "vram:$gpu", "size": "2GiB", "scope": "gpu"}, "h": {"pool": "ram", "size": "2GiB", "scope": "run"}}
    pipeline = two_workers([{"put": "ready"}], gpu, buffers, capacity=9, workers=2)
    result = simulate(scenario(pipeline, {"upload_pageable": {"rate": "0.5GiB/s", "cores": 0}}, partitions=2))
    assert result.makespan_s == pytest.approx(4.0)  # each at half the link's rate: both fit in

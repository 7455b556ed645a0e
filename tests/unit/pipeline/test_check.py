"""Each class of order fault that the static check must find, planted by one edit."""

import itertools

import pytest

from cuzk.model.policy import Policy
from cuzk.pipeline.check import check
from cuzk.pipeline.presets import PHASES, preset_policy, reference
from cuzk.pipeline.steps import Pipeline

OPTIONS = {
    "prestage": ["off", "before-mutex", "inside-mutex"], "free_d_bc": ["after-unlock", "before-unlock", "after-ntt"],
    "unpin": ["before-unlock", "after-unlock"], "free_abc": ["after-start", "after-finish"],
    "permit_returns": ["after-synthesis", "after-send", "after-pickup", "after-gpu-start"],
    "prove_api": ["monolithic", "split"], "dealloc": ["inline", "async", "async-serialised"],
    "gpu_locks": ["one", "compute+memory"], "admission": ["permits", "byte-budget", "queue-target"],
    "msm_sync": ["each-batch", "deferred"], "b_g2_msm": ["cpu", "gpu"], "matvec": ["cpu", "gpu"],
    "prep_msm": ["cpu", "gpu"],
    "quotient": ["bellman", "odd-coset", "c-free"], "witness": ["field", "bits"], "matrices": ["csr", "template"],
    "srs": ["vram", "pinned", "pageable", "mmap"], "pce": ["vram", "pageable"], "lock_order": ["fifo", "barging"],
}  # fmt: skip


def preset(phase: str, **options) -> Pipeline:
    return reference(phase, preset_policy(phase, Policy.model_validate(options)))


def errors(pipeline: Pipeline) -> list[str]:
    return [f.message for f in check(pipeline) if f.severity == "error"]


def warnings(pipeline: Pipeline) -> list[str]:
    return [f.message for f in check(pipeline) if f.severity == "warning"]


@pytest.mark.parametrize("phase", PHASES)
def test_presets_have_no_errors(phase):
    assert errors(preset(phase)) == []


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(OPTIONS, 2)))
def test_every_pair_of_options_compiles_to_a_sound_pipeline(first, second):
    for one, two in itertools.product(OPTIONS[first], OPTIONS[second]):
        for phase in ("phase7", "phase12"):
            assert errors(preset(phase, **{first: one, second: two})) == [], (phase, one, two)


def edited(edit) -> Pipeline:
    data = preset("phase12").model_dump(mode="json", by_alias=True, exclude_none=True)
    edit(data["workers"])
    return Pipeline.model_validate(data)


def index(steps, verb, name) -> int:
    return next(i for i, s in enumerate(steps) if verb in s and (s[verb] == name or name in s[verb]))


def test_moving_one_free_across_one_release_is_found():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        free = steps.pop(index(steps, "free", "d_bc"))
        steps.insert(index(steps, "release", "gpu_mutex") + 1, free)

    found = warnings(edited(edit))
    assert any("d_bc" in text and "outlives its release" in text for text in found)


def test_prestaging_before_the_mutex_is_found():
    assert any("outside every lock" in text for text in warnings(preset("phase9", prestage="before-mutex")))


def test_a_leak_is_found():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        del steps[index(steps, "free", "d_bc")]

    assert "d_bc is never freed" in errors(edited(edit))


def test_a_double_free_is_found():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        at = index(steps, "free", "d_bc")
        steps.insert(at, steps[at])

    assert "frees d_bc, which is not live here" in errors(edited(edit))


def test_a_free_under_a_running_stream_is_found():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        del steps[index(steps, "wait", "ntt_done")]

    assert any("frees d_bc while work on stream compute may still use it" in text for text in errors(edited(edit)))


def test_free_after_an_event_needs_no_wait():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        del steps[index(steps, "wait", "ntt_done")]
        steps[index(steps, "free", "d_bc")]["after"] = "ntt_done"

    assert errors(edited(edit)) == []


def test_a_lost_permit_is_found():
    def edit(workers):
        steps = workers["synthesis"]["steps"]
        del steps[index(steps, "release", "synthesis")]

    assert "synthesis is never released" in errors(edited(edit))


def test_opposite_lock_orders_are_found():
    def edit(workers):
        gpu, host = workers["gpu"]["steps"], workers["dealloc_host"]["steps"]
        at = index(gpu, "release", "gpu_mutex")
        gpu[at:at] = [{"acquire": "dealloc_host_mutex"}, {"release": "dealloc_host_mutex"}]
        at = index(host, "release", "dealloc_host_mutex")
        host[at:at] = [{"acquire": "gpu_mutex"}, {"release": "gpu_mutex"}]

    assert any("deadlock" in text for text in errors(edited(edit)))


def test_arms_that_end_differently_are_found():
    def edit(workers):
        steps = workers["gpu"]["steps"]
        branch = steps[index(steps, "try_alloc", "d_a")]
        branch["else"] = [{"alloc": ["d_a"]}]

    assert any("the arms end with different live buffers: d_bc" in text for text in errors(edited(edit)))


def test_unknown_names_are_found():
    def edit(workers):
        workers["gpu"]["steps"] += [{"alloc": ["nonsense"]}, {"acquire": "nobody"}, {"wait": "never"}]

    found = errors(edited(edit))
    assert "there is no buffer 'nonsense'" in found
    assert "there is no lock or permit 'nobody'" in found
    assert "waits for never, which is not recorded before" in found


def test_a_pipeline_survives_the_round_trip_through_plain_data():
    for phase in PHASES:
        pipeline = preset(phase)
        assert Pipeline.model_validate(pipeline.model_dump(by_alias=True, mode="json")) == pipeline

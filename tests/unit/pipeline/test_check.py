"""Each class of order fault that the static check must find, planted by one edit."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from cuzk.accuracy.library import load_calibration
from cuzk.errors import ScenarioError
from cuzk.model.policy import Policy
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.check import check
from cuzk.pipeline.presets import PRESETS, build, preset_policy
from cuzk.pipeline.program import Program, bind
from cuzk.pipeline.steps import Pipeline

BASE = load_scenario(Path(__file__).parents[3] / "scenarios" / "pw12.yaml")
STAND_ALONE = BASE.model_copy(update={"calibration": load_calibration("h200-supraseal")})

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


def preset(phase: str, **options: Any) -> Program:
    base = STAND_ALONE if phase.startswith("supraseal") else BASE
    return bind(base.model_copy(update={"pipeline": phase, "policy": Policy.model_validate(options)}))


def errors(program: Program) -> list[str]:
    return [f.message for f in check(program) if f.severity == "error"]


def warnings(program: Program) -> list[str]:
    return [f.message for f in check(program) if f.severity == "warning"]


@pytest.mark.parametrize("phase", PRESETS)
def test_presets_have_no_errors(phase):
    assert errors(preset(phase)) == []


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(OPTIONS, 2)))
def test_every_pair_of_options_compiles_to_a_sound_pipeline(first, second):
    for one, two in itertools.product(OPTIONS[first], OPTIONS[second]):
        for phase in ("phase7", "phase12"):
            assert errors(preset(phase, **{first: one, second: two})) == [], (phase, one, two)


@pytest.mark.parametrize("first", OPTIONS)
def test_options_of_our_own_pipeline_are_sound_or_refused_in_words(first):
    for second in OPTIONS:
        for one, two in itertools.product(OPTIONS[first], OPTIONS[second]):
            if first < second:
                try:
                    program = preset("own", **{first: one, second: two})
                except ScenarioError as refused:
                    assert "needs" in str(refused) or "lie behind" in str(refused), refused
                else:
                    assert errors(program) == [], (one, two)


def edited(edit) -> Program:
    data = preset("phase12").pipeline.model_dump(mode="json", by_alias=True, exclude_none=True)
    edit(data["workers"])
    return bind(BASE.with_pipeline(data))


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


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"alloc": ["d_bx"]}, "there is no buffer 'd_bx'; did you mean 'd_bc'"),
        ({"acquire": "gpu_mutx"}, "there is no lock or permit 'gpu_mutx'; did you mean 'gpu_mutex'"),
        ({"put": "synthesised"}, "there is no channel 'synthesised'; did you mean 'synthesized'"),
        ({"spawn": "finalizer"}, "there is no worker 'finalizer'; did you mean 'finaliser'"),
        ({"trim": "vrm:0"}, "there is no pool 'vrm:0'; did you mean 'vram:0'"),
        ({"run": "msm_h", "at": "cpu", "on": "compute"}, "a stream is the GPU's"),
        ({"run": "msm_h", "reads": {"srz": "96*h"}}, "there is no buffer 'srz'; did you mean 'srs'"),
    ],
)
def test_what_does_not_exist_is_refused_where_it_stands(step, message):
    def edit(workers):
        workers["gpu"]["steps"].append(step)

    with pytest.raises(ScenarioError, match=r"pipeline\.workers\.gpu\.steps\.\d+: .*" + message):
        edited(edit)


def test_an_event_that_is_not_recorded_is_found():
    def edit(workers):
        workers["gpu"]["steps"] += [{"wait": "never"}]

    assert "waits for never, which is not recorded before" in errors(edited(edit))


def test_a_pipeline_survives_the_round_trip_through_plain_data():
    for name in PRESETS:
        pipeline = build(name, preset_policy(name, Policy()))
        assert Pipeline.model_validate(pipeline.model_dump(by_alias=True, mode="json")) == pipeline

"""Partitions (or whole proofs) through synthesis, a GPU worker and a finaliser, as steps from a fully resolved policy.

Each order-sensitive option of the policy moves, adds or removes lines here and nowhere else; where a step runs and what it
reads stands in the step. Sources: the phases of the reference system as described in docs/pipeline.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuzk.model.policy import Policy
from cuzk.pipeline.steps import Pipeline

Steps = list[dict[str, Any]]
ABC = ["a", "b", "c"]
HOST_SPLITS = ["bitmaps", "tails"]
KEY_READS = {
    "msm_h": {"srs": "96*h"},
    "batch_add": {"srs": "96*(l + a + b_g1)"},
    "tail_msm": {"srs": "96*(tail_l + tail_a + tail_b)"},
    "b_g2_msm": {"srs": "192*b_g2"},
}
"""The bytes of the key that each sum reads: whole lists for dense scalars and for bitmaps, single points for tails."""
MATRICES = {"pce": "pce_template if matrices_template else pce"}
SPAWN_B_G2: Steps = [{"spawn": "b_g2", "as": "b_g2"}]


def _on_gpu(step: str) -> dict[str, Any]:
    return {"run": step, "at": "gpu"}


def partition_pipeline(
    name: str,
    policy: Policy,
    buffers: dict[str, Any],
    *,
    whole: bool = False,
    whole_call: bool = False,
    trims: bool = True,
    other_workers: dict[str, Any] | None = None,
    other_locks: dict[str, Any] | None = None,
) -> Pipeline:
    """The workers, locks, permits and channels under `policy` (no option may be open) around `buffers`.

    `whole`: ten circuits are synthesised and proved together; `whole_call`: the lock covers the whole call; `trims`: the device
    pool gives its cache back before each pre-stage; `other_workers`, `other_locks`: those that a preset has in place of, or
    beside, the usual ones.
    """
    vectors = ABC[:2] if policy.quotient == "c-free" else ABC
    workers: dict[str, Any] = {
        "synthesis": {"start": "proof" if whole else "partition", "steps": _synthesis(policy, vectors, whole)},
        "gpu": {"start": "pool", "per": "gpu", "count": "gw", "steps": _gpu_worker(policy, vectors, whole, whole_call, trims)},
    }
    if policy.prep_msm == "cpu":
        workers["prep"] = {"start": "spawned", "steps": _prep(policy)}
    if policy.b_g2_msm == "cpu":
        workers["b_g2"] = {"start": "spawned", "steps": _b_g2()}
    if policy.prove_api == "split":
        workers["finaliser"] = {"start": "spawned", "steps": _finish(policy, vectors)}
    for path in _paths(policy):
        if _dealloc_mode(policy, path) != "inline":
            workers[f"dealloc_{path}"] = {"start": "spawned", "steps": _dealloc(path, policy, vectors)}
    return Pipeline.model_validate({
        "name": name, "preset": name,
        "buffers": buffers,
        "locks": _locks(policy) | (other_locks or {}),
        "permits": _permits(policy),
        "channels": {"synthesized": {"capacity": str(policy.channel_capacity)}},
        "workers": workers | (other_workers or {}),
    })  # fmt: skip


def _locks(policy: Policy) -> dict[str, Any]:
    names = ["memory_mutex", "compute_mutex"] if policy.gpu_locks == "compute+memory" else ["gpu_mutex"]
    locks: dict[str, Any] = {name: {"per": "gpu", "order": policy.lock_order} for name in names}
    for path in _paths(policy):
        if _dealloc_mode(policy, path) == "async-serialised":
            locks[f"dealloc_{path}_mutex"] = {"per": "host"}
    return locks


def _permits(policy: Policy) -> dict[str, Any]:
    permits: dict[str, Any] = {"synthesis": {"count": "pw", "order": policy.order}}
    if policy.admission == "byte-budget":
        permits["byte_budget"] = {"count": "budget_bytes", "order": policy.order}
    if policy.admission == "queue-target":
        permits["queue_target"] = {"count": "queue_target", "order": policy.order}
    return permits


def _synthesis(policy: Policy, vectors: list[str], whole: bool) -> Steps:
    budget: Steps = []
    if policy.admission == "byte-budget":
        budget = [{"acquire": "byte_budget", "n": "budget_partition_bytes"}]
    if policy.admission == "queue-target":
        budget = [{"acquire": "queue_target"}]
    steps: Steps = [{"alloc": ["request"]}, *budget, {"acquire": "synthesis"}, {"alloc": ["aux", "densities"]}]
    on_cpu = policy.matvec == "cpu"
    if whole:
        steps += [*([{"alloc": vectors}] if on_cpu else []), {"run": "synthesis"}]
    else:
        steps += [{"run": "witness"}]
        if on_cpu:
            steps += [{"alloc": ["witness_copy", *vectors]}, {"run": "matvec", "reads": MATRICES}, {"free": ["witness_copy"]}]
    give_back: Steps = [{"release": "synthesis"}]
    send: Steps = [{"put": "synthesized"}]
    if policy.permit_returns == "after-synthesis":
        return steps + give_back + send
    # a set that was put belongs to the channel: what it claimed is released on its behalf
    return steps + send + (give_back if policy.permit_returns == "after-send" else [])


def _gpu_worker(policy: Policy, vectors: list[str], whole: bool, whole_call: bool, trims: bool) -> Steps:
    two_locks = policy.gpu_locks == "compute+memory"
    kernels_lock = "compute_mutex" if two_locks else "gpu_mutex"
    pins = policy.prestage != "off"
    take: Steps = [{"get": "synthesized"}]
    if policy.permit_returns == "after-pickup":
        take.append({"release": "synthesis"})
    if policy.admission == "queue-target":
        take.append({"release": "queue_target"})
    pin: Steps = [{"run": "pin_pages"}] if pins else []
    prep: Steps = [{"spawn": "prep", "as": "prep"}] if policy.prep_msm == "cpu" else []
    lock: Steps = [{"acquire": kernels_lock}]
    if policy.permit_returns == "after-gpu-start":
        lock.append({"release": "synthesis"})
    stage = _prestage(policy, vectors, trims)
    if two_locks:
        # without room ahead of its turn, a worker allocates under the compute lock, as without pre-staging
        change: Steps = [{"release": "memory_mutex"}, *lock]
        before = [{"acquire": "memory_mutex"}, *_prestage(policy, vectors, trims, after_fast=change, before_slow=change)]
    elif policy.prestage == "before-mutex":
        before = [*stage, *lock]
    else:
        before = [*lock, *stage]
    unlock: Steps = [{"release": kernels_lock}]
    unpin: Steps = [{"run": "unpin_pages"}] if pins else []
    after_unlock = unlock + unpin if policy.unpin == "after-unlock" else unpin + unlock
    free_d_bc: Steps = [{"run": "device_free"}, {"free": ["d_bc"]}]
    if policy.free_d_bc == "after-unlock":
        after_unlock = after_unlock + free_d_bc
    kernels = _kernels(policy, free_d_bc, whole)
    finish: Steps = _finish(policy, vectors)
    if policy.prove_api == "split":
        early: Steps = [{"free": vectors}] if policy.free_abc == "after-start" and policy.matvec == "cpu" else []
        finish = [*early, {"spawn": "finaliser", "moves": True}]
    if whole_call:
        done = next((i for i, step in enumerate(finish) if "complete" in step), 0)
        return [*take, *pin, *lock, *prep, *stage, *kernels, *finish[:done], *after_unlock, *finish[done:]]
    return [*take, *pin, *prep, *before, *kernels, *after_unlock, *finish]


def _prestage(
    policy: Policy,
    vectors: list[str],
    trims: bool,
    after_fast: Sequence[dict[str, Any]] = (),
    before_slow: Sequence[dict[str, Any]] = (),
) -> Steps:
    """Device buffers and uploads. The slow arm allocates the same buffers and uploads pageable memory, blocking."""
    parts = [("d_a", ["a"], "a_uploaded"), ("d_bc", vectors[1:], "bc_uploaded")]
    wanted = ["d_a", "d_bc"]
    if policy.matvec == "gpu":
        parts = []
    if "gpu" in (policy.matvec, policy.prep_msm):
        parts = [("d_w", ["aux"], "w_uploaded"), *parts]
        wanted = ["d_w", *wanted]
    slow: Steps = [*before_slow, {"alloc": wanted}]
    slow += [{"copy": device, "from": hosts, "cost": "upload_pageable"} for device, hosts, _ in parts]
    if policy.prestage == "off":
        return slow
    fast: Steps = [{"run": "prestage_setup"}]
    for device, hosts, event in parts:
        fast += [{"copy": device, "from": hosts, "on": "copy"}, {"record": event, "on": "copy"}]
    fast += after_fast
    guard = f"{policy.prestage_guard or 0}B"
    # where all buffers come from one pool, what it keeps serves them, and to give it back first would wait for the device
    trim: Steps = [{"trim": "vram:$gpu"}] if trims else []
    return [
        *trim,
        {"try_alloc": wanted, "guard": guard, "then": fast, "else": slow},
        *[{"stream_wait": event, "on": "compute"} for _, _, event in parts],
    ]


def _kernels(policy: Policy, free_d_bc: Steps, whole: bool) -> Steps:
    msm_h: dict[str, Any] = {
        **_on_gpu("msm_h"), "on": "compute", "reads": KEY_READS["msm_h"], "uses": ["d_a", "buckets", "msm_h_temps"],
    }  # fmt: skip
    if policy.msm_sync == "each-batch":
        msm_h["cost"] = "msm_h_each_batch"
    on_device: dict[str, Any] = {"on": "compute", "uses": ["d_a", "d_bc"]}
    steps: Steps = []
    if policy.prep_msm == "gpu":
        steps = [
            {"alloc": ["d_splits"]},
            {**_on_gpu("prep_msm"), "on": "compute", "uses": ["d_w", "d_splits"]},
        ]
    if policy.matvec == "gpu":
        reads = {} if whole else {"reads": MATRICES}
        steps += [{**_on_gpu("matvec"), "on": "compute", **reads, "uses": ["d_w", "d_a", "d_bc"]}]
    if steps:
        steps += [{"record": "rows_done", "on": "compute"}, {"wait": "rows_done"}, {"free": ["d_w"]}]
    if policy.prep_msm == "gpu" and policy.b_g2_msm == "cpu":
        steps += [{"alloc": HOST_SPLITS}, *SPAWN_B_G2]  # the split comes back for it
    steps += [{**_on_gpu("ntt_h"), **on_device}, {"record": "ntt_done", "on": "compute"}, {"wait": "ntt_done"}]
    if policy.free_d_bc == "after-ntt":
        steps += free_d_bc
    steps += [
        {"alloc": ["buckets", "msm_h_temps"]},
        msm_h, {"record": "msm_h_done", "on": "compute"}, {"wait": "msm_h_done"},
        {"free": ["msm_h_temps"]},
        # allocations and synchronisation that a lone worker hides beside prep_msm
        {"run": "gpu_overhead", "cost": "gpu_sync"},
        *([{"join": "prep"}] if policy.prep_msm == "cpu" else []),
        {"alloc": ["batch_add_temps"]}, {**_on_gpu("batch_add"), "reads": KEY_READS["batch_add"]}, {"free": ["batch_add_temps"]},
        {"alloc": ["tail_temps"]}, {**_on_gpu("tail_msm"), "reads": KEY_READS["tail_msm"]}, {"free": ["tail_temps"]},
    ]  # fmt: skip
    if policy.b_g2_msm == "gpu":
        b_g2 = {**_on_gpu("b_g2_msm"), "reads": KEY_READS["b_g2_msm"]}
        steps += [{"alloc": ["b_g2_temps"]}, b_g2, {"free": ["b_g2_temps"]}]
    steps += [{"free": ["buckets", "d_a", *(["d_splits"] if policy.prep_msm == "gpu" else [])]}]
    if policy.free_d_bc == "before-unlock":
        steps += free_d_bc
    # and what remains to be done under the lock once the device memory is given back
    steps += [{"run": "gpu_overhead"}]
    return steps


def _prep(policy: Policy) -> Steps:
    steps: Steps = [{"alloc": HOST_SPLITS}, {"run": "prep_msm"}]
    return steps + SPAWN_B_G2 if policy.b_g2_msm == "cpu" else steps


def _b_g2() -> Steps:
    return [{"alloc": ["b_g2_buckets"]}, {"run": "b_g2_msm", "reads": KEY_READS["b_g2_msm"]}, {"free": ["b_g2_buckets"]}]


def _finish(policy: Policy, vectors: list[str]) -> Steps:
    steps: Steps = [{"join": "b_g2"}] if policy.b_g2_msm == "cpu" else []
    steps += [{"run": "epilogue"}, {"complete": "partition"}]
    for path in _paths(policy):
        if _dealloc_mode(policy, path) == "inline":
            steps += _dealloc(path, policy, vectors)
        else:
            steps.append({"spawn": f"dealloc_{path}", "moves": True})
    return steps


def _paths(policy: Policy) -> tuple[str, ...]:
    """The deallocation paths: the native one is that of the split on the host."""
    return ("native", "host") if "cpu" in (policy.prep_msm, policy.b_g2_msm) else ("host",)


def _dealloc_mode(policy: Policy, path: str) -> str | None:
    return policy.dealloc_native if path == "native" else policy.dealloc_host


def _dealloc(path: str, policy: Policy, vectors: list[str]) -> Steps:
    mine = list(HOST_SPLITS) if path == "native" else ["aux", "densities", "request"]
    freed_early = policy.prove_api == "split" and policy.free_abc == "after-start"
    if path == "host" and policy.matvec == "cpu" and not freed_early:
        mine += vectors
    steps: Steps = [{"run": f"dealloc_{path}"}, {"free": mine}]
    if path == "host" and policy.admission == "byte-budget":
        steps.append({"release": "byte_budget"})
    if _dealloc_mode(policy, path) == "async-serialised":
        return [{"acquire": f"dealloc_{path}_mutex"}, *steps, {"release": f"dealloc_{path}_mutex"}]
    return steps

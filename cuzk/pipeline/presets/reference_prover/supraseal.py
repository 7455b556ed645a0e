"""The stand-alone reference prover (supraseal C2 over sppark) as steps: partitions arrive with their vectors, it proves.

No synthesis: a set is there when it arrives (`supraseal`: all read a few shared sets; `supraseal-own`: a source copies each
its own, pw of them at a time). The mutex barges: who has just unlocked often locks again before the waiter has woken.
Buffers are its formulas (docs/pipeline.md); windows, batches and strides of its MSM follow from the domain.
`prestage: off` stands for vectors in pageable memory, anything else for registered ones.
"""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy
from cuzk.pipeline.presets.partition import KEY_READS
from cuzk.pipeline.steps import Pipeline

Steps = list[dict[str, Any]]
ABC = ["a", "b", "c"]
BLOCK = 32 << 20
"""The stream-ordered pool takes device memory in blocks of this size."""
SMALL = 20 << 20
"""Small allocations of that pool beside those below: 19 to 20 MiB measured at each of three domains."""

_TOP = "ilog2(3*domain//2)"
_WINDOW = f"clamp({_TOP} - 8, 10, 18)"
_WINDOWS = f"ceil(255 / {_WINDOW})"
_BATCHES = f"max(1, 2**(max({_TOP}, {_WINDOW}) - {_WINDOW}) // 64)"
_STRIDE = f"(domain // {_BATCHES})"
_BUCKETS = f"196*{_WINDOWS}*2**({_WINDOW} - 1) + 192*8*sms"
"""Buckets of 192 bytes and a histogram of 4 each, and a row a multiprocessor."""
_POINTS = f"96*{_STRIDE}*(2 if {_BATCHES} > 1 else 1)"


def _blocks(size: str) -> str:
    return f"{BLOCK} * ceil(({size} + {SMALL}) / {BLOCK})"


BUFFERS: dict[str, Any] = {
    "srs": {"pool": "pinned", "size": "srs", "scope": "run"},
    "context": {"pool": "vram:$gpu", "size": "gpu_context + context_base + context_per_srs_byte*srs", "scope": "run"},
    "d_a": {"pool": "vram:$gpu", "size": "32*domain", "scope": "gpu"},
    # it looks at the card's total memory, not at what is free
    "d_bc": {"pool": "vram:$gpu", "size": _blocks("(64*domain if 96*domain < vram - 2**30 else 32*domain)"),
             "allocator": "cached"},
    "msm_h_temps": {"pool": "vram:$gpu", "size": _blocks(f"{_BUCKETS} + 32*{_STRIDE} + 4*{_WINDOWS}*{_STRIDE} + {_POINTS}"),
                    "allocator": "cached"},
    "batch_add_temps": {"pool": "vram:$gpu", "size": "2*96*(l // 8) + l // 8 + 8*192*sms"},
    "bitmaps": {"pool": "ram", "size": "4 * (domain // 8)", "touched_by": "prep_msm"},
    "tails": {"pool": "ram", "size": "128*tail_l + 128*tail_a + 320*tail_b", "touched_by": "prep_msm"},
}  # fmt: skip


def supraseal(name: str, policy: Policy) -> Pipeline:
    """The workers, buffers and locks under `policy` (no option may be open)."""
    own = name.endswith("-own")
    registered = policy.prestage != "off"
    buffers = dict(BUFFERS)
    if own:
        # registered vectors go back to a pool of such buffers, pageable ones to the system
        kept = "cached" if registered else "direct"
        buffers |= {v: {"pool": "ram", "size": "32*constraints", "allocator": kept, "touched_by": "copy_inputs"} for v in ABC}
        buffers["aux"] = {"pool": "ram", "size": "32*(aux + inputs)", "touched_by": "copy_inputs"}
    # the scan shares its memory bandwidth with the thread that copies pageable vectors
    prep = {"run": "prep_msm"} if registered else {"run": "prep_msm", "cost": "prep_msm_pageable"}
    workers: dict[str, Any] = {
        "arrival": {"start": "partition", "steps": _arrival(own)},
        "gpu": {"start": "pool", "per": "gpu", "count": "gw", "steps": _gpu_worker(policy, own, registered)},
        "prep": {"start": "spawned", "steps": [
            {"alloc": ["bitmaps", "tails"]}, prep, {"spawn": "b_g2", "as": "b_g2"},
        ]},
        "b_g2": {"start": "spawned", "steps": [{"run": "b_g2_msm", "reads": KEY_READS["b_g2_msm"]}]},
        "dealloc": {"start": "spawned", "steps": [{"run": "dealloc_native"}, {"free": ["bitmaps", "tails"]}]},
    }  # fmt: skip
    if policy.prove_api == "split":
        workers["finaliser"] = {"start": "spawned", "steps": _finish(own)}
    return Pipeline.model_validate({
        "name": name, "preset": name, "buffers": buffers, "locks": {"gpu_mutex": {"per": "gpu", "order": policy.lock_order}},
        "permits": {"source": {"count": "pw"}} if own else {}, "channels": {"ready": {}}, "workers": workers,
        "reclaims": ["vram:$gpu"],
    })  # fmt: skip


def _arrival(own: bool) -> Steps:
    if not own:
        return [{"put": "ready"}]
    copy: Steps = [{"alloc": ["aux", *ABC]}, {"run": "copy_inputs"}]
    return [{"acquire": "source"}, *copy, {"release": "source"}, {"put": "ready"}]


def _gpu_worker(policy: Policy, own: bool, registered: bool) -> Steps:
    ntt_h: dict[str, Any] = {"run": "ntt_h", "at": "gpu"}
    if not registered:
        ntt_h["cost"] = "ntt_h_pageable"
    steps: Steps = [
        {"get": "ready"},
        {"spawn": "prep", "as": "prep"},
        {"acquire": "gpu_mutex"},
        {"alloc": ["d_a", "d_bc"]}, ntt_h, {"free": ["d_bc"]},
        {"alloc": ["msm_h_temps"]}, {"run": "msm_h", "at": "gpu", "reads": KEY_READS["msm_h"]}, {"free": ["msm_h_temps"]},
        {"join": "prep"},
        {"alloc": ["batch_add_temps"]}, {"run": "batch_add", "at": "gpu", "reads": KEY_READS["batch_add"]},
        {"free": ["batch_add_temps"]},
        {"run": "tail_msm", "at": "gpu", "reads": KEY_READS["tail_msm"]},
        {"release": "gpu_mutex"},
        # from here to its next lock a worker takes about as long as a waiter takes to wake: the mutex goes to either
        {"run": "gpu_overhead"},
    ]  # fmt: skip
    if own:
        steps.append({"free": ABC})
    return [*steps, {"spawn": "finaliser", "moves": True}] if policy.prove_api == "split" else steps + _finish(own)


def _finish(own: bool) -> Steps:
    steps: Steps = [{"join": "b_g2"}, {"run": "epilogue"}, {"complete": "partition"}]
    if own:
        steps.append({"free": ["aux"]})
    return [*steps, {"spawn": "dealloc", "moves": True}]

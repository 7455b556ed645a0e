"""The reference system's history: its phases, and the stand-alone prover, as values of the policy.

Scenarios take from here what they leave open.
"""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy
from cuzk.pipeline.presets.partition import ABC, partition_pipeline
from cuzk.pipeline.presets.reference_prover.buffers import buffers
from cuzk.pipeline.steps import Pipeline

_COMMON: dict[str, Any] = {
    "gt": 192, "prestage_guard": "512MiB", "unpin": "after-unlock", "gpu_locks": "one", "admission": "permits",
    "order": "fifo", "srs": "pinned", "pce": "pageable", "b_g2_msm": "cpu", "lock_order": "fifo", "quotient": "bellman",
    "matrices": "csr", "witness": "field", "matvec": "cpu", "prep_msm": "cpu", "key_tables": "none",
    "prove_api": "monolithic", "dealloc": "async",
    "permit_returns": "after-synthesis", "channel_capacity": 1, "free_abc": "after-finish",
    "budget_margin": "5GiB", "queue_target": 2, "j": 1,
}  # fmt: skip
_WHOLE = {"pw": 1, "gw": 1, "prestage": "off", "free_d_bc": "before-unlock", "msm_sync": "each-batch"}
_BLOCKING = {"prestage": "off", "free_d_bc": "before-unlock", "msm_sync": "each-batch"}
_PRESTAGED = {"prestage": "inside-mutex", "free_d_bc": "after-ntt", "msm_sync": "deferred"}
_PHASE11 = {**_PRESTAGED, "pw": 10, "gw": 2, "gt": 32, "dealloc": "async-serialised"}
_STAND_ALONE = {"pw": 1, "gw": 1, "gt": 16, "prove_api": "split", "lock_order": "barging"}

WHOLE_CALLS = ("phase2", "phase7")
"""Phases that hold the lock around the whole call."""

PHASES: dict[str, dict[str, Any]] = {
    "phase2": {**_COMMON, **_WHOLE},
    "phase7": {**_COMMON, **_BLOCKING, "pw": 20, "gw": 1},
    "phase8": {**_COMMON, **_BLOCKING, "pw": 10, "gw": 2},
    "phase9": {**_COMMON, **_PRESTAGED, "pw": 10, "gw": 2},
    "phase10": {**_COMMON, **_PRESTAGED, "pw": 10, "gw": 3, "gpu_locks": "compute+memory"},
    "phase11": {**_COMMON, **_PHASE11},
    "phase12": {**_COMMON, **_PHASE11, "prove_api": "split", "permit_returns": "after-send",
                "channel_capacity": "pw", "free_abc": "after-start"},
    "phase12-prefix": {**_COMMON, **_PHASE11, "prove_api": "split"},
    "supraseal": {**_COMMON, **_PRESTAGED, **_STAND_ALONE},
    "supraseal-own": {**_COMMON, **_PRESTAGED, **_STAND_ALONE, "free_abc": "after-start"},
}  # fmt: skip


def phase(name: str, policy: Policy) -> Pipeline:
    """The workers, buffers and locks of one phase under `policy` (no option may be open)."""
    whole = name == "phase2"
    vectors = ABC[:2] if policy.quotient == "c-free" else ABC
    return partition_pipeline(name, policy, buffers(policy, vectors, whole), whole=whole, whole_call=name in WHOLE_CALLS)

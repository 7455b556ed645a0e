"""The buffers of the reference prover's phases as formulas over the circuit's counts."""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy

DEVICE = "vram:$gpu"
SCRATCH = "2**21 * sms"
"""The bytes that kernels need however small the circuit: room for each multiprocessor's batch."""
PCE = "pce_template if matrices_template else pce"


def buffers(policy: Policy, vectors: list[str], whole: bool) -> dict[str, Any]:
    """Buffer -> its pool, size and scope, as data for the pipeline."""
    device = DEVICE
    srs_pool = {"vram": device, "pinned": "pinned", "pageable": "ram", "mmap": "ram", "split": "pinned"}[str(policy.srs)]
    pce_pool = device if policy.pce == "vram" else "ram"
    d_bc = "32*domain" if policy.quotient == "c-free" else "64*domain"
    assigned_by = "synthesis" if whole else "witness"
    buffers: dict[str, Any] = {
        "srs": {"pool": srs_pool, "size": "srs", "scope": "run"},
        "context": {"pool": device, "size": "gpu_context", "scope": "run"},
        "aux": {"pool": "ram", "size": "circuits * (aux_bits if witness_bits else 32*aux)", "touched_by": assigned_by},
        # vanilla proofs, from admission on: 50 to 200 MB are documented for ten partitions of 130 million constraints,
        # serialised; parsed they take the upper end
        "request": {"pool": "ram", "size": "0.1535 * circuits * constraints"},
        "densities": {"pool": "ram", "size": "circuits * 3 * (aux // 8)"},
        "bitmaps": {"pool": "ram", "size": "circuits * 4 * (domain // 8)"},
        "tails": {"pool": "ram", "size": "circuits * (128*tail_l + 128*tail_a + 320*tail_b)"},
        "d_a": {"pool": device, "size": "32*domain"},
        "d_bc": {"pool": device, "size": d_bc},
        "buckets": {"pool": device, "size": "192*15*2**17 // 2"},
        "msm_h_temps": {"pool": device, "size": f"max(12.8*domain, {SCRATCH})"},
        "batch_add_temps": {"pool": device, "size": f"max(8*domain, {SCRATCH})"},
        "tail_temps": {"pool": device, "size": f"max(9.6*domain, {SCRATCH})"},
    }
    if not whole:
        buffers["pce"] = {"pool": pce_pool, "size": PCE, "scope": "run"}
        buffers["witness_copy"] = {"pool": "ram", "size": "circuits * 32*aux"}
    touched_by = "synthesis" if whole else "matvec"
    if policy.matvec == "cpu":
        for vector in vectors:
            buffers[vector] = {"pool": "ram", "size": "circuits * 32*constraints", "touched_by": touched_by}
    if policy.b_g2_msm == "cpu":
        buffers["b_g2_buckets"] = {"pool": "ram", "size": "6e6 * gt"}
    if policy.prep_msm == "gpu":
        buffers["d_splits"] = {"pool": device, "size": "4 * (domain // 8) + 36 * (tail_l + tail_a + tail_b)"}
    if "gpu" in (policy.matvec, policy.prep_msm):
        buffers["d_w"] = {"pool": device, "size": "aux_bits if witness_bits else 32*variables"}
    if policy.b_g2_msm == "gpu":
        buffers["b_g2_temps"] = {"pool": device, "size": f"max(9.6*domain, {SCRATCH})"}
    return buffers

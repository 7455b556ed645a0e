"""The buffers of a phase: what each prover's implementation allocates, as formulas over the circuit's counts.

`policy.prover` says whose: the reference system's, or cuzk's own executor, which keeps less beside the vectors.
"""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy

DEVICE = "vram:$gpu"
_SCRATCH = "2**21 * sms"
"""What kernels need however small the circuit: room for each multiprocessor's batch."""
_FULL_BATCH = "3*2**20 * sms"
"""The same where a batch is full."""
_PAIR_SUMS = "key_tables_pair_sums * 48*(l + a + b_g1 + 2*b_g2*b_g2_msm_gpu)"
"""Half as many points again behind the lists that batch additions read."""
_LEFT = "(vram - gpu_context - srs_vram*srs - gw*96*domain)"
_ROOM = f"min({_LEFT} / 2, ({_LEFT} - {_PAIR_SUMS}) * 2/3)"
"""Half of what key and vectors leave of a GPU: where more windows are filled at once an MSM is up to a third faster. Sums of
pairs come out of the other half first: a third of what they leave is enough for the rest."""
_TAIL = "(full_size_share*variables + 1024)"
"""Scalars that are neither 0 nor 1, in any query: no more than there are among all wires."""
_PCE = "pce_template if matrices_template else pce"
_ASSIGNMENT = "variables/8 + 32*(full_size_share*variables + inputs) + 2**16 if witness_bits else 32*variables"
"""The assignment of one circuit: bits, and field elements beside them."""
_OWN: dict[str, str] = {
    "aux": f"circuits * ({_ASSIGNMENT})",
    "d_w": _ASSIGNMENT,
    # on a GPU that splits the queries itself: wire numbers of two lists, and which points of the third are infinity
    "srs": f"srs + {_PAIR_SUMS} + prep_msm_gpu * (4*(a + b_g1) + variables/8)",
    # and where the field elements of a template are, by wire
    "pce": f"({_PCE}) + prep_msm_gpu * matrices_template * (3*variables/16 + 2**16)",
    "request": "0B",
    "densities": "0B",
    # the Montgomery form of the witness, while the rows are made
    "witness_copy": "circuits * 32*variables",
    # a bitmap a query; of the tails the row numbers and the scalars, bases stay in the key
    "bitmaps": "circuits * (l + a + b_g1) / 8",
    "tails": "circuits * 40 * (tail_l + tail_a + tail_b)",
    # bitmaps of four queries and of the rows in work; row numbers and scalars of tails; the scan of a witness of field elements
    "d_splits": f"variables + {_TAIL} * (144 if witness_bits else 180) + 2**17",
    "buckets": "0B",
    # what the kernels are granted: they cut their work to fit it
    "msm_h_temps": f"max(72*domain, {_SCRATCH}, min(800*domain, {_ROOM}))",
    "batch_add_temps": f"max(60*ones_share*variables + variables/4 + {_FULL_BATCH} if prep_msm_gpu else 30*domain, {_SCRATCH})",
    "tail_temps": f"max(20*domain, {_SCRATCH})",
    "b_g2_temps": f"max((30 if prep_msm_gpu else 60)*domain, {_SCRATCH})",
    # points in work, scratch of each thread, bucket sets (cuzk.native.msm_g2)
    "b_g2_buckets": "2 * min(2**24, 128*b_g2) + 2**22 * min(threads, b_g2 / 4096) + 4096 * min(2**15, b_g2 / 32)",
}
"""cuzk's own sizes where they differ."""


def buffers(policy: Policy, vectors: list[str], whole: bool) -> dict[str, Any]:
    """Buffer -> its pool, size and scope, as data for the pipeline."""
    found = _reference(policy, vectors, whole)
    if policy.prover == "cuzk":
        for name, size in _OWN.items():
            if name in found:
                found[name] = {**found[name], "size": size}
    return found


def _reference(policy: Policy, vectors: list[str], whole: bool) -> dict[str, Any]:
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
        "msm_h_temps": {"pool": device, "size": f"max(12.8*domain, {_SCRATCH})"},
        "batch_add_temps": {"pool": device, "size": f"max(8*domain, {_SCRATCH})"},
        "tail_temps": {"pool": device, "size": f"max(9.6*domain, {_SCRATCH})"},
    }
    if not whole:
        buffers["pce"] = {"pool": pce_pool, "size": _PCE, "scope": "run"}
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
        buffers["b_g2_temps"] = {"pool": device, "size": f"max(9.6*domain, {_SCRATCH})"}
    return buffers

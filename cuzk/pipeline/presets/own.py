"""The pipeline of cuzk's own executor: partition by partition, on the CPU or a GPU, with its own buffers.

Its steps are those of a split call (partition.py), wherever the policy's options put them; its buffers keep less beside the
vectors than the reference prover's, and come from one pool of the driver, so nothing is trimmed between partitions.
"""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy
from cuzk.pipeline.presets.partition import ABC, partition_pipeline
from cuzk.pipeline.presets.reference_prover.buffers import PCE, SCRATCH
from cuzk.pipeline.presets.reference_prover.buffers import buffers as reference_buffers
from cuzk.pipeline.presets.reference_prover.phases import PHASES
from cuzk.pipeline.presets.streamed import streamed_buffers, streamed_workers, streams
from cuzk.pipeline.steps import Pipeline

OWN: dict[str, Any] = dict(PHASES["phase12"])
"""The options where the policy leaves them open."""
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
_ASSIGNMENT = "variables/8 + 32*(full_size_share*variables + inputs) + 2**16 if witness_bits else 32*variables"
"""The assignment of one circuit: bits, and field elements beside them."""
SIZES: dict[str, str] = {
    "aux": f"circuits * ({_ASSIGNMENT})",
    "d_w": _ASSIGNMENT,
    # on a GPU that splits the queries itself: wire numbers of two lists, and which points of the third are infinity
    "srs": f"srs + {_PAIR_SUMS} + prep_msm_gpu * (4*(a + b_g1) + variables/8)",
    # and where the field elements of a template are, by wire
    "pce": f"({PCE}) + prep_msm_gpu * matrices_template * (3*variables/16 + 2**16)",
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
    "msm_h_temps": f"max(72*domain, {SCRATCH}, min(800*domain, {_ROOM}))",
    "batch_add_temps": f"max(60*ones_share*variables + variables/4 + {_FULL_BATCH} if prep_msm_gpu else 30*domain, {SCRATCH})",
    "tail_temps": f"max(20*domain, {SCRATCH})",
    "b_g2_temps": f"max((30 if prep_msm_gpu else 60)*domain, {SCRATCH})",
    # points in work, scratch of each thread, bucket sets (cuzk.native.msm_g2)
    "b_g2_buckets": "2 * min(2**24, 128*b_g2) + 2**22 * min(threads, b_g2 / 4096) + 4096 * min(2**15, b_g2 / 32)",
}
"""Sizes of cuzk's own executor where they differ from the reference prover's."""


def own(name: str, policy: Policy) -> Pipeline:
    """The workers, buffers and locks under `policy` (no option may be open)."""
    vectors = ABC[:2] if policy.quotient == "c-free" else ABC
    buffers = reference_buffers(policy, vectors, whole=False)
    for buffer, size in SIZES.items():
        if buffer in buffers:
            buffers[buffer] = {**buffers[buffer], "size": size}
    if not streams(policy):
        return partition_pipeline(name, policy, buffers, trims=False)
    return partition_pipeline(
        name,
        policy,
        streamed_buffers(policy, buffers),
        trims=False,
        other_workers=streamed_workers(policy, [{"spawn": "finaliser", "moves": True}]),
        other_locks={"tails_mutex": {"per": "gpu", "order": policy.lock_order}},
    )

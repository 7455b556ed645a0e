"""The GPU worker of cuzk's own executor where the key does not stay on the GPU but passes by in chunks (policy.srs: pinned,
split, pageable or mmap, with prep_msm, matvec and b_g2_msm on the GPU).

A set splits its witness, then does two things at once: its quotient and the MSM over h, one set at a time, and a ride on the
lists that the witness multiplies, with whoever else is riding (gw sets at most).
"""

from __future__ import annotations

from typing import Any

from cuzk.model.policy import Policy
from cuzk.pipeline.presets.partition import MATRICES

Steps = list[dict[str, Any]]

TAIL = "(full_size_share*variables + 1024)"
"""Scalars that are neither 0 nor 1, in any query: no more than there are among all wires."""
ROWS = "4*(a + b_g1) + variables/8 + 2**16"
"""Wire numbers of two lists, and which points of the third are infinity."""
TAILS = f"96*min({TAIL}, l) + 96*min({TAIL}, a) + 288*min({TAIL}, b_g1) + 2**23"
"""Points of the tails, and what is left of each chunk's sum: 62 KB for a chunk of each list."""
TAIL_TEMPS = f"max(2**21 * sms, 192*{TAIL})"
RING = "min((6*2**30 if vram > 20*2**30 else 3.05*2**30 if vram > 14*2**30 else 1.55*2**30), 48*domain + 2**21*sms)"
"""Places for chunks and what who rides needs: chunks of 2^24 points of h (2^23 and 2^22 on small cards)."""
SPLITS = f"variables + {TAIL} * (144 if witness_bits else 180) + 2**17"
_FIXED = (
    f"gpu_context + {ROWS} + {RING} + {TAIL_TEMPS} + gw*({SPLITS} + {TAILS}) + 64*domain/16"
    " + (pce_template if matrices_template else pce)*pce_vram"
)
_LEFT = f"(0.985*vram - ({_FIXED}) - 32*domain)"
"""Beside the vectors of h: for the other half of the quotient first, for the MSM's temporaries then."""
MSM = f"max(2**21 * sms, (0 if gw < 2 else 32*domain), min(72*domain, {_LEFT}))"
KEY = f"min(srs, max(0, {_LEFT} - {MSM}))"
"""Points that stay, where the policy is to split the key."""


H_BYTES, OTHERS_BYTES = "96*h", "(96*(l + a + b_g1) + 192*b_g2)"
"""Points that pass by for each set, and for all that ride."""


def streams(policy: Policy) -> bool:
    """Whether the key passes by."""
    return policy.prep_msm == "gpu" and policy.srs != "vram"


def streamed_buffers(policy: Policy, buffers: dict[str, Any]) -> dict[str, Any]:
    """The buffers of a set, with those of a key that passes by."""
    device = "vram:$gpu"
    where = "pinned" if policy.srs in ("pinned", "split") else "ram"
    found = {name: spec for name, spec in buffers.items() if name not in ("batch_add_temps", "b_g2_temps")}
    return found | {
        "srs": {"pool": where, "size": "srs", "scope": "run"},
        "key_rows": {"pool": device, "size": ROWS, "scope": "run"},
        "key_ring": {"pool": device, "size": f"{RING} + {KEY}" if policy.srs == "split" else RING, "scope": "run"},
        "d_splits": {"pool": device, "size": SPLITS},
        "d_tails": {"pool": device, "size": TAILS},
        "tail_temps": {"pool": device, "size": TAIL_TEMPS},
        "msm_h_temps": {"pool": device, "size": MSM},
        # as large as what takes its place: then a pool of the driver gives the same memory again
        "d_bc": {"pool": device, "size": f"max({32 if policy.quotient == 'c-free' else 64}*domain, {MSM})"},
    }


def streamed_workers(policy: Policy, finish: Steps) -> dict[str, Any]:
    """The worker of a GPU, `gw` of them, and the ride of a set."""
    compute = {"on": "compute"}
    split = policy.srs == "split"  # what stays is h's first
    h_bytes = f"max(0, {H_BYTES} - {KEY})" if split else H_BYTES
    others_bytes = f"max(0, {OTHERS_BYTES} - max(0, {KEY} - {H_BYTES}))" if split else OTHERS_BYTES
    spawn: Steps = [{"spawn": "ride", "as": "ride"}]
    late = policy.gw == 1  # a card that holds one set has no room for a ride beside both halves of its quotient
    quotient: Steps = [
        {"acquire": "gpu_mutex"},
        {"alloc": ["d_a", "d_bc"]},
        {"run": "matvec", "at": "gpu", **compute, "reads": MATRICES, "uses": ["d_w", "d_a", "d_bc"]},
        {"record": "rows_done", **compute}, {"wait": "rows_done"}, {"free": ["d_w"]},
        {"run": "ntt_h", "at": "gpu", **compute, "uses": ["d_a", "d_bc"]},
        {"record": "ntt_done", **compute}, {"wait": "ntt_done"}, {"free": ["d_bc"]},
        *(spawn if late else []),
        {"alloc": ["msm_h_temps"]},
        {"run": "msm_h", "at": "gpu", **compute, "reads": {"srs": h_bytes}, "overlaps": True, "uses": ["d_a", "msm_h_temps"]},
        {"record": "msm_h_done", **compute}, {"wait": "msm_h_done"},
        {"free": ["msm_h_temps", "d_a"]},
        {"release": "gpu_mutex"},
    ]  # fmt: skip
    steps: Steps = [
        {"get": "synthesized"},
        {"alloc": ["d_w"]},
        {"run": "pin_pages"},
        {"copy": "d_w", "from": ["aux"], "on": "copy"}, {"record": "w_uploaded", "on": "copy"},
        {"stream_wait": "w_uploaded", **compute},
        {"alloc": ["d_splits"]},
        {"run": "prep_msm", "at": "gpu", **compute, "uses": ["d_w", "d_splits"]},
        {"record": "split_done", **compute}, {"wait": "split_done"},
        {"run": "unpin_pages"},
        *([] if late else spawn),
        *quotient,
        {"join": "ride"},
        {"free": ["d_splits"]},
        *finish,
    ]  # fmt: skip
    ride: Steps = [
        {"alloc": ["d_tails"]},
        {"run": "batch_add", "at": "gpu", "reads": {"srs": others_bytes}, "overlaps": True},
        {"acquire": "tails_mutex"},
        {"alloc": ["tail_temps"]},
        {"run": "tail_msm", "at": "gpu"},
        {"run": "b_g2_msm", "at": "gpu"},
        {"free": ["tail_temps", "d_tails"]},
        {"release": "tails_mutex"},
    ]
    return {
        "gpu": {"start": "pool", "per": "gpu", "count": "gw", "steps": steps},
        "ride": {"start": "spawned", "steps": ride},
    }

"""Names and digests of Filecoin's published keys for PoSt and SnapDeals (version 28).

A name follows from the circuit: its tree's form and SHA-256 of its parameters written as text. Digests: the first 32
hexadecimal digits of BLAKE2b-512 of the file; of most .params none is known here (`parameters.json` beside them has it).
"""

from __future__ import annotations

import hashlib

from cuzk.circuits.post.shape import PostShape, post_shape
from cuzk.circuits.update.shape import REGISTERED, UpdateShape, update_shape

POST, UPDATE = "proof-of-spacetime-fallback", "empty-sector-update"
TREES = {"32GiB": "8-8-0", "64GiB": "8-8-2"}
"""The form of the tree; 8-0-0 of the others."""

VK_DIGESTS = {
    "winning-2k": "ffd79788d614d27919ae5bd2d94eacb6", "winning-8m": "79ebb55f56fda427743e35053edad8fc",
    "winning-512m": "bd2cd62f65c1ab84f19ca27e97b7c731", "winning-32g": "fc02943678dd119e69e7fab8420e8819",
    "winning-64g": "6d3789148fb6466d07ee1e24d6292fd6",
    "window-2k": "0e0958009936b9d5e515ec97b8cb792d", "window-8m": "34d4feeacd9abf788d69ef1bb4d8fd00",
    "window-512m": "4dae975de4f011f101f5a2f86d1daaba", "window-32g": "0f8ec542485568fa3468c066e9fed82b",
    "window-64g": "59d2bf1857adc59a4f08fcf2afaa916b",
    "snap-2k": "eadad9784969890d30f2749708c79771", "snap-8m": "abd80269054d391a734febdac0d2e687",
    "snap-512m": "994c5b7d450ca9da348c910689f2dc7f", "snap-32g": "3a6941983754737fde880d29c7094905",
    "snap-64g": "80e366df2f1011953c2d01c7b7c9ee8e",
}  # fmt: skip
PARAMS_DIGESTS = {
    "winning-2k": "82c88066be968bb550a05e30ff6c2413", "window-2k": "7610b9f82bfc88405b7a832b651ce2f6",
    "snap-2k": "311f92a3e75036ced01b1c0025f1fa0c", "window-32g": "2cf49eb26f1fee94c85781a390ddb4c8",
    "winning-32g": "d84f79a16fe40e9e25a36e2107bb1ba0", "snap-32g": "1b3cfd761a961543f9eb273e435a06a2",
    "snap-64g": "1a392e7b759fb18e036c7559b5ece816",
}  # fmt: skip


def key_stem(shape: PostShape | UpdateShape) -> str:
    """The name of a circuit's published key without its suffix; .params and .vk have it."""
    if isinstance(shape, PostShape):
        prefix, sectors = POST, shape.sectors
        counts = f"challenge_count: {shape.challenges}, sector_count: {sectors}"
        identifier = f"FallbackPoSt::PublicParams{{sector_size: {shape.sector_bytes}, {counts}}}"
    else:
        prefix = UPDATE
        identifier = f"empty_sector_update::PublicParams{{ sector_nodes: {shape.nodes} }}"
    digest = hashlib.sha256(identifier.encode()).hexdigest()
    return f"v28-{prefix}-merkletree-poseidon_hasher-{TREES.get(shape.size, '8-0-0')}-{digest}"


def digests() -> dict[str, str]:
    """The digest that each file must have, by its name, where one is known."""
    shapes: list[PostShape | UpdateShape] = [post_shape(kind, size) for kind in ("winning", "window") for size in REGISTERED]
    shapes += [update_shape(size) for size in REGISTERED]
    out = {}
    for shape in shapes:
        for suffix, known in ((".params", PARAMS_DIGESTS), (".vk", VK_DIGESTS)):
            if shape.name in known:
                out[key_stem(shape) + suffix] = known[shape.name]
    return out

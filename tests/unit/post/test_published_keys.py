"""Published keys of PoSt and SnapDeals: their names, and that a damaged file is told by its digest."""

import pytest

from cuzk.circuits.post.shape import post_shape
from cuzk.circuits.update.shape import REGISTERED, update_shape
from cuzk.errors import FormatError
from cuzk.porep.parameters import expected_digest, require_digest
from cuzk.porep.published import digests, key_stem


@pytest.mark.parametrize(
    ("shape_of", "heads"),
    [
        (lambda s: post_shape("winning", s), ["3ea05428", "50c7368d", "7d739b8c", "559e581f", "b6209862"]),
        (lambda s: post_shape("window", s), ["0170db1f", "5294475d", "0cfb4f17", "0377ded6", "2627e400"]),
        (update_shape, ["fb9e095b", "92180959", "61fa69f3", "3b7f44a9", "102e1444"]),
    ],
)
def test_names(shape_of, heads):
    names = [key_stem(shape_of(size)) for size in REGISTERED]
    assert [name.rsplit("-", 1)[1][:8] for name in names] == heads
    assert names[3].startswith("v28-") and "-merkletree-poseidon_hasher-8-8-0-" in names[3]


def test_a_file_of_a_published_name_must_have_its_digest(tmp_path):
    name = key_stem(post_shape("window", "2KiB"))
    vk, params = tmp_path / f"{name}.vk", tmp_path / f"{name}.params"
    vk.write_bytes(b"damaged")
    assert expected_digest(vk) == ("0e0958009936b9d5e515ec97b8cb792d", "the published list")
    with pytest.raises(FormatError, match="BLAKE2b digest"):
        require_digest(vk)
    assert len(digests()) == 15 + 7
    params.write_bytes(b"damaged")
    assert expected_digest(params) == ("7610b9f82bfc88405b7a832b651ce2f6", "the published list")

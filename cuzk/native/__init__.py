"""The host library: field, curve, NTT, MSM and sparse products on whole arrays. A leaf package over ctypes; the GIL is released.

Arrays are C-contiguous NumPy arrays of uint64, limbs little-endian; any alignment, read-only and memory-mapped ones too.

    Fr   (n, 4)    Montgomery with R = 2^256 ("mont") or canonical ("std"): each name says which
    G1   (n, 12)   affine x || y, coordinates mont with R = 2^384; infinity is all zero
    G2   (n, 24)   affine x.c0 || x.c1 || y.c0 || y.c1

`threads=None` means all cores that this process may use. Wrong dtype: TypeError; wrong shape, layout or size: ValueError.

No function keeps anything between calls. Long work (setup, MSM of millions of points) may be cut into chunks by the caller, so
that Ctrl-C and progress come through: sums of partial MSMs with `g1_add`, disjoint slices for everything elementwise.
"""

from ._library import info, library_directory
from .circuits import first_unsatisfied, poseidon, sha256_compress, template_matvec
from .fields import (
    fr_add,
    fr_dot_mont,
    fr_from_std,
    fr_inv,
    fr_less_than_r,
    fr_mul,
    fr_powers_mont,
    fr_sub,
    fr_to_std,
    gather_bits,
    matvec_csr,
    matvec_csr_std,
    ntt,
    root_of_unity_mont,
    scan_witness,
)
from .points import (
    batch_add_g1,
    batch_add_g2,
    check_g1,
    check_g2,
    fixed_base_g1,
    fixed_base_g2,
    g1_add,
    g1_compress,
    g1_decompress,
    g1_from_be_uncompressed,
    g1_generator,
    g1_neg,
    g1_to_be_uncompressed,
    g2_add,
    g2_compress,
    g2_decompress,
    g2_from_be_uncompressed,
    g2_generator,
    g2_neg,
    g2_to_be_uncompressed,
    group_ntt_g1,
    group_ntt_g2,
    msm_bytes_g1,
    msm_bytes_g2,
    msm_g1,
    msm_g2,
    scale_g1,
    scale_g2,
    sparse_combine_g1,
    sparse_combine_g2,
)

__all__ = [
    "batch_add_g1",
    "batch_add_g2",
    "check_g1",
    "check_g2",
    "first_unsatisfied",
    "fixed_base_g1",
    "fixed_base_g2",
    "fr_add",
    "fr_dot_mont",
    "fr_from_std",
    "fr_inv",
    "fr_less_than_r",
    "fr_mul",
    "fr_powers_mont",
    "fr_sub",
    "fr_to_std",
    "g1_add",
    "g1_compress",
    "g1_decompress",
    "g1_from_be_uncompressed",
    "g1_generator",
    "g1_neg",
    "g1_to_be_uncompressed",
    "g2_add",
    "g2_compress",
    "g2_decompress",
    "g2_from_be_uncompressed",
    "g2_generator",
    "g2_neg",
    "g2_to_be_uncompressed",
    "gather_bits",
    "group_ntt_g1",
    "group_ntt_g2",
    "info",
    "library_directory",
    "matvec_csr",
    "matvec_csr_std",
    "msm_bytes_g1",
    "msm_bytes_g2",
    "msm_g1",
    "msm_g2",
    "ntt",
    "poseidon",
    "root_of_unity_mont",
    "scale_g1",
    "scale_g2",
    "scan_witness",
    "sha256_compress",
    "sparse_combine_g1",
    "sparse_combine_g2",
    "template_matvec",
]

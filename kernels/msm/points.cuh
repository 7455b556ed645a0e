// The additions of an MSM, over any lane field F: LaneFq for G1, LaneFq2 for G2. points_g1.cu and points_g2.cu define CUZK_LANE_FIELD
// and CUZK_GROUP and include this file.
#pragma once

#include "../ec/pair_add.cuh"

namespace cuzk {

// 16 bytes of q - v, v being the 48 bytes at `component`.
CUZK_DEVICE_CALL uint4 negated_piece(const unsigned char* component, u32 piece) {
    Fq v;
    load_words48(v.v, component);
    v = -v;
    uint4 r;
    r.x = piece == 0 ? v.v[0] : piece == 1 ? v.v[4] : v.v[8];
    r.y = piece == 0 ? v.v[1] : piece == 1 ? v.v[5] : v.v[9];
    r.z = piece == 0 ? v.v[2] : piece == 1 ? v.v[6] : v.v[10];
    r.w = piece == 0 ? v.v[3] : piece == 1 ? v.v[7] : v.v[11];
    return r;
}

// buckets[s] = the point that result[s] names. A thread 16 bytes, so that buckets leave in full lines; only a bucket of one point may
// have a sign.
template <class F>
CUZK_DEVICE void gather_points(const u32* result, u32 count, const unsigned char* points, unsigned char* pool, unsigned char* buckets) {
    constexpr u32 PIECES = F::POINT_BYTES / 16;
    const u64 all = static_cast<u64>(count) * PIECES;
    for (u64 i = global_thread(); i < all; i += global_threads()) {
        const u32 s = static_cast<u32>(i / PIECES), piece = static_cast<u32>(i % PIECES), ref = result[s];
        uint4 value = make_uint4(0, 0, 0, 0);
        if (ref != REF_NONE) {
            const unsigned char* point = PairSource<F>{points, pool}.at(ref);
            value = reinterpret_cast<const uint4*>(point)[piece];
            if (ref & REF_NEGATIVE && piece >= PIECES / 2) value = negated_piece(point + piece / 3 * 48, piece % 3);
        }
        reinterpret_cast<uint4*>(buckets)[i] = value;
    }
}

}  // namespace cuzk

using namespace cuzk;

#define KERNEL_NAME_(name, group) name##_##group
#define KERNEL_NAME(name, group) KERNEL_NAME_(name, group)

// 128 registers a thread, the most that keeps 16 warps an SM; one block of 512 measured 3 % faster than two of 256 and 5 % faster than
// four of 128.
CUZK_KERNEL(512, 1)
KERNEL_NAME(pair_add, CUZK_GROUP)(const uint2* pairs, const u32* pair_count, const unsigned char* points, unsigned char* pool,
                                  uint4* scratch, u32 max_batch, u32* ticket) {
    pair_add<CUZK_LANE_FIELD>(pairs, *pair_count, points, pool, scratch, max_batch, ticket);
}

CUZK_KERNEL(256, 8)
KERNEL_NAME(gather, CUZK_GROUP)(const u32* result, u32 count, const unsigned char* points, unsigned char* pool,
                                unsigned char* buckets) {
    gather_points<CUZK_LANE_FIELD>(result, count, points, pool, buckets);
}

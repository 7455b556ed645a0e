// The additions of an MSM, over any lane field F: LaneFq for G1, LaneFq2 for G2. points_g1.cu and points_g2.cu define CUZK_LANE_FIELD
// and CUZK_GROUP and include this file.
#pragma once

#include "../ec/pair_add.cuh"

namespace cuzk {

// buckets[s] = the point that result[s] names.
template <class F>
CUZK_DEVICE void gather_points(const u32* result, u32 count, const unsigned char* points, unsigned char* pool, unsigned char* buckets) {
    for (u32 s = global_thread() / F::LANES; s < count; s += global_threads() / F::LANES) {
        F x = F::zero(), y = F::zero();
        if (result[s] != REF_NONE) {
            PairSource<F> source{points, pool};
            x = source.x(result[s]);
            y = source.y(result[s]);
        }
        store_coordinate(buckets, s, 0, x);
        store_coordinate(buckets, s, 1, y);
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

CUZK_KERNEL(128, 4)
KERNEL_NAME(gather, CUZK_GROUP)(const u32* result, u32 count, const unsigned char* points, unsigned char* pool,
                                unsigned char* buckets) {
    gather_points<CUZK_LANE_FIELD>(result, count, points, pool, buckets);
}

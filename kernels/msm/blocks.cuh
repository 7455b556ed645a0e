// Cooperation inside a block: prefix sums and searches.
#pragma once

#include "../device.cuh"

namespace cuzk {

// Exclusive prefix sum of one value a thread over a block of THREADS; `total` receives the sum. All threads must call.
template <int THREADS>
CUZK_DEVICE u64 block_exclusive_scan(u64 value, u64& total) {
    constexpr u32 WARPS = THREADS / 32;
    __shared__ u64 warp_sums[WARPS];
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    u64 inclusive = value;
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u64 below = __shfl_up_sync(FULL_WARP, inclusive, distance);
        if (lane >= distance) inclusive += below;
    }
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    u64 before = 0, all = 0;
    for (u32 w = 0; w < WARPS; w++) {
        u64 t = warp_sums[w];
        if (w < warp) before += t;
        all += t;
    }
    total = all;
    __syncthreads();
    return before + inclusive - value;
}

// The largest s in [low, high] with start[s] <= value; start[low] <= value must hold.
CUZK_DEVICE u32 last_at_most(const u32* start, u32 low, u32 high, u32 value) {
    while (low < high) {
        u32 middle = low + (high - low + 1) / 2;
        if (start[middle] <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

}  // namespace cuzk

// Cooperation inside a block: prefix sums and searches.
#pragma once

#include "../device.cuh"

namespace cuzk {

// Exclusive prefix sum of one value a thread over a block of THREADS; `total` receives the sum. All threads must call.
template <int THREADS>
CUZK_DEVICE u64 block_exclusive_scan(u64 value, u64& total) {
    __shared__ u64 sums[2][THREADS];
    const u32 t = threadIdx.x;
    int now = 0;
    sums[0][t] = value;
    __syncthreads();
    for (u32 distance = 1; distance < THREADS; distance *= 2) {
        sums[now ^ 1][t] = sums[now][t] + (t >= distance ? sums[now][t - distance] : 0);
        now ^= 1;
        __syncthreads();
    }
    total = sums[now][THREADS - 1];
    u64 before = sums[now][t] - value;
    __syncthreads();
    return before;
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

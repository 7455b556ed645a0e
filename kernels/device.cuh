// What every kernel file includes first. Kernels use no standard header: they compile under nvcc, under NVRTC, and under a C++
// compiler with tests/unit/kernels/emulation.hpp included first, which runs the threads of a block as fibers.
#pragma once

#include "ff/params.hpp"

namespace cuzk {

constexpr u32 FULL_WARP = 0xffffffffu;

#ifdef CUZK_CUDA

#define CUZK_DEVICE __device__ __forceinline__
#define CUZK_DEVICE_CALL __device__ __noinline__  // out of line: rare code keeps its registers to itself
// extern "C" so that the host finds the kernel by its plain name
#define CUZK_KERNEL(threads, blocks_per_sm) extern "C" __global__ void __launch_bounds__(threads, blocks_per_sm)
#define CUZK_DYNAMIC_SHARED(type, name)      \
    extern __shared__ uint4 dynamic_shared_[]; \
    type* name = reinterpret_cast<type*>(dynamic_shared_)

// Exchanges N words with lane ^ 1, within the lanes of `mask`.
template <int N>
CUZK_DEVICE void exchange_words(u32 mask, u32* out, const u32* in) {
#pragma unroll
    for (int i = 0; i < N; i++) out[i] = __shfl_xor_sync(mask, in[i], 1);
}

#endif

CUZK_DEVICE u32 lane_id() { return threadIdx.x & 31; }
CUZK_DEVICE u32 global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
CUZK_DEVICE u32 global_threads() { return gridDim.x * blockDim.x; }

// counters[index] += 1 for every lane with `valid`; returns the value before, all values distinct. A warp whose lanes all name the
// same counter (skewed data) costs one atomic instead of 32. All lanes must call.
CUZK_DEVICE u32 count_up(u32* counters, u32 index, bool valid) {
    u32 active = __ballot_sync(FULL_WARP, valid);
    if (active == 0) return 0;
    int leader = __ffs(active) - 1;
    u32 first = __shfl_sync(FULL_WARP, index, leader);
    if (__all_sync(FULL_WARP, !valid || index == first)) {
        u32 base = 0;
        if (static_cast<int>(lane_id()) == leader) base = atomicAdd(&counters[first], static_cast<u32>(__popc(active)));
        base = __shfl_sync(FULL_WARP, base, leader);
        return base + __popc(active & ((1u << lane_id()) - 1));
    }
    return valid ? atomicAdd(&counters[index], 1u) : 0;
}

}  // namespace cuzk

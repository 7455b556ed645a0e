// Witness scan: which values are 1, which are neither 0 nor 1, and the latter gathered in order.
// Three launches: classify and count (reads 32 bytes a value), add up the counts, gather (reads only what it gathers).
#include "elements.cuh"

namespace cuzk {

constexpr u32 SCAN_VALUES = 1024;  // of a block of 256 threads: 32 words of a bitmap

// ones, mask: bitmaps (value i is bit i % 32 of word i / 32), `words` words, a multiple of 2. counts[block]: set bits of mask.
CUZK_KERNEL(256, 8)
scan_classify(const uint4* values, u64 count, u32 mont, u32* ones, u32* mask, u64 words, u32* counts) {
    __shared__ u32 others;
    if (threadIdx.x == 0) others = 0;
    __syncthreads();
    const Fr one = Fr::one();
    for (u32 round = 0; round < 4; round++) {
        u64 i = static_cast<u64>(blockIdx.x) * SCAN_VALUES + round * 256 + threadIdx.x;
        bool is_one = false, is_other = false;
        if (i < count) {
            Fr value = load_fr(values, i);
            u32 rest = 0;  // of value - one
#pragma unroll
            for (int k = 0; k < 8; k++) rest |= value.v[k] ^ (mont ? one.v[k] : k == 0);
            is_one = rest == 0;
            is_other = !is_one && !value.is_zero();
        }
        u32 one_word = __ballot_sync(FULL_WARP, is_one), other_word = __ballot_sync(FULL_WARP, is_other);
        if (lane_id() == 0 && i / 32 < words) {
            ones[i / 32] = one_word;
            mask[i / 32] = other_word;
            if (other_word) atomicAdd(&others, static_cast<u32>(__popc(other_word)));
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = others;
}

// counts -> the sums of the counts before; *total = all. One block: a counter is 4 bytes of 32 KiB of values.
CUZK_KERNEL(1024, 1)
scan_offsets(u32* counts, u64 blocks, u32* total) {
    __shared__ u32 sums[2][1024];
    u32 before = 0;
    for (u64 base = 0; base < blocks; base += 1024) {
        u64 i = base + threadIdx.x;
        u32 mine = i < blocks ? counts[i] : 0, side = 0;
        sums[0][threadIdx.x] = mine;
        for (u32 step = 1; step < 1024; step *= 2) {
            __syncthreads();
            u32 sum = sums[side][threadIdx.x];
            if (threadIdx.x >= step) sum += sums[side][threadIdx.x - step];
            side ^= 1;
            sums[side][threadIdx.x] = sum;
        }
        __syncthreads();
        if (i < blocks) counts[i] = before + sums[side][threadIdx.x] - mine;
        before += sums[side][1023];
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = before;
}

// rank[w]: set bits of mask before 64-bit word w. tail, tail_values: indices and values of the others, at most `capacity`.
CUZK_KERNEL(256, 8)
scan_gather(const uint4* values, const u32* mask, u64 words, const u32* offsets, u32* rank, u32* tail, uint4* tail_values,
            u32 capacity) {
    __shared__ u32 word_bits[32], word_rank[32];
    const u64 first = static_cast<u64>(blockIdx.x) * 32;
    if (threadIdx.x < 32) word_bits[threadIdx.x] = first + threadIdx.x < words ? mask[first + threadIdx.x] : 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = offsets[blockIdx.x];
        for (u32 w = 0; w < threadIdx.x; w++) sum += __popc(word_bits[w]);
        word_rank[threadIdx.x] = sum;
        if (threadIdx.x % 2 == 0 && first + threadIdx.x < words) rank[(first + threadIdx.x) / 2] = sum;
    }
    __syncthreads();
    for (u32 word = threadIdx.x >> 5; word < 32; word += 8) {
        const u32 bits = word_bits[word], lane = lane_id(), at = word_rank[word] + __popc(bits & ((1u << lane) - 1));
        if ((bits >> lane & 1) && at < capacity) {
            u64 i = (first + word) * 32 + lane;
            tail[at] = static_cast<u32>(i);
            if (tail_values) store_fr(tail_values, at, load_fr(values, i));
        }
    }
}

}  // namespace cuzk

// Sorting the signed digits of many scalars by bucket, in two counting passes: first into partitions (the high bits of a bucket
// number), then within a partition into buckets. Order inside a bucket does not matter, so ranks come from counters in shared memory.
//
// A scalar k (replaced by r - k with the opposite sign if k > r/2) is cut into `windows` digits. Adding half of every digit's range
// first, sum 2^(bit + c - 1) for digits of c bits at `bit`, and subtracting it from every digit afterwards makes digits of
// -2^(c-1) .. 2^(c-1) - 1 without carries; the highest may reach 2^(c-1). Digit 0 contributes nothing and is dropped. |digit| - 1 is
// the bucket, the sign goes to the point.
//
// Window w belongs to bucket set w % sets and takes its points from table w / sets: table j holds the points times 2^j of all bits
// of the sets before. Without tables, sets = windows. A call handles `group_sets` sets from `first_set` on. The first `wide` sets have
// digits of narrow + 1 bits, the others of `narrow`: widths that add up to the scalar's bits waste no window. The buckets of
// a call lie set after set, counted in units of 2^(narrow - 1): a wide set has two.
#pragma once

#include "../ff/fp.hpp"
#include "blocks.cuh"
#include "references.cuh"

namespace cuzk {

constexpr u32 TILE_THREADS = 512;
constexpr u32 TILE_PER_THREAD = 16;
constexpr u32 TILE = TILE_THREADS * TILE_PER_THREAD;  // elements a block sorts at once
constexpr u32 MAX_LOW_BITS = 12;
constexpr u32 DIGIT_NEGATIVE = 1u << 31;

struct SortShape {
    u32 narrow;      // bits of a narrow digit
    u32 wide;        // sets with one bit more, of the whole MSM
    u32 windows;     // digits of a scalar
    u32 sets;        // bucket sets of the whole MSM
    u32 first_set;   // of this call
    u32 group_sets;  // of this call
    u32 low_bits;    // a partition holds 2^low_bits buckets
    u32 points;      // of this call
    u32 stride;      // points of a whole table

    CUZK_DEVICE u32 digit_bits(u32 set) const { return narrow + (set < wide); }
    CUZK_DEVICE u32 first_bit(u32 set) const { return set * narrow + (set < wide ? set : wide); }
    // Units of the call's sets before its set number `local`.
    CUZK_DEVICE u32 units(u32 local) const {
        const u32 wide_here = wide > first_set ? wide - first_set : 0;
        return local + (local < wide_here ? local : wide_here);
    }
    CUZK_DEVICE u32 first_partition(u32 local) const { return units(local) << (narrow - 1 - low_bits); }
    CUZK_DEVICE u32 partitions() const { return first_partition(group_sets); }
    CUZK_DEVICE u32 tables() const { return (windows + sets - 1) / sets; }
    CUZK_DEVICE u32 row() const { return tables() * points; }  // digits of a set: table 0, table 1, ...
};

// k / 2^bits, bits < 32.
CUZK_DEVICE void shift_bits(u32 k[9], u32 bits) {
#pragma unroll
    for (int j = 0; j < 8; j++) k[j] = static_cast<u32>((static_cast<u64>(k[j + 1]) << 32 | k[j]) >> bits);
    k[8] >>= bits;
}
CUZK_DEVICE void shift_down(u32 k[9], u32 bits) {
    for (; bits >= 32; bits -= 32) {
#pragma unroll
        for (int j = 0; j < 8; j++) k[j] = k[j + 1];
        k[8] = 0;
    }
    shift_bits(k, bits);
}

// digits[set][table * points + i] = |digit| with DIGIT_NEGATIVE, and the size of every partition.
CUZK_DEVICE void sort_digits(const SortShape& shape, const uint4* scalars, bool mont, u32* digits, u32* partition_count) {
    CUZK_DYNAMIC_SHARED(u32, count);
    __shared__ u32 offset[9];
    const u32 counters = shape.partitions();
    for (u32 i = threadIdx.x; i < counters; i += blockDim.x) count[i] = 0;
    if (threadIdx.x < 9) {
        u32 limb = 0, end = 0;
        for (u32 w = 0, set = 0; w < shape.windows; w++) {
            end += shape.digit_bits(set);
            if ((end - 1) / 32 == threadIdx.x) limb |= 1u << (end - 1) % 32;
            if (++set == shape.sets) set = 0;
        }
        offset[threadIdx.x] = limb;
    }
    __syncthreads();
    const u32 tables = shape.tables(), n = shape.points, row = shape.row();
    // Bits of a scalar below and above the call's sets, in every table's share.
    const u32 before = shape.first_bit(shape.first_set);
    const u32 after = shape.first_bit(shape.sets) - shape.first_bit(shape.first_set + shape.group_sets);
    for (u32 base = blockIdx.x * blockDim.x; base < n; base += global_threads()) {
        const u32 i = base + threadIdx.x;
        const bool valid = i < n;
        u32 k[9];
        {
            Fr s = Fr::zero();
            if (valid) {
                uint4 low = scalars[2 * static_cast<u64>(i)], high = scalars[2 * static_cast<u64>(i) + 1];
                s.v[0] = low.x, s.v[1] = low.y, s.v[2] = low.z, s.v[3] = low.w;
                s.v[4] = high.x, s.v[5] = high.y, s.v[6] = high.z, s.v[7] = high.w;
                if (mont) s = s.to_std();
            }
#pragma unroll
            for (int j = 0; j < 8; j++) k[j] = s.v[j];
        }
        // negate if that is smaller
        u32 negated[8];
#pragma unroll
        for (int j = 0; j < 8; j++) negated[j] = FrParams::mod32(j);
        words_sub<8>(negated, k);
        bool negative = false;
        {
            u32 t[8];
#pragma unroll
            for (int j = 0; j < 8; j++) t[j] = negated[j];
            negative = words_sub<8>(t, k) != 0;  // r - k < k
        }
        u64 carry = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            carry += static_cast<u64>(negative ? negated[j] : k[j]) + offset[j];
            k[j] = static_cast<u32>(carry);
            carry >>= 32;
        }
        k[8] = static_cast<u32>(carry) + offset[8];
        shift_down(k, before);
        for (u32 table = 0; table < tables; table++) {
            if (table) shift_down(k, before + after);
            for (u32 local = 0; local < shape.group_sets; local++) {
                const u32 set = shape.first_set + local, w = table * shape.sets + set;
                const u32 bits = shape.digit_bits(set), half = 1u << (bits - 1);
                u32 digit = 0;
                if (valid && w < shape.windows) {
                    u32 raw = w + 1 < shape.windows ? k[0] & (2 * half - 1) : k[0];
                    if (raw > half) digit = raw - half;
                    if (raw < half) digit = (half - raw) | DIGIT_NEGATIVE;
                    if (digit && negative) digit ^= DIGIT_NEGATIVE;
                }
                shift_bits(k, bits);
                if (valid) digits[static_cast<u64>(local) * row + static_cast<u64>(table) * n + i] = digit;
                u32 bucket = (digit & ~DIGIT_NEGATIVE) - 1;
                count_up(count, shape.first_partition(local) + (bucket >> shape.low_bits), digit != 0);
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < counters; i += blockDim.x)
        if (count[i]) atomicAdd(&partition_count[i], count[i]);
}

// One block of 1024: starts of the partitions (also as cursors) and of the tiles that cover them; total in *elements.
CUZK_DEVICE void sort_partition_starts(u32 partitions, const u32* count, u32* start, u32* cursor, u32* tile_start, u32* elements) {
    const u32 share = (partitions + 1023) / 1024, first = threadIdx.x * share;
    u64 sum = 0;  // elements in the low half, tiles in the high half
    for (u32 i = first; i < first + share && i < partitions; i++)
        sum += static_cast<u64>((count[i] + TILE - 1) / TILE) << 32 | count[i];
    u64 total, before = block_exclusive_scan<1024>(sum, total);
    for (u32 i = first; i < first + share && i < partitions; i++) {
        start[i] = cursor[i] = static_cast<u32>(before);
        tile_start[i] = static_cast<u32>(before >> 32);
        before += static_cast<u64>((count[i] + TILE - 1) / TILE) << 32 | count[i];
    }
    if (threadIdx.x == 0) {
        start[partitions] = *elements = static_cast<u32>(total);
        tile_start[partitions] = static_cast<u32>(total >> 32);
    }
}

// A tile of elements sorted in shared memory, so that what goes to one bin leaves in one run of neighbouring words.
struct TileBins {
    u32* place;    // elements of a bin, then where its run begins in the tile
    u32* delta;    // what to add to a place in the tile for the place in memory
    uint2* sorted;

    CUZK_DEVICE TileBins(u32* shared, u32 bins) {
        sorted = reinterpret_cast<uint2*>(shared);
        place = shared + 2 * TILE;
        delta = place + bins;
        for (u32 i = threadIdx.x; i < bins; i += TILE_THREADS) place[i] = 0;
        __syncthreads();
    }
    // After counting: claims room at the bins' cursors; returns the number of elements.
    CUZK_DEVICE u32 claim(u32 bins, u32* cursor) {
        __syncthreads();
        const u32 share = (bins + TILE_THREADS - 1) / TILE_THREADS, first = threadIdx.x * share;
        u64 sum = 0, total;
        for (u32 i = first; i < first + share && i < bins; i++) sum += place[i];
        u32 before = static_cast<u32>(block_exclusive_scan<TILE_THREADS>(sum, total));
        for (u32 i = first; i < first + share && i < bins; i++) {
            u32 n = place[i];
            if (n) delta[i] = atomicAdd(&cursor[i], n) - before;
            place[i] = before;
            before += n;
        }
        __syncthreads();
        return static_cast<u32>(total);
    }
};

// Moves every non-zero digit into its partition as (bucket of the group, reference). Block (x, y): tile x of set y.
CUZK_DEVICE void sort_into_partitions(const SortShape& shape, const u32* digits, u32* cursor, uint2* elements) {
    CUZK_DYNAMIC_SHARED(u32, shared);
    const u32 set = blockIdx.y, row = shape.row(), first_bin = shape.first_partition(set);
    const u32 bins = shape.first_partition(set + 1) - first_bin;
    TileBins tile(shared, bins);
    const u32 first = blockIdx.x * TILE + threadIdx.x;
    u32 digit[TILE_PER_THREAD];
    unsigned short rank[TILE_PER_THREAD];
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++) {
        u32 i = first + j * TILE_THREADS;
        digit[j] = i < row ? digits[static_cast<u64>(set) * row + i] : 0;
    }
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++) {
        u32 bucket = (digit[j] & ~DIGIT_NEGATIVE) - 1;
        rank[j] = static_cast<unsigned short>(count_up(tile.place, bucket >> shape.low_bits, digit[j] != 0));
    }
    const u32 total = tile.claim(bins, cursor + first_bin);
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++) {
        if (digit[j] == 0) continue;
        u32 bucket = (digit[j] & ~DIGIT_NEGATIVE) - 1;
        u32 index = first + j * TILE_THREADS;
        if (shape.stride != shape.points) index += index / shape.points * (shape.stride - shape.points);
        u32 reference = (digit[j] & DIGIT_NEGATIVE ? REF_NEGATIVE : 0) | REF_POINT | index;
        tile.sorted[tile.place[bucket >> shape.low_bits] + rank[j]] = make_uint2((first_bin << shape.low_bits) + bucket, reference);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) {
        uint2 e = tile.sorted[i];
        elements[tile.delta[(e.x >> shape.low_bits) - first_bin] + i] = e;
    }
}

// The tile of this block: its partition and range of elements; false if there is none.
CUZK_DEVICE bool find_tile(u32 partitions, const u32* partition_start, const u32* tile_start, u32& partition, u32& begin, u32& end) {
    if (blockIdx.x >= tile_start[partitions]) return false;
    partition = last_at_most(tile_start, 0, partitions - 1, blockIdx.x);
    begin = partition_start[partition] + (blockIdx.x - tile_start[partition]) * TILE;
    end = partition_start[partition + 1];
    if (end - begin > TILE) end = begin + TILE;
    return true;
}

// Adds the tile's share to bucket_count.
CUZK_DEVICE void sort_count_buckets(const SortShape& shape, const uint2* elements, const u32* partition_start, const u32* tile_start,
                                    u32* bucket_count) {
    __shared__ u32 count[1 << MAX_LOW_BITS];
    u32 partition, begin, end;
    if (!find_tile(shape.partitions(), partition_start, tile_start, partition, begin, end)) return;
    const u32 bins = 1u << shape.low_bits;
    for (u32 i = threadIdx.x; i < bins; i += TILE_THREADS) count[i] = 0;
    __syncthreads();
    for (u32 base = begin; base < end; base += TILE_THREADS) {
        u32 i = base + threadIdx.x;
        u32 bucket = i < end ? elements[i].x : 0;
        count_up(count, bucket & (bins - 1), i < end);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < bins; i += TILE_THREADS)
        if (count[i]) atomicAdd(&bucket_count[(partition << shape.low_bits) + i], count[i]);
}

// Moves the tile's references to their buckets.
CUZK_DEVICE void sort_into_buckets(const SortShape& shape, const uint2* elements, const u32* partition_start, const u32* tile_start,
                                   u32* bucket_cursor, u32* references) {
    CUZK_DYNAMIC_SHARED(u32, shared);
    u32 partition, begin, end;
    if (!find_tile(shape.partitions(), partition_start, tile_start, partition, begin, end)) return;
    const u32 bins = 1u << shape.low_bits;
    TileBins tile(shared, bins);
    uint2 element[TILE_PER_THREAD];
    unsigned short rank[TILE_PER_THREAD];
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++) {
        u32 i = begin + threadIdx.x + j * TILE_THREADS;
        element[j] = i < end ? elements[i] : make_uint2(0, REF_NONE);
    }
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++)
        rank[j] = static_cast<unsigned short>(
            count_up(tile.place, element[j].x & (bins - 1), begin + threadIdx.x + j * TILE_THREADS < end));
    const u32 total = tile.claim(bins, bucket_cursor + (partition << shape.low_bits));
#pragma unroll
    for (u32 j = 0; j < TILE_PER_THREAD; j++)
        if (begin + threadIdx.x + j * TILE_THREADS < end)
            tile.sorted[tile.place[element[j].x & (bins - 1)] + rank[j]] = element[j];
    __syncthreads();
    for (u32 i = threadIdx.x; i < total; i += TILE_THREADS) {
        uint2 e = tile.sorted[i];
        references[tile.delta[e.x & (bins - 1)] + i] = e.y;
    }
}

}  // namespace cuzk

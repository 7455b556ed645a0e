// The parts of an MSM that touch points, over any lane field F: LaneFq for G1, LaneFq2 for G2.
//
// points_g1.cu and points_g2.cu define CUZK_LANE_FIELD (lanes that move together, for pair_add), CUZK_BRANCHING_LANE_FIELD and
// CUZK_GROUP, and include this file.
#pragma once

// Everything except pair_add is a tail of a few thousand point operations: calls, not copies, of their code.
#define CUZK_CALL_POINT

#include "../ec/pair_add.cuh"

namespace cuzk {

constexpr u32 TAIL_THREADS = 256;

template <class F>
CUZK_DEVICE Affine<F> load_point(u32 ref, const unsigned char* points, unsigned char* pool) {
    if (ref == REF_NONE) return Affine<F>::infinity();
    PairSource<F> source{points, pool};
    return {source.x(ref), source.y(ref)};
}

// Writes p as an affine point; all-zero bytes if it is infinity.
template <class F>
CUZK_DEVICE void store_affine(unsigned char* out, u64 index, const Xyzz<F>& p) {
    Affine<F> a = Affine<F>::infinity();
    if (!p.is_infinity()) a = p.to_affine_with((p.zz * p.zzz).inverse());
    store_coordinate(out, index, 0, a.x);
    store_coordinate(out, index, 1, a.y);
}

// buckets[s] = the point that result[s] names.
template <class F>
CUZK_DEVICE void gather_points(const u32* result, u32 count, const unsigned char* points, unsigned char* pool, unsigned char* buckets) {
    for (u32 s = global_thread() / F::LANES; s < count; s += global_threads() / F::LANES) {
        Affine<F> p = load_point<F>(result[s], points, pool);
        store_coordinate(buckets, s, 0, p.x);
        store_coordinate(buckets, s, 1, p.y);
    }
}

// Sum of (v + bias) * P_v over `count` (a power of two) references: every thread takes a run of neighbours, then runs join in a tree,
// where joining a right neighbour of length n adds n times its plain sum. Thread 0 writes out[index].
template <class F>
CUZK_DEVICE void weighted_sum(const u32* references, u32 count, u32 bias, const unsigned char* points, unsigned char* pool,
                              unsigned char* out, u32 index) {
    CUZK_DYNAMIC_SHARED(Xyzz<F>, shared);  // plain sum and weighted sum of every thread
    const u32 unit = threadIdx.x / F::LANES, all = TAIL_THREADS / F::LANES;
    const u32 units = count < all ? count : all, run = count / units;
    Xyzz<F> plain = Xyzz<F>::infinity(), weighted = Xyzz<F>::infinity();
    if (unit < units) {
        for (u32 j = run; j-- > 0;) {
            plain.add(load_point<F>(references[unit * run + j], points, pool));
            if (j > 0) weighted.add(plain);
        }
    }
    u32 log_length = 0;
    while (1u << log_length < run) log_length++;
    for (u32 step = 1; step < units; step *= 2, log_length++) {
        shared[2 * threadIdx.x] = plain;
        shared[2 * threadIdx.x + 1] = weighted;
        __syncthreads();
        if (unit % (2 * step) == 0 && unit < units) {
            const u32 right = 2 * (threadIdx.x + step * F::LANES);
            Xyzz<F> right_plain = shared[right], right_weighted = shared[right + 1];
            plain.add(right_plain);
            weighted.add(right_weighted);
            for (u32 i = 0; i < log_length; i++) right_plain.dbl();
            weighted.add(right_plain);
        }
        __syncthreads();
    }
    if (unit == 0) {
        if (bias) weighted.add(plain);
        store_affine<F>(out, index, weighted);
    }
}

// Sum of `count` references (of points[0..count) where references is null): block b writes out[b].
template <class F>
CUZK_DEVICE void sum_points(const u32* references, u32 count, const unsigned char* points, unsigned char* pool, unsigned char* out) {
    CUZK_DYNAMIC_SHARED(Xyzz<F>, shared);
    const u32 unit = threadIdx.x / F::LANES, units = TAIL_THREADS / F::LANES;
    Xyzz<F> sum = Xyzz<F>::infinity();
    for (u32 i = blockIdx.x * units + unit; i < count; i += gridDim.x * units)
        sum.add(load_point<F>(references ? references[i] : REF_POINT | i, points, pool));
    for (u32 step = units / 2; step > 0; step /= 2) {
        shared[threadIdx.x] = sum;
        __syncthreads();
        if (unit < step) sum.add(shared[threadIdx.x + step * F::LANES]);
        __syncthreads();
    }
    if (unit == 0) store_affine<F>(out, blockIdx.x, sum);
}

}  // namespace cuzk

using namespace cuzk;

#define KERNEL_NAME_(name, group) name##_##group
#define KERNEL_NAME(name, group) KERNEL_NAME_(name, group)

// 128 threads a block and 4 blocks an SM: 128 registers a thread, the most that keeps 16 warps an SM for loads from DRAM.
CUZK_KERNEL(128, 4)
KERNEL_NAME(pair_add, CUZK_GROUP)(const uint2* pairs, const u32* pair_count, const unsigned char* points, unsigned char* pool,
                                  uint4* scratch, u32 max_batch) {
    pair_add<CUZK_LANE_FIELD>(pairs, *pair_count, points, pool, scratch, max_batch);
}

CUZK_KERNEL(128, 4)
KERNEL_NAME(gather, CUZK_GROUP)(const u32* result, u32 count, const unsigned char* points, unsigned char* pool,
                                unsigned char* buckets) {
    gather_points<CUZK_BRANCHING_LANE_FIELD>(result, count, points, pool, buckets);
}

// Block 2 set: the rows of a set, block 2 set + 1: its columns. See fold_segments.
CUZK_KERNEL(TAIL_THREADS, 1)
KERNEL_NAME(weighted_sums, CUZK_GROUP)(const u32* result, u32 sets, u32 row_bits, u32 column_bits, const unsigned char* points,
                                       unsigned char* pool, unsigned char* out) {
    const u32 set = blockIdx.x / 2, columns = blockIdx.x % 2;
    const u32 base = columns ? (sets << row_bits) + (set << column_bits) : set << row_bits;
    weighted_sum<CUZK_BRANCHING_LANE_FIELD>(result + base, 1u << (columns ? column_bits : row_bits), columns, points, pool, out,
                                            blockIdx.x);
}

CUZK_KERNEL(TAIL_THREADS, 1)
KERNEL_NAME(sum_points, CUZK_GROUP)(const u32* references, const u32* count, u32 fixed_count, const unsigned char* points,
                                    unsigned char* pool, unsigned char* out) {
    sum_points<CUZK_BRANCHING_LANE_FIELD>(references, count ? *count : fixed_count, points, pool, out);
}

// The end of an MSM or a batch addition: a few thousand additions in XYZZ coordinates, bound by latency; and the making of tables. tail_g1.cu and tail_g2.cu define
// CUZK_LANE_FIELD (with branches) and CUZK_GROUP and include this file.
#pragma once

// Calls, not copies: seconds instead of minutes to compile, and loops that fit the instruction cache.
#define CUZK_CALL_POINT
#define CUZK_CALL_LANE_MUL

#include "../ec/pair_add.cuh"
#include "blocks.cuh"

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

// Sum of (v + bias) * P_v over `count` (a power of two) references. Every thread takes a run of neighbours: its plain sum S and its
// weighted sum T. With n runs, sum of u S_u = sum over bits t of 2^t O_t, O_t being the sum of the S_u with bit t of u set: a tree over
// S leaves the right halves of level t, summed up as a vector of their own while the tree goes on. Depth: one addition a level.
template <class F>
CUZK_DEVICE void weighted_sum(const u32* references, u32 count, u32 bias, const unsigned char* points, unsigned char* pool,
                              unsigned char* out, u32 index) {
    constexpr u32 UNITS = TAIL_THREADS / F::LANES;
    CUZK_DYNAMIC_SHARED(Xyzz<F>, shared);  // vectors of `width` elements: S, T, O_0, O_1, ...; 2 UNITS of them at most
    const u32 unit = threadIdx.x / F::LANES, part = threadIdx.x % F::LANES;
    const u32 units = count < UNITS ? count : UNITS, run = count / units;
    Xyzz<F> plain = Xyzz<F>::infinity(), weighted = Xyzz<F>::infinity();
    if (unit < units) {
        for (u32 j = run; j-- > 0;) {
            plain.add(load_point<F>(references[unit * run + j], points, pool));
            if (j > 0) weighted.add(plain);
        }
        shared[unit * F::LANES + part] = plain;
        shared[(units + unit) * F::LANES + part] = weighted;
    }
    __syncthreads();
    u32 vectors = 2;
    for (u32 width = units; width > 1; width /= 2, vectors++) {
        // 2 vectors of 256, 3 of 128, 4 of 64, ...: half as many additions, one a thread
        const u32 half = width / 2;
        const bool mine = unit < vectors * half;
        Xyzz<F> sum, right;
        if (mine) {
            const u32 i = unit / half * width + 2 * (unit % half);
            sum = shared[i * F::LANES + part];
            right = shared[(i + 1) * F::LANES + part];
            sum.add(right);
        }
        __syncthreads();
        if (mine) {
            shared[unit * F::LANES + part] = sum;
            if (unit < half) shared[(vectors * half + unit) * F::LANES + part] = right;
        }
        __syncthreads();
    }
    // Sum of 2^t O_t: neighbours first, so that the doublings of a level go on side by side.
    const u32 levels = vectors - 2;
    Xyzz<F>* outer = shared + 2 * F::LANES;
    for (u32 span = 1; span < levels; span *= 2) {
        const u32 t = 2 * span * unit;
        if (t + span < levels) {
            Xyzz<F> sum = outer[(t + span) * F::LANES + part];
            for (u32 j = 0; j < span; j++) sum.dbl();
            sum.add(outer[t * F::LANES + part]);
            outer[t * F::LANES + part] = sum;
        }
        __syncthreads();
    }
    if (unit == 0) {
        Xyzz<F> total = levels ? outer[part] : Xyzz<F>::infinity();
        for (u32 r = run; r > 1; r /= 2) total.dbl();
        total.add(shared[F::LANES + part]);
        if (bias) total.add(shared[part]);
        store_affine<F>(out, index, total);
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

// A round of groups of 2^bits neighbours (segments.cuh): a group's sum goes to the pool slot of its first reference, or to slot g if
// that is a point (then all are: this is the first round). A group has a team of four lanes or pairs of lanes: an inversion a group
// is cheap enough beside its additions, and a few thousand groups fill the device.
template <class F>
CUZK_DEVICE void sum_groups(const u32* start, const u32* references, u32 segments, const u32* job_start, u32 groups,
                            const u32* next_start, u32* next_references, u32* result, u32 bits, const unsigned char* points,
                            unsigned char* pool) {
    CUZK_DYNAMIC_SHARED(Xyzz<F>, shared);
    constexpr u32 TEAM = 4, TEAMS = TAIL_THREADS / F::LANES / TEAM;
    const u32 unit = threadIdx.x / F::LANES, member = unit % TEAM;
    for (u32 base = blockIdx.x * TEAMS; base < groups; base += gridDim.x * TEAMS) {
        const u32 g = base + unit / TEAM;
        u32 segment = 0, place = 0, first = 0, end = 0;
        Xyzz<F> sum = Xyzz<F>::infinity();
        if (g < groups) {
            segment = last_at_most(job_start, 0, segments - 1, g);
            place = g - job_start[segment];
            first = start[segment] + (place << bits);
            end = start[segment + 1];
            if (end - first > 1u << bits) end = first + (1u << bits);
            for (u32 i = first + member; i < end; i += TEAM) sum.add(load_point<F>(references[i], points, pool));
        }
        for (u32 step = TEAM / 2; step > 0; step /= 2) {
            shared[threadIdx.x] = sum;
            __syncthreads();
            if (member < step) sum.add(shared[threadIdx.x + step * F::LANES]);
            __syncthreads();
        }
        if (g >= groups || member > 0) continue;
        u32 reference = references[first];
        if (end - first > 1) {
            if (reference & REF_POINT) reference = g;
            store_affine<F>(pool, reference, sum);
        }
        if (job_start[segment + 1] - job_start[segment] == 1)
            result[segment] = reference;
        else
            next_references[next_start[segment] + place] = reference;
    }
}

// out[i] = 2^doublings * points[i]
template <class F>
CUZK_DEVICE void shift_points(const unsigned char* points, u32 n, u32 doublings, unsigned char* out) {
    for (u32 i = global_thread() / F::LANES; i < n; i += global_threads() / F::LANES) {
        Xyzz<F> p = Xyzz<F>::from({load_coordinate<F>(points, i, 0), load_coordinate<F>(points, i, 1)});
        for (u32 j = 0; j < doublings; j++) p.dbl();
        store_affine<F>(out, i, p);
    }
}

}  // namespace cuzk

using namespace cuzk;

#define KERNEL_NAME_(name, group) name##_##group
#define KERNEL_NAME(name, group) KERNEL_NAME_(name, group)

// Block 2 set: the rows of a set, block 2 set + 1: its columns. See fold_segments.
CUZK_KERNEL(TAIL_THREADS, 1)
KERNEL_NAME(weighted_sums, CUZK_GROUP)(const u32* result, u32 sets, u32 wide, u32 row_bits, u32 column_bits, const unsigned char* points,
                                       unsigned char* pool, unsigned char* out) {
    const u32 set = blockIdx.x / 2, columns = blockIdx.x % 2;
    const u32 rows_before = (set + (set < wide ? set : wide)) << row_bits, all_rows = (sets + wide) << row_bits;
    const u32 base = columns ? all_rows + (set << column_bits) : rows_before;
    const u32 bits = columns ? column_bits : row_bits + (set < wide);
    weighted_sum<CUZK_LANE_FIELD>(result + base, 1u << bits, columns, points, pool, out, blockIdx.x);
}

CUZK_KERNEL(128, 3)
KERNEL_NAME(shift_points, CUZK_GROUP)(const unsigned char* points, u32 n, u32 doublings, unsigned char* out) {
    shift_points<CUZK_LANE_FIELD>(points, n, doublings, out);
}

CUZK_KERNEL(TAIL_THREADS, 1)
KERNEL_NAME(sum_points, CUZK_GROUP)(const u32* references, const u32* count, u32 fixed_count, const unsigned char* points,
                                    unsigned char* pool, unsigned char* out) {
    sum_points<CUZK_LANE_FIELD>(references, count ? *count : fixed_count, points, pool, out);
}

// 128 registers: 16 warps an SM.
CUZK_KERNEL(TAIL_THREADS, 2)
KERNEL_NAME(sum_groups, CUZK_GROUP)(const u32* start, const u32* references, u32 segments, const u32* job_start, const u32* next_start,
                                    u32* next_references, u32* result, const u32* counts, u32 round, u32 bits,
                                    const unsigned char* points, unsigned char* pool) {
    sum_groups<CUZK_LANE_FIELD>(start, references, segments, job_start, counts[2 * round + 1], next_start, next_references, result,
                                bits, points, pool);
}

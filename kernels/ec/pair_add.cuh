// Sums of many independent pairs of affine points, with one inversion for a whole batch of them (Montgomery's trick).
//
//   lambda = (y2 - y1) / (x2 - x1),  x3 = lambda^2 - x1 - x2,  y3 = lambda (x1 - x3) - y1
//
// A thread walks its pairs twice: forward it multiplies up the denominators and stores the products so far, then it inverts once,
// and backward it peels the inverses off again. 5M + 1S a sum, plus 33M / batch for the inversion; an XYZZ addition costs 8M + 2S.
// Doubling has the denominator 2 y1; where there is nothing to divide by (infinity, P - P) the denominator is 1.
#pragma once

#include "../msm/references.cuh"
#include "lane_field.cuh"

namespace cuzk {

enum PairKind : u32 { PAIR_SUM, PAIR_DOUBLE, PAIR_FIRST, PAIR_SECOND, PAIR_INFINITY };

template <class F>
struct PairSource {
    const unsigned char* points;
    unsigned char* pool;

    CUZK_DEVICE const unsigned char* array(u32 ref) const { return ref & REF_POINT ? points : pool; }
    CUZK_DEVICE F x(u32 ref) const { return load_coordinate<F>(array(ref), ref & REF_INDEX, 0); }
    CUZK_DEVICE F y(u32 ref) const {
        F r = load_coordinate<F>(array(ref), ref & REF_INDEX, 1);
        if (ref & REF_NEGATIVE) r = -r;
        return r;
    }
};


template <class F>
CUZK_DEVICE PairKind classify(u32 flags, const F& y1, const F& y2) {
    u32 zeros = y1.v.is_zero() | static_cast<u32>(y2.v.is_zero()) << 1 | static_cast<u32>((y1.v + y2.v).is_zero()) << 2;
    zeros = F::all_lanes(zeros);
    bool infinite1 = flags & zeros & 1, infinite2 = flags & zeros & 2;
    if (infinite1) return PAIR_SECOND;
    if (infinite2) return PAIR_FIRST;
    if (!(flags & 4)) return PAIR_SUM;
    return zeros & 4 ? PAIR_INFINITY : PAIR_DOUBLE;
}

template <class F>
CUZK_DEVICE F special_denominator(PairKind kind, const F& difference, const F& y1) {
    F twice = y1.dbl(), one = F::one(), r;
#pragma unroll
    for (int i = 0; i < Fq::N; i++)
        r.v.v[i] = kind == PAIR_SUM ? difference.v.v[i] : kind == PAIR_DOUBLE ? twice.v.v[i] : one.v.v[i];
    return r;
}

// pairs[p] = (first, second), p < pair_count. The sum goes to the pool slot of the first partial sum among the two, or to slot p.
// scratch: 48 bytes * threads of the grid * max_batch. All lanes of a warp stay together, since lanes of a pair exchange words.
template <class F>
CUZK_DEVICE void pair_add(const uint2* pairs, u32 pair_count, const unsigned char* points, unsigned char* pool,
                          uint4* scratch, u32 max_batch) {
    PairSource<F> source{points, pool};
    const u32 threads = global_threads(), thread = global_thread();
    const u32 units = threads / F::LANES, unit = thread / F::LANES;
    // Even batches: as many rounds of the whole grid as needed, and no thread with much more than its share.
    const u32 turns = (pair_count + units * max_batch - 1) / (units * max_batch);
    const u32 batch = turns == 0 ? 0 : (pair_count + units * turns - 1) / (units * turns);
    for (u32 turn = 0; turn < turns; turn++) {
        const u32 first = turn * batch * units + unit;
        F product = F::one();
        for (u32 k = 0; k < batch; k++) {
            u32 p = first + k * units;
            bool valid = p < pair_count;
            F d = F::one();
            u32 flags = 0;
            uint2 pair = make_uint2(0, 0);
            if (valid) pair = pairs[p];
            if (valid) {
                F x1 = source.x(pair.x), x2 = source.x(pair.y);
                d = x2 - x1;
                flags = x1.v.is_zero() | static_cast<u32>(x2.v.is_zero()) << 1 | static_cast<u32>(d.v.is_zero()) << 2;
            }
            flags = F::all_lanes(flags);
            if (__any_sync(FULL_WARP, flags)) {
                F y1 = F::one(), y2 = F::zero();
                if (valid) {
                    y1 = source.y(pair.x);
                    y2 = source.y(pair.y);
                }
                PairKind kind = classify(flags, y1, y2);
                d = special_denominator(kind, d, y1);
            }
#pragma unroll
            for (int i = 0; i < 3; i++)
                scratch[(static_cast<u64>(k) * 3 + i) * threads + thread] =
                    make_uint4(product.v.v[4 * i], product.v.v[4 * i + 1], product.v.v[4 * i + 2], product.v.v[4 * i + 3]);
            product = product * d;
        }
        F inverse = product.inverse();
        for (u32 k = batch; k-- > 0;) {
            u32 p = first + k * units;
            bool valid = p < pair_count;
            uint2 pair = make_uint2(0, 0);
            F x1 = F::zero(), x2 = F::one(), y1 = F::zero(), y2 = F::zero(), before;
            if (valid) {
                pair = pairs[p];
                x1 = source.x(pair.x);
                x2 = source.x(pair.y);
            }
#pragma unroll
            for (int i = 0; i < 3; i++) {
                uint4 t = scratch[(static_cast<u64>(k) * 3 + i) * threads + thread];
                before.v.v[4 * i] = t.x;
                before.v.v[4 * i + 1] = t.y;
                before.v.v[4 * i + 2] = t.z;
                before.v.v[4 * i + 3] = t.w;
            }
            F d = x2 - x1;
            if (!valid) d = F::one();
            u32 flags = 0;
            if (valid) flags = x1.v.is_zero() | static_cast<u32>(x2.v.is_zero()) << 1 | static_cast<u32>(d.v.is_zero()) << 2;
            flags = F::all_lanes(flags);
            if (valid) {
                y1 = source.y(pair.x);
                y2 = source.y(pair.y);
            }
            F numerator = y2 - y1;
            PairKind kind = PAIR_SUM;
            if (__any_sync(FULL_WARP, flags)) {
                kind = classify(flags, y1, y2);
                d = special_denominator(kind, d, y1);
                F xx = x1.sqr();
                xx = xx.dbl() + xx;
                if (kind == PAIR_DOUBLE) numerator = xx;
            }
            F lambda = numerator * (inverse * before);
            inverse = inverse * d;
            F x3 = lambda.sqr() - x1 - x2;
            F y3 = lambda * (x1 - x3) - y1;
            if (kind >= PAIR_FIRST) {
                x3 = y3 = F::zero();
                if (kind != PAIR_INFINITY) {
                    u32 ref = kind == PAIR_FIRST ? pair.x : pair.y;
                    x3 = source.x(ref);
                    y3 = source.y(ref);
                }
            }
            if (valid) {
                u32 slot = !(pair.x & REF_POINT) ? pair.x & REF_INDEX : !(pair.y & REF_POINT) ? pair.y & REF_INDEX : p;
                store_coordinate(pool, slot, 0, x3);
                store_coordinate(pool, slot, 1, y3);
            }
        }
    }
}

}  // namespace cuzk

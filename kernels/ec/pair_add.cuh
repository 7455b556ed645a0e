// Sums of many independent pairs of affine points, with one inversion for a whole batch of them (Montgomery's trick).
//
//   lambda = (y2 - y1) / (x2 - x1),  x3 = lambda^2 - x1 - x2,  y3 = lambda (x1 - x3) - y1
//
// A thread walks its pairs twice: forward it multiplies up the denominators and stores the products so far, then it inverts once,
// and backward it peels the inverses off again. 5M + 1S a sum, plus 33M / batch for the inversion; an XYZZ addition costs 8M + 2S.
// Pairs that this formula does not cover (infinity, doubling, P - P) leave the batch with denominator 1 and are done afterwards,
// one by one: they are rare, and the loops that matter stay free of them.
#pragma once

#include "../msm/references.cuh"
#include "lane_field.cuh"

namespace cuzk {

enum PairKind : u32 { PAIR_SUM, PAIR_DOUBLE, PAIR_FIRST, PAIR_SECOND, PAIR_INFINITY };

template <class F>
struct PairSource {
    const unsigned char* points;
    unsigned char* pool;

    CUZK_DEVICE const unsigned char* at(u32 ref) const {
        return (ref & REF_POINT ? points : pool) + static_cast<u64>(ref & REF_INDEX) * F::POINT_BYTES;
    }
    CUZK_DEVICE F x(u32 ref) const { return load_coordinate<F>(at(ref), 0, 0); }
    CUZK_DEVICE F y(u32 ref) const {
        F r = load_coordinate<F>(at(ref), 0, 1);
        if (ref & REF_NEGATIVE) r = -r;
        return r;
    }
};

// y or q - y, for y != 0.
template <class F>
CUZK_DEVICE F signed_y(const F& y, u32 ref) {
    u32 m[Fq::N];
#pragma unroll
    for (int i = 0; i < Fq::N; i++) m[i] = FqParams::mod32(i);
    words_sub<Fq::N>(m, y.v.v);
    F r;
#pragma unroll
    for (int i = 0; i < Fq::N; i++) r.v.v[i] = ref & REF_NEGATIVE ? m[i] : y.v.v[i];
    return r;
}

// Non-zero if the plain formula may not hold: 1 x1 = 0, 2 x2 = 0 (infinity, perhaps), 4 x1 = x2. The same in all lanes of an element.
template <class F>
CUZK_DEVICE u32 suspicions(const F& x1, const F& x2, const F& difference) {
    return F::all_lanes(x1.v.is_zero() | static_cast<u32>(x2.v.is_zero()) << 1 | static_cast<u32>(difference.v.is_zero()) << 2);
}

template <class F>
CUZK_DEVICE PairKind classify(u32 suspicions, const F& y1, const F& y2) {
    u32 zeros = y1.v.is_zero() | static_cast<u32>(y2.v.is_zero()) << 1 | static_cast<u32>((y1.v + y2.v).is_zero()) << 2;
    zeros = F::all_lanes(zeros);
    if (suspicions & zeros & 1) return PAIR_SECOND;
    if (suspicions & zeros & 2) return PAIR_FIRST;
    if (!(suspicions & 4)) return PAIR_SUM;
    return zeros & 4 ? PAIR_INFINITY : PAIR_DOUBLE;
}

// The pool slot of a pair's sum.
CUZK_DEVICE u32 slot_of(uint2 pair, u32 p) {
    return !(pair.x & REF_POINT) ? pair.x & REF_INDEX : !(pair.y & REF_POINT) ? pair.y & REF_INDEX : p;
}

constexpr u32 PAIR_MAX_BATCH = 128;

// Which pairs of a batch are not for the plain formula: one bit each.
struct PairMask {
    u64 low = 0, high = 0;
    CUZK_DEVICE void set(u32 k) { (k < 64 ? low : high) |= 1ull << (k & 63); }
    CUZK_DEVICE bool get(u32 k) const { return (k < 64 ? low : high) >> (k & 63) & 1; }
    CUZK_DEVICE bool any() const { return (low | high) != 0; }
    CUZK_DEVICE u32 size() const { return static_cast<u32>(__popcll(low) + __popcll(high)); }
};

// The prefix products of a thread's batch, in planes of 16 bytes a lane.
template <class F>
CUZK_DEVICE void store_prefix(uint4* scratch, u32 k, const F& product) {
#pragma unroll
    for (int i = 0; i < 3; i++)
        scratch[(k * 3 + i) * 32] =
            make_uint4(product.v.v[4 * i], product.v.v[4 * i + 1], product.v.v[4 * i + 2], product.v.v[4 * i + 3]);
}
template <class F>
CUZK_DEVICE F load_prefix(const uint4* scratch, u32 k) {
    F product;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        uint4 t = scratch[(k * 3 + i) * 32];
        product.v.v[4 * i] = t.x;
        product.v.v[4 * i + 1] = t.y;
        product.v.v[4 * i + 2] = t.z;
        product.v.v[4 * i + 3] = t.w;
    }
    return product;
}

// The pairs of a batch that pair_add left out: infinity, doubling, P - P, and x = 0. Where there is something to divide, again one
// inversion a thread, so that nothing but doublings costs about twice what sums cost. Called by whole warps.
template <class F>
CUZK_DEVICE_CALL void pair_add_special(const uint2* pairs, u32 last, PairSource<F> source, u32 first, u32 batch, PairMask left_out,
                                       uint4* scratch) {
    F product = F::one(), inverse = F::one();
    bool divides = false;
    for (u32 k = 0; k < batch; k++) {
        const bool mine = left_out.get(k);
        if (!__any_sync(FULL_WARP, mine)) continue;
        const u32 p = first + k * (32 / F::LANES);
        const uint2 pair = pairs[p < last ? p : last];
        F x1 = source.x(pair.x), x2 = source.x(pair.y), d = x2 - x1;
        const u32 flags = suspicions(x1, x2, d);
        F y1 = source.y(pair.x), y2 = source.y(pair.y);
        const PairKind kind = classify(flags, y1, y2);
        store_prefix(scratch, k, product);
        if (kind == PAIR_DOUBLE) d = y1.dbl();
        if (!mine || kind > PAIR_DOUBLE) d = F::one();
        divides |= mine && kind <= PAIR_DOUBLE;
        product = product * d;
    }
    const bool any_divides = __any_sync(FULL_WARP, divides);
    if (any_divides) inverse = product.inverse();
    for (u32 k = batch; k-- > 0;) {
        const bool mine = left_out.get(k);
        if (!__any_sync(FULL_WARP, mine)) continue;
        const u32 p = first + k * (32 / F::LANES);
        const uint2 pair = pairs[p < last ? p : last];
        F x1 = source.x(pair.x), x2 = source.x(pair.y), d = x2 - x1;
        const u32 flags = suspicions(x1, x2, d);
        F y1 = source.y(pair.x), y2 = source.y(pair.y), numerator = y2 - y1;
        const PairKind kind = classify(flags, y1, y2);
        F x3 = F::zero(), y3 = F::zero();
        if (any_divides) {
            F xx = x1.sqr(), twice = y1.dbl();
            xx = xx.dbl() + xx;
            if (kind == PAIR_DOUBLE) {
                d = twice;
                numerator = xx;
            }
            if (!mine || kind > PAIR_DOUBLE) d = F::one();
            F lambda = numerator * (inverse * load_prefix<F>(scratch, k));
            inverse = inverse * d;
            x3 = lambda.sqr() - x1 - x2;
            y3 = lambda * (x1 - x3) - y1;
        }
        if (!mine) continue;
        if (kind == PAIR_FIRST) x3 = x1, y3 = y1;
        if (kind == PAIR_SECOND) x3 = x2, y3 = y2;
        if (kind == PAIR_INFINITY) x3 = y3 = F::zero();
        u32 slot = slot_of(pair, p);
        store_coordinate(source.pool, slot, 0, x3);
        store_coordinate(source.pool, slot, 1, y3);
    }
}

// pairs[p] = (first, second), p < pair_count. The sum goes to the pool slot of the first partial sum among the two, or to slot p.
// A warp takes tiles of neighbouring pairs, `batch` a thread, from the counter *ticket (zero at the start): the scheduler favours some
// warps, and with equal shares those would finish early and leave the multipliers to the rest.
// scratch: 48 bytes * threads of the grid * max_batch, max_batch <= PAIR_MAX_BATCH. All lanes of a warp stay together, since lanes of a
// pair exchange words; a lane without a pair repeats the last one and stores nothing.
template <class F>
CUZK_DEVICE void pair_add(const uint2* __restrict__ pairs, u32 pair_count, const unsigned char* points, unsigned char* pool,
                          uint4* scratch, u32 max_batch, u32* ticket) {
    PairSource<F> source{points, pool};
    if (pair_count == 0) return;
    constexpr u32 UNITS = 32 / F::LANES;  // of a warp
    const u32 lane = lane_id(), warp = global_thread() / 32, last = pair_count - 1;
    const u32 all_units = global_threads() / F::LANES;
    const u32 share = (pair_count + all_units - 1) / all_units;
    const u32 turns = (share + max_batch - 1) / max_batch, batch = (share + turns - 1) / turns;
    scratch += static_cast<u64>(warp) * max_batch * 96 + lane;
    for (;;) {
        u32 tile = 0;
        if (lane == 0) tile = atomicAdd(ticket, 1u);
        tile = __shfl_sync(FULL_WARP, tile, 0);
        if (static_cast<u64>(tile) * batch * UNITS >= pair_count) break;
        const u32 first = tile * batch * UNITS + lane / F::LANES;
        F product = F::one();
        PairMask left_out;
        // The references of the next pair are loaded one step ahead: its points are then one latency away, not two.
        uint2 next = pairs[first < last ? first : last];
        for (u32 k = 0; k < batch; k++) {
            const u32 p = first + k * UNITS;
            const uint2 pair = next;
            next = pairs[p + UNITS < last ? p + UNITS : last];
            F x1 = source.x(pair.x), x2 = source.x(pair.y);
            store_prefix(scratch, k, product);
            F d = x2 - x1;
            u32 flags = suspicions(x1, x2, d);
            if (p > last)
                d = F::one();  // its operands belong to another thread, which may overwrite them at any time
            else if (flags)
                d = F::one(), left_out.set(k);
            product = product * d;
        }
        // Nothing but infinities and doublings (empty buckets, equal points): there is nothing to peel off.
        const u32 own = first > last ? 0 : (last - first) / UNITS + 1;
        const bool all_left_out = __all_sync(FULL_WARP, left_out.size() == (own < batch ? own : batch));
        F inverse = all_left_out ? product : product.inverse();
        next = pairs[first + (batch - 1) * UNITS < last ? first + (batch - 1) * UNITS : last];
        for (u32 k = all_left_out ? 0 : batch; k-- > 0;) {
            const u32 p = first + k * UNITS;
            const uint2 pair = next;
            const u32 before_p = k ? p - UNITS : p;
            next = pairs[before_p < last ? before_p : last];
            F before = load_prefix<F>(scratch, k);
            const unsigned char *a = source.at(pair.x), *b = source.at(pair.y);
            F x1 = load_coordinate<F>(a, 0, 0), x2 = load_coordinate<F>(b, 0, 0);
            F y1 = load_coordinate<F>(a, 0, 1), y2 = load_coordinate<F>(b, 0, 1);
            F d = x2 - x1;
            const bool plain = p <= last && !left_out.get(k);
            if (!plain) d = F::one();
            inverse.times_both(before, d);  // the inverse of this denominator, and of the product before it
            inverse = d;
            y1 = signed_y(y1, pair.x);
            F lambda = (signed_y(y2, pair.y) - y1) * before;
            F x3 = lambda.sqr() - x1 - x2;
            F y3 = lambda * (x1 - x3) - y1;
            if (plain) {
                const u32 slot = slot_of(pair, p);
                store_coordinate(pool, slot, 0, x3);
                store_coordinate(pool, slot, 1, y3);
            }
        }
        if (__any_sync(FULL_WARP, left_out.any())) pair_add_special<F>(pairs, last, source, first, batch, left_out, scratch);
    }
}

}  // namespace cuzk

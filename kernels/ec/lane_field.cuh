// The coordinate field of a curve as the lanes of a warp hold it: an Fq in one lane, an Fq2 in a pair of lanes (even lane c0, odd lane
// c1). With a pair, a kernel over G2 needs no more registers than one over G1, and both come from one source.
//
// Each type offers what Xyzz<F> needs (+ - * sqr dbl is_zero zero one ==) plus `inverse`, `load`, `store`. A comparison gives the same
// answer in both lanes of a pair. `Mask` says who takes part in an exchange: the whole warp (`Converged`, for code in which all lanes
// of the warp move together) or only the pair (for code with branches; a branch must still be taken by both lanes).
#pragma once

#include "../device.cuh"
#include "../ff/euclid.cuh"
#include "curve.hpp"

namespace cuzk {

CUZK_DEVICE void load_words48(u32* v, const void* address) {
    const uint4* p = reinterpret_cast<const uint4*>(address);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        uint4 t = p[i];
        v[4 * i] = t.x;
        v[4 * i + 1] = t.y;
        v[4 * i + 2] = t.z;
        v[4 * i + 3] = t.w;
    }
}

CUZK_DEVICE void store_words48(void* address, const u32* v) {
    uint4* p = reinterpret_cast<uint4*>(address);
#pragma unroll
    for (int i = 0; i < 3; i++) p[i] = make_uint4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
}

// Multiplications by value: called, their operands stay in registers. CUZK_CALL_LANE_MUL makes them calls (small code, quick to
// compile) for kernels that are bound by latency.
#ifdef CUZK_CALL_LANE_MUL
#define CUZK_LANE_MUL CUZK_DEVICE_CALL
#else
#define CUZK_LANE_MUL CUZK_DEVICE
#endif
CUZK_LANE_MUL Fq lane_mul(Fq a, Fq b) {
    Fq r;
    mont_mul<FqParams>(r.v, a.v, b.v);
    return r;
}
CUZK_LANE_MUL Fq lane_sqr(Fq a) {
    Fq r;
    mont_sqr<FqParams>(r.v, a.v);
    return r;
}
CUZK_LANE_MUL Fq lane_mul_add_mul(Fq a, Fq b, Fq c, Fq d) {
    Fq r;
    mont_mul_add_mul<FqParams>(r.v, a.v, b.v, c.v, d.v);
    return r;
}

// Fq, one lane.
struct LaneFq {
    static constexpr int LANES = 1;
    static constexpr u32 COORDINATE_BYTES = 48, POINT_BYTES = 96;  // in affine arrays
    Fq v;

    CUZK_DEVICE static LaneFq zero() { return {Fq::zero()}; }
    CUZK_DEVICE static LaneFq one() { return {Fq::one()}; }
    CUZK_DEVICE bool is_zero() const { return v.is_zero(); }
    CUZK_DEVICE friend bool operator==(const LaneFq& a, const LaneFq& b) { return a.v == b.v; }
    CUZK_DEVICE friend LaneFq operator+(const LaneFq& a, const LaneFq& b) { return {a.v + b.v}; }
    CUZK_DEVICE friend LaneFq operator-(const LaneFq& a, const LaneFq& b) { return {a.v - b.v}; }
    CUZK_DEVICE LaneFq operator-() const { return {-v}; }
    CUZK_DEVICE LaneFq dbl() const { return {v.dbl()}; }
    CUZK_DEVICE friend LaneFq operator*(const LaneFq& a, const LaneFq& b) { return {lane_mul(a.v, b.v)}; }
    CUZK_DEVICE LaneFq sqr() const { return {lane_sqr(v)}; }
    CUZK_DEVICE LaneFq inverse() const { return {inverse_euclid(v)}; }
    // Both a * *this and b * *this, not reduced: operands of further multiplications only, and so may *this be.
    CUZK_DEVICE void times_both(LaneFq& a, LaneFq& b) const {
        MontFactor<FqParams> factor(v.v);
        LaneFq ra, rb;
        factor.times(ra.v.v, v.v, a.v.v);
        factor.times(rb.v.v, v.v, b.v.v);
        a = ra;
        b = rb;
    }
    // `flags` bit by bit true in every lane of the element
    CUZK_DEVICE static u32 all_lanes(u32 flags) { return flags; }
};

// Fq2, a pair of lanes.
template <bool Converged>
struct LaneFq2 {
    static constexpr int LANES = 2;
    static constexpr u32 COORDINATE_BYTES = 96, POINT_BYTES = 192;
    Fq v;

    CUZK_DEVICE static u32 mask() { return Converged ? FULL_WARP : 3u << (lane_id() & 30); }
    CUZK_DEVICE static bool is_c1() { return threadIdx.x & 1; }
    CUZK_DEVICE Fq other() const {
        Fq o;
        exchange_words<Fq::N>(mask(), o.v, v.v);
        return o;
    }
    CUZK_DEVICE static u32 all_lanes(u32 flags) {
        u32 o;
        exchange_words<1>(mask(), &o, &flags);
        return o & flags;
    }

    CUZK_DEVICE static LaneFq2 zero() { return {Fq::zero()}; }
    CUZK_DEVICE static LaneFq2 one() { return {is_c1() ? Fq::zero() : Fq::one()}; }
    CUZK_DEVICE bool is_zero() const { return all_lanes(v.is_zero()); }
    CUZK_DEVICE friend bool operator==(const LaneFq2& a, const LaneFq2& b) { return all_lanes(a.v == b.v); }
    CUZK_DEVICE friend LaneFq2 operator+(const LaneFq2& a, const LaneFq2& b) { return {a.v + b.v}; }
    CUZK_DEVICE friend LaneFq2 operator-(const LaneFq2& a, const LaneFq2& b) { return {a.v - b.v}; }
    CUZK_DEVICE LaneFq2 operator-() const { return {-v}; }
    CUZK_DEVICE LaneFq2 dbl() const { return {v.dbl()}; }
    // c0 = a0 b0 - a1 b1 in the even lane, c1 = a1 b0 + a0 b1 in the odd one: two products and one reduction each.
    CUZK_DEVICE friend LaneFq2 operator*(const LaneFq2& a, const LaneFq2& b) {
        Fq ao = a.other(), bo = b.other();
        Fq minus = -ao;
        Fq s, t;
#pragma unroll
        for (int i = 0; i < Fq::N; i++) {
            s.v[i] = is_c1() ? ao.v[i] : a.v.v[i];
            t.v[i] = is_c1() ? a.v.v[i] : minus.v[i];
        }
        return {lane_mul_add_mul(s, b.v, t, bo)};
    }
    CUZK_DEVICE void times_both(LaneFq2& a, LaneFq2& b) const {
        a = *this * a;
        b = *this * b;
    }
    // c0 = (a0 + a1)(a0 - a1), c1 = (2 a0) a1: one product each.
    CUZK_DEVICE LaneFq2 sqr() const {
        Fq o = other(), p = o + (is_c1() ? o : v), d = v - o;
#pragma unroll
        for (int i = 0; i < Fq::N; i++) d.v[i] = is_c1() ? v.v[i] : d.v[i];
        return {lane_mul(p, d)};
    }
    // (c0 - c1 u) / (c0^2 + c1^2): both lanes invert the same norm.
    CUZK_DEVICE LaneFq2 inverse() const {
        LaneFq2 square{lane_sqr(v)};
        Fq n = inverse_euclid(square.v + square.other());
        Fq r = lane_mul(v, n), m = -r;
#pragma unroll
        for (int i = 0; i < Fq::N; i++) r.v[i] = is_c1() ? m.v[i] : r.v[i];
        return {r};
    }
};

// This lane's part of coordinate `which` (0 x, 1 y) of point `index` of an affine array.
template <class F>
CUZK_DEVICE F load_coordinate(const unsigned char* points, u64 index, int which) {
    F r;
    u32 part = F::LANES == 1 ? 0 : (threadIdx.x & 1) * 48;
    load_words48(r.v.v, points + index * F::POINT_BYTES + which * F::COORDINATE_BYTES + part);
    return r;
}
template <class F>
CUZK_DEVICE void store_coordinate(unsigned char* points, u64 index, int which, const F& value) {
    u32 part = F::LANES == 1 ? 0 : (threadIdx.x & 1) * 48;
    store_words48(points + index * F::POINT_BYTES + which * F::COORDINATE_BYTES + part, value.v.v);
}

}  // namespace cuzk

// Eight field elements at a time: what the bulk loops (batch addition, NTT) are written in.
//
// Two back ends behind one interface: LanesScalar loops over Fp, LanesIfma (lanes_ifma.hpp, built with CUZK_IFMA) keeps one
// element a lane of 512-bit registers. An `Elem` is one element as such loops keep it in their own memory; only enter/leave
// know how it relates to Fp:
//
//   load_raw / store_raw    external Fr/Fq arrays (any alignment), value unchanged
//   mul(raw, lane constant) is raw again: the NTT never converts its data, only its twiddles
//   enter / leave           raw <-> the back end's own Montgomery domain, in which mul(lane, lane) is a lane value
#pragma once

#include <cstdint>
#include <cstring>

#include "inverse.hpp"

namespace cuzk {
constexpr int LANES = 8;
using LaneMask = unsigned;  // bit i: lane i
}  // namespace cuzk

#ifdef CUZK_IFMA
#include "lanes_ifma.hpp"
#endif

namespace cuzk {

template <class P>
struct LanesScalar {
    using Field = Fp<P>;
    using Elem = Fp<P>;
    Field v[LANES];

    static Elem to_elem(const Field& a) { return a; }
    static Field from_elem(const Elem& a) { return a; }
    static Elem negate_elem(const Elem& a) { return -a; }
    static LanesScalar broadcast(const Elem& a) {
        LanesScalar r;
        for (auto& x : r.v) x = a;
        return r;
    }
    void load(const char* const* p, std::size_t offset) {
        for (int i = 0; i < LANES; i++) std::memcpy(&v[i], p[i] + offset, sizeof(Elem));
    }
    void store(char* const* p, std::size_t offset) const {
        for (int i = 0; i < LANES; i++) std::memcpy(p[i] + offset, &v[i], sizeof(Elem));
    }
    void load_raw(const char* const* p, std::size_t offset) { load(p, offset); }
    void store_raw(char* const* p, std::size_t offset) const { store(p, offset); }
    void enter() {}
    void leave() {}

    static void mul(LanesScalar& r, const LanesScalar& a, const LanesScalar& b) {
        for (int i = 0; i < LANES; i++) Field::mul_into(r.v[i], a.v[i], b.v[i]);
    }
    static void sqr(LanesScalar& r, const LanesScalar& a) {
        for (int i = 0; i < LANES; i++) Field::sqr_into(r.v[i], a.v[i]);
    }
    static void add(LanesScalar& r, const LanesScalar& a, const LanesScalar& b) {
        for (int i = 0; i < LANES; i++) r.v[i] = a.v[i] + b.v[i];
    }
    static void sub(LanesScalar& r, const LanesScalar& a, const LanesScalar& b) {
        for (int i = 0; i < LANES; i++) r.v[i] = a.v[i] - b.v[i];
    }
    // a - b for use as a factor only, where a back end may skip the reduction; a - b - c.
    static void sub_loose(LanesScalar& r, const LanesScalar& a, const LanesScalar& b) { sub(r, a, b); }
    static void sub_two(LanesScalar& r, const LanesScalar& a, const LanesScalar& b, const LanesScalar& c) {
        for (int i = 0; i < LANES; i++) r.v[i] = a.v[i] - b.v[i] - c.v[i];
    }
    // a, c <- a + c, (a - c) w: the step of a decimation in frequency.
    static void butterfly(LanesScalar& a, LanesScalar& c, const Elem& w) {
        for (int i = 0; i < LANES; i++) {
            Field d = a.v[i] - c.v[i];
            a.v[i] = a.v[i] + c.v[i];
            Field::mul_into(c.v[i], d, w);
        }
    }
    void negate(LaneMask m) {
        for (int i = 0; i < LANES; i++)
            if (m >> i & 1) v[i] = -v[i];
    }
    void blend(LaneMask m, const LanesScalar& other) {
        for (int i = 0; i < LANES; i++)
            if (m >> i & 1) v[i] = other.v[i];
    }
    LaneMask zeros() const {
        LaneMask m = 0;
        for (int i = 0; i < LANES; i++) m |= static_cast<LaneMask>(v[i].is_zero()) << i;
        return m;
    }
    LaneMask zero_values() const { return zeros(); }
    static LaneMask equal(const LanesScalar& a, const LanesScalar& b) {
        LaneMask m = 0;
        for (int i = 0; i < LANES; i++) m |= static_cast<LaneMask>(a.v[i] == b.v[i]) << i;
        return m;
    }
    // All lanes inverted with one inversion; no lane may be zero.
    void invert() {
        Field scratch[LANES];
        batch_inverse(v, scratch, LANES);
    }
};

#ifdef CUZK_IFMA
template <class P>
using LanesFp = LanesIfma<P>;
#else
template <class P>
using LanesFp = LanesScalar<P>;
#endif

// The same over Fq2 = Fq[u]/(u^2 + 1).
struct LanesFq2 {
    using L = LanesFp<FqParams>;
    using Field = Fq2;
    struct Elem {
        L::Elem c0, c1;
    };
    L c0, c1;

    static Elem to_elem(const Fq2& a) { return {L::to_elem(a.c0), L::to_elem(a.c1)}; }
    static Fq2 from_elem(const Elem& a) { return {L::from_elem(a.c0), L::from_elem(a.c1)}; }
    static Elem negate_elem(const Elem& a) { return {L::negate_elem(a.c0), L::negate_elem(a.c1)}; }
    static LanesFq2 broadcast(const Elem& a) { return {L::broadcast(a.c0), L::broadcast(a.c1)}; }
    void load(const char* const* p, std::size_t offset) {
        c0.load(p, offset);
        c1.load(p, offset + sizeof(L::Elem));
    }
    void store(char* const* p, std::size_t offset) const {
        c0.store(p, offset);
        c1.store(p, offset + sizeof(L::Elem));
    }
    void load_raw(const char* const* p, std::size_t offset) {
        c0.load_raw(p, offset);
        c1.load_raw(p, offset + sizeof(Fq));
    }
    void store_raw(char* const* p, std::size_t offset) const {
        c0.store_raw(p, offset);
        c1.store_raw(p, offset + sizeof(Fq));
    }
    void enter() { c0.enter(), c1.enter(); }
    void leave() { c0.leave(), c1.leave(); }
    static void mul(LanesFq2& r, const LanesFq2& a, const LanesFq2& b) {
        L s, t, p0, p1;
        L::add(s, a.c0, a.c1);
        L::add(t, b.c0, b.c1);
        L::mul(s, s, t);
        L::mul(p0, a.c0, b.c0);
        L::mul(p1, a.c1, b.c1);
        L::sub(r.c0, p0, p1);
        L::sub_two(r.c1, s, p0, p1);
    }
    static void sqr(LanesFq2& r, const LanesFq2& a) {
        L s, d, m;
        L::add(s, a.c0, a.c1);
        L::sub_loose(d, a.c0, a.c1);
        L::mul(m, a.c0, a.c1);
        L::mul(r.c0, s, d);
        L::add(r.c1, m, m);
    }
    static void add(LanesFq2& r, const LanesFq2& a, const LanesFq2& b) { L::add(r.c0, a.c0, b.c0), L::add(r.c1, a.c1, b.c1); }
    static void sub(LanesFq2& r, const LanesFq2& a, const LanesFq2& b) { L::sub(r.c0, a.c0, b.c0), L::sub(r.c1, a.c1, b.c1); }
    static void sub_loose(LanesFq2& r, const LanesFq2& a, const LanesFq2& b) {
        L::sub_loose(r.c0, a.c0, b.c0), L::sub_loose(r.c1, a.c1, b.c1);
    }
    static void sub_two(LanesFq2& r, const LanesFq2& a, const LanesFq2& b, const LanesFq2& c) {
        L::sub_two(r.c0, a.c0, b.c0, c.c0), L::sub_two(r.c1, a.c1, b.c1, c.c1);
    }
    void negate(LaneMask m) { c0.negate(m), c1.negate(m); }
    void blend(LaneMask m, const LanesFq2& o) { c0.blend(m, o.c0), c1.blend(m, o.c1); }
    LaneMask zeros() const { return c0.zeros() & c1.zeros(); }
    LaneMask zero_values() const { return c0.zero_values() & c1.zero_values(); }
    static LaneMask equal(const LanesFq2& a, const LanesFq2& b) { return L::equal(a.c0, b.c0) & L::equal(a.c1, b.c1); }
    void invert() {
        L n, t;
        L::sqr(n, c0);
        L::sqr(t, c1);
        L::add(n, n, t);
        n.invert();
        L::mul(c0, c0, n);
        L::mul(c1, c1, n);
        c1.negate(~0u);
    }
};

template <class F>
struct LanesOfField;
template <class P>
struct LanesOfField<Fp<P>> {
    using type = LanesFp<P>;
};
template <>
struct LanesOfField<Fq2> {
    using type = LanesFq2;
};
template <class F>
using LanesOf = typename LanesOfField<F>::type;

}  // namespace cuzk

// Points of a short Weierstrass curve with a = 0, over any field type F (Fq for G1, Fq2 for G2).
//
//   Affine  (x, y), infinity = (0, 0): the encoding of zkey files; (0, 0) is on neither curve
//   Xyzz    x = X/ZZ, y = Y/ZZZ with ZZ^3 = ZZZ^2, infinity: ZZ = 0
//
// Formulas: Explicit-Formulas Database, short Weierstrass, xyzz coordinates (madd-2008-s, add-2008-s, dbl-2008-s-1,
// mdbl-2008-s-1). None uses b. All are complete here: equal points, opposite points and infinity take their own branch.
#pragma once

#include "../ff/fq2.hpp"

namespace cuzk {

template <class F>
struct Affine {
    F x, y;
    CUZK_HD static Affine infinity() { return {F::zero(), F::zero()}; }
    CUZK_HD bool is_infinity() const { return x.is_zero() && y.is_zero(); }
    CUZK_HD Affine operator-() const { return {x, -y}; }
    CUZK_HD friend bool operator==(const Affine& a, const Affine& b) { return a.x == b.x && a.y == b.y; }
};

template <class F>
struct Xyzz {
    F x, y, zz, zzz;

    CUZK_HD static Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    CUZK_HD bool is_infinity() const { return zz.is_zero(); }
    CUZK_HD static Xyzz from(const Affine<F>& p) {
        if (p.is_infinity()) return infinity();
        return {p.x, p.y, F::one(), F::one()};
    }
    CUZK_HD Xyzz operator-() const { return {x, -y, zz, zzz}; }

    // r = 2p of an affine p, 4M + 3S; y = 0 (order two) gives ZZ = 0, infinity, by itself.
    static CUZK_HD_POINT void dbl_affine(Xyzz& r, const Affine<F>& p) {
        if (p.is_infinity()) {
            r = infinity();
            return;
        }
        F u = p.y.dbl(), v = u.sqr(), w = u * v, s = p.x * v, xx = p.x.sqr(), m = xx.dbl() + xx;
        F x3 = m.sqr() - s.dbl();
        F y3 = m * (s - x3) - w * p.y;
        r = {x3, y3, v, w};
    }

    static CUZK_HD_POINT void dbl_into(Xyzz& r, const Xyzz& p) {
        if (p.is_infinity()) {
            r = p;
            return;
        }
        F u = p.y.dbl(), v = u.sqr(), w = u * v, s = p.x * v, xx = p.x.sqr(), m = xx.dbl() + xx;
        F x3 = m.sqr() - s.dbl();
        F y3 = m * (s - x3) - w * p.y;
        F zz3 = v * p.zz, zzz3 = w * p.zzz;
        r = {x3, y3, zz3, zzz3};
    }

    // r = p + q, q affine; r may be p. 8M + 2S.
    static CUZK_HD_POINT void add_mixed(Xyzz& r, const Xyzz& p, const Affine<F>& q) {
        if (q.is_infinity()) {
            r = p;
            return;
        }
        if (p.is_infinity()) {
            r = from(q);
            return;
        }
        F h = q.x * p.zz - p.x, k = q.y * p.zzz - p.y;
        if (h.is_zero()) {
            if (k.is_zero())
                dbl_affine(r, q);
            else
                r = infinity();
            return;
        }
        F hh = h.sqr(), hhh = h * hh, s = p.x * hh;
        F x3 = k.sqr() - hhh - s.dbl();
        F y3 = k * (s - x3) - p.y * hhh;
        F zz3 = p.zz * hh, zzz3 = p.zzz * hhh;
        r = {x3, y3, zz3, zzz3};
    }

    // r = p + q; r may be p or q. 12M + 2S.
    static CUZK_HD_POINT void add_into(Xyzz& r, const Xyzz& p, const Xyzz& q) {
        if (q.is_infinity()) {
            r = p;
            return;
        }
        if (p.is_infinity()) {
            r = q;
            return;
        }
        F u1 = p.x * q.zz, s1 = p.y * q.zzz;
        F h = q.x * p.zz - u1, k = q.y * p.zzz - s1;
        if (h.is_zero()) {
            if (k.is_zero())
                dbl_into(r, p);
            else
                r = infinity();
            return;
        }
        F hh = h.sqr(), hhh = h * hh, s = u1 * hh;
        F x3 = k.sqr() - hhh - s.dbl();
        F y3 = k * (s - x3) - s1 * hhh;
        F zz3 = p.zz * q.zz * hh, zzz3 = p.zzz * q.zzz * hhh;
        r = {x3, y3, zz3, zzz3};
    }

    CUZK_HD void add(const Affine<F>& q) { add_mixed(*this, *this, q); }
    CUZK_HD void add(const Xyzz& q) { add_into(*this, *this, q); }
    CUZK_HD void dbl() { dbl_into(*this, *this); }

    // Affine form, given inv = (ZZ * ZZZ)^-1 of a finite point.
    CUZK_HD Affine<F> to_affine_with(const F& inv) const { return {x * (inv * zzz), y * (inv * zz)}; }
};

using G1Affine = Affine<Fq>;
using G2Affine = Affine<Fq2>;
using G1Xyzz = Xyzz<Fq>;
using G2Xyzz = Xyzz<Fq2>;

// The generators, Montgomery form.
CUZK_HD G1Affine g1_generator() {
    return {Fq::from_table([](int i) { return CurveParams::g1_x(i); }),
            Fq::from_table([](int i) { return CurveParams::g1_y(i); })};
}
CUZK_HD G2Affine g2_generator() {
    return {{Fq::from_table([](int i) { return CurveParams::g2_x0(i); }),
             Fq::from_table([](int i) { return CurveParams::g2_x1(i); })},
            {Fq::from_table([](int i) { return CurveParams::g2_y0(i); }),
             Fq::from_table([](int i) { return CurveParams::g2_y1(i); })}};
}

}  // namespace cuzk

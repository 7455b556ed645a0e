// Fq2 = Fq[u]/(u^2 + 1), c0 first in memory. Karatsuba: 3 multiplications, squaring 2.
#pragma once

#include "fp.hpp"

namespace cuzk {

struct Fq2 {
    Fq c0, c1;

    CUZK_HD static Fq2 zero() { return {Fq::zero(), Fq::zero()}; }
    CUZK_HD static Fq2 one() { return {Fq::one(), Fq::zero()}; }
    CUZK_HD bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
    CUZK_HD friend bool operator==(const Fq2& a, const Fq2& b) { return a.c0 == b.c0 && a.c1 == b.c1; }
    CUZK_HD friend bool operator!=(const Fq2& a, const Fq2& b) { return !(a == b); }
    CUZK_HD friend Fq2 operator+(const Fq2& a, const Fq2& b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
    CUZK_HD friend Fq2 operator-(const Fq2& a, const Fq2& b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
    CUZK_HD Fq2 operator-() const { return {-c0, -c1}; }
    CUZK_HD Fq2 dbl() const { return {c0.dbl(), c1.dbl()}; }
    CUZK_HD Fq2 conj() const { return {c0, -c1}; }
    CUZK_HD friend Fq2 operator*(const Fq2& a, const Fq2& b) {
        Fq2 r;
        mul_into(r, a, b);
        return r;
    }
    CUZK_HD Fq2 sqr() const {
        Fq2 r;
        sqr_into(r, *this);
        return r;
    }
    static CUZK_HD_MUL void mul_into(Fq2& r, const Fq2& a, const Fq2& b) {
        Fq s = (a.c0 + a.c1) * (b.c0 + b.c1), p0 = a.c0 * b.c0, p1 = a.c1 * b.c1;
        r.c0 = p0 - p1;
        r.c1 = s - p0 - p1;
    }
    static CUZK_HD_MUL void sqr_into(Fq2& r, const Fq2& a) {
        Fq m = a.c0 * a.c1, d = (a.c0 + a.c1) * (a.c0 - a.c1);
        r.c0 = d;
        r.c1 = m.dbl();
    }
    CUZK_HD Fq norm() const { return c0.sqr() + c1.sqr(); }
    CUZK_HD_POINT Fq2 inverse_fermat() const {
        Fq d = norm().inverse_fermat();
        return {c0 * d, -(c1 * d)};
    }
};
static_assert(sizeof(Fq2) == 96, "the bytes in memory are part of the interface");

}  // namespace cuzk

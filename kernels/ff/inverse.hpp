// Inversion on the host: variable time (fine for proving: nothing secret that a timer could reach is inverted alone).
//
// Binary GCD on 64-bit approximations, 31 steps at a time (T. Pornin, "Optimized Binary GCD for Modular Inversion", 2020,
// algorithm 2): the inner loop sees the low 31 bits exactly and the top 33 bits of both numbers, and yields factors that are
// then applied to the whole numbers. About 2 us for Fq, against 25 us by Fermat.
#pragma once

#include <cstddef>

#include "fq2.hpp"

namespace cuzk {
namespace detail {

// r = |a f + b g| / 2^31; returns true if the sum was negative. The division is exact.
template <int N>
inline bool combine_shift(u64* r, const u64* a, long long f, const u64* b, long long g) {
    u64 fa = f < 0 ? 0 - static_cast<u64>(f) : static_cast<u64>(f), gb = g < 0 ? 0 - static_cast<u64>(g) : static_cast<u64>(g);
    // Two's complement of the operands' sign, folded into the words as they are read.
    u64 ma = f < 0 ? ~0ull : 0, mb = g < 0 ? ~0ull : 0;
    u64 t[N + 1];
    u128 ca = 0, cb = 0;
    u64 na = ma & 1, nb = mb & 1, carry = 0;
    for (int i = 0; i <= N; i++) {
        ca += static_cast<u128>(i < N ? a[i] : 0) * fa;
        cb += static_cast<u128>(i < N ? b[i] : 0) * gb;
        u128 wa = static_cast<u128>(static_cast<u64>(ca) ^ ma) + na, wb = static_cast<u128>(static_cast<u64>(cb) ^ mb) + nb;
        na = static_cast<u64>(wa >> 64);
        nb = static_cast<u64>(wb >> 64);
        u128 s = static_cast<u128>(static_cast<u64>(wa)) + static_cast<u64>(wb) + carry;
        t[i] = static_cast<u64>(s);
        carry = static_cast<u64>(s >> 64);
        ca >>= 64;
        cb >>= 64;
    }
    bool negative = t[N] >> 63;
    if (negative) {
        u64 c = 1;
        for (int i = 0; i <= N; i++) {
            u128 s = static_cast<u128>(~t[i]) + c;
            t[i] = static_cast<u64>(s);
            c = static_cast<u64>(s >> 64);
        }
    }
    for (int i = 0; i < N; i++) r[i] = t[i] >> 31 | t[i + 1] << 33;
    return negative;
}

// r = (u f + v g) / 2^31 mod p, for u, v in [0, p).
template <class P>
inline void combine_mod(u64* r, const u64* u, long long f, const u64* v, long long g) {
    constexpr int N = P::N;
    // |f| + |g| <= 2^31: with the negative terms taken as (p - x)|f| the sum stays below 2^31 p.
    u64 nu[N], nv[N];
    if (f < 0) {
        mod_neg<P>(nu, u);
        u = nu;
        f = -f;
    }
    if (g < 0) {
        mod_neg<P>(nv, v);
        v = nv;
        g = -g;
    }
    u64 t[N + 1];
    u128 c = 0;
    for (int i = 0; i < N; i++) {
        u128 a = static_cast<u128>(u[i]) * static_cast<u64>(f), b = static_cast<u128>(v[i]) * static_cast<u64>(g);
        c += static_cast<u64>(a);
        c += static_cast<u64>(b);
        t[i] = static_cast<u64>(c);
        c = (c >> 64) + (a >> 64) + (b >> 64);
    }
    t[N] = static_cast<u64>(c);
    u64 k = (t[0] * P::N0) & 0x7fffffffu;
    u128 m = 0;
    for (int i = 0; i < N; i++) {
        m += static_cast<u128>(k) * P::mod(i) + t[i];
        t[i] = static_cast<u64>(m);
        m >>= 64;
    }
    t[N] += static_cast<u64>(m);
    u64 s[N];
    for (int i = 0; i < N; i++) s[i] = t[i] >> 31 | t[i + 1] << 33;
    reduce_once<P>(r, s);
}

}  // namespace detail

// The inverse in Montgomery form; zero gives zero.
template <class P>
inline __attribute__((noinline)) Fp<P> mont_inverse(const Fp<P>& x) {
#ifdef CUZK_EMULATE32
    return x.inverse_fermat();
#else
    constexpr int N = P::N;
    u64 a[N], b[N], u[N] = {1}, v[N] = {};
    for (int i = 0; i < N; i++) a[i] = x.v[i], b[i] = P::mod(i);
    // Invariants: a = x u, b = x v (mod p); ends with a = 0, b = gcd = 1.
    for (;;) {
        int top = N - 1;
        while (top > 0 && (a[top] | b[top]) == 0) top--;
        u64 any = 0;
        for (int i = 0; i < N; i++) any |= a[i];
        if (any == 0) break;
        u64 xa, xb;
        if (top == 0) {
            xa = a[0];
            xb = b[0];
        } else {
            int z = __builtin_clzll(a[top] | b[top]);
            u64 ha = z ? a[top] << z | a[top - 1] >> (64 - z) : a[top], hb = z ? b[top] << z | b[top - 1] >> (64 - z) : b[top];
            xa = (a[0] & 0x7fffffffu) | (ha >> 31 << 31);
            xb = (b[0] & 0x7fffffffu) | (hb >> 31 << 31);
        }
        long long f0 = 1, g0 = 0, f1 = 0, g1 = 1;
        for (int i = 0; i < 31; i++) {
            u64 odd = 0 - (xa & 1), swap = odd & (xa < xb ? ~0ull : 0);
            u64 d = (xa ^ xb) & swap;
            xa ^= d;
            xb ^= d;
            long long s = static_cast<long long>(swap), df = (f0 ^ f1) & s, dg = (g0 ^ g1) & s, o = static_cast<long long>(odd);
            f0 ^= df;
            f1 ^= df;
            g0 ^= dg;
            g1 ^= dg;
            xa = (xa - (xb & odd)) >> 1;
            f0 -= f1 & o;
            g0 -= g1 & o;
            f1 += f1;
            g1 += g1;
        }
        u64 na[N], nb[N], nu[N], nv[N];
        if (detail::combine_shift<N>(na, a, f0, b, g0)) f0 = -f0, g0 = -g0;
        if (detail::combine_shift<N>(nb, a, f1, b, g1)) f1 = -f1, g1 = -g1;
        detail::combine_mod<P>(nu, u, f0, v, g0);
        detail::combine_mod<P>(nv, u, f1, v, g1);
        for (int i = 0; i < N; i++) a[i] = na[i], b[i] = nb[i], u[i] = nu[i], v[i] = nv[i];
    }
    // v = (x_mont)^-1 = x^-1 R^-1; one product with R^3 gives x^-1 R. For x = 0 the loop never ran and v is 0.
    Fp<P> r, r3;
    for (int i = 0; i < N; i++) r.v[i] = v[i], r3.v[i] = P::r3(i);
    return r * r3;
#endif
}

inline Fq inverse(const Fq& x) { return mont_inverse(x); }
inline Fr inverse(const Fr& x) { return mont_inverse(x); }
inline Fq2 inverse(const Fq2& x) {
    Fq d = mont_inverse(x.norm());
    return {x.c0 * d, -(x.c1 * d)};
}

// In-place inversion of n elements, zeros left alone: 3 multiplications each and one inversion. scratch: n elements.
template <class F>
inline void batch_inverse(F* x, F* scratch, std::size_t n) {
    F acc = F::one();
    for (std::size_t i = 0; i < n; i++) {
        scratch[i] = acc;
        if (!x[i].is_zero()) acc = acc * x[i];
    }
    acc = inverse(acc);
    for (std::size_t i = n; i-- > 0;) {
        if (x[i].is_zero()) continue;
        F t = acc * scratch[i];
        acc = acc * x[i];
        x[i] = t;
    }
}

}  // namespace cuzk

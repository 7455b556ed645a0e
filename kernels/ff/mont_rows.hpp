// Montgomery arithmetic on 32-bit limbs, written once over "rows" of carry chains. The device supplies the rows in PTX
// (mont_ptx.cuh), a test build supplies them in C++ (mont_emulate.hpp): what the CPU checks is what the GPU runs.
//
// A 32 x 32 -> 64 product fills two limbs, so products of a row overlap unless they are two limbs apart. A number is
// therefore kept as two accumulators: even[i] has weight 2^(32 i), odd[i] has weight 2^(32 (i+1)). Limbs a0, a2, ... of the
// multiplicand go to one, a1, a3, ... to the other, each an uninterrupted chain of multiply-adds with carry. Dividing by
// 2^32 swaps the roles of the two and costs nothing.
//
// Rows supplied by the back end, K products each, a read at stride 2:
//   row_mul<K>(acc, a, b)             acc[0..2K) = a*b
//   row_mad<K>(acc, a, b)             acc += a*b; the caller knows that nothing leaves acc
//   row_mad_top<K>(acc, a, b, top)    acc += a*b; the carry is added to top
//   row_mad_in<K>(acc, a, b, low, x)  low += x; acc += a*b + carry of that
//   mont_factor<P>(low)               low * -p^-1 mod 2^32
//   words_add<N>(r, b), words_sub<N>(r, b) -> borrow (0 or ~0), words_add2<N>(r, odd, even1): r = odd + (even >> 32)
#pragma once

namespace cuzk {

// r = t - p if t >= p else t, for t < 2p.
template <class P>
CUZK_ROW void reduce_once32(u32* r, const u32* t) {
    constexpr int N = P::N32;
    u32 d[N], p[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        d[i] = t[i];
        p[i] = P::mod32(i);
    }
    u32 borrow = words_sub<N>(d, p);
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = borrow ? t[i] : d[i];
}

template <class P>
CUZK_ROW void mod_add(u32* r, const u32* a, const u32* b) {
    constexpr int N = P::N32;
    u32 t[N];
#pragma unroll
    for (int i = 0; i < N; i++) t[i] = a[i];
    words_add<N>(t, b);
    reduce_once32<P>(r, t);
}

template <class P>
CUZK_ROW void mod_sub(u32* r, const u32* a, const u32* b) {
    constexpr int N = P::N32;
    u32 t[N], p[N];
#pragma unroll
    for (int i = 0; i < N; i++) t[i] = a[i];
    u32 borrow = words_sub<N>(t, b);
#pragma unroll
    for (int i = 0; i < N; i++) p[i] = P::mod32(i) & borrow;
    words_add<N>(t, p);
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = t[i];
}

template <class P>
CUZK_ROW void mod_neg(u32* r, const u32* a) {
    constexpr int N = P::N32;
    u32 t[N], any = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        t[i] = P::mod32(i);
        any |= a[i];
    }
    words_sub<N>(t, a);
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = any ? t[i] : 0;
}

// The state between rows: T = even + odd * 2^32, T < 2^32 * 2p (so the top limb of odd never overflows: the top limb of
// either modulus is below 2^31, of Fq below 2^29).
template <class P>
struct MontAcc {
    static constexpr int N = P::N32, K = N / 2;
    u32 even[N], odd[N];

    CUZK_ROW void first(const u32* a, u32 b) {
        row_mul<K>(even, a, b);
        row_mul<K>(odd, a + 1, b);
    }
    CUZK_ROW void add(const u32* a, u32 b) {
        row_mad<K>(odd, a + 1, b);
        row_mad_top<K>(even, a, b, odd[N - 1]);
    }
    // T = T + m p, divisible by 2^32 afterwards: even[0] = 0.
    CUZK_ROW void redc() {
        u32 p[N];
#pragma unroll
        for (int i = 0; i < N; i++) p[i] = P::mod32(i);
        u32 m = mont_factor<P>(even[0]);
        row_mad<K>(odd, p + 1, m);
        row_mad_top<K>(even, p, m, odd[N - 1]);
    }
    // T = T / 2^32 + a b
    CUZK_ROW void shift_add(const u32* a, u32 b) {
        u32 x = even[1], shifted[N];
#pragma unroll
        for (int i = 0; i < N; i++) shifted[i] = i + 2 < N ? even[i + 2] : 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            even[i] = odd[i];
            odd[i] = shifted[i];
        }
        row_mad_in<K>(odd, a + 1, b, even[0], x);
        row_mad_top<K>(even, a, b, odd[N - 1]);
    }
    // T = T / 2^32, then redc; the shift's carry rides on the row of the reduction
    CUZK_ROW void shift_redc() {
        u32 x = even[1], shifted[N], p[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            shifted[i] = i + 2 < N ? even[i + 2] : 0;
            p[i] = P::mod32(i);
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            even[i] = odd[i];
            odd[i] = shifted[i];
        }
        u32 m = mont_factor<P>(even[0] + x);
        row_mad_in<K>(odd, p + 1, m, even[0], x);
        row_mad_top<K>(even, p, m, odd[N - 1]);
    }
    CUZK_ROW void finish(u32* r) {
        u32 t[N];
        words_add2<N>(t, odd, even);
        reduce_once32<P>(r, t);
    }
    CUZK_ROW void finish_unreduced(u32* r) { words_add2<N>(r, odd, even); }
};

// r = a b / R mod p, all in [0, p)
template <class P>
CUZK_ROW void mont_mul(u32* r, const u32* a, const u32* b) {
    constexpr int N = P::N32;
    MontAcc<P> t;
    t.first(a, b[0]);
    t.redc();
#pragma unroll
    for (int i = 1; i < N; i++) {
        t.shift_add(a, b[i]);
        t.redc();
    }
    t.finish(r);
}

// r = (a b + c d) / R mod p with one reduction; needs 4p < 2^(32 N), so Fq only
template <class P>
CUZK_ROW void mont_mul_add_mul(u32* r, const u32* a, const u32* b, const u32* c, const u32* d) {
    static_assert(P::BITS + 3 <= 32 * P::N32, "two products and a reduction must fit");
    constexpr int N = P::N32;
    MontAcc<P> t;
    t.first(a, b[0]);
    t.add(c, d[0]);
    t.redc();
#pragma unroll
    for (int i = 1; i < N; i++) {
        t.shift_add(a, b[i]);
        t.add(c, d[i]);
        t.redc();
    }
    t.finish(r);
}

// A factor w of several products: with half = w / sqrt(R) at hand, a w / R = (a_low half + a_high w) / sqrt(R) takes half the rows of
// reduction. Two products cost 72 + 2 * 216 instead of 2 * 288 multiply-adds. Products are left unreduced: for a < p and w < 2.3 p
// they are below 2.3 p again (half < 1.1 p, a_high w / sqrt(R) < 0.11 w, and p from the reduction), which mont_mul takes as an operand.
// Fq only.
template <class P>
struct MontFactor {
    static_assert(P::BITS + 3 <= 32 * P::N32, "no room for unreduced values");
    static constexpr int N = P::N32;
    u32 half[N];

    CUZK_ROW explicit MontFactor(const u32* w) {
        MontAcc<P> t;
#pragma unroll
        for (int i = 0; i < N; i++) {
            t.even[i] = w[i];
            t.odd[i] = 0;
        }
        t.redc();
#pragma unroll
        for (int i = 1; i < N / 2; i++) t.shift_redc();
        t.finish_unreduced(half);
    }
    CUZK_ROW void times(u32* r, const u32* w, const u32* a) const {
        MontAcc<P> t;
        t.first(half, a[0]);
        t.add(w, a[N / 2]);
        t.redc();
#pragma unroll
        for (int i = 1; i < N / 2; i++) {
            t.shift_add(half, a[i]);
            t.add(w, a[N / 2 + i]);
            t.redc();
        }
        t.finish_unreduced(r);
    }
};

// Square of a as 2N limbs: products above the diagonal once, doubled, then the diagonal. 78 instead of 144 products (N = 12).
template <int N, int I>
CUZK_ROW void sqr_rows(u32* even, u32* odd, const u32* a) {
    if constexpr (I < N - 1) {
        // odd distances 1, 3, ...: weight 2I+1, ...; even distances 2, 4, ...: weight 2I+2, ...
        constexpr int K1 = (N - I) / 2, K2 = (N - 1 - I) / 2;
        // limb 2I+1+2K1 (2I+2+2K2) of the accumulators is still untouched: it receives the carry
        if constexpr (I == 0) {
            row_mul<K1>(odd, a + 1, a[0]);
            row_mul<K2>(even + 2, a + 2, a[0]);
        } else {
            row_mad_top<K1>(odd + 2 * I, a + I + 1, a[I], odd[2 * I + 2 * K1]);
            if constexpr (K2 > 0) row_mad_top<K2>(even + 2 * I + 2, a + I + 2, a[I], even[2 * I + 2 + 2 * K2]);
        }
        sqr_rows<N, I + 1>(even, odd, a);
    }
}

template <class P>
CUZK_ROW void mont_sqr(u32* r, const u32* a) {
    constexpr int N = P::N32;
    u32 even[2 * N + 2], odd[2 * N + 2];
#pragma unroll
    for (int i = 0; i < 2 * N + 2; i++) even[i] = odd[i] = 0;
    sqr_rows<N, 0>(even, odd, a);
    // w = 2 (even + odd 2^32) + diagonal
    u32 w[2 * N], d[2 * N], o[2 * N];
#pragma unroll
    for (int i = 0; i < 2 * N; i++) {
        w[i] = even[i];
        o[i] = i ? odd[i - 1] : 0;
    }
    words_add<2 * N>(w, o);
#pragma unroll
    for (int i = 2 * N - 1; i > 0; i--) w[i] = w[i] << 1 | w[i - 1] >> 31;
    w[0] <<= 1;
#pragma unroll
    for (int i = 0; i < N; i++) {
        u64 s = static_cast<u64>(a[i]) * a[i];
        d[2 * i] = static_cast<u32>(s);
        d[2 * i + 1] = static_cast<u32>(s >> 32);
    }
    words_add<2 * N>(w, d);
    // Montgomery reduction of the low half, then add the high half
    MontAcc<P> t;
#pragma unroll
    for (int i = 0; i < N; i++) {
        t.even[i] = w[i];
        t.odd[i] = 0;
    }
    t.redc();
#pragma unroll
    for (int i = 1; i < N; i++) t.shift_redc();
    u32 s[N];
    words_add2<N>(s, t.odd, t.even);
    words_add<N>(s, w + N);
    reduce_once32<P>(r, s);
}

}  // namespace cuzk

// Montgomery arithmetic on 64-bit limbs for the host. Operands and results are in [0, p).
//
// Multiplication is word by word (CIOS): t = (t + a*b_i + m*p) / 2^64. Both moduli leave the top bit of the top limb free,
// so t stays below 2p and never needs an extra carry word (gnark's "no-carry" condition: top limb < 2^63 - 1).
// With CUZK_ADX the rows are mulx with two carry chains (adcx, adox); the library built so is loaded only where the
// CPU has BMI2 and ADX.
#pragma once

#include "params.hpp"

namespace cuzk {

using u128 = unsigned __int128;

// Limbs of p followed by -p^-1 mod 2^64, for assembly that indexes memory.
template <class P>
struct ModTable {
    static constexpr u64 limbs[7] = {P::mod(0), P::mod(1), P::mod(2), P::mod(3), P::mod(P::N == 6 ? 4 : 0), P::mod(P::N == 6 ? 5 : 0), P::N0};
};

#if defined(__x86_64__)

// t[0..N) += or -= q[0..N), one carry chain; returns all ones if it ended with a carry. The compiler's own chains through
// 128-bit arithmetic take twice as long.
#define CUZK_CHAIN6(first, next)                                                                                   \
    asm(first " 0(%[q]), %[t0]\n\t" next " 8(%[q]), %[t1]\n\t" next " 16(%[q]), %[t2]\n\t" next " 24(%[q]), %[t3]\n\t" \
        next " 32(%[q]), %[t4]\n\t" next " 40(%[q]), %[t5]\n\tsbbq %[c], %[c]"                                      \
        : [t0] "+&r"(t[0]), [t1] "+&r"(t[1]), [t2] "+&r"(t[2]), [t3] "+&r"(t[3]), [t4] "+&r"(t[4]), [t5] "+&r"(t[5]), [c] "=&r"(c) \
        : [q] "r"(q), "m"(*reinterpret_cast<const u64(*)[6]>(q)) : "cc")
#define CUZK_CHAIN4(first, next)                                                                                   \
    asm(first " 0(%[q]), %[t0]\n\t" next " 8(%[q]), %[t1]\n\t" next " 16(%[q]), %[t2]\n\t" next " 24(%[q]), %[t3]\n\t" \
        "sbbq %[c], %[c]"                                                                                          \
        : [t0] "+&r"(t[0]), [t1] "+&r"(t[1]), [t2] "+&r"(t[2]), [t3] "+&r"(t[3]), [c] "=&r"(c)                      \
        : [q] "r"(q), "m"(*reinterpret_cast<const u64(*)[4]>(q)) : "cc")

template <int N>
inline __attribute__((always_inline)) u64 add_chain(u64* t, const u64* q) {
    u64 c;
    if constexpr (N == 6)
        CUZK_CHAIN6("addq", "adcq");
    else
        CUZK_CHAIN4("addq", "adcq");
    return c;
}
template <int N>
inline __attribute__((always_inline)) u64 sub_chain(u64* t, const u64* q) {
    u64 c;
    if constexpr (N == 6)
        CUZK_CHAIN6("subq", "sbbq");
    else
        CUZK_CHAIN4("subq", "sbbq");
    return c;
}
#undef CUZK_CHAIN6
#undef CUZK_CHAIN4

#else

template <int N>
inline u64 add_chain(u64* t, const u64* q) {
    u64 carry = 0;
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) {
        u128 x = static_cast<u128>(t[i]) + q[i] + carry;
        t[i] = static_cast<u64>(x);
        carry = static_cast<u64>(x >> 64);
    }
    return 0 - carry;
}
template <int N>
inline u64 sub_chain(u64* t, const u64* q) {
    u64 borrow = 0;
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) {
        u128 x = static_cast<u128>(t[i]) - q[i] - borrow;
        t[i] = static_cast<u64>(x);
        borrow = static_cast<u64>(x >> 64) & 1;
    }
    return 0 - borrow;
}

#endif

// r = t - p if t >= p else t, for t < 2p.
template <class P>
inline __attribute__((always_inline)) void reduce_once(u64* r, const u64* t) {
    constexpr int N = P::N;
    u64 d[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) d[i] = t[i];
    u64 below = sub_chain<N>(d, ModTable<P>::limbs);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) r[i] = below ? t[i] : d[i];
}

template <class P>
inline __attribute__((always_inline)) void mod_add(u64* r, const u64* a, const u64* b) {
    constexpr int N = P::N;
    u64 t[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) t[i] = a[i];
    add_chain<N>(t, b);
    reduce_once<P>(r, t);
}

template <class P>
inline __attribute__((always_inline)) void mod_sub(u64* r, const u64* a, const u64* b) {
    constexpr int N = P::N;
    u64 t[N], back[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) t[i] = a[i];
    u64 below = sub_chain<N>(t, b);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) back[i] = P::mod(i) & below;
    add_chain<N>(t, back);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) r[i] = t[i];
}

template <class P>
inline void mod_neg(u64* r, const u64* a) {
    constexpr int N = P::N;
    u64 any = 0, t[N], s[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) any |= a[i];
    u64 mask = any ? ~0ull : 0;
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) t[i] = P::mod(i) & mask, s[i] = a[i];
    sub_chain<N>(t, s);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) r[i] = t[i];
}

#if defined(CUZK_ADX)

// One row of each kind. t has N + 1 live words; `hi` enters row M as the top word.
// Row A: t += a * b_i (t[N] receives the carry). Row M: t = (t + m p) / 2^64.
#define CUZK_MA(k, lo, hi, t0, t1) "mulxq 8*" #k "(%[a]), " lo ", " hi "\n\tadcxq " lo ", " t0 "\n\tadoxq " hi ", " t1 "\n\t"
#define CUZK_MP(k, lo, hi, t0, t1) "mulxq 8*" #k "(%[p]), " lo ", " hi "\n\tadcxq " lo ", " t0 "\n\tadoxq " hi ", " t1 "\n\t"

// Rows rotate the names of t instead of moving words: after row i the lowest word is zero and becomes the next top.
#define CUZK_ROW6(i, t0, t1, t2, t3, t4, t5, t6)                                                                      \
    "movq 8*" #i "(%[b]), %%rdx\n\txorl %k[lo], %k[lo]\n\tmovq %[lo], " t6 "\n\t"                                      \
    CUZK_MA(0, "%[lo]", "%[hi]", t0, t1) CUZK_MA(1, "%[lo]", "%[hi]", t1, t2) CUZK_MA(2, "%[lo]", "%[hi]", t2, t3)     \
    CUZK_MA(3, "%[lo]", "%[hi]", t3, t4) CUZK_MA(4, "%[lo]", "%[hi]", t4, t5)                                          \
    "mulxq 8*5(%[a]), %[lo], %[hi]\n\tadcxq %[lo], " t5 "\n\tmovl $0, %k[lo]\n\tadoxq %[hi], " t6 "\n\tadcxq %[lo], " t6 "\n\t"        \
    "movq 8*6(%[p]), %%rdx\n\timulq " t0 ", %%rdx\n\txorl %k[lo], %k[lo]\n\t"                                          \
    CUZK_MP(0, "%[lo]", "%[hi]", t0, t1) CUZK_MP(1, "%[lo]", "%[hi]", t1, t2) CUZK_MP(2, "%[lo]", "%[hi]", t2, t3)     \
    CUZK_MP(3, "%[lo]", "%[hi]", t3, t4) CUZK_MP(4, "%[lo]", "%[hi]", t4, t5)                                          \
    "mulxq 8*5(%[p]), %[lo], %[hi]\n\tadcxq %[lo], " t5 "\n\tmovl $0, %k[lo]\n\tadoxq %[hi], " t6 "\n\tadcxq %[lo], " t6 "\n\t"

#define CUZK_ROW4(i, t0, t1, t2, t3, t4)                                                                              \
    "movq 8*" #i "(%[b]), %%rdx\n\txorl %k[lo], %k[lo]\n\tmovq %[lo], " t4 "\n\t"                                      \
    CUZK_MA(0, "%[lo]", "%[hi]", t0, t1) CUZK_MA(1, "%[lo]", "%[hi]", t1, t2) CUZK_MA(2, "%[lo]", "%[hi]", t2, t3)     \
    "mulxq 8*3(%[a]), %[lo], %[hi]\n\tadcxq %[lo], " t3 "\n\tmovl $0, %k[lo]\n\tadoxq %[hi], " t4 "\n\tadcxq %[lo], " t4 "\n\t"        \
    "movq 8*6(%[p]), %%rdx\n\timulq " t0 ", %%rdx\n\txorl %k[lo], %k[lo]\n\t"                                          \
    CUZK_MP(0, "%[lo]", "%[hi]", t0, t1) CUZK_MP(1, "%[lo]", "%[hi]", t1, t2) CUZK_MP(2, "%[lo]", "%[hi]", t2, t3)     \
    "mulxq 8*3(%[p]), %[lo], %[hi]\n\tadcxq %[lo], " t3 "\n\tmovl $0, %k[lo]\n\tadoxq %[hi], " t4 "\n\tadcxq %[lo], " t4 "\n\t"

template <class P>
inline __attribute__((always_inline)) void mont_mul(u64* r, const u64* a, const u64* b) {
    u64 lo, hi, t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4 = 0;
    const u64* p = ModTable<P>::limbs;
    if constexpr (P::N == 6) {
        u64 t5 = 0, t6;
        asm(CUZK_ROW6(0, "%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t5]", "%[t6]")
            CUZK_ROW6(1, "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t5]", "%[t6]", "%[t0]")
            CUZK_ROW6(2, "%[t2]", "%[t3]", "%[t4]", "%[t5]", "%[t6]", "%[t0]", "%[t1]")
            CUZK_ROW6(3, "%[t3]", "%[t4]", "%[t5]", "%[t6]", "%[t0]", "%[t1]", "%[t2]")
            CUZK_ROW6(4, "%[t4]", "%[t5]", "%[t6]", "%[t0]", "%[t1]", "%[t2]", "%[t3]")
            CUZK_ROW6(5, "%[t5]", "%[t6]", "%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]")
            : [lo] "=&r"(lo), [hi] "=&r"(hi), [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3),
              [t4] "+&r"(t4), [t5] "+&r"(t5), [t6] "=&r"(t6)
            : [a] "r"(a), [b] "r"(b), [p] "r"(p)
            : "rdx", "cc", "memory");
        u64 t[6] = {t6, t0, t1, t2, t3, t4};
        reduce_once<P>(r, t);
    } else {
        asm(CUZK_ROW4(0, "%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]")
            CUZK_ROW4(1, "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t0]")
            CUZK_ROW4(2, "%[t2]", "%[t3]", "%[t4]", "%[t0]", "%[t1]")
            CUZK_ROW4(3, "%[t3]", "%[t4]", "%[t0]", "%[t1]", "%[t2]")
            : [lo] "=&r"(lo), [hi] "=&r"(hi), [t0] "+&r"(t0), [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), [t4] "+&r"(t4)
            : [a] "r"(a), [b] "r"(b), [p] "r"(p)
            : "rdx", "cc", "memory");
        u64 t[4] = {t4, t0, t1, t2};
        reduce_once<P>(r, t);
    }
}

#undef CUZK_MA
#undef CUZK_MP
#undef CUZK_ROW6
#undef CUZK_ROW4

#else

template <class P>
inline __attribute__((always_inline)) void mont_mul(u64* r, const u64* a, const u64* b) {
    constexpr int N = P::N;
    u64 t[N] = {};
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) {
        u128 x = static_cast<u128>(a[0]) * b[i] + t[0];
        u64 m = static_cast<u64>(x) * P::N0;
        u128 y = static_cast<u128>(m) * P::mod(0) + static_cast<u64>(x);
        u64 cx = static_cast<u64>(x >> 64), cy = static_cast<u64>(y >> 64);
#pragma GCC unroll 8
        for (int j = 1; j < N; j++) {
            x = static_cast<u128>(a[j]) * b[i] + t[j] + cx;
            cx = static_cast<u64>(x >> 64);
            y = static_cast<u128>(m) * P::mod(j) + static_cast<u64>(x) + cy;
            cy = static_cast<u64>(y >> 64);
            t[j - 1] = static_cast<u64>(y);
        }
        t[N - 1] = cx + cy;
    }
    reduce_once<P>(r, t);
}

#endif

template <class P>
inline __attribute__((always_inline)) void mont_sqr(u64* r, const u64* a) {
    mont_mul<P>(r, a, a);
}

}  // namespace cuzk

// Eight field elements in 512-bit registers, 52-bit limbs, AVX-512 IFMA: one product of eight takes about 300 instructions for
// Fq, a quarter of the time of eight mulx/adx products. The bulk loops' back end where the CPU has it.
//
// Limb k of lane i is v[k][i]. Fr has 5 limbs, R' = 2^260; Fq has 8, R' = 2^416. Between operations every value is non-negative,
// its limbs are below 2^52, and it is below 1.05 p (Fr) or p + p / 2^10 (Fq):
//
//   mul    (a b + m p) / R' < p + a b / R', and p^2 / R' is 0.0142 p (Fr), p / 2^35 (Fq): factors may be a few p
//   add    a + b, sub a - b + 2p, sub_two a - b - c + 4p: then 4p, 2p, p are subtracted where the top limb says for certain
//          that the value is not below them. That never subtracts too much, and misses 16 units of the top limb at most
//   store  makes canonical: subtracts p once more where something is left
//
// Every sum must be brought below p + 16 units at once: excesses that were merely kept would double with each level of a
// transform, and inputs can be found that make them meet.
#pragma once

#include <immintrin.h>

#include "inverse.hpp"

namespace cuzk {

// The limb constants of p in 52 bits.
template <class P>
struct Ifma {
    static constexpr int L = (P::BITS + 4) / 52 + ((P::BITS + 4) % 52 != 0);
    static constexpr u64 MASK = (1ull << 52) - 1;
    static constexpr u64 limb52(const u64* words, int count, int k) {
        int bit = 52 * k, i = bit / 64, s = bit % 64;
        if (i >= count) return 0;
        u64 x = words[i] >> s;
        if (s > 12 && i + 1 < count) x |= words[i + 1] << (64 - s);
        return x & MASK;
    }
    struct Table {
        u64 p[8] = {}, p2[8] = {}, p4[8] = {}, p8[8] = {};
        u64 n0 = P::N0 & MASK;
        constexpr Table() {
            u64 w[P::N] = {};
            for (int i = 0; i < P::N; i++) w[i] = P::mod(i);
            for (int k = 0; k < L; k++) p[k] = limb52(w, P::N, k);
            twice(p2, p);
            twice(p4, p2);
            twice(p8, p4);
        }
    };
    static constexpr Table table{};

  private:
    static constexpr void twice(u64* r, const u64* a) {
        for (int k = 0; k < L; k++) r[k] = (a[k] << 1 & MASK) | (k ? a[k - 1] >> 51 : 0);
    }
};

// Loops over limbs and lanes must become straight code, or the registers spill.
#define CUZK_UNROLL _Pragma("GCC unroll 16")

namespace detail {

using Vec = __m512i;

// Rows to columns of an 8 x 8 matrix of 64-bit words.
inline __attribute__((always_inline)) void transpose8(Vec* x) {
    Vec t[8], u[8];
    CUZK_UNROLL for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
    }
    CUZK_UNROLL for (int i = 0; i < 8; i += 4)
        CUZK_UNROLL for (int j = 0; j < 2; j++) {
            u[i + j] = _mm512_shuffle_i64x2(t[i + j], t[i + j + 2], 0x88);      // 128-bit pieces 0, 2 of both
            u[i + j + 2] = _mm512_shuffle_i64x2(t[i + j], t[i + j + 2], 0xdd);  // 1, 3
        }
    CUZK_UNROLL for (int j = 0; j < 4; j++) {
        // u[j]: rows 0..3, words j, j + 4 (j < 2) ...
        x[j] = _mm512_shuffle_i64x2(u[j], u[j + 4], 0x88);
        x[j + 4] = _mm512_shuffle_i64x2(u[j], u[j + 4], 0xdd);
    }
}

}  // namespace detail

template <class P>
struct alignas(64) LanesIfma {
    using Field = Fp<P>;
    using Vec = __m512i;
    static constexpr int L = Ifma<P>::L, N = P::N;
    struct alignas(64) Elem {
        u64 v[8];  // limbs past L are zero
    };
    Vec v[L];

    // Scalars <-> elements ------------------------------------------------------------------------------------------------
    static Elem to_elem(const Field& a) { return split(a * constants().to_lane); }
    static Field from_elem(const Elem& e) { return join(e) * constants().from_lane; }
    static Elem negate_elem(const Elem& e) {
        Elem r{};
        u64 any = 0;
        long long borrow = 0;
        CUZK_UNROLL for (int k = 0; k < L; k++) {
            any |= e.v[k];
            long long d = static_cast<long long>(Ifma<P>::table.p[k]) - static_cast<long long>(e.v[k]) + borrow;
            r.v[k] = static_cast<u64>(d) & Ifma<P>::MASK;
            borrow = d >> 52;
        }
        return any ? r : e;
    }
    static LanesIfma broadcast(const Elem& e) {
        LanesIfma r;
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = set(e.v[k]);
        return r;
    }

    // Memory --------------------------------------------------------------------------------------------------------------
    void load(const char* const* p, std::size_t offset) {
        Vec x[8];
        CUZK_UNROLL for (int i = 0; i < 8; i++) x[i] = _mm512_load_si512(p[i] + offset);
        detail::transpose8(x);
        CUZK_UNROLL for (int k = 0; k < L; k++) v[k] = x[k];
    }
    void store(char* const* p, std::size_t offset) const {
        LanesIfma c = *this;
        c.make_canonical();
        Vec x[8];
        CUZK_UNROLL for (int k = 0; k < 8; k++) x[k] = k < L ? c.v[k] : _mm512_setzero_si512();
        detail::transpose8(x);
        CUZK_UNROLL for (int i = 0; i < 8; i++) _mm512_store_si512(p[i] + offset, x[i]);
    }
    void load_raw(const char* const* p, std::size_t offset) {
        Vec w[8];
        if constexpr (N == 4) {
            Vec z[4];
            CUZK_UNROLL for (int i = 0; i < 4; i++)
                z[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p[i] + offset))),
                                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p[i + 4] + offset)), 1);
            transpose4(z, w);
        } else {
            CUZK_UNROLL for (int i = 0; i < 8; i++) w[i] = _mm512_maskz_loadu_epi64(0x3f, p[i] + offset);
            detail::transpose8(w);
        }
        const Vec mask = set(Ifma<P>::MASK);
        CUZK_UNROLL for (int k = 0; k < L; k++) {
            int bit = 52 * k, i = bit / 64, s = bit % 64;
            Vec x = s ? _mm512_srli_epi64(w[i], static_cast<unsigned>(s)) : w[i];
            if (s > 12 && i + 1 < N) x = _mm512_or_si512(x, _mm512_slli_epi64(w[i + 1], static_cast<unsigned>(64 - s)));
            v[k] = _mm512_and_si512(x, mask);
        }
    }
    void store_raw(char* const* p, std::size_t offset) const {
        LanesIfma c = *this;
        c.make_canonical();
        Vec w[8];
        CUZK_UNROLL for (int i = 0; i < 8; i++) w[i] = _mm512_setzero_si512();
        CUZK_UNROLL for (int i = 0; i < N; i++) {
            int bit = 64 * i, k = bit / 52, s = bit % 52;
            Vec x = s ? _mm512_srli_epi64(c.v[k], static_cast<unsigned>(s)) : c.v[k];
            x = _mm512_or_si512(x, _mm512_slli_epi64(c.v[k + 1], static_cast<unsigned>(52 - s)));
            if (104 - s < 64 && k + 2 < L) x = _mm512_or_si512(x, _mm512_slli_epi64(c.v[k + 2], static_cast<unsigned>(104 - s)));
            w[i] = x;
        }
        if constexpr (N == 4) {
            Vec z[4];
            transpose4_back(w, z);
            CUZK_UNROLL for (int i = 0; i < 4; i++) {
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(p[i] + offset), _mm512_castsi512_si256(z[i]));
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(p[i + 4] + offset), _mm512_extracti64x4_epi64(z[i], 1));
            }
        } else {
            detail::transpose8(w);
            CUZK_UNROLL for (int i = 0; i < 8; i++) _mm512_mask_storeu_epi64(p[i] + offset, 0x3f, w[i]);
        }
    }
    void enter() { mul(*this, *this, broadcast(constants().enter)); }
    void leave() { mul(*this, *this, broadcast(constants().leave)); }

    // Arithmetic ----------------------------------------------------------------------------------------------------------
    static __attribute__((noinline)) void mul(LanesIfma& r, const LanesIfma& a, const LanesIfma& b) {
        Vec t[L + 1];
        for (auto& x : t) x = _mm512_setzero_si512();
        const Vec n0 = set(Ifma<P>::table.n0);
        CUZK_UNROLL for (int i = 0; i < L; i++) {
            const Vec bi = b.v[i];
            CUZK_UNROLL for (int j = 0; j < L; j++) t[j] = _mm512_madd52lo_epu64(t[j], a.v[j], bi);
            const Vec m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t[0], n0);
            CUZK_UNROLL for (int j = 0; j < L; j++) t[j + 1] = _mm512_madd52hi_epu64(t[j + 1], a.v[j], bi);
            CUZK_UNROLL for (int j = 0; j < L; j++) t[j] = _mm512_madd52lo_epu64(t[j], m, set(Ifma<P>::table.p[j]));
            CUZK_UNROLL for (int j = 0; j < L; j++) t[j + 1] = _mm512_madd52hi_epu64(t[j + 1], m, set(Ifma<P>::table.p[j]));
            t[1] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], 52));
            CUZK_UNROLL for (int j = 0; j < L; j++) t[j] = t[j + 1];
            t[L] = _mm512_setzero_si512();
        }
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = t[k];
        r.carry();
    }
    // Cross products once, doubled; then the same reduction row by row.
    static __attribute__((noinline)) void sqr(LanesIfma& r, const LanesIfma& a) {
        Vec t[2 * L];
        CUZK_UNROLL for (int k = 0; k < 2 * L; k++) t[k] = _mm512_setzero_si512();
        CUZK_UNROLL for (int i = 0; i < L; i++) {
            CUZK_UNROLL for (int j = i + 1; j < L; j++) {
                t[i + j] = _mm512_madd52lo_epu64(t[i + j], a.v[i], a.v[j]);
                t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], a.v[i], a.v[j]);
            }
        }
        CUZK_UNROLL for (int i = 0; i < L; i++) {
            t[2 * i] = _mm512_madd52lo_epu64(_mm512_add_epi64(t[2 * i], t[2 * i]), a.v[i], a.v[i]);
            t[2 * i + 1] = _mm512_madd52hi_epu64(_mm512_add_epi64(t[2 * i + 1], t[2 * i + 1]), a.v[i], a.v[i]);
        }
        const Vec n0 = set(Ifma<P>::table.n0);
        CUZK_UNROLL for (int i = 0; i < L; i++) {
            const Vec m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t[i], n0);
            CUZK_UNROLL for (int j = 0; j < L; j++) t[i + j] = _mm512_madd52lo_epu64(t[i + j], m, set(Ifma<P>::table.p[j]));
            CUZK_UNROLL for (int j = 0; j < L; j++) t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], m, set(Ifma<P>::table.p[j]));
            t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64(t[i], 52));
        }
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = t[L + k];
        r.carry();
    }

    static void add(LanesIfma& r, const LanesIfma& a, const LanesIfma& b) {
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = _mm512_add_epi64(a.v[k], b.v[k]);
        r.drop_if_above(Ifma<P>::table.p2);
        r.drop_if_above(Ifma<P>::table.p);
        r.carry();
    }
    static void sub(LanesIfma& r, const LanesIfma& a, const LanesIfma& b) {
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = _mm512_add_epi64(_mm512_sub_epi64(a.v[k], b.v[k]), set(Ifma<P>::table.p2[k]));
        r.drop_if_above(Ifma<P>::table.p2);
        r.drop_if_above(Ifma<P>::table.p);
        r.carry();
    }
    // a - b + 8p for b below 8p: for use as a factor of mul only, not of sqr over Fq2.
    static void sub_loose(LanesIfma& r, const LanesIfma& a, const LanesIfma& b) {
        static_assert(52 * L - P::BITS > 30, "the product of loose factors must stay next to p");
        CUZK_UNROLL for (int k = 0; k < L; k++) r.v[k] = _mm512_add_epi64(_mm512_sub_epi64(a.v[k], b.v[k]), set(Ifma<P>::table.p8[k]));
        r.carry();
    }
    // a - b - c.
    static void sub_two(LanesIfma& r, const LanesIfma& a, const LanesIfma& b, const LanesIfma& c) {
        CUZK_UNROLL for (int k = 0; k < L; k++)
            r.v[k] = _mm512_sub_epi64(_mm512_add_epi64(a.v[k], set(Ifma<P>::table.p4[k])), _mm512_add_epi64(b.v[k], c.v[k]));
        r.drop_if_above(Ifma<P>::table.p4);
        r.drop_if_above(Ifma<P>::table.p2);
        r.drop_if_above(Ifma<P>::table.p);
        r.carry();
    }
    // a, c <- a + c, (a - c) w: the step of a decimation in frequency.
    static void butterfly(LanesIfma& a, LanesIfma& c, const Elem& w) {
        LanesIfma d;
        CUZK_UNROLL for (int k = 0; k < L; k++) {
            d.v[k] = _mm512_add_epi64(_mm512_sub_epi64(a.v[k], c.v[k]), set(Ifma<P>::table.p2[k]));  // below 3.1 p: a factor
            a.v[k] = _mm512_add_epi64(a.v[k], c.v[k]);
        }
        a.drop_if_above(Ifma<P>::table.p2);
        a.drop_if_above(Ifma<P>::table.p);
        a.carry();
        d.carry();
        mul(c, d, broadcast(w));
    }
    // Negates the canonical lanes of m.
    void negate(LaneMask m) {
        __mmask8 lanes = static_cast<__mmask8>(m & ~zeros());
        CUZK_UNROLL for (int k = 0; k < L; k++) v[k] = _mm512_mask_sub_epi64(v[k], lanes, set(Ifma<P>::table.p[k]), v[k]);
        carry();
    }
    void blend(LaneMask m, const LanesIfma& other) {
        CUZK_UNROLL for (int k = 0; k < L; k++) v[k] = _mm512_mask_mov_epi64(v[k], static_cast<__mmask8>(m), other.v[k]);
    }
    // Lanes that are zero, and lanes that are equal: for canonical values, that is, as loaded.
    LaneMask zeros() const {
        Vec any = v[0];
        CUZK_UNROLL for (int k = 1; k < L; k++) any = _mm512_or_si512(any, v[k]);
        return _mm512_testn_epi64_mask(any, any);
    }
    // The same for results of operations.
    LaneMask zero_values() const {
        LanesIfma c = *this;
        c.make_canonical();
        return c.zeros();
    }
    static LaneMask equal(const LanesIfma& a, const LanesIfma& b) {
        Vec any = _mm512_xor_si512(a.v[0], b.v[0]);
        CUZK_UNROLL for (int k = 1; k < L; k++) any = _mm512_or_si512(any, _mm512_xor_si512(a.v[k], b.v[k]));
        return _mm512_testn_epi64_mask(any, any);
    }
    // All lanes inverted with one inversion; no lane may be zero.
    void invert() {
        Elem e[8];
        char* to[8];
        const char* from[8];
        CUZK_UNROLL for (int i = 0; i < 8; i++) from[i] = to[i] = reinterpret_cast<char*>(&e[i]);
        store(to, 0);
        Field x[8], scratch[8];
        CUZK_UNROLL for (int i = 0; i < 8; i++) x[i] = from_elem(e[i]);
        batch_inverse(x, scratch, 8);
        CUZK_UNROLL for (int i = 0; i < 8; i++) e[i] = to_elem(x[i]);
        load(from, 0);
    }

  private:
    static Vec set(u64 x) { return _mm512_set1_epi64(static_cast<long long>(x)); }

    // Signed carries upwards; the top limb keeps what it gets.
    void carry() {
        const Vec mask = set(Ifma<P>::MASK);
        CUZK_UNROLL for (int k = 0; k + 1 < L; k++) {
            v[k + 1] = _mm512_add_epi64(v[k + 1], _mm512_srai_epi64(v[k], 52));
            v[k] = _mm512_and_si512(v[k], mask);
        }
    }
    // Subtracts q (p, 2p or 4p) in the lanes that are certainly not below it. Limbs without their carries lie between -2^54 and
    // 2^54 here, so the carries can move the top limb by five at most.
    void drop_if_above(const u64* q) {
        __mmask8 m = _mm512_cmpgt_epi64_mask(v[L - 1], set(q[L - 1] + 8));
        CUZK_UNROLL for (int k = 0; k < L; k++) v[k] = _mm512_mask_sub_epi64(v[k], m, v[k], set(q[k]));
    }
    void make_canonical() {
        if (!_mm512_cmpge_epi64_mask(v[L - 1], set(Ifma<P>::table.p[L - 1]))) return;
        LanesIfma d;
        CUZK_UNROLL for (int k = 0; k < L; k++) d.v[k] = _mm512_sub_epi64(v[k], set(Ifma<P>::table.p[k]));
        d.carry();
        blend(static_cast<LaneMask>(~_mm512_movepi64_mask(d.v[L - 1])), d);
    }

    static void transpose4(const Vec* z, Vec* w) {
        const Vec even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        Vec a = _mm512_unpacklo_epi64(z[0], z[1]), b = _mm512_unpacklo_epi64(z[2], z[3]);
        Vec c = _mm512_unpackhi_epi64(z[0], z[1]), d = _mm512_unpackhi_epi64(z[2], z[3]);
        w[0] = _mm512_permutex2var_epi64(a, even, b);
        w[2] = _mm512_permutex2var_epi64(a, odd, b);
        w[1] = _mm512_permutex2var_epi64(c, even, d);
        w[3] = _mm512_permutex2var_epi64(c, odd, d);
    }
    static void transpose4_back(const Vec* w, Vec* z) {
        const Vec even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        Vec a = _mm512_unpacklo_epi64(w[0], w[1]), b = _mm512_unpacklo_epi64(w[2], w[3]);
        Vec c = _mm512_unpackhi_epi64(w[0], w[1]), d = _mm512_unpackhi_epi64(w[2], w[3]);
        z[0] = _mm512_permutex2var_epi64(a, even, b);
        z[2] = _mm512_permutex2var_epi64(a, odd, b);
        z[1] = _mm512_permutex2var_epi64(c, even, d);
        z[3] = _mm512_permutex2var_epi64(c, odd, d);
    }

    static Elem split(const Field& a) {
        Elem e{};
        CUZK_UNROLL for (int k = 0; k < L; k++) e.v[k] = Ifma<P>::limb52(a.v, N, k);
        return e;
    }
    static Field join(const Elem& e) {
        Field a = Field::zero();
        CUZK_UNROLL for (int k = 0; k < L; k++) {
            int bit = 52 * k, i = bit / 64, s = bit % 64;
            a.v[i] |= e.v[k] << s;
            if (s > 12 && i + 1 < N) a.v[i + 1] |= e.v[k] >> (64 - s);
        }
        return a;
    }

    struct Constants {
        Field to_lane, from_lane;  // R'/R and R/R', Montgomery
        Elem enter, leave;         // R'^2 / R and R as raw limbs
        Constants() {
            Field x = Field::one();
            for (int i = 0; i < 52 * L - 64 * N; i++) x = x.dbl();
            to_lane = x;
            from_lane = cuzk::inverse(x);
            enter = split(x * x);
            leave = split(Field::one());
        }
    };
    static const Constants& constants() {
        static const Constants c;
        return c;
    }
};

#undef CUZK_UNROLL

}  // namespace cuzk

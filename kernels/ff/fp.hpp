// Prime-field elements in Montgomery form, one source for host and device. The bytes in memory are the same everywhere:
// little-endian value < modulus, 32 bytes (Fr) or 48 (Fq). Only the limb width of the arithmetic differs:
//
//   host                 u64 limbs   mont_host.hpp     (portable, or mulx/adx when built with CUZK_ADX)
//   device               u32 limbs   mont_ptx.cuh      (carry chains in PTX)
//   host, CUZK_EMULATE32 u32 limbs   mont_emulate.hpp  (the device's chains in plain C++; tests only)
//
// Each back end provides, on raw limbs in [0, modulus): mont_mul, mont_sqr, mod_add, mod_sub, mod_neg
// (template <class P> void op(limb* r, const limb* a, const limb* b)); r may be a or b.
#pragma once

#include "params.hpp"

// CUZK_HD        small functions, always inlined
// CUZK_HD_MUL    field and Fq2 multiplication: out of line on the host (fully inlined, g++ takes minutes), inlined on the
//                device unless the kernel defines CUZK_CALL_MUL before the first include
// CUZK_HD_POINT  point operations: the same with CUZK_CALL_POINT
#ifdef CUZK_CUDA
#define CUZK_HD __device__ __forceinline__
#ifdef CUZK_CALL_MUL
#define CUZK_HD_MUL __device__ __noinline__
#else
#define CUZK_HD_MUL __device__ __forceinline__
#endif
#ifdef CUZK_CALL_POINT
#define CUZK_HD_POINT __device__ __noinline__
#else
#define CUZK_HD_POINT __device__ __forceinline__
#endif
#define CUZK_LIMB_ALIGN 16
#else
#define CUZK_HD inline
#define CUZK_HD_MUL __attribute__((noinline))
#define CUZK_HD_POINT __attribute__((noinline))
#define CUZK_LIMB_ALIGN 8
#endif

#if defined(CUZK_CUDA)
#include "mont_ptx.cuh"
#elif defined(CUZK_EMULATE32)
#include "mont_emulate.hpp"
#else
#include "mont_host.hpp"
#endif

namespace cuzk {

template <class P>
struct alignas(CUZK_LIMB_ALIGN) Fp {
    using Params = P;
#if defined(CUZK_CUDA) || defined(CUZK_EMULATE32)
    using limb = u32;
    static constexpr int N = P::N32;
    CUZK_HD static constexpr limb mod_limb(int i) { return P::mod32(i); }
    CUZK_HD static constexpr limb one_limb(int i) { return P::one32(i); }
    CUZK_HD static constexpr limb r2_limb(int i) { return P::r232(i); }
#else
    using limb = u64;
    static constexpr int N = P::N;
    CUZK_HD static constexpr limb mod_limb(int i) { return P::mod(i); }
    CUZK_HD static constexpr limb one_limb(int i) { return P::one(i); }
    CUZK_HD static constexpr limb r2_limb(int i) { return P::r2(i); }
#endif
    static constexpr int BYTES = P::N * 8;
    limb v[N];

    CUZK_HD static Fp zero() {
        Fp r;
#pragma unroll
        for (int i = 0; i < N; i++) r.v[i] = 0;
        return r;
    }
    CUZK_HD static Fp one() {
        Fp r;
#pragma unroll
        for (int i = 0; i < N; i++) r.v[i] = one_limb(i);
        return r;
    }
    // R^2 mod p: multiplying a std value by it gives the Montgomery form.
    CUZK_HD static Fp r2() {
        Fp r;
#pragma unroll
        for (int i = 0; i < N; i++) r.v[i] = r2_limb(i);
        return r;
    }
    // From 64-bit limbs of a constant table, such as CurveParams::g1_x.
    template <class F>
    CUZK_HD static Fp from_table(F limb64) {
        Fp r;
#pragma unroll
        for (int i = 0; i < N; i++)
            r.v[i] = static_cast<limb>(limb64(i * static_cast<int>(sizeof(limb)) / 8) >> (i * sizeof(limb) % 8 * 8));
        return r;
    }

    CUZK_HD bool is_zero() const {
        limb o = 0;
#pragma unroll
        for (int i = 0; i < N; i++) o |= v[i];
        return o == 0;
    }
    CUZK_HD friend bool operator==(const Fp& a, const Fp& b) {
        limb o = 0;
#pragma unroll
        for (int i = 0; i < N; i++) o |= a.v[i] ^ b.v[i];
        return o == 0;
    }
    CUZK_HD friend bool operator!=(const Fp& a, const Fp& b) { return !(a == b); }

    CUZK_HD friend Fp operator+(const Fp& a, const Fp& b) {
        Fp r;
        mod_add<P>(r.v, a.v, b.v);
        return r;
    }
    CUZK_HD friend Fp operator-(const Fp& a, const Fp& b) {
        Fp r;
        mod_sub<P>(r.v, a.v, b.v);
        return r;
    }
    CUZK_HD Fp operator-() const {
        Fp r;
        mod_neg<P>(r.v, v);
        return r;
    }
    CUZK_HD Fp dbl() const { return *this + *this; }
    CUZK_HD friend Fp operator*(const Fp& a, const Fp& b) {
        Fp r;
        mul_into(r, a, b);
        return r;
    }
    CUZK_HD Fp sqr() const {
        Fp r;
        sqr_into(r, *this);
        return r;
    }
    static CUZK_HD_MUL void mul_into(Fp& r, const Fp& a, const Fp& b) { mont_mul<P>(r.v, a.v, b.v); }
    static CUZK_HD_MUL void sqr_into(Fp& r, const Fp& a) { mont_sqr<P>(r.v, a.v); }

    // Std (canonical) limbs to Montgomery and back.
    CUZK_HD Fp to_mont() const { return *this * r2(); }
    CUZK_HD Fp to_std() const {
        Fp u = zero();
        u.v[0] = 1;
        return *this * u;
    }

    // this^e for a std exponent of `words` 64-bit limbs.
    CUZK_HD_POINT Fp pow(const u64* e, int words) const {
        Fp r = one();
        for (int i = 64 * words - 1; i >= 0; i--) {
            r = r.sqr();
            if (e[i / 64] >> (i % 64) & 1) r = r * *this;
        }
        return r;
    }
    // Fermat's inverse; zero gives zero. The host's batch code uses the faster mont_inverse of inverse.hpp.
    CUZK_HD_POINT Fp inverse_fermat() const {
        u64 e[P::N];
        for (int i = 0; i < P::N; i++) e[i] = P::mod(i);
        // p - 2; only the lowest 32 bits of r are less than 2, never a whole limb, so nothing borrows
        static_assert(P::mod(0) >= 2, "p - 2 must not borrow");
        e[0] -= 2;
        return pow(e, P::N);
    }
};

using Fr = Fp<FrParams>;
using Fq = Fp<FqParams>;
static_assert(sizeof(Fr) == 32 && sizeof(Fq) == 48, "the bytes in memory are part of the interface");

}  // namespace cuzk

// Every field and curve operation, one element a thread: for comparing the device with the host, byte by byte. Built for the
// host (tests/unit/kernels/emulation.hpp) the same kernels use the host's 64-bit arithmetic, an independent implementation.
#define CUZK_CALL_MUL  // calls keep the compile time of the curve operations in seconds
#include "../device.cuh"
#include "curve.hpp"
#if defined(CUZK_CUDA) || defined(CUZK_EMULATE32)
#include "lane_field.cuh"
#define LANES_FQ2
#else
#include "../ff/inverse.hpp"
#endif

using namespace cuzk;

template <class F>
CUZK_DEVICE F inverted(const F& a) {
#ifdef LANES_FQ2
    return inverse_euclid(a);
#else
    return inverse(a);
#endif
}
CUZK_DEVICE Fq2 inverted(const Fq2& a) {
    Fq d = inverted(a.norm());
    return {a.c0 * d, -(a.c1 * d)};
}

#define ELEMENTWISE(name, T, expression)                                          \
    CUZK_KERNEL(128, 2) name(T* out, const T* in_a, const T* in_b, u32 n) {        \
        for (u32 i = global_thread(); i < n; i += global_threads()) {              \
            T a = in_a[i], b = in_b[i];                                            \
            out[i] = expression;                                                   \
        }                                                                          \
    }
#define FIELD(f, T)                          \
    ELEMENTWISE(f##_mul, T, a* b)            \
    ELEMENTWISE(f##_sqr, T, (void(b), a.sqr())) \
    ELEMENTWISE(f##_add, T, a + b)           \
    ELEMENTWISE(f##_sub, T, a - b)           \
    ELEMENTWISE(f##_neg, T, (void(b), -a))   \
    ELEMENTWISE(f##_inv, T, (void(b), inverted(a)))

FIELD(fr, Fr)
FIELD(fq, Fq)
FIELD(fq2, Fq2)
ELEMENTWISE(fr_to_std, Fr, (void(b), a.to_std()))
ELEMENTWISE(fr_to_mont, Fr, (void(b), a.to_mont()))

#ifdef LANES_FQ2
CUZK_DEVICE LaneFq2<true> inverted(const LaneFq2<true>& a) { return a.inverse(); }
#endif

// The same Fq2 operations with an element across two lanes: threads 2i and 2i + 1.
#ifdef LANES_FQ2
#define LANEWISE(name, F, expression)                                                                       \
    CUZK_KERNEL(128, 2) name(Fq2* out, const Fq2* in_a, const Fq2* in_b, u32 n) {                            \
        const u32 whole = (2 * n + 31) / 32 * 32; /* all lanes of a warp take part in an exchange */         \
        for (u32 t = global_thread(); t < whole; t += global_threads()) {                                    \
            u32 i = t / 2 < n ? t / 2 : n - 1;                                                               \
            F a{t & 1 ? in_a[i].c1 : in_a[i].c0}, b{t & 1 ? in_b[i].c1 : in_b[i].c0};                         \
            F r = expression;                                                                                \
            if (t / 2 < n) (t & 1 ? out[i].c1 : out[i].c0) = r.v;                                            \
        }                                                                                                    \
    }
#else
#define LANEWISE(name, F, expression) ELEMENTWISE(name, Fq2, expression)
#endif
LANEWISE(fq2_lanes_mul, LaneFq2<true>, a* b)
LANEWISE(fq2_lanes_sqr, LaneFq2<true>, (void(b), a.sqr()))
LANEWISE(fq2_lanes_inv, LaneFq2<true>, (void(b), inverted(a)))
LANEWISE(fq2_lanes_mul_branching, LaneFq2<false>, a* b)

// Points: a and out XYZZ, b affine (mixed) or XYZZ.
#define CURVE(g, F)                                                                                        \
    CUZK_KERNEL(128, 2) g##_add_mixed(Xyzz<F>* out, const Xyzz<F>* a, const Affine<F>* b, u32 n) {          \
        for (u32 i = global_thread(); i < n; i += global_threads()) {                                       \
            Xyzz<F> r;                                                                                      \
            Xyzz<F>::add_mixed(r, a[i], b[i]);                                                              \
            out[i] = r;                                                                                     \
        }                                                                                                   \
    }                                                                                                       \
    CUZK_KERNEL(128, 2) g##_add(Xyzz<F>* out, const Xyzz<F>* a, const Xyzz<F>* b, u32 n) {                  \
        for (u32 i = global_thread(); i < n; i += global_threads()) {                                       \
            Xyzz<F> r;                                                                                      \
            Xyzz<F>::add_into(r, a[i], b[i]);                                                               \
            out[i] = r;                                                                                     \
        }                                                                                                   \
    }                                                                                                       \
    CUZK_KERNEL(128, 2) g##_dbl(Xyzz<F>* out, const Xyzz<F>* a, const Xyzz<F>*, u32 n) {                    \
        for (u32 i = global_thread(); i < n; i += global_threads()) {                                       \
            Xyzz<F> r;                                                                                      \
            Xyzz<F>::dbl_into(r, a[i]);                                                                     \
            out[i] = r;                                                                                     \
        }                                                                                                   \
    }
CURVE(g1, Fq)
CURVE(g2, Fq2)

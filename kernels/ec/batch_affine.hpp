// Many independent affine additions with one inversion (Montgomery's trick): 5M + 1S each, against 8M + 2S in XYZZ.
//
// The bulk operations on points (MSM, sums, fixed base, scaling, group NTT) produce lists of additions for this class.
// Every case is handled: infinity on either side, equal points (doubling), opposite points.
#pragma once

#include <cstdint>
#include <memory>

#include "../ff/lanes.hpp"
#include "curve.hpp"

namespace cuzk {

// A point in the memory of the bulk loops, coordinates in the lanes' domain. Infinity is (0, 0).
template <class F>
struct Point {
    typename LanesOf<F>::Elem x, y;

    static Point from(const Affine<F>& p) { return {LanesOf<F>::to_elem(p.x), LanesOf<F>::to_elem(p.y)}; }
    Affine<F> affine() const { return {LanesOf<F>::from_elem(x), LanesOf<F>::from_elem(y)}; }
};

// Reference to a point with a sign: the address, lowest bit set for -P.
template <class F>
struct SignedRef {
    std::uintptr_t bits;
    SignedRef() = default;
    SignedRef(const Point<F>* p, bool negative = false) : bits(reinterpret_cast<std::uintptr_t>(p) | negative) {}
    const Point<F>* point() const { return reinterpret_cast<const Point<F>*>(bits & ~std::uintptr_t{1}); }
    bool negative() const { return bits & 1; }
    SignedRef operator-() const {
        SignedRef r = *this;
        r.bits ^= 1;
        return r;
    }
};

template <class F>
inline Affine<F> to_affine(const Xyzz<F>& p) {
    if (p.is_infinity()) return Affine<F>::infinity();
    return p.to_affine_with(inverse(p.zz * p.zzz));
}

// External points (G1 96, G2 192 bytes each, any alignment) <-> the loops' form. source(i) is the address of the i-th.
template <class F, class Source>
inline void points_in(Point<F>* out, std::size_t count, Source&& source) {
    using L = LanesOf<F>;
    for (std::size_t i = 0; i < count; i += LANES) {
        const char* src[LANES];
        char* dst[LANES];
        alignas(64) Point<F> spare;
        for (std::size_t k = 0; k < LANES; k++) {
            bool in_range = i + k < count;
            src[k] = source(in_range ? i + k : i);
            dst[k] = reinterpret_cast<char*>(in_range ? out + i + k : &spare);
        }
        L x, y;
        x.load_raw(src, 0);
        y.load_raw(src, sizeof(F));
        x.enter();
        y.enter();
        x.store(dst, offsetof(Point<F>, x));
        y.store(dst, offsetof(Point<F>, y));
    }
}

template <class F>
inline void points_out(char* out, const Point<F>* in, std::size_t count) {
    using L = LanesOf<F>;
    for (std::size_t i = 0; i < count; i += LANES) {
        const char* src[LANES];
        char* dst[LANES];
        Affine<F> spare;
        for (std::size_t k = 0; k < LANES; k++) {
            bool in_range = i + k < count;
            src[k] = reinterpret_cast<const char*>(in + (in_range ? i + k : i));
            dst[k] = in_range ? out + (i + k) * sizeof(Affine<F>) : reinterpret_cast<char*>(&spare);
        }
        L x, y;
        x.load(src, offsetof(Point<F>, x));
        y.load(src, offsetof(Point<F>, y));
        x.leave();
        y.leave();
        x.store_raw(dst, 0);
        y.store_raw(dst, sizeof(F));
    }
}

template <class F>
class BatchAdder {
    using L = LanesOf<F>;

  public:
    // Additions under one inversion: enough to make the inversion (about 60 multiplications a lane) cheap, few enough for
    // the two scratch arrays to stay in the second-level cache.
    static constexpr std::size_t BATCH = sizeof(F) == sizeof(Fq) ? 2048 : 1024;

    static constexpr std::size_t BYTES = BATCH * (sizeof(void*) * 3 + 2 * sizeof(L) / LANES);  // without double_all

    BatchAdder() : ops_(new Op[BATCH]), before_(new L[BATCH / LANES]), denominator_(new L[BATCH / LANES]) {}

    // Queues *out = a + b. Inputs must not be outputs of additions still queued, except that out may be a or b itself.
    void add(Point<F>* out, SignedRef<F> a, SignedRef<F> b) {
        ops_[count_++] = {a, b, out};
        if (count_ == BATCH) flush();
    }
    // Performs what is queued.
    void flush();
    // xs[i] *= 2^k: doublings in Jacobian coordinates, then one inversion for a batch. Nothing may be queued.
    void double_all(Point<F>* xs, std::size_t count, int k);

  private:
    struct Op {
        SignedRef<F> a, b;
        Point<F>* out;
    };
    struct Pair {
        L x1, y1, x2, y2;
        LaneMask same, inf1, inf2;  // lanes with equal x, with a = infinity, with b = infinity
    };
    void load(Pair& p, std::size_t group, bool with_y) const;
    // The points of a group that is soon needed; they lie anywhere. Groups outside [0, groups) are ignored.
    void prefetch(std::size_t group, std::size_t groups) const {
        if (group >= groups) return;
        for (const Op* op = &ops_[group * LANES]; op != &ops_[(group + 1) * LANES]; op++)
            for (const Point<F>* p : {op->a.point(), op->b.point()})
                for (std::size_t at = 0; at < sizeof(Point<F>); at += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + at);
    }

    std::unique_ptr<Op[]> ops_;
    std::unique_ptr<L[]> before_, denominator_, x_, y_;  // x_, y_ for double_all only
    std::size_t count_ = 0;
};

template <class F>
inline void BatchAdder<F>::load(Pair& p, std::size_t group, bool with_y) const {
    const Op* op = &ops_[group * LANES];
    const char *a[LANES], *b[LANES];
    for (int k = 0; k < LANES; k++) {
        a[k] = reinterpret_cast<const char*>(op[k].a.point());
        b[k] = reinterpret_cast<const char*>(op[k].b.point());
    }
    constexpr std::size_t Y = offsetof(Point<F>, y);
    p.x1.load(a, 0);
    p.x2.load(b, 0);
    LaneMask zero1 = p.x1.zeros(), zero2 = p.x2.zeros();
    p.same = L::equal(p.x1, p.x2);
    p.inf1 = p.inf2 = 0;
    if (!with_y && !(zero1 | zero2 | p.same)) return;
    p.y1.load(a, Y);
    p.y2.load(b, Y);
    if (zero1) p.inf1 = zero1 & p.y1.zeros();
    if (zero2) p.inf2 = zero2 & p.y2.zeros();
    LaneMask neg1 = 0, neg2 = 0;
    for (int k = 0; k < LANES; k++) {
        neg1 |= static_cast<LaneMask>(op[k].a.negative()) << k;
        neg2 |= static_cast<LaneMask>(op[k].b.negative()) << k;
    }
    if (neg1) p.y1.negate(neg1);
    if (neg2) p.y2.negate(neg2);
}

template <class F>
void BatchAdder<F>::flush() {
    if (count_ == 0) return;
    // Fill the last group of lanes with infinity + infinity.
    alignas(64) static const Point<F> nothing{};
    alignas(64) Point<F> spare;
    while (count_ % LANES) ops_[count_++] = {&nothing, &nothing, &spare};
    std::size_t groups = count_ / LANES;
    const L one = L::broadcast(L::to_elem(F::one()));

    // Denominators x2 - x1 (2 y1 where the points are equal, 1 where there is nothing to divide) and their running product.
    L product = one;
    Pair p;
    for (std::size_t g = 0; g < groups; g++) {
        load(p, g, false);
        L d;
        prefetch(g + 2, groups);
        L::sub_loose(d, p.x2, p.x1);
        LaneMask special = p.inf1 | p.inf2 | p.same;
        if (special) {
            d.blend(special, one);
            LaneMask twice = p.same & L::equal(p.y1, p.y2) & ~(p.inf1 | p.inf2 | p.y1.zeros());
            if (twice) {
                L t;
                L::add(t, p.y1, p.y1);
                d.blend(twice, t);
            }
        }
        before_[g] = product;
        denominator_[g] = d;
        L::mul(product, product, d);
    }
    product.invert();

    for (std::size_t g = groups; g-- > 0;) {
        load(p, g, true);
        L inv, slope, t, x3, y3;
        L::mul(inv, product, before_[g]);
        L::mul(product, product, denominator_[g]);
        prefetch(g - 2, groups);
        L::sub_loose(slope, p.y2, p.y1);
        LaneMask special = p.inf1 | p.inf2 | p.same, twice = 0;
        if (special) {
            twice = p.same & L::equal(p.y1, p.y2) & ~(p.inf1 | p.inf2 | p.y1.zeros());
            if (twice) {
                L::sqr(t, p.x1);
                L::add(x3, t, t);
                L::add(t, x3, t);
                slope.blend(twice, t);
            }
        }
        L::mul(slope, slope, inv);
        L::sqr(x3, slope);
        L::sub_two(x3, x3, p.x1, p.x2);
        L::sub_loose(t, p.x1, x3);
        L::mul(y3, slope, t);
        L::sub(y3, y3, p.y1);
        if (special) {
            // P + (-P), and doubling a point of order two: infinity.
            LaneMask cancel = p.same & ~(twice | p.inf1 | p.inf2);
            L zero;
            L::sub(zero, one, one);
            x3.blend(cancel, zero);
            y3.blend(cancel, zero);
            x3.blend(p.inf1, p.x2);
            y3.blend(p.inf1, p.y2);
            x3.blend(p.inf2, p.x1);
            y3.blend(p.inf2, p.y1);
        }
        char* out[LANES];
        for (int k = 0; k < LANES; k++) out[k] = reinterpret_cast<char*>(ops_[g * LANES + k].out);
        x3.store(out, offsetof(Point<F>, x));
        y3.store(out, offsetof(Point<F>, y));
    }
    count_ = 0;
}

template <class F>
void BatchAdder<F>::double_all(Point<F>* xs, std::size_t count, int k) {
    if (!x_) x_.reset(new L[BATCH / LANES]), y_.reset(new L[BATCH / LANES]);
    const L one = L::broadcast(L::to_elem(F::one()));
    L zero;
    L::sub(zero, one, one);
    alignas(64) Point<F> spare{};
    for (std::size_t first = 0; first < count; first += BATCH) {
        const std::size_t here = std::min(BATCH, count - first), groups = (here + LANES - 1) / LANES;
        auto addresses = [&](char** p, std::size_t g) {
            for (std::size_t i = 0; i < LANES; i++) {
                std::size_t at = g * LANES + i;
                p[i] = reinterpret_cast<char*>(at < here ? &xs[first + at] : &spare);
            }
        };
        // Z after k doublings, and the running product of the Z that are not zero. Infinity is (0, 0, 1) here, so Z becomes 0.
        L product = one;
        for (std::size_t g = 0; g < groups; g++) {
            char* p[LANES];
            addresses(p, g);
            L x, y, z = one, u, v, w, s, m, t;
            x.load(p, offsetof(Point<F>, x));
            y.load(p, offsetof(Point<F>, y));
            for (int step = 0; step < k; step++) {
                L::add(u, y, y);
                L::sqr(v, u);
                L::mul(w, u, v);
                L::mul(s, x, v);
                L::sqr(t, x);
                L::add(m, t, t);
                L::add(m, m, t);
                L::mul(z, u, z);
                L::sqr(x, m);
                L::sub_two(x, x, s, s);
                L::sub_loose(t, s, x);
                L::mul(t, m, t);
                L::mul(w, w, y);
                L::sub(y, t, w);
            }
            LaneMask none = z.zero_values();
            x.blend(none, zero);
            y.blend(none, zero);
            z.blend(none, one);
            x_[g] = x;
            y_[g] = y;
            before_[g] = product;
            denominator_[g] = z;
            L::mul(product, product, z);
        }
        product.invert();
        for (std::size_t g = groups; g-- > 0;) {
            L inv, square;
            L::mul(inv, product, before_[g]);
            L::mul(product, product, denominator_[g]);
            L::sqr(square, inv);
            L::mul(x_[g], x_[g], square);
            L::mul(square, square, inv);
            L::mul(y_[g], y_[g], square);
            char* p[LANES];
            addresses(p, g);
            x_[g].store(p, offsetof(Point<F>, x));
            y_[g].store(p, offsetof(Point<F>, y));
        }
    }
}

}  // namespace cuzk

// Is every point on its curve, and in the subgroup of order r?
//
// Subgroup by endomorphism (M. Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves",
// 2021), with the curve's seed z = -SEED_ABS:  G1: (beta x, y) = -[z^2] P;   G2: psi(P) = [z] P.
// All points of a batch walk the same chain: 63 doublings and 5 additions a multiplication by the seed.
#pragma once

#include <memory>

#include "../abi/parallel.hpp"
#include "batch_affine.hpp"

namespace cuzk {

inline Fq curve_b(const Fq*) {
    return Fq::from_table([](int i) { return CurveParams::b(i); });
}
inline Fq2 curve_b(const Fq2*) {
    Fq b = curve_b(static_cast<const Fq*>(nullptr));
    return {b, b};
}

template <class F>
inline bool on_curve(const Affine<F>& p) {
    return p.is_infinity() || p.y.sqr() == p.x.sqr() * p.x + curve_b(static_cast<const F*>(nullptr));
}

// Coordinates in external form must be below q: another representative of the same residue is not canonical.
inline bool canonical(const Fq& a) {
    for (int i = FqParams::N - 1; i >= 0; i--)
        if (a.v[i] != FqParams::mod(i)) return a.v[i] < FqParams::mod(i);
    return false;
}
inline bool canonical(const Fq2& a) { return canonical(a.c0) && canonical(a.c1); }

// to[i] = [SEED_ABS] from[i]; from and to are different arrays.
template <class F>
inline void multiply_by_seed(BatchAdder<F>& adder, Point<F>* to, const Point<F>* from, std::size_t count) {
    for (std::size_t i = 0; i < count; i++) to[i] = from[i];
    int doublings = 0;
    for (int bit = 62; bit >= 0; bit--) {
        doublings++;
        if (!(CurveParams::SEED_ABS >> bit & 1)) continue;
        adder.double_all(to, count, doublings);
        doublings = 0;
        for (std::size_t i = 0; i < count; i++) adder.add(&to[i], &to[i], &from[i]);
        adder.flush();
    }
    adder.double_all(to, count, doublings);
}

// u = [z^2] p in G1, [SEED_ABS] p in G2: what in_subgroup compares with the endomorphism's image. t is scratch.
inline void subgroup_images(BatchAdder<Fq>& adder, Point<Fq>* p, Point<Fq>* t, Point<Fq>* u, std::size_t count) {
    multiply_by_seed(adder, t, p, count);
    multiply_by_seed(adder, u, t, count);
}
inline bool in_subgroup(const G1Affine& p, const G1Affine& z2p) {
    return G1Affine{p.x * Fq::from_table([](int i) { return CurveParams::beta(i); }), p.y} == -z2p;
}
inline void subgroup_images(BatchAdder<Fq2>& adder, Point<Fq2>* p, Point<Fq2>*, Point<Fq2>* u, std::size_t count) {
    multiply_by_seed(adder, u, p, count);
}
inline bool in_subgroup(const G2Affine& p, const G2Affine& zp) {
    Fq2 cx = {Fq::zero(), Fq::from_table([](int i) { return CurveParams::psi_x(i); })};
    Fq2 cy = {Fq::from_table([](int i) { return CurveParams::psi_y0(i); }), Fq::from_table([](int i) { return CurveParams::psi_y1(i); })};
    return G2Affine{p.x.conj() * cx, p.y.conj() * cy} == -zp;
}

// Index of the first point that is not canonical, off the curve or, with `subgroup`, outside the subgroup; -1 if none.
// Memory: 3 x BATCH points a thread.
template <class F>
std::int64_t check_points(const char* points, std::size_t n, bool subgroup, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = BatchAdder<F>::BATCH / 2;
    FirstIndex bad;
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        if (bad.before(begin)) return;
        const std::size_t count = end - begin;
        std::unique_ptr<Affine<F>[]> p(new Affine<F>[count]);
        std::memcpy(static_cast<void*>(p.get()), points + SIZE * begin, SIZE * count);
        for (std::size_t i = 0; i < count; i++)
            if (!canonical(p[i].x) || !canonical(p[i].y) || !on_curve(p[i])) {
                bad.report(begin + i);
                return;
            }
        if (!subgroup) return;
        BatchAdder<F> adder;
        std::unique_ptr<Point<F>[]> x(new Point<F>[count]), t(new Point<F>[count]), u(new Point<F>[count]);
        points_in(x.get(), count, [&](std::size_t i) { return reinterpret_cast<const char*>(&p[i]); });
        subgroup_images(adder, x.get(), t.get(), u.get(), count);
        for (std::size_t i = 0; i < count; i++)
            if (!in_subgroup(p[i], u[i].affine())) {
                bad.report(begin + i);
                return;
            }
    });
    return bad.result();
}

}  // namespace cuzk

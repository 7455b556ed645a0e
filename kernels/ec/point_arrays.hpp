// Bulk operations on arrays of affine points, all through BatchAdder. Used for G1 and G2 alike.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "../abi/parallel.hpp"
#include "batch_affine.hpp"
#include "digits.hpp"

namespace cuzk {

// Adds xs[i + half] to xs[i] until one is left.
template <class F>
inline void fold(BatchAdder<F>& adder, Point<F>* xs, std::size_t count) {
    while (count > 1) {
        std::size_t half = (count + 1) / 2;
        for (std::size_t i = 0; i + half < count; i++) adder.add(&xs[i], &xs[i], &xs[i + half]);
        adder.flush();
        count = half;
    }
}

// Sum of the points whose bit is set (bit i % 8 of byte i / 8), nullptr: of all. Memory: 2 x BATCH points a thread.
template <class F>
Affine<F> sum_points(const char* points, std::size_t n, const unsigned char* bitmap, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = BatchAdder<F>::BATCH;
    std::mutex mutex;
    Xyzz<F> total = Xyzz<F>::infinity();
    const std::size_t grain = std::max<std::size_t>((n / (4 * threads) + 7) / 8 * 8, 1024);
    parallel_for(threads, (n + grain - 1) / grain, [&](std::size_t, std::size_t task) {
        BatchAdder<F> adder;
        std::unique_ptr<Point<F>[]> sum(new Point<F>[BATCH]), next(new Point<F>[BATCH]);
        const char* source[BATCH];
        std::size_t m = 0, used = 0;
        auto absorb = [&] {
            points_in((used ? next : sum).get(), m, [&](std::size_t i) { return source[i]; });
            if (used)
                for (std::size_t i = 0; i < m; i++) adder.add(&sum[i], &sum[i], &next[i]);
            adder.flush();
            used = std::max(used, m);
            m = 0;
        };
        for (std::size_t i = task * grain; i < std::min(n, (task + 1) * grain); i++) {
            if (bitmap && !(bitmap[i / 8] >> (i % 8) & 1)) continue;
            source[m++] = points + SIZE * i;
            if (m == BATCH) absorb();
        }
        if (m) absorb();
        if (!used) return;
        fold(adder, sum.get(), used);
        std::lock_guard<std::mutex> lock(mutex);
        total.add(sum[0].affine());
    });
    return to_affine(total);
}

// sum of 2^shift[i] points[i], by Horner: max(shift) doublings and n additions in one thread, for few points.
template <class F>
inline Affine<F> shifted_sum(const char* points, const std::uint32_t* shift, std::size_t n) {
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; i++) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shift[a] > shift[b]; });
    Xyzz<F> sum = Xyzz<F>::infinity();
    std::uint32_t bit = n ? shift[order[0]] : 0;
    for (std::size_t i : order) {
        for (; bit > shift[i]; bit--) sum.dbl();
        Affine<F> p;
        std::memcpy(static_cast<void*>(&p), points + sizeof(p) * i, sizeof(p));
        sum.add(p);
    }
    for (; bit > 0; bit--) sum.dbl();
    return to_affine(sum);
}

// out[i] = a[i] + b[i]; out may be a or b.
template <class F>
void add_points(char* out, const char* a, const char* b, std::size_t n, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = BatchAdder<F>::BATCH;
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        BatchAdder<F> adder;
        std::unique_ptr<Point<F>[]> x(new Point<F>[BATCH]), y(new Point<F>[BATCH]);
        points_in(x.get(), end - begin, [&](std::size_t i) { return a + SIZE * (begin + i); });
        points_in(y.get(), end - begin, [&](std::size_t i) { return b + SIZE * (begin + i); });
        for (std::size_t i = 0; i < end - begin; i++) adder.add(&x[i], &x[i], &y[i]);
        adder.flush();
        points_out(out + SIZE * begin, x.get(), end - begin);
    });
}

// Multiples d 2^(c w) P of one point, d = 1 .. 2^(c-1), for every window: scalar multiplication becomes one addition a window.
template <class F>
class FixedBase {
  public:
    FixedBase(const Affine<F>& base, std::size_t n, int bits, std::size_t threads) {
        double best = 0;
        for (int c = 2; c <= 13; c++) {
            int w = Digits::windows_for(bits, c);
            double cost = w * (static_cast<double>(n) + (1 << (c - 1)));
            if (best == 0 || cost < best) best = cost, digits_ = Digits(bits, c);
        }
        const std::size_t windows = static_cast<std::size_t>(digits_.windows), half = digits_.half();
        table_.reset(new Point<F>[windows * half]);
        Xyzz<F> b = Xyzz<F>::from(base);
        for (std::size_t w = 0; w < windows; w++) {
            table_[w * half] = Point<F>::from(to_affine(b));
            for (int i = 0; i < digits_.c; i++) b.dbl();
        }
        // d = 1..s known gives s+1..2s.
        parallel_for(threads, std::min(threads, windows), [&](std::size_t, std::size_t first) {
            BatchAdder<F> adder;
            for (std::size_t s = 1; s < half; s *= 2) {
                for (std::size_t w = first; w < windows; w += std::min(threads, windows)) {
                    Point<F>* t = &table_[w * half];
                    for (std::size_t i = 0; i < s; i++) adder.add(&t[s + i], &t[s - 1], &t[i]);
                }
                adder.flush();
            }
        });
    }

    // out[i] = scalar[i] P for i < count.
    void multiply(BatchAdder<F>& adder, Point<F>* out, const char* scalars, std::size_t count, ShiftedScalar* shifted) const {
        for (std::size_t i = 0; i < count; i++) {
            shifted[i].set(scalars + 32 * i, digits_);
            out[i] = Point<F>{};
        }
        for (int w = 0; w < digits_.windows; w++) {
            for (std::size_t i = 0; i < count; i++) {
                int d = digits_.digit(shifted[i], w);
                if (!d) continue;
                const Point<F>& t = table_[static_cast<std::size_t>(w) * digits_.half() + static_cast<std::size_t>(d < 0 ? -d : d) - 1];
                if (w == 0) {
                    out[i] = t;
                    if (d < 0) out[i].y = LanesOf<F>::negate_elem(t.y);
                } else {
                    adder.add(&out[i], &out[i], {&t, d < 0});
                }
            }
            adder.flush();
        }
    }

  private:
    Digits digits_;
    std::unique_ptr<Point<F>[]> table_;
};

template <class F>
void fixed_base(char* out, const Affine<F>& base, const char* scalars, std::size_t n, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = BatchAdder<F>::BATCH;
    FixedBase<F> table(base, n, Digits::longest(scalars, n, threads), threads);
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        BatchAdder<F> adder;
        std::unique_ptr<Point<F>[]> sum(new Point<F>[BATCH]);
        std::unique_ptr<ShiftedScalar[]> shifted(new ShiftedScalar[BATCH]);
        table.multiply(adder, sum.get(), scalars + 32 * begin, end - begin, shifted.get());
        points_out(out + SIZE * begin, sum.get(), end - begin);
    });
}

// s = low + high z^2 with low < z^2, both below 2^128 for s < r: 32 bytes each.
inline void split_scalar(const char* scalar, u64* low, u64* high) {
    u64 q[4], rest[2];
    std::memcpy(q, scalar, 32);
    for (u64& r : rest) {  // two divisions by the seed
        u128 remainder = 0;
        for (int k = 3; k >= 0; k--) {
            u128 t = remainder << 64 | q[k];
            q[k] = static_cast<u64>(t / CurveParams::SEED_ABS);
            remainder = t % CurveParams::SEED_ABS;
        }
        r = static_cast<u64>(remainder);
    }
    u128 l = static_cast<u128>(rest[1]) * CurveParams::SEED_ABS + rest[0];
    for (int k = 0; k < 4; k++) low[k] = k < 2 ? static_cast<u64>(l >> (64 * k)) : 0, high[k] = q[k];
}

// Points times scalars, one by one, a batch in step: 4 doublings and an addition of a multiple 1..8 a window of 4 bits.
// Memory: 9 x BATCH points, 17 with the endomorphism.
template <class F>
class Scaler {
  public:
    static constexpr std::size_t BATCH = BatchAdder<F>::BATCH / 2;
    static constexpr int C = 4, MULTIPLES = 1 << (C - 1);

    // xs[i] *= scalar(i) (a pointer to 32 bytes, std), i < count <= BATCH. Costs as many windows as the longest scalar has.
    template <class Scalar>
    void scale(BatchAdder<F>& adder, Point<F>* xs, std::size_t count, Scalar&& scalar) {
        u64 any[4] = {};
        for (std::size_t i = 0; i < count; i++) {
            u64 s[4];
            std::memcpy(s, scalar(i), 32);
            for (int k = 0; k < 4; k++) any[k] |= s[k];
        }
        Digits digits(std::max(bit_length(any, 4), 1), C);
        prepare(adder, xs, count, 1);
        for (std::size_t i = 0; i < count; i++) shifted_[i].set(scalar(i), digits);
        walk(adder, xs, count, digits, 1);
    }

    // The same for points of the subgroup of G1 and scalars below r, with half the doublings: [z^2] P = (beta x, -y).
    template <class Scalar>
    void scale_in_subgroup(BatchAdder<Fq>& adder, Point<Fq>* xs, std::size_t count, Scalar&& scalar) {
        using L = LanesOf<Fq>;
        Digits digits(128, C);
        prepare(adder, xs, count, 2);
        const L beta = L::broadcast(L::to_elem(Fq::from_table([](int i) { return CurveParams::beta(i); })));
        Point<Fq>*from = multiples_.get(), *to = from + count * MULTIPLES;
        for (std::size_t i = 0; i < count * MULTIPLES; i += LANES) {  // MULTIPLES is a multiple of LANES
            char *p[LANES], *q[LANES];
            for (std::size_t k = 0; k < LANES; k++) p[k] = reinterpret_cast<char*>(from + i + k), q[k] = reinterpret_cast<char*>(to + i + k);
            L x;
            x.load(p, offsetof(Point<Fq>, x));
            L::mul(x, x, beta);
            x.store(q, offsetof(Point<Fq>, x));
            for (std::size_t k = 0; k < LANES; k++) to[i + k].y = L::negate_elem(from[i + k].y);
        }
        for (std::size_t i = 0; i < count; i++) {
            u64 low[4], high[4];
            split_scalar(scalar(i), low, high);
            shifted_[i].set(reinterpret_cast<const char*>(low), digits);
            shifted_[count + i].set(reinterpret_cast<const char*>(high), digits);
        }
        walk(adder, xs, count, digits, 2);
    }

  private:
    // multiples_[i * MULTIPLES + d - 1] = d xs[i], and xs[i] = infinity. Room for `sets` such tables and sets of scalars.
    void prepare(BatchAdder<F>& adder, Point<F>* xs, std::size_t count, std::size_t sets) {
        if (sets > sets_) {
            multiples_.reset(new Point<F>[sets * BATCH * MULTIPLES]);
            shifted_.reset(new ShiftedScalar[sets * BATCH]);
            sets_ = sets;
        }
        for (std::size_t i = 0; i < count; i++) {
            multiples_[i * MULTIPLES] = xs[i];
            xs[i] = Point<F>{};
        }
        for (std::size_t s = 1; s < MULTIPLES; s *= 2) {
            for (std::size_t i = 0; i < count; i++) {
                Point<F>* t = &multiples_[i * MULTIPLES];
                for (std::size_t k = 0; k < s; k++) adder.add(&t[s + k], &t[s - 1], &t[k]);
            }
            adder.flush();
        }
    }

    // Horner over the windows. Set k of the multiples goes with set k of the scalars.
    void walk(BatchAdder<F>& adder, Point<F>* xs, std::size_t count, const Digits& digits, std::size_t sets) {
        started_.assign(count, 0);
        for (int w = digits.windows - 1; w >= 0; w--) {
            if (w + 1 < digits.windows) adder.double_all(xs, count, C);
            for (std::size_t set = 0; set < sets; set++) {
                for (std::size_t i = 0; i < count; i++) {
                    int d = digits.digit(shifted_[set * count + i], w);
                    if (!d) continue;
                    const Point<F>& t = multiples_[(set * count + i) * MULTIPLES + static_cast<std::size_t>(d < 0 ? -d : d) - 1];
                    if (started_[i]) {
                        adder.add(&xs[i], &xs[i], {&t, d < 0});
                    } else {
                        started_[i] = 1;
                        xs[i] = t;
                        if (d < 0) xs[i].y = LanesOf<F>::negate_elem(t.y);
                    }
                }
                adder.flush();
            }
        }
    }

    std::size_t sets_ = 0;
    std::unique_ptr<Point<F>[]> multiples_;
    std::unique_ptr<ShiftedScalar[]> shifted_;
    std::vector<char> started_;
};

// out[i] = scalars[i] * points[i]; out may be points.
template <class F>
void scale_points(char* out, const char* points, const char* scalars, std::size_t n, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = Scaler<F>::BATCH;
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        BatchAdder<F> adder;
        Scaler<F> scaler;
        std::unique_ptr<Point<F>[]> xs(new Point<F>[BATCH]);
        points_in(xs.get(), end - begin, [&](std::size_t i) { return points + SIZE * (begin + i); });
        scaler.scale(adder, xs.get(), end - begin, [&](std::size_t i) { return scalars + 32 * (begin + i); });
        points_out(out + SIZE * begin, xs.get(), end - begin);
    });
}

}  // namespace cuzk

// Bulk operations on arrays of affine points, all through BatchAdder. Used for G1 and G2 alike.
#pragma once

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

// Points times scalars, one by one, a batch in step: 4 doublings and an addition of a multiple 1..8 a window of 4 bits.
// Memory: 9 x BATCH points.
template <class F>
class Scaler {
  public:
    static constexpr std::size_t BATCH = BatchAdder<F>::BATCH / 2;
    static constexpr int C = 4, MULTIPLES = 1 << (C - 1);

    Scaler() : multiples_(new Point<F>[BATCH * MULTIPLES]), shifted_(new ShiftedScalar[BATCH]) {}

    // xs[i] *= scalar(i) (a pointer to 32 bytes, std), i < count <= BATCH. scalar i = 1 costs little when all are short.
    template <class Scalar>
    void scale(BatchAdder<F>& adder, Point<F>* xs, std::size_t count, Scalar&& scalar) {
        u64 any[4] = {};
        for (std::size_t i = 0; i < count; i++) {
            u64 s[4];
            std::memcpy(s, scalar(i), 32);
            for (int k = 0; k < 4; k++) any[k] |= s[k];
        }
        Digits digits(std::max(bit_length(any, 4), 1), C);
        for (std::size_t i = 0; i < count; i++) {
            shifted_[i].set(scalar(i), digits);
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
        started_.assign(count, 0);
        for (int w = digits.windows - 1; w >= 0; w--) {
            for (int k = 0; k < C; k++) {
                for (std::size_t i = 0; i < count; i++)
                    if (started_[i]) adder.add(&xs[i], &xs[i], &xs[i]);
                adder.flush();
            }
            for (std::size_t i = 0; i < count; i++) {
                int d = digits.digit(shifted_[i], w);
                if (!d) continue;
                const Point<F>& t = multiples_[i * MULTIPLES + static_cast<std::size_t>(d < 0 ? -d : d) - 1];
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

  private:
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

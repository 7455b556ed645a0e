// Transforms over group elements, for the conversion of keys: FFT, and sparse combinations of points.
#pragma once

#include "membership.hpp"
#include "point_arrays.hpp"

namespace cuzk {

// In-place FFT of 2^log_n points, natural order in and out: out[k] = sum_i w^(ik) in[i]; the inverse also divides by n.
// Points of G1 are first tested for the subgroup: if all are in it, the multiplications go by the endomorphism.
// Memory: all points once more in the loops' form, 16 bytes a point of twiddles.
template <class F>
void group_ntt(char* data, int log_n, const Fr& root, bool inverse, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = Scaler<F>::BATCH;
    const std::size_t n = std::size_t{1} << log_n;
    const bool by_endomorphism = sizeof(F) == sizeof(Fq) && log_n > 2 && check_points<F>(data, n, true, threads) == NOTHING_FOUND;
    auto scale = [&](BatchAdder<F>& adder, Scaler<F>& scaler, Point<F>* xs, std::size_t count, auto scalar) {
        if constexpr (sizeof(F) == sizeof(Fq))
            if (by_endomorphism) return scaler.scale_in_subgroup(adder, xs, count, scalar);
        scaler.scale(adder, xs, count, scalar);
    };
    std::unique_ptr<Point<F>[]> x(new Point<F>[n]);
    auto reversed = [&](std::size_t i) {
        std::size_t r = 0;
        for (int b = 0; b < log_n; b++) r = r << 1 | (i >> b & 1);
        return r;
    };
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        points_in(&x[begin], end - begin, [&](std::size_t i) { return data + SIZE * reversed(begin + i); });
    });

    // Twiddles w^j, j < n / 2, as std scalars.
    std::vector<Fr> twiddle(std::max<std::size_t>(n / 2, 1));
    Fr w = inverse ? cuzk::inverse(root) : root, t = Fr::one();
    for (auto& e : twiddle) e = t.to_std(), t = t * w;

    for (int stage = 0; stage < log_n; stage++) {
        const std::size_t half = std::size_t{1} << stage, step = n / 2 / half;
        parallel_ranges(threads, n / 2, BATCH, [&](std::size_t begin, std::size_t end) {
            BatchAdder<F> adder;
            Scaler<F> scaler;
            std::unique_ptr<Point<F>[]> scaled(new Point<F>[BATCH]);
            std::vector<std::size_t> where;
            auto low = [&](std::size_t k) { return (k / half) * 2 * half + k % half; };
            // Butterflies with twiddle 1 need no multiplication.
            for (std::size_t k = begin; k < end; k++)
                if (k % half) {
                    scaled[where.size()] = x[low(k) + half];
                    where.push_back(k);
                }
            scale(adder, scaler, scaled.get(), where.size(),
                  [&](std::size_t i) { return reinterpret_cast<const char*>(&twiddle[where[i] % half * step]); });
            for (std::size_t i = 0; i < where.size(); i++) x[low(where[i]) + half] = scaled[i];
            // The difference needs the old sum: first b' = a - b into `scaled`, then a' = a + b.
            for (std::size_t k = begin; k < end; k++) adder.add(&scaled[k - begin], &x[low(k)], -SignedRef<F>(&x[low(k) + half]));
            adder.flush();
            for (std::size_t k = begin; k < end; k++) adder.add(&x[low(k)], &x[low(k)], &x[low(k) + half]);
            adder.flush();
            for (std::size_t k = begin; k < end; k++) x[low(k) + half] = scaled[k - begin];
        });
    }
    Fr n_inverse = Fr::one(), half_inverse = cuzk::inverse(Fr::one().dbl());
    for (int i = 0; i < log_n; i++) n_inverse = n_inverse * half_inverse;
    n_inverse = n_inverse.to_std();
    parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
        if (inverse && log_n > 0) {
            BatchAdder<F> adder;
            Scaler<F> scaler;
            scale(adder, scaler, &x[begin], end - begin, [&](std::size_t) { return reinterpret_cast<const char*>(&n_inverse); });
        }
        points_out(data + SIZE * begin, &x[begin], end - begin);
    });
}

// out[i] = sum over row i of coefficient * points[col]. Coefficients as in the matrix-vector product: number 0 is +1, 1 is -1,
// others index a table of std scalars. Returns the first row with something out of range, or NOTHING_FOUND.
// Memory: 11 x BATCH points a thread.
template <class F>
std::int64_t sparse_combine(char* out, const std::uint64_t* row_ptr, std::size_t rows, const std::uint32_t* col,
                            const std::uint32_t* coef, std::size_t nnz, const char* table_std, std::size_t table_size,
                            const char* points, std::size_t n, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), BATCH = Scaler<F>::BATCH;
    FirstIndex bad;
    parallel_ranges(threads, rows, BATCH / 2, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; i++) {
            bool fine = row_ptr[i] <= row_ptr[i + 1] && row_ptr[i + 1] <= nnz;
            for (std::uint64_t k = row_ptr[i]; fine && k < row_ptr[i + 1]; k++) fine = col[k] < n && coef[k] < table_size;
            if (!fine) {
                bad.report(i);
                return;
            }
        }
        BatchAdder<F> adder;
        Scaler<F> scaler;
        std::unique_ptr<Point<F>[]> sum(new Point<F>[last - first]()), term(new Point<F>[BATCH]), scaled(new Point<F>[BATCH]);
        std::vector<std::size_t> where;
        struct Segment {
            std::size_t row, start, length;
        };
        std::vector<Segment> segment;
        std::size_t row = first;
        for (std::uint64_t at = row_ptr[first]; at < row_ptr[last];) {
            const std::size_t count = std::min<std::uint64_t>(BATCH, row_ptr[last] - at);
            points_in(term.get(), count, [&](std::size_t i) { return points + SIZE * col[at + i]; });
            where.clear();
            for (std::size_t i = 0; i < count; i++) {
                if (coef[at + i] == 1) {
                    term[i].y = LanesOf<F>::negate_elem(term[i].y);
                } else if (coef[at + i] > 1) {
                    scaled[where.size()] = term[i];
                    where.push_back(i);
                }
            }
            scaler.scale(adder, scaled.get(), where.size(), [&](std::size_t i) { return table_std + 32ull * coef[at + where[i]]; });
            for (std::size_t i = 0; i < where.size(); i++) term[where[i]] = scaled[i];

            // The piece's part of each row, halved until one point a row is left.
            segment.clear();
            for (std::uint64_t k = at; k < at + count;) {
                while (row_ptr[row + 1] <= k) row++;
                std::uint64_t end = std::min<std::uint64_t>(row_ptr[row + 1], at + count);
                segment.push_back({row - first, k - at, end - k});
                k = end;
            }
            for (bool again = true; again;) {
                again = false;
                for (Segment& s : segment) {
                    const std::size_t half = (s.length + 1) / 2;
                    for (std::size_t i = s.start; i + half < s.start + s.length; i++) adder.add(&term[i], &term[i], &term[i + half]);
                    s.length = half;
                    again |= half > 1;
                }
                adder.flush();
            }
            for (const Segment& s : segment) adder.add(&sum[s.row], &sum[s.row], &term[s.start]);
            adder.flush();
            at += count;
        }
        points_out(out + SIZE * first, sum.get(), last - first);
    });
    return bad.result();
}

}  // namespace cuzk

// Number-theoretic transform over Fr on the host, in place, natural order in and out.
//
// Decimation in frequency in passes of at most 2^10 points, eight columns (lanes) at a time in a buffer that fits the
// second-level cache, then one blocked bit reversal. A pass splits the remaining block of M = R s values as index i = i1 s + i2:
//
//   Y[k1][i2] = w_M^(i2 k1) sum_i1 w_R^(i1 k1) X[i1 s + i2]
//
// so the inner transforms need only R/2 broadcast twiddles, and the twist w_M^(i2 k1) comes from running powers of one vector
// a column group. Everything else folds into the twist or into one table of R constants:
//
//   forward coset   g^i = (g^s)^i1 g^i2          table on the first pass's rows, g^i2 as the start of its running powers
//   inverse coset   g^-k, k = k1 + R1 k2 + ...    ratio of the running powers of each pass, table on the last pass
//   1/n             start of the first pass's running powers
#pragma once

#include <memory>
#include <vector>

#include "../abi/parallel.hpp"
#include "../ff/lanes.hpp"

namespace cuzk {

class Ntt {
    using L = LanesFp<FrParams>;
    using Elem = L::Elem;

  public:
    // root: generator of order 2^log_n; coset: shift g, or nullptr. All Montgomery.
    Ntt(int log_n, const Fr& root, bool inverse, const Fr* coset) : log_n_(log_n), inverse_(inverse), coset_(coset != nullptr) {
        root_ = inverse ? cuzk::inverse(root) : root;
        scale_ = Fr::one();
        if (inverse) {
            Fr two_inv = cuzk::inverse(Fr::one().dbl());
            for (int i = 0; i < log_n; i++) scale_ = scale_ * two_inv;
        }
        if (coset) shift_ = inverse ? cuzk::inverse(*coset) : *coset;
    }

    void run(char* data, std::size_t threads) {
        if (log_n_ < 6) {
            small(data);
            return;
        }
        // Passes of nearly equal size; the last one needs 8 blocks, the others 8 columns.
        int passes = log_n_ <= 20 ? 2 : (log_n_ + 9) / 10;
        roots_ = PowerTable(root_, log_n_);
        if (coset_) shifts_ = PowerTable(shift_, log_n_);
        int left = log_n_;
        Fr ratio = coset_ && inverse_ ? shift_ : Fr::one();  // g^-(product of the radices so far)
        for (int p = 0; p < passes; p++) {
            int b = (left + passes - p - 1) / (passes - p);
            pass(data, left, b, p == 0, p + 1 == passes, ratio, threads);
            for (int i = 0; i < b; i++) ratio = ratio.sqr();
            left -= b;
        }
        bit_reverse(data, log_n_, threads);
    }

  private:
    // base^e for e < 2^log_n from two tables of about 2^(log_n / 2).
    struct PowerTable {
        int low_bits = 0;
        std::vector<Fr> low, high;
        PowerTable() = default;
        PowerTable(const Fr& base, int log_n) : low_bits((log_n + 1) / 2), low(std::size_t{1} << low_bits), high(std::size_t{1} << (log_n - low_bits)) {
            Fr x = Fr::one();
            for (auto& t : low) t = x, x = x * base;
            Fr y = Fr::one();
            for (auto& t : high) t = y, y = y * x;
        }
        Fr operator[](std::size_t e) const { return low[e & ((std::size_t{1} << low_bits) - 1)] * high[e >> low_bits]; }
    };

    static Fr get(const char* data, std::size_t i) {
        Fr r;
        std::memcpy(&r, data + 32 * i, 32);
        return r;
    }
    static void put(char* data, std::size_t i, const Fr& x) { std::memcpy(data + 32 * i, &x, 32); }

    static std::size_t reverse(std::size_t i, int bits) {
        std::size_t r = 0;
        for (int b = 0; b < bits; b++) r = r << 1 | (i >> b & 1);
        return r;
    }

    void small(char* data) const {
        const std::size_t n = std::size_t{1} << log_n_;
        Fr x[64], g = Fr::one();
        for (std::size_t i = 0; i < n; i++) {
            x[i] = get(data, i);
            if (coset_ && !inverse_) x[i] = x[i] * g, g = g * shift_;
        }
        Fr w = root_;
        for (std::size_t h = n / 2; h > 0; h /= 2, w = w.sqr())
            for (std::size_t base = 0; base < n; base += 2 * h) {
                Fr t = Fr::one();
                for (std::size_t j = 0; j < h; j++, t = t * w) {
                    Fr a = x[base + j], b = x[base + j + h];
                    x[base + j] = a + b;
                    x[base + j + h] = (a - b) * t;
                }
            }
        g = scale_;
        for (std::size_t k = 0; k < n; k++) {
            Fr y = x[reverse(k, log_n_)];
            if (inverse_) y = y * g;
            if (inverse_ && coset_) g = g * shift_;
            put(data, k, y);
        }
    }

    void pass(char* data, int left, int b, bool first, bool last, const Fr& ratio, std::size_t threads) const {
        const std::size_t n = std::size_t{1} << log_n_, radix = std::size_t{1} << b, stride = std::size_t{1} << (left - b);
        // Twiddles w_R^j of the inner transform; exponents are multiples of n / R of the root.
        std::vector<Elem> twiddle(radix / 2), rows;
        for (std::size_t j = 0; j < radix / 2; j++) twiddle[j] = L::to_elem(roots_[j << (log_n_ - b)]);
        bool rows_before = coset_ && !inverse_ && first, rows_after = coset_ && inverse_ && last;
        if (rows_before || rows_after) {
            rows.resize(radix);
            Fr x = Fr::one(), step = rows_before ? shifts_[stride] : ratio;
            for (auto& t : rows) t = L::to_elem(x), x = x * step;
        }

        const std::size_t groups = n / radix / LANES;
        const std::size_t grain = std::max<std::size_t>(1, std::min<std::size_t>(groups / (4 * threads), 64));
        parallel_ranges(threads, groups, grain, [&](std::size_t begin, std::size_t end) {
            std::unique_ptr<L[]> buffer(new L[radix]);
            for (std::size_t g = begin; g < end; g++) {
                // Lanes are neighbouring columns of a block, or, with one column, neighbouring blocks.
                std::size_t block = last ? g * LANES : g / (stride / LANES), column = last ? 0 : g % (stride / LANES) * LANES;
                char* base = data + 32 * ((block << left) + column);
                const std::size_t lane_step = 32 * (last ? radix : 1), row_step = 32 * stride;
                char* p[LANES];
                for (std::size_t i = 0; i < radix; i++) {
                    for (std::size_t k = 0; k < LANES; k++) p[k] = base + i * row_step + k * lane_step;
                    buffer[i].load_raw(p, 0);
                    if (rows_before) L::mul(buffer[i], buffer[i], L::broadcast(rows[i]));
                }
                inner(buffer.get(), radix, twiddle.data());
                if (!last) twist(buffer.get(), b, left, column, first, ratio);
                for (std::size_t i = 0; i < radix; i++) {
                    if (rows_after) L::mul(buffer[i], buffer[i], L::broadcast(rows[reverse(i, b)]));
                    for (std::size_t k = 0; k < LANES; k++) p[k] = base + i * row_step + k * lane_step;
                    buffer[i].store_raw(p, 0);
                }
            }
        });
    }

    // Transform of `radix` rows, natural order in, bit-reversed out.
    static void inner(L* x, std::size_t radix, const Elem* twiddle) {
        for (std::size_t h = radix / 2, step = 1; h > 0; h /= 2, step *= 2)
            for (std::size_t base = 0; base < radix; base += 2 * h) {
                L d;
                L::sub(d, x[base], x[base + h]);
                L::add(x[base], x[base], x[base + h]);
                x[base + h] = d;
                for (std::size_t j = 1; j < h; j++) L::butterfly(x[base + j], x[base + j + h], twiddle[j * step]);
            }
    }

    // x[rev(k1)] *= start * ratio^k1, lane i: ratio = w_M^(column + i) * `ratio`.
    void twist(L* x, int b, int left, std::size_t column, bool first, const Fr& ratio) const {
        const std::size_t radix = std::size_t{1} << b;
        alignas(64) Elem start_elem[LANES], ratio_elem[LANES];
        for (std::size_t k = 0; k < LANES; k++) {
            Fr s = Fr::one(), q = roots_[(column + k) << (log_n_ - left)];
            if (first && inverse_) s = scale_;
            if (first && coset_ && !inverse_) s = s * shifts_[column + k];
            if (coset_ && inverse_) q = q * ratio;
            start_elem[k] = L::to_elem(s);
            ratio_elem[k] = L::to_elem(q);
        }
        const char* p[LANES];
        L start, q;
        for (int k = 0; k < LANES; k++) p[k] = reinterpret_cast<const char*>(&start_elem[k]);
        start.load(p, 0);
        for (int k = 0; k < LANES; k++) p[k] = reinterpret_cast<const char*>(&ratio_elem[k]);
        q.load(p, 0);
        // Four interleaved chains of powers hide the latency of the multiplication.
        L chain[4], q4;
        chain[0] = start;
        for (int c = 1; c < 4; c++) L::mul(chain[c], chain[c - 1], q);
        L::sqr(q4, q);
        L::sqr(q4, q4);
        bool unit = !(first && (inverse_ || coset_));  // start is 1
        for (std::size_t k1 = 0; k1 < radix; k1 += 4)
            for (std::size_t c = 0; c < 4; c++) {
                L& y = x[reverse(k1 + c, b)];
                if (k1 + c || !unit) L::mul(y, y, chain[c]);
                if (k1 + 4 < radix) L::mul(chain[c], chain[c], q4);
            }
    }

    static void bit_reverse(char* data, int log_n, std::size_t threads) {
        constexpr int T = 3;  // tiles of 8 x 8
        constexpr std::size_t W = std::size_t{1} << T;
        const int middle_bits = log_n - 2 * T;
        parallel_ranges(threads, std::size_t{1} << middle_bits, 1024, [&](std::size_t begin, std::size_t end) {
            alignas(64) char tile[W * W * 32];
            for (std::size_t m = begin; m < end; m++) {
                std::size_t r = reverse(m, middle_bits);
                if (m > r) continue;
                // tile <- block m, transposed and reversed; block m <- block r likewise; block r <- tile.
                auto at = [&](std::size_t hi, std::size_t mid, std::size_t lo) { return data + 32 * (hi << (log_n - T) | mid << T | lo); };
                for (std::size_t hi = 0; hi < W; hi++)
                    for (std::size_t lo = 0; lo < W; lo++)
                        std::memcpy(tile + 32 * (reverse(lo, T) * W + reverse(hi, T)), at(hi, m, lo), 32);
                if (m != r)
                    for (std::size_t hi = 0; hi < W; hi++)
                        for (std::size_t lo = 0; lo < W; lo++) std::memcpy(at(reverse(lo, T), m, reverse(hi, T)), at(hi, r, lo), 32);
                for (std::size_t hi = 0; hi < W; hi++) std::memcpy(at(hi, r, 0), tile + 32 * hi * W, 32 * W);
            }
        });
    }

    int log_n_;
    bool inverse_, coset_;
    Fr root_, scale_, shift_;
    PowerTable roots_, shifts_;
};

}  // namespace cuzk

// Multi-scalar multiplication on the host: Pippenger with signed digits and affine buckets.
//
//   sum_i s_i P_i = sum_w 2^(c w) sum_d d B[w][d],    B[w][d] = sum of the P_i whose digit w is +-d
//
// * Scalars are any 256-bit integers (digits.hpp).
// * Points go through in chunks, converted once to the loops' form, without the infinite ones and those with scalar zero.
// * Within a block of a chunk the entries of a window are sorted by bucket and added pairwise, level by level, by BatchAdder;
//   equal and opposite points that meet in a bucket are ordinary there, and a bucket that gets everything stays a balanced tree.
// * A stream is a (window, part) with its own buckets; a thread takes any idle stream that has blocks left. There are about
//   two streams a thread, so two cores and a hundred are both busy.
// * sum_d d B[d] = 2 sum_i i (B[2i] + B[2i+1]) + sum_i B[2i+1], again pairwise additions; the odd sums of all windows and
//   levels are folded by one Horner loop over single bits.
//
// Memory of a call: streams x 2^(c-1) points of buckets, threads x (BLOCK / 2 points + 12 BLOCK bytes + about 1 MiB), and one
// chunk of points; see msm_memory_bytes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "../abi/parallel.hpp"
#include "../ec/batch_affine.hpp"
#include "../ec/digits.hpp"

namespace cuzk {

struct MsmPlan {
    static constexpr std::size_t BLOCK = 1 << 15;  // entries sorted at a time
    Digits digits;
    std::size_t threads = 1, parts = 1, block = BLOCK, chunk_blocks = 1;

    // n: finite points with a non-zero scalar; bits: length of the longest scalar.
    static MsmPlan make(std::size_t n, int bits, std::size_t threads) {
        MsmPlan p;
        p.threads = std::max<std::size_t>(threads, 1);
        double best = 0;
        for (int c = 2; c <= 16; c++) {
            int w = Digits::windows_for(bits, c);
            // Additions: one a digit, two a bucket (short batches make the latter dearer), plus the sort.
            double cost = w * (1.1 * static_cast<double>(n) + 2.6 * static_cast<double>(1 << (c - 1)) + 64);
            if (best == 0 || cost < best) {
                best = cost;
                p.digits = Digits(bits, c);
            }
        }
        std::size_t w = static_cast<std::size_t>(p.digits.windows);
        if (p.threads > 1 && w < 2 * p.threads) p.parts = std::min<std::size_t>((2 * p.threads + w - 1) / w, n / 2048 + 1);
        p.block = std::min(BLOCK, std::max<std::size_t>(n / p.parts + 1, 64));
        p.chunk_blocks = std::max<std::size_t>(p.parts * 2, 4);
        return p;
    }
};

namespace detail {

// Pairwise additions of one block's entries into the buckets of one stream.
template <class F>
class BucketFiller {
  public:
    explicit BucketFiller(const MsmPlan& plan)
        : plan_(plan), buckets_(plan.digits.half()), start_(buckets_ + 1), length_(buckets_), digit_(plan.block),
          refs_(plan.block), temp_(new Point<F>[plan.block / 2 + 1]) {}

    void run(const Point<F>* points, const ShiftedScalar* scalars, std::size_t count, int window, Point<F>* bucket,
             unsigned char* touched) {
        sort(points, scalars, count, window);
        active_.clear();
        for (std::size_t b = 0; b < buckets_; b++)
            if (length_[b]) active_.push_back(static_cast<u32>(b));
        std::size_t next_temp = 0;
        auto is_temp = [&](const Point<F>* p) { return p >= temp_.get() && p < temp_.get() + plan_.block / 2 + 1; };
        for (bool again = true; again;) {
            again = false;
            for (u32 b : active_) {
                u32 len = length_[b];
                if (len < 2) continue;
                SignedRef<F>* r = &refs_[start_[b]];
                for (u32 k = 0; k + 1 < len; k += 2) {
                    Point<F>* out = const_cast<Point<F>*>(r[k].point());
                    if (!is_temp(out)) {
                        out = const_cast<Point<F>*>(r[k + 1].point());
                        if (!is_temp(out)) out = &temp_[next_temp++];
                    }
                    adder_.add(out, r[k], r[k + 1]);
                    r[k / 2] = out;
                }
                if (len & 1) r[len / 2] = r[len - 1];
                length_[b] = (len + 1) / 2;
                again |= length_[b] > 1;
            }
            adder_.flush();
        }
        for (u32 b : active_) {
            SignedRef<F> r = refs_[start_[b]];
            if (touched[b]) {
                adder_.add(&bucket[b], &bucket[b], r);
            } else {
                touched[b] = 1;
                bucket[b] = *r.point();
                if (r.negative()) bucket[b].y = LanesOf<F>::negate_elem(bucket[b].y);
            }
        }
        adder_.flush();
    }

    BatchAdder<F>& adder() { return adder_; }

  private:
    void sort(const Point<F>* points, const ShiftedScalar* scalars, std::size_t count, int window) {
        std::fill(length_.begin(), length_.end(), 0);
        for (std::size_t i = 0; i < count; i++) {
            int d = plan_.digits.digit(scalars[i], window);
            digit_[i] = d;
            if (d) length_[static_cast<std::size_t>(d < 0 ? -d : d) - 1]++;
        }
        u32 at = 0;
        for (std::size_t b = 0; b < buckets_; b++) {
            start_[b] = at;
            at += length_[b];
        }
        for (std::size_t i = 0; i < count; i++) {
            int d = digit_[i];
            if (d) refs_[start_[static_cast<std::size_t>(d < 0 ? -d : d) - 1]++] = {points + i, d < 0};
        }
        for (std::size_t b = 0; b < buckets_; b++) start_[b] -= length_[b];
    }

    MsmPlan plan_;
    std::size_t buckets_;
    std::vector<u32> start_, length_, active_;
    std::vector<int> digit_;
    std::vector<SignedRef<F>> refs_;
    std::unique_ptr<Point<F>[]> temp_;
    BatchAdder<F> adder_;
};

// Folds buckets of several windows: afterwards bits[l] = sum of the odd elements of level l, all = sum of the buckets, so that
// sum_d d B[d - 1] = all + sum_l 2^l bits[l].
template <class F>
inline void reduce_windows(BatchAdder<F>& adder, Point<F>* const* bucket, std::size_t windows, int c) {
    for (int l = 0; l < c - 1; l++) {
        std::size_t pairs = std::size_t{1} << (c - 2 - l);
        for (std::size_t w = 0; w < windows; w++)
            for (std::size_t i = 0; i < pairs; i++) {
                Point<F>*even = bucket[w] + (2 * i << l), *odd = bucket[w] + ((2 * i + 1) << l);
                adder.add(even, even, odd);
            }
        adder.flush();
    }
    // Level l left its odd elements at (2i + 1) 2^l. Sum each level's to its first.
    for (int s = 0; s < c - 2; s++) {
        for (std::size_t w = 0; w < windows; w++)
            for (int l = 0; l + s < c - 2; l++) {
                std::size_t count = std::size_t{1} << (c - 2 - l - s);
                for (std::size_t i = 0; i < count; i += 2) {
                    Point<F>*a = bucket[w] + ((2 * (i << s) + 1) << l), *b = bucket[w] + ((2 * ((i + 1) << s) + 1) << l);
                    adder.add(a, a, b);
                }
            }
        adder.flush();
    }
}

}  // namespace detail

template <class F>
Affine<F> msm(const char* points, const char* scalars, std::size_t n, std::size_t threads) {
    constexpr std::size_t SIZE = sizeof(Affine<F>), RANGE = 1024;
    static const char zeros[SIZE] = {};
    auto counts = [&](std::size_t i) {
        return std::memcmp(scalars + 32 * i, zeros, 32) != 0 && std::memcmp(points + SIZE * i, zeros, SIZE) != 0;
    };

    // The longest scalar, and how many terms of each range count.
    const std::size_t ranges = (n + RANGE - 1) / RANGE;
    std::vector<u32> range_terms(ranges);
    std::mutex mutex;
    u64 any[4] = {};
    std::size_t terms = 0;
    parallel_ranges(threads, ranges, 64, [&](std::size_t begin, std::size_t end) {
        u64 o[4] = {};
        std::size_t sum = 0;
        for (std::size_t r = begin; r < end; r++) {
            u32 t = 0;
            for (std::size_t i = r * RANGE; i < std::min(n, (r + 1) * RANGE); i++) {
                if (!counts(i)) continue;
                u64 s[4];
                std::memcpy(s, scalars + 32 * i, 32);
                for (int k = 0; k < 4; k++) o[k] |= s[k];
                t++;
            }
            range_terms[r] = t;
            sum += t;
        }
        std::lock_guard<std::mutex> lock(mutex);
        for (int k = 0; k < 4; k++) any[k] |= o[k];
        terms += sum;
    });
    if (terms == 0) return Affine<F>::infinity();

    const MsmPlan plan = MsmPlan::make(terms, bit_length(any, 4), threads);
    const std::size_t windows = static_cast<std::size_t>(plan.digits.windows), streams = windows * plan.parts;
    const std::size_t buckets = plan.digits.half(), workers = std::min(plan.threads, streams);
    std::vector<std::unique_ptr<Point<F>[]>> bucket(streams);
    for (auto& b : bucket) b.reset(new Point<F>[buckets]);
    std::vector<unsigned char> touched(streams * buckets, 0);
    std::vector<std::unique_ptr<detail::BucketFiller<F>>> filler(workers);
    const std::size_t capacity = std::max(RANGE, std::min(plan.chunk_blocks * plan.block, terms));
    std::unique_ptr<Point<F>[]> chunk(new Point<F>[capacity]);
    std::vector<ShiftedScalar> shifted(capacity);
    std::vector<std::size_t> range_at;

    for (std::size_t first = 0; first < ranges;) {
        // As many ranges as fit into a chunk, converted in parallel: every range knows where its terms go.
        std::size_t filled = 0;
        range_at.clear();
        for (std::size_t r = first; r < ranges && filled + range_terms[r] <= capacity; r++) {
            range_at.push_back(filled);
            filled += range_terms[r];
        }
        parallel_for(threads, range_at.size(), [&](std::size_t, std::size_t k) {
            const char* source[RANGE];
            std::size_t m = 0;
            for (std::size_t i = (first + k) * RANGE; i < std::min(n, (first + k + 1) * RANGE); i++) {
                if (!counts(i)) continue;
                shifted[range_at[k] + m].set(scalars + 32 * i, plan.digits);
                source[m++] = points + SIZE * i;
            }
            points_in(&chunk[range_at[k]], m, [&](std::size_t i) { return source[i]; });
        });
        first += range_at.size();

        // Blocks are dealt to the parts in turn; a stream works through its own in order.
        const std::size_t blocks = (filled + plan.block - 1) / plan.block;
        std::vector<std::size_t> next(streams);
        std::vector<char> busy(streams, 0);
        for (std::size_t s = 0; s < streams; s++) next[s] = s / windows;
        parallel_for(workers, workers, [&](std::size_t worker, std::size_t) {
            if (!filler[worker]) filler[worker].reset(new detail::BucketFiller<F>(plan));
            for (;;) {
                std::size_t mine = streams;
                {
                    std::lock_guard<std::mutex> lock(mutex);
                    for (std::size_t s = 0; s < streams; s++)
                        if (!busy[s] && next[s] < blocks && (mine == streams || next[s] < next[mine])) mine = s;
                    if (mine == streams) return;
                    busy[mine] = 1;
                }
                std::size_t begin = next[mine] * plan.block, end = std::min(filled, begin + plan.block);
                filler[worker]->run(&chunk[begin], &shifted[begin], end - begin, static_cast<int>(mine % windows),
                                    bucket[mine].get(), &touched[mine * buckets]);
                std::lock_guard<std::mutex> lock(mutex);
                next[mine] += plan.parts;
                busy[mine] = 0;
            }
        });
    }
    filler.clear();

    // Parts into part 0, then each group of windows folded by one thread.
    const std::size_t groups = std::min(workers, windows);
    parallel_for(groups, groups, [&](std::size_t, std::size_t g) {
        std::unique_ptr<BatchAdder<F>> adder(new BatchAdder<F>);
        std::vector<Point<F>*> set;
        for (std::size_t w = g; w < windows; w += groups) {
            Point<F>* to = bucket[w].get();
            for (std::size_t b = 0; b < buckets; b++)
                if (!touched[w * buckets + b]) to[b] = Point<F>{};
            for (std::size_t stream = w + windows; stream < streams; stream += windows) {
                for (std::size_t b = 0; b < buckets; b++)
                    if (touched[stream * buckets + b]) adder->add(&to[b], &to[b], &bucket[stream][b]);
                adder->flush();
            }
            set.push_back(to);
        }
        detail::reduce_windows(*adder, set.data(), set.size(), plan.digits.c);
    });

    Xyzz<F> total = Xyzz<F>::infinity();
    for (std::size_t w = windows; w-- > 0;)
        for (int l = plan.digits.c - 1; l >= 0; l--) {
            total.dbl();
            if (l + 1 < plan.digits.c) total.add(bucket[w][std::size_t{1} << l].affine());
            if (l == 0) total.add(bucket[w][0].affine());
        }
    return to_affine(total);
}

}  // namespace cuzk

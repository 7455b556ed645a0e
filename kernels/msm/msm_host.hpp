// Multi-scalar multiplication on the host: Pippenger with signed digits and affine buckets.
//
//   sum_i s_i P_i = sum_w 2^(c w) sum_d d B[w][d],    B[w][d] = sum of the P_i whose digit w is +-d
//
// * Scalars are any 256-bit integers (digits.hpp).
// * Points go through in chunks, converted once to the loops' form, without the infinite ones and those with scalar zero.
// * Within a block of a chunk the entries of a window are sorted by bucket and added pairwise, level by level, by BatchAdder;
//   equal and opposite points that meet in a bucket are ordinary there, and a bucket that gets everything stays a balanced tree.
// * A stream is a (window, part) with its own buckets; a thread takes the idle stream that is furthest behind, a block at a
//   time. There are a few more streams than threads, so two cores and a hundred are both busy.
// * sum_d d B[d] = 2 sum_i i (B[2i] + B[2i+1]) + sum_i B[2i+1], again pairwise additions, in as many segments of a window as
//   keep the threads busy; what they leave is folded by one Horner loop over single bits.
//
// Memory of a call: streams x 2^(c-1) points of buckets, parts x 2^17 points in work, and a thread's BLOCK / 2 points, sorting
// arrays and scratch of BatchAdder (MsmPlan::bytes). A point is 128 bytes with IFMA and 96 without (G2: 256, 192).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "../abi/parallel.hpp"
#include "../ec/batch_affine.hpp"
#include "../ec/digits.hpp"

namespace cuzk {

struct MsmPlan {
    static constexpr std::size_t BLOCK = 1 << 14, BLOCKS_PER_PART = 8;
    Digits digits;
    std::size_t threads = 1, parts = 1, segments = 1, block = BLOCK;

    std::size_t windows() const { return static_cast<std::size_t>(digits.windows); }
    std::size_t streams() const { return windows() * parts; }
    std::size_t workers() const { return std::min(threads, streams()); }

    // Points converted and worked on at a time, of `terms` in all.
    std::size_t chunk(std::size_t terms) const { return std::max<std::size_t>(1024, std::min(parts * BLOCKS_PER_PART * block, terms)); }
    // Memory of a call beside its arguments and the threads' stacks.
    template <class F>
    std::size_t bytes(std::size_t terms) const {
        constexpr std::size_t POINT = sizeof(Point<F>);
        const std::size_t half = digits.half();
        const std::size_t thread = half * 12 + block * (POINT / 2 + 12) + BatchAdder<F>::BYTES;
        return streams() * half * (POINT + 1) + chunk(terms) * (POINT + sizeof(ShiftedScalar)) + workers() * thread;
    }

    // n: finite points with a non-zero scalar; bits: length of the longest scalar.
    static MsmPlan make(std::size_t n, int bits, std::size_t threads) {
        MsmPlan best;
        double best_cost = 0;
        for (int c = 2; c <= 16; c++) {
            MsmPlan p;
            p.digits = Digits(bits, c);
            p.threads = std::max<std::size_t>(threads, 1);
            const std::size_t w = p.windows();
            if (p.threads > w) {
                p.parts = std::min((5 * p.threads / 4 + w - 1) / w, n / 2048 + 1);
                while (p.segments * w < p.threads && p.segments < p.digits.half() / 64) p.segments *= 2;
            }
            p.block = std::min(BLOCK, std::max<std::size_t>(n / p.parts + 1, 64));
            // Additions: one a digit; two a bucket, dearer in short batches; one a bucket of a further part. And the sort.
            double cost = static_cast<double>(w) * (1.1 * static_cast<double>(n) + (1.6 + static_cast<double>(p.parts)) * static_cast<double>(p.digits.half()) + 64);
            if (best_cost == 0 || cost < best_cost) best_cost = cost, best = p;
        }
        return best;
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

// Folds arrays of 2^levels buckets each: afterwards [0] = sum of all, [2^l] = sum of those whose index has bit l, so that
// sum_i i B[i] = sum_l 2^l [2^l].
template <class F>
inline void fold_buckets(BatchAdder<F>& adder, const std::vector<Point<F>*>& bucket, int levels) {
    for (int l = 0; l < levels; l++) {
        std::size_t pairs = std::size_t{1} << (levels - 1 - l);
        for (Point<F>* x : bucket)
            for (std::size_t i = 0; i < pairs; i++) {
                Point<F>*even = x + (2 * i << l), *odd = x + ((2 * i + 1) << l);
                adder.add(even, even, odd);
            }
        adder.flush();
    }
    // Level l left its odd elements at (2i + 1) 2^l. Sum each level's to its first.
    for (int s = 0; s + 1 < levels; s++) {
        for (Point<F>* x : bucket)
            for (int l = 0; l + s + 1 < levels; l++) {
                std::size_t count = std::size_t{1} << (levels - 1 - l - s);
                for (std::size_t i = 0; i < count; i += 2) {
                    Point<F>*a = x + ((2 * (i << s) + 1) << l), *b = x + ((2 * ((i + 1) << s) + 1) << l);
                    adder.add(a, a, b);
                }
            }
        adder.flush();
    }
}

}  // namespace detail

// One multi-scalar multiplication; its steps in the order of `run`.
template <class F>
class Msm {
    static constexpr std::size_t SIZE = sizeof(Affine<F>), RANGE = 1024;  // chunk() is at least a range

  public:
    Msm(const char* points, const char* scalars, std::size_t n, std::size_t threads)
        : points_(points), scalars_(scalars), n_(n), threads_(threads), range_terms_((n + RANGE - 1) / RANGE) {}

    Affine<F> run() {
        survey();
        if (terms_ == 0) return Affine<F>::infinity();
        plan_ = MsmPlan::make(terms_, bit_length(any_, 4), threads_);
        buckets_ = plan_.digits.half();
        bucket_.resize(plan_.streams());
        for (auto& b : bucket_) b.reset(new Point<F>[buckets_]);
        touched_.assign(plan_.streams() * buckets_, 0);
        filler_.resize(plan_.workers());
        const std::size_t capacity = plan_.chunk(terms_);
        chunk_.reset(new Point<F>[capacity]);
        shifted_.reset(new ShiftedScalar[capacity]);
        for (std::size_t range = 0; range < range_terms_.size();) {
            std::size_t filled = convert(range, capacity);
            fill_buckets(filled);
        }
        filler_.clear();
        fold();
        return to_affine(combine());
    }

  private:
    bool counts(std::size_t i) const {
        static const char zeros[SIZE] = {};
        return std::memcmp(scalars_ + 32 * i, zeros, 32) != 0 && std::memcmp(points_ + SIZE * i, zeros, SIZE) != 0;
    }

    // The longest scalar, and how many terms of each range count.
    void survey() {
        parallel_ranges(threads_, range_terms_.size(), 64, [&](std::size_t begin, std::size_t end) {
            u64 o[4] = {};
            std::size_t sum = 0;
            for (std::size_t r = begin; r < end; r++) {
                u32 t = 0;
                for (std::size_t i = r * RANGE; i < std::min(n_, (r + 1) * RANGE); i++) {
                    if (!counts(i)) continue;
                    u64 s[4];
                    std::memcpy(s, scalars_ + 32 * i, 32);
                    for (int k = 0; k < 4; k++) o[k] |= s[k];
                    t++;
                }
                range_terms_[r] = t;
                sum += t;
            }
            std::lock_guard<std::mutex> lock(mutex_);
            for (int k = 0; k < 4; k++) any_[k] |= o[k];
            terms_ += sum;
        });
    }

    // Converts as many ranges as fit into a chunk, in parallel: every range knows where its terms go. Returns the terms.
    std::size_t convert(std::size_t& range, std::size_t capacity) {
        const std::size_t first = range;
        std::size_t filled = 0;
        std::vector<std::size_t> at;
        for (; range < range_terms_.size() && filled + range_terms_[range] <= capacity; range++) {
            at.push_back(filled);
            filled += range_terms_[range];
        }
        parallel_for(threads_, at.size(), [&](std::size_t, std::size_t k) {
            const char* source[RANGE];
            std::size_t m = 0;
            for (std::size_t i = (first + k) * RANGE; i < std::min(n_, (first + k + 1) * RANGE); i++) {
                if (!counts(i)) continue;
                shifted_[at[k] + m].set(scalars_ + 32 * i, plan_.digits);
                source[m++] = points_ + SIZE * i;
            }
            points_in(&chunk_[at[k]], m, [&](std::size_t i) { return source[i]; });
        });
        return filled;
    }

    // Blocks are dealt to the parts in turn; a stream works through its own in order.
    void fill_buckets(std::size_t filled) {
        const std::size_t windows = plan_.windows(), streams = plan_.streams(), blocks = (filled + plan_.block - 1) / plan_.block;
        std::vector<std::size_t> next(streams);
        std::vector<char> busy(streams, 0);
        for (std::size_t s = 0; s < streams; s++) next[s] = s / windows;
        parallel_for(plan_.workers(), plan_.workers(), [&](std::size_t worker, std::size_t) {
            if (!filler_[worker]) filler_[worker].reset(new detail::BucketFiller<F>(plan_));
            for (;;) {
                std::size_t mine = streams;
                {
                    std::lock_guard<std::mutex> lock(mutex_);
                    for (std::size_t s = 0; s < streams; s++)
                        if (!busy[s] && next[s] < blocks && (mine == streams || next[s] < next[mine])) mine = s;
                    if (mine == streams) return;
                    busy[mine] = 1;
                }
                std::size_t begin = next[mine] * plan_.block, end = std::min(filled, begin + plan_.block);
                filler_[worker]->run(&chunk_[begin], &shifted_[begin], end - begin, static_cast<int>(mine % windows),
                                     bucket_[mine].get(), &touched_[mine * buckets_]);
                std::lock_guard<std::mutex> lock(mutex_);
                next[mine] += plan_.parts;
                busy[mine] = 0;
            }
        });
    }

    // Segments of the windows: the parts into part 0, then folded. A task takes several segments, for longer batches.
    void fold() {
        const std::size_t windows = plan_.windows(), segments = windows * plan_.segments, segment = buckets_ / plan_.segments;
        const std::size_t tasks = std::min(plan_.workers(), segments);
        parallel_for(tasks, tasks, [&](std::size_t, std::size_t task) {
            BatchAdder<F> adder;
            std::vector<Point<F>*> set;
            for (std::size_t s = task; s < segments; s += tasks) {
                const std::size_t window = s / plan_.segments, first = s % plan_.segments * segment;
                Point<F>* to = &bucket_[window][first];
                for (std::size_t b = 0; b < segment; b++)
                    if (!touched_[window * buckets_ + first + b]) to[b] = Point<F>{};
                for (std::size_t stream = window + windows; stream < plan_.streams(); stream += windows) {
                    for (std::size_t b = 0; b < segment; b++)
                        if (touched_[stream * buckets_ + first + b]) adder.add(&to[b], &to[b], &bucket_[stream][first + b]);
                    adder.flush();
                }
                set.push_back(to);
            }
            detail::fold_buckets(adder, set, __builtin_ctzll(segment));
        });
    }

    // Bit l of a bucket's index is bit l within its segment, or bit l - levels of the segment's number. Bucket i holds digit i + 1.
    Xyzz<F> combine() const {
        const std::size_t segment = buckets_ / plan_.segments;
        const int levels = __builtin_ctzll(segment);
        Xyzz<F> total = Xyzz<F>::infinity();
        for (std::size_t w = plan_.windows(); w-- > 0;)
            for (int l = plan_.digits.c - 1; l >= 0; l--) {
                total.dbl();
                for (std::size_t s = 0; s < plan_.segments; s++) {
                    const Point<F>* x = &bucket_[w][s * segment];
                    if (l < levels) total.add(x[std::size_t{1} << l].affine());
                    if (l >= levels && (s >> (l - levels) & 1)) total.add(x[0].affine());
                    if (l == 0) total.add(x[0].affine());
                }
            }
        return total;
    }

    const char *points_, *scalars_;
    std::size_t n_, threads_, terms_ = 0, buckets_ = 0;
    MsmPlan plan_;
    u64 any_[4] = {};
    std::vector<u32> range_terms_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Point<F>[]>> bucket_;  // a stream each
    std::vector<unsigned char> touched_;               // streams x buckets: the bucket holds something
    std::vector<std::unique_ptr<detail::BucketFiller<F>>> filler_;
    std::unique_ptr<Point<F>[]> chunk_;
    std::unique_ptr<ShiftedScalar[]> shifted_;
};

template <class F>
inline Affine<F> msm(const char* points, const char* scalars, std::size_t n, std::size_t threads) {
    return Msm<F>(points, scalars, n, threads).run();
}

}  // namespace cuzk

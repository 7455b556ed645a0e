// Kernels of the MSM and of batch addition that move references; the same for G1 and G2. See sort.cuh and segments.cuh.
#include "segments.cuh"
#include "sort.cuh"

using namespace cuzk;

#define SHAPE_PARAMETERS \
    u32 narrow, u32 wide, u32 windows, u32 sets, u32 first_set, u32 group_sets, u32 low_bits, u32 points, u32 stride
#define SHAPE SortShape{narrow, wide, windows, sets, first_set, group_sets, low_bits, points, stride}

CUZK_KERNEL(256, 4)
msm_digits(SHAPE_PARAMETERS, const uint4* scalars, u32 mont, u32* digits, u32* partition_count) {
    sort_digits(SHAPE, scalars, mont != 0, digits, partition_count);
}

CUZK_KERNEL(1024, 1)
msm_partition_starts(u32 partitions, const u32* count, u32* start, u32* cursor, u32* tile_start, u32* counts) {
    sort_partition_starts(partitions, count, start, cursor, tile_start, &counts[0]);
}

CUZK_KERNEL(TILE_THREADS, 2)
msm_partition(SHAPE_PARAMETERS, const u32* digits, u32* cursor, uint2* elements) {
    sort_into_partitions(SHAPE, digits, cursor, elements);
}

CUZK_KERNEL(TILE_THREADS, 4)
msm_count_buckets(SHAPE_PARAMETERS, const uint2* elements, const u32* partition_start, const u32* tile_start, u32* bucket_count) {
    sort_count_buckets(SHAPE, elements, partition_start, tile_start, bucket_count);
}

CUZK_KERNEL(TILE_THREADS, 2)
msm_place(SHAPE_PARAMETERS, const uint2* elements, const u32* partition_start, const u32* tile_start, u32* bucket_cursor,
          u32* references) {
    sort_into_buckets(SHAPE, elements, partition_start, tile_start, bucket_cursor, references);
}

CUZK_KERNEL(SCAN_THREADS, 4) count_tile_sums(const u32* count, u32 n, u64* sums) { scan_tile_sums(CountsOf{count}, n, sums); }

CUZK_KERNEL(1024, 1) count_scan_sums(u64* sums, u32 tiles, u32* total) { scan_sums(sums, tiles, total); }

CUZK_KERNEL(SCAN_THREADS, 4) count_starts(const u32* count, u32 n, const u64* sums, u32* start, u32* cursor) {
    counts_to_starts(count, n, sums, start, cursor);
}

// The rounds. `round` picks the counters; a round without references returns at once, so a fixed number of rounds is
// launched and the host never waits for a count.
CUZK_KERNEL(SCAN_THREADS, 3)
round_starts(const u32* start, const u32* references, u32 segments, u32 bits, u64* state, u32* tickets, u32* job_start,
             u32* next_start, u32* result, u32* counts, u32 round) {
    counts += 2 * round;
    if (counts[0] == 0) {
        if (global_thread() == 0) counts[1] = counts[2] = 0;
        return;
    }
    cuzk::round_starts(start, references, segments, bits, state, &tickets[round], round + 1, job_start, next_start, result, counts);
}

CUZK_KERNEL(256, 8)
round_pairs(const u32* start, const u32* references, u32 segments, const u32* job_start, const u32* next_start, uint2* pairs,
            u32* next_references, u32* result, const u32* counts, u32 round, u32* ticket) {
    if (global_thread() == 0) *ticket = 0;
    cuzk::round_pairs(start, references, segments, job_start, counts[2 * round + 1], next_start, pairs, next_references, result);
}

// Bucket reduction: the buckets of a set form a matrix, bucket = high * 2^column_bits + low. Segments: all rows of all sets, then
// all columns. Sum of (bucket + 1) B = 2^column_bits * sum of high * Row + sum of (low + 1) * Column. The first `wide` sets have
// 2^(row_bits + 1) rows, the others 2^row_bits.
CUZK_KERNEL(256, 8)
fold_segments(u32 sets, u32 wide, u32 row_bits, u32 column_bits, u32* start, u32* references, u32* counts) {
    const u32 rows = (sets + wide) << row_bits, buckets = rows << column_bits, columns = sets << column_bits;
    const u32 wide_columns = wide << column_bits, wide_buckets = wide << (row_bits + 1 + column_bits);
    for (u32 e = global_thread(); e < 2 * buckets; e += global_threads()) {
        u32 bucket = e;
        if (e >= buckets) {
            const bool in_wide = e - buckets < wide_buckets;
            const u32 base = in_wide ? 0 : wide_buckets, bits = row_bits + in_wide, place = e - buckets - base;
            const u32 column = place >> bits, high = place & ((1u << bits) - 1);
            const u32 set = column >> column_bits, low = column & ((1u << column_bits) - 1);
            bucket = base + (set << (bits + column_bits)) + (high << column_bits) + low;
        }
        references[e] = REF_POINT | bucket;
    }
    for (u32 s = global_thread(); s <= rows + columns; s += global_threads()) {
        u32 first = s << column_bits;
        if (s > rows) {
            const u32 column = s - rows;
            first = buckets + (column << row_bits) + ((column < wide_columns ? column : wide_columns) << row_bits);
        }
        start[s] = first;
    }
    if (global_thread() == 0) counts[0] = 2 * buckets;
}

// Pairs (point first_step * i, reference second + step * i), for additions without a sort: two arrays of buckets (1, 0, 1), one
// point added to all (1, its reference, 0), neighbours (2, REF_POINT | 1, 2).
CUZK_KERNEL(256, 8) list_pairs(u32 n, u32 first_step, u32 second, u32 step, uint2* pairs, u32* pair_count, u32* ticket) {
    for (u32 i = global_thread(); i < n; i += global_threads())
        pairs[i] = make_uint2(REF_POINT | first_step * i, second + step * i);
    if (global_thread() == 0) {
        *pair_count = n;
        *ticket = 0;
    }
}

// Batch addition: references to the points whose bit is set. Bits past the last point do not count.
CUZK_DEVICE u32 bitmap_word(const u32* bitmap, u32 words, u32 n, u32 i) {
    if (i >= words) return 0;
    return i == n / 32 ? bitmap[i] & ((1u << n % 32) - 1) : bitmap[i];
}

// Of the bits, the lower ones of the pairs (2i, 2i + 1) that are set both and whose sum is known: one reference instead of two.
CUZK_DEVICE u32 set_pairs(u32 bits, u32 first_sum) { return first_sum ? bits & bits >> 1 & 0x55555555u : 0; }

CUZK_KERNEL(256, 8) bitmap_counts(const u32* bitmap, u32 words, u32 n, u32 first_sum, u32* count) {
    for (u32 i = global_thread(); i < words; i += global_threads()) {
        const u32 bits = bitmap_word(bitmap, words, n, i);
        count[i] = __popc(bits) - __popc(set_pairs(bits, first_sum));
    }
}

// A warp takes 32 words, one after another: a lane a bit, so that references leave side by side. The sum of points 2i and 2i + 1
// is point first_sum + i; first_sum 0: there are no sums.
CUZK_KERNEL(256, 8)
bitmap_references(const u32* bitmap, u32 words, u32 n, u32 first_sum, const u32* word_start, u32* references, u32* start) {
    const u32 lane = lane_id(), below = (1u << lane) - 1;
    for (u32 first = global_thread() - lane; first < words; first += global_threads()) {
        const u32 own_bits = bitmap_word(bitmap, words, n, first + lane);
        const u32 own_start = first + lane < words ? word_start[first + lane] : 0;
        for (u32 j = 0; j < 32; j++) {
            const u32 bits = __shfl_sync(FULL_WARP, own_bits, j), at = __shfl_sync(FULL_WARP, own_start, j);
            const u32 pairs = set_pairs(bits, first_sum), listed = bits & ~(pairs << 1);
            const u32 point = 32 * (first + j) + lane;
            if (listed >> lane & 1)
                references[at + __popc(listed & below)] = REF_POINT | (pairs >> lane & 1 ? first_sum + point / 2 : point);
        }
    }
    if (global_thread() == 0) {
        start[0] = 0;
        start[1] = word_start[words];
    }
}

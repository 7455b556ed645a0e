// A key's list split by the values of its wires: a bitmap of the rows whose value is 1, for batch addition, and the rows whose value is
// neither 0 nor 1 with those values, for an MSM. Row i belongs to wire wires[i], or to wire first + i where `wires` is null.
//
// A witness is three arrays over its wires (elements.cuh): ones, mask and rank, and the values that the mask stands for. Bitmaps are
// read and written here in 32-bit words: bit i is bit i % 32 of word i / 32.
#include "elements.cuh"

namespace cuzk {

constexpr u32 SPLIT_ROWS = 1024;  // of a block of 256 threads: 32 words of a bitmap

CUZK_DEVICE u32 bit_at(const u32* bitmap, u32 i) { return bitmap[i >> 5] >> (i & 31) & 1; }

// finite: a bitmap of the rows that count, or null: all. counts[block]: rows of `others`; *n_ones grows by the rows of `ones`.
CUZK_KERNEL(256, 8)
split_classify(const u32* wires, u32 first, u32 rows, const u32* finite, const u32* ones, const u32* mask, u32* row_ones,
               u32* row_others, u32 words, u32* counts, u32* n_ones) {
    __shared__ u32 found[2];
    if (threadIdx.x < 2) found[threadIdx.x] = 0;
    __syncthreads();
    for (u32 round = 0; round < 4; round++) {
        const u32 row = blockIdx.x * SPLIT_ROWS + round * 256 + threadIdx.x;
        bool is_one = false, is_other = false;
        if (row < rows && (!finite || bit_at(finite, row))) {
            const u32 wire = wires ? wires[row] : first + row;
            is_other = bit_at(mask, wire);
            is_one = !is_other && bit_at(ones, wire);
        }
        const u32 one_word = __ballot_sync(FULL_WARP, is_one), other_word = __ballot_sync(FULL_WARP, is_other);
        if (lane_id() == 0 && row / 32 < words) {
            row_ones[row / 32] = one_word;
            row_others[row / 32] = other_word;
            if (one_word) atomicAdd(&found[0], static_cast<u32>(__popc(one_word)));
            if (other_word) atomicAdd(&found[1], static_cast<u32>(__popc(other_word)));
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = found[1];
        if (found[0]) atomicAdd(n_ones, found[0]);
    }
}

// start[block]: set bits of row_others before the block's. tail_rows, tail_values: rows and values of the others in order, at most
// `capacity`; values as the witness has them.
CUZK_KERNEL(256, 8)
split_gather(const u32* wires, u32 first, const u32* row_others, u32 words, const u32* start, const u64* mask, const u32* rank,
             const uint4* fields, u32* tail_rows, uint4* tail_values, u32 capacity) {
    __shared__ u32 word_bits[32], word_start[32];
    const u32 base = blockIdx.x * 32;
    if (threadIdx.x < 32) word_bits[threadIdx.x] = base + threadIdx.x < words ? row_others[base + threadIdx.x] : 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = start[blockIdx.x];
        for (u32 w = 0; w < threadIdx.x; w++) sum += __popc(word_bits[w]);
        word_start[threadIdx.x] = sum;
    }
    __syncthreads();
    for (u32 word = threadIdx.x >> 5; word < 32; word += 8) {
        const u32 bits = word_bits[word], lane = lane_id(), at = word_start[word] + __popc(bits & ((1u << lane) - 1));
        if ((bits >> lane & 1) && at < capacity) {
            const u32 row = (base + word) * 32 + lane, wire = wires ? wires[row] : first + row;
            const u64 below = (1ull << (wire & 63)) - 1;
            tail_rows[at] = row;
            store_fr(tail_values, at, load_fr(fields, rank[wire >> 6] + __popcll(mask[wire >> 6] & below)));
        }
    }
}

// out[i] = points[rows[i]], points of `units` 16-byte words: neighbouring threads move neighbouring words.
CUZK_KERNEL(256, 8) gather_rows(const u32* rows, u32 count, u32 units, const uint4* points, uint4* out) {
    const u64 all = static_cast<u64>(count) * units;
    for (u64 i = global_thread(); i < all; i += global_threads()) {
        const u32 point = static_cast<u32>(i / units), unit = static_cast<u32>(i - static_cast<u64>(point) * units);
        out[i] = points[static_cast<u64>(rows[point]) * units + unit];
    }
}

// out[i] = points[rows[i] - first] where that row is one of the `n` from `first` on; other places stay as they are. So a list may
// pass by in parts, in any order.
CUZK_KERNEL(256, 8)
gather_rows_within(const u32* rows, u32 count, u32 first, u32 n, u32 units, const uint4* points, uint4* out) {
    const u64 all = static_cast<u64>(count) * units;
    for (u64 i = global_thread(); i < all; i += global_threads()) {
        const u32 point = static_cast<u32>(i / units), unit = static_cast<u32>(i - static_cast<u64>(point) * units);
        const u32 row = rows[point] - first;  // far above n for a row before the first
        if (row < n) out[i] = points[static_cast<u64>(row) * units + unit];
    }
}

// finite: bit i of the bitmap says whether point i, `units` 16-byte words, is anything but zeros (infinity). A thread a point.
CUZK_KERNEL(256, 8) finite_rows(const uint4* points, u32 units, u32 rows, u32* finite) {
    const u32 row = global_thread();
    u32 any = 0;
    if (row < rows)
        for (u32 i = 0; i < units && !any; i++) {
            const uint4 t = points[static_cast<u64>(row) * units + i];
            any = t.x | t.y | t.z | t.w;
        }
    const u32 word = __ballot_sync(FULL_WARP, any != 0);
    if (lane_id() == 0 && row < rows) finite[row / 32] = word;
}

// Up to 64 bits from bit `first` on; no word behind bit first + run - 1 is touched.
CUZK_DEVICE u64 read_bits(const u64* words, u64 first, u64 run) {
    const u32 shift = first & 63;
    u64 bits = words[first >> 6] >> shift;
    if (shift && run > 64 - shift) bits |= words[(first >> 6) + 1] << (64 - shift);
    return bits;
}

// One bitmap over all wires, inputs first, from the bitmaps of a template's prefix and of its copies (`body_stride` words apart).
// Inputs get `input_bit`. A thread a word of the result; `words` of them.
CUZK_KERNEL(256, 8)
flatten_bits(const u64* prefix, const u64* body, u32 body_stride, u32 inputs, u32 prefix_aux, u32 body_aux, u32 copies, u32 input_bit,
             u64* out, u32 words) {
    const u64 wires = inputs + prefix_aux + static_cast<u64>(copies) * body_aux;
    for (u32 word = global_thread(); word < words; word += global_threads()) {
        u64 value = 0, wire = static_cast<u64>(word) * 64;
        for (u32 filled = 0; filled < 64 && wire < wires;) {
            u64 bits, run;
            if (wire < inputs) {
                run = inputs - wire;
                bits = input_bit ? ~0ull : 0;
            } else if (wire - inputs < prefix_aux) {
                run = inputs + prefix_aux - wire;
                bits = read_bits(prefix, wire - inputs, run);
            } else {
                const u64 aux = wire - inputs - prefix_aux, copy = aux / body_aux, local = aux - copy * body_aux;
                run = body_aux - local;
                bits = read_bits(body + copy * body_stride, local, run);
            }
            const u32 take = run < 64 - filled ? static_cast<u32>(run) : 64 - filled;
            if (take < 64) bits &= (1ull << take) - 1;
            value |= bits << filled;
            filled += take;
            wire += take;
        }
        out[word] = value;
    }
}

CUZK_KERNEL(256, 8) count_bits(const u64* bitmap, u32 words, u32* counts) {
    for (u32 word = global_thread(); word < words; word += global_threads()) counts[word] = __popcll(bitmap[word]);
}

}  // namespace cuzk

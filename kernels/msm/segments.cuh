// Sums of many lists of points at once, in rounds. A segment is a list of references; a round adds up neighbours inside every
// segment, so the longest list decides the number of rounds only, and one list of a million costs what a million of
// short ones cost. Most rounds make pairs (pair_add does the arithmetic); where few references are left, a round adds up groups of
// 2^bits (sum_groups), which costs more an addition and less in launches and latency. The kernels here move references.
//
//   start[s] .. start[s+1]   segment s in references[]        (round r)
//   job_start[s]             its first pair or group
//   counts[2 r]              references in round r; counts[2 r + 1] pairs or groups in round r
//
// A segment of which one reference is left is finished: the reference goes to result[s], and the segment is empty from then on.
#pragma once

#include "blocks.cuh"
#include "references.cuh"

namespace cuzk {

constexpr u32 SCAN_THREADS = 512;
constexpr u32 SCAN_PER_THREAD = 4;  // one 16-byte word
constexpr u32 SCAN_TILE = SCAN_THREADS * SCAN_PER_THREAD;

// Four neighbouring words at `first` (a multiple of 4), `beyond` past the end.
CUZK_DEVICE void load4(u32 out[4], const u32* words, u32 first, u32 n, u32 beyond) {
    if (first + 4 <= n) {
        uint4 t = *reinterpret_cast<const uint4*>(words + first);
        out[0] = t.x, out[1] = t.y, out[2] = t.z, out[3] = t.w;
    } else {
        for (u32 i = 0; i < 4; i++) out[i] = first + i < n ? words[first + i] : beyond;
    }
}
CUZK_DEVICE void store4(u32* words, u32 first, u32 n, const u32 in[4]) {
    if (first + 4 <= n) {
        *reinterpret_cast<uint4*>(words + first) = make_uint4(in[0], in[1], in[2], in[3]);
    } else {
        for (u32 i = 0; i < 4 && first + i < n; i++) words[first + i] = in[i];
    }
}

// What is summed up, for the four elements at `first`.
struct CountsOf {
    const u32* count;
    CUZK_DEVICE void operator()(u32 first, u32 n, u64 out[4]) const {
        u32 c[4];
        load4(c, count, first, n, 0);
        for (int i = 0; i < 4; i++) out[i] = c[i];
    }
};
// References of the next round, and pairs (bits = 1) or groups of this one.
CUZK_DEVICE u64 next_round(u32 length, u32 bits) {
    const u32 left = static_cast<u32>((static_cast<u64>(length) + (1u << bits) - 1) >> bits);
    const u32 jobs = length < 2 ? 0 : bits == 1 ? length / 2 : left;
    return static_cast<u64>(jobs) << 32 | (left > 1 ? left : 0);
}
CUZK_DEVICE void scan_tile_sums(CountsOf of, u32 n, u64* sums) {
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_PER_THREAD;
    u64 values[4] = {0, 0, 0, 0}, total;
    if (first < n) of(first, n, values);
    block_exclusive_scan<SCAN_THREADS>(values[0] + values[1] + values[2] + values[3], total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// One block of 1024: sums become exclusive; the grand total goes to *all.
CUZK_DEVICE void scan_sums(u64* sums, u32 tiles, u32* all) {
    const u32 share = (tiles + 1023) / 1024, first = threadIdx.x * share;
    u64 sum = 0;
    for (u32 i = first; i < first + share && i < tiles; i++) sum += sums[i];
    u64 total, before = block_exclusive_scan<1024>(sum, total);
    for (u32 i = first; i < first + share && i < tiles; i++) {
        u64 t = sums[i];
        sums[i] = before;
        before += t;
    }
    if (threadIdx.x == 0) *all = static_cast<u32>(total);
}

// cursor may be the counters themselves.
CUZK_DEVICE void counts_to_starts(const u32* count, u32 n, const u64* sums, u32* start, u32* cursor) {
    const u32 first = blockIdx.x * SCAN_TILE + threadIdx.x * SCAN_PER_THREAD;
    u64 values[4] = {0, 0, 0, 0}, total;
    if (first < n) CountsOf{count}(first, n, values);
    u64 before = block_exclusive_scan<SCAN_THREADS>(values[0] + values[1] + values[2] + values[3], total) + sums[blockIdx.x];
    if (first >= n) return;
    u32 out[4];
    for (int i = 0; i < 4; i++) {
        out[i] = static_cast<u32>(before);
        before += values[i];
    }
    store4(start, first, n, out);
    store4(cursor, first, n, out);
    if (first + 4 >= n) start[n] = static_cast<u32>(before);
}

// The sum of all tiles before `tile`, two counts in the halves of a u64, in one pass: each tile publishes its own sum, then the sum
// of all up to itself; a warp looks back over the tiles before, 32 at a time, until it meets a sum of all. state[2 tile] and
// state[2 tile + 1] hold the two counts, each in one word with a tag, 2 * epoch for the tile's own sum or 2 * epoch + 1 for all, so
// that no fence is needed. Tiles must be handed out in order; epochs begin at 1 in state that is zero. All threads must call.
CUZK_DEVICE u64 sum_of_tiles_before(volatile u64* state, u32 tile, u32 epoch, u64 own) {
    __shared__ u64 found;
    const u32 lane = lane_id();
    if (threadIdx.x < 32) {
        u64 before = 0;
        const auto publish = [&](u64 sum, u32 tag) {
            if (lane < 2) state[2 * static_cast<u64>(tile) + lane] = static_cast<u64>(tag) << 32 | static_cast<u32>(sum >> 32 * lane);
        };
        if (tile > 0) publish(own, 2 * epoch);
        for (u32 end = tile; end > 0; end = end > 32 ? end - 32 : 0) {
            u64 low = 0, high = 0;
            if (lane < end) {
                const u64 place = 2 * static_cast<u64>(end - 1 - lane);
                do {
                    low = state[place];
                    high = state[place + 1];
                } while (low >> 33 != epoch || low >> 32 != high >> 32);
            }
            const u32 complete = __ballot_sync(FULL_WARP, low >> 32 & 1);
            const u32 stop = complete ? __ffs(complete) - 1 : 31;
            u64 sum = lane <= stop ? high << 32 | static_cast<u32>(low) : 0;
            for (u32 distance = 1; distance < 32; distance *= 2) {
                const u64 below = __shfl_up_sync(FULL_WARP, sum, distance);
                if (lane >= distance) sum += below;
            }
            const u32 all_low = __shfl_sync(FULL_WARP, static_cast<u32>(sum), 31);
            const u32 all_high = __shfl_sync(FULL_WARP, static_cast<u32>(sum >> 32), 31);
            before += static_cast<u64>(all_high) << 32 | all_low;
            if (complete) break;
        }
        publish(before + own, 2 * epoch + 1);
        if (lane == 0) found = before;
    }
    __syncthreads();
    return found;
}

// A round's starts; the round's jobs and the next round's references in all go to counts[1] and counts[2]. *ticket is zero at first.
CUZK_DEVICE void round_starts(const u32* start, const u32* references, u32 segments, u32 bits, u64* state, u32* ticket, u32 epoch,
                              u32* job_start, u32* next_start, u32* result, u32* counts) {
    __shared__ u32 own_tile;
    if (threadIdx.x == 0) own_tile = atomicAdd(ticket, 1u);
    __syncthreads();
    const u32 first = own_tile * SCAN_TILE + threadIdx.x * SCAN_PER_THREAD;
    u32 s[5] = {0, 0, 0, 0, 0};
    u64 values[4] = {0, 0, 0, 0}, total;
    if (first < segments) {
        load4(s, start, first, segments + 1, 0);
        if (first + 4 <= segments) s[4] = start[first + 4];
        for (u32 i = 0; i < 4; i++) values[i] = first + i < segments ? next_round(s[i + 1] - s[i], bits) : 0;
    }
    u64 before = block_exclusive_scan<SCAN_THREADS>(values[0] + values[1] + values[2] + values[3], total);
    before += sum_of_tiles_before(state, own_tile, epoch, total);
    if (first >= segments) return;
    u32 next[4], job[4];
    for (u32 i = 0; i < 4; i++) {
        if (first + i < segments && s[i + 1] - s[i] == 1) result[first + i] = references[s[i]];
        next[i] = static_cast<u32>(before);
        job[i] = static_cast<u32>(before >> 32);
        before += values[i];
    }
    store4(next_start, first, segments, next);
    store4(job_start, first, segments, job);
    if (first + 4 >= segments) {
        next_start[segments] = counts[2] = static_cast<u32>(before);
        job_start[segments] = counts[1] = static_cast<u32>(before >> 32);
    }
}

// Writes the pairs of a round, and the references of the next: a pair's sum will lie where pair_add puts it. A warp takes neighbouring
// pairs, finds the segments of the first and the last, and each lane searches between those: many pairs, since the two searches over
// all segments are dear, and few enough that every warp has some.
CUZK_DEVICE void round_pairs(const u32* start, const u32* references, u32 segments, const u32* job_start, u32 pair_count,
                             const u32* next_start, uint2* pairs, u32* next_references, u32* result) {
    constexpr u32 MAX_CHUNK = 1024;
    const u32 warps = global_threads() / 32, share = pair_count / warps + 1, turns = (share + MAX_CHUNK - 1) / MAX_CHUNK;
    const u32 chunk = (share / turns + 32) / 32 * 32;
    for (u64 at = static_cast<u64>(global_thread() / 32) * chunk; at < pair_count; at += static_cast<u64>(warps) * chunk) {
        const u32 begin = static_cast<u32>(at), end = pair_count - begin > chunk ? begin + chunk : pair_count;
        u32 low = last_at_most(job_start, 0, segments - 1, begin);
        const u32 high = last_at_most(job_start, low, segments - 1, end - 1);
        for (u32 p = begin + lane_id(); p < end; p += 32) {
            const u32 s = last_at_most(job_start, low, high, p);
            low = s;
            u32 place = p - job_start[s], i = start[s] + 2 * place, length = start[s + 1] - start[s];
            u32 a = references[i], b = references[i + 1];
            pairs[p] = make_uint2(a, b);
            const u32 sum = !(a & REF_POINT) ? a : !(b & REF_POINT) ? b : p;
            if (length == 2) {
                result[s] = sum;
                continue;
            }
            u32 out = next_start[s] + place;
            next_references[out] = sum;
            if (2 * place + 3 == length) next_references[out + 1] = references[i + 2];
        }
    }
}

}  // namespace cuzk

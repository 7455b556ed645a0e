// Elements of Fr in device memory, and a witness kept as bits.
#pragma once

#include "../device.cuh"
#include "../ff/fp.hpp"

namespace cuzk {

CUZK_DEVICE Fr load_fr(const uint4* a, u64 i) {
    uint4 l = a[2 * i], h = a[2 * i + 1];
    Fr r;
    r.v[0] = l.x, r.v[1] = l.y, r.v[2] = l.z, r.v[3] = l.w, r.v[4] = h.x, r.v[5] = h.y, r.v[6] = h.z, r.v[7] = h.w;
    return r;
}

CUZK_DEVICE void store_fr(uint4* a, u64 i, const Fr& x) {
    a[2 * i] = make_uint4(x.v[0], x.v[1], x.v[2], x.v[3]);
    a[2 * i + 1] = make_uint4(x.v[4], x.v[5], x.v[6], x.v[7]);
}

// Values that are mostly bits: value i is fields[rank] where bit i of `mask` is set, else bit i of `ones`.
// rank[w] counts the mask's bits before word w.
struct BitValues {
    const u64 *ones, *mask;
    const u32* rank;
    const uint4* fields;
};

// acc += coefficient value; ids 0 and 1 are the coefficients +1 and -1, and their entries in `table` too.
CUZK_DEVICE void add_bit(Fr& acc, const uint4* table, u32 id) { acc = acc + load_fr(table, id); }
CUZK_DEVICE void add_field(Fr& acc, const uint4* table, u32 id, const Fr& value) {
    if (id == 0)
        acc = acc + value;
    else if (id == 1)
        acc = acc - value;
    else
        acc = acc + load_fr(table, id) * value;
}

CUZK_DEVICE void add_term(Fr& acc, const uint4* table, u32 id, const BitValues& w, u32 wire) {
    const u32 word = wire >> 6;
    const u64 below = (1ull << (wire & 63)) - 1, bit = below + 1, mask = w.mask[word], ones = w.ones[word];
    if (mask & bit)
        add_field(acc, table, id, load_fr(w.fields, w.rank[word] + __popcll(mask & below)));
    else if (ones & bit)
        add_bit(acc, table, id);
}

}  // namespace cuzk

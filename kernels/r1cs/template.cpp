// Matrix times witness, walking a template: a part's rows are stored once, the copy's own values are passed in.
//
// The witness is bits and field elements apart: aux variable a of the copy is tail[rank(a)] where `field_mask` has its bit,
// else bit a of `bits`; rank(a) = field_rank[a / 64] + the set bits of the mask word below a.
#include "../abi/abi.hpp"
#include "../ff/fp.hpp"

namespace {

using namespace cuzk;
using F = Fp<FrParams>;

struct Copy {
    std::int32_t small_columns;  // columns below have their value in `small`
    const F* small;
    const std::uint64_t* bits;
    const std::uint64_t* field_mask;
    const std::uint32_t* field_rank;
    const F* tail;
};

// A sum of up to 2^16 field elements, reduced once at the end: most terms are coefficients of set bits.
struct Sum {
    std::uint64_t v[5] = {};

    // Adds x where mask is all ones, nothing where it is zero: the bits are random, a branch would be mispredicted.
    void add_masked(const F& x, std::uint64_t mask) {
        unsigned __int128 t = 0;
        for (int i = 0; i < 4; i++) {
            t += static_cast<unsigned __int128>(v[i]) + (x.v[i] & mask);
            v[i] = static_cast<std::uint64_t>(t);
            t >>= 64;
        }
        v[4] += static_cast<std::uint64_t>(t);
    }

    void subtract_shifted_if_not_less(int shift) {
        std::uint64_t d[5];
        unsigned char borrow = 0;
        for (int i = 0; i < 5; i++) {
            const std::uint64_t low = i < 4 ? FrParams::mod(i) << shift : 0;
            const std::uint64_t carried = i && shift ? FrParams::mod(i - 1) >> (64 - shift) : 0;
            const unsigned __int128 x = static_cast<unsigned __int128>(v[i]) - (low | carried) - borrow;
            d[i] = static_cast<std::uint64_t>(x);
            borrow = static_cast<unsigned char>(x >> 64) & 1;
        }
        if (!borrow)
            for (int i = 0; i < 5; i++) v[i] = d[i];
    }

    F reduced(std::size_t terms) {
        // v < terms * r: subtract r * 2^k from the highest k that can be needed.
        int shift = terms > 1 ? 63 - __builtin_clzll(terms - 1) : -1;
        for (; shift >= 0; shift--) subtract_shifted_if_not_less(shift);
        F out;
        for (int i = 0; i < 4; i++) out.v[i] = v[i];
        return out;
    }
};

inline F product(const F& value, std::uint16_t id, const F* table) {
    if (id == 0) return value;
    if (id == 1) return -value;
    return value * table[id];
}

F row_product(const std::int32_t* col, const std::uint16_t* ids, std::size_t terms, const F* table, const Copy& w) {
    Sum sum;
    for (std::size_t k = 0; k < terms; k++) {
        const std::int32_t c = col[k];
        if (c < w.small_columns) {
            sum.add_masked(product(w.small[c], ids[k], table), ~0ull);
            continue;
        }
        const std::uint32_t a = static_cast<std::uint32_t>(c - w.small_columns), word = a / 64, at = a % 64;
        const std::uint64_t mask = w.field_mask[word];
        if (mask >> at & 1) {
            const F& value = w.tail[w.field_rank[word] + __builtin_popcountll(mask & ((1ull << at) - 1))];
            sum.add_masked(product(value, ids[k], table), ~0ull);
        } else {
            sum.add_masked(table[ids[k]], 0 - (w.bits[word] >> at & 1));
        }
    }
    return sum.reduced(terms);
}

}  // namespace

// out[i] = sum of coefficient * value over row i of one part and copy; all values Montgomery, all arrays aligned to 8 bytes.
// Offsets, columns and coefficient numbers are the caller's to check, once for a template.
CUZK_API std::int64_t cuzk_template_matvec(F* out, const std::uint32_t* row_ptr, std::uint64_t rows, const std::int32_t* col,
                                           const std::uint16_t* coef_id, const F* table, std::uint64_t small_columns, const F* small,
                                           const std::uint64_t* bits, const std::uint64_t* field_mask,
                                           const std::uint32_t* field_rank, const F* tail, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        const Copy copy{static_cast<std::int32_t>(small_columns), small, bits, field_mask, field_rank, tail};
        parallel_ranges(threads, rows, 1 << 14, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i++)
                out[i] = row_product(col + row_ptr[i], coef_id + row_ptr[i], row_ptr[i + 1] - row_ptr[i], table, copy);
        });
        return DONE;
    });
}

// First row with a * b != c, or NOTHING_FOUND.
CUZK_API std::int64_t cuzk_first_unsatisfied(const F* a, const F* b, const F* c, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        FirstIndex bad;
        parallel_ranges(threads, n, 1 << 14, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end && !bad.before(i); i++)
                if (a[i] * b[i] != c[i]) bad.report(i);
        });
        return bad.result();
    });
}

// Matrix times witness, walking a template: a part's rows are stored once, the copy's own values are passed in.
//
// The witness is bits and field elements apart: aux variable a of the copy is tail[rank(a)] where `field_mask` has its bit,
// else bit a of `bits`; rank(a) = field_rank[a / 64] + the set bits of the mask word below a.
//
// Nearly all terms are a bit times +-2^j. They are added as integers, in eight counters of 32 bits' weight each, and most rows
// end with a small number that is looked up: no field arithmetic. The rest is summed unreduced and reduced once.
#include "../abi/abi.hpp"
#include "../ff/fp.hpp"

namespace {

using namespace cuzk;
using F = Fp<FrParams>;

constexpr int SMALL = 64;  // sums from -SMALL to SMALL are looked up

struct Copy {
    const F* table;
    const std::int16_t* powers;  // per coefficient: j + 1 for 2^j, -(j + 1) for -2^j, 0 for others
    const F* small_sums;         // Montgomery form of -SMALL ... SMALL
    std::int32_t small_columns;  // columns below have their value in `small`; column 0 is the constant one
    const F* small;
    const std::uint64_t* bits;
    const std::uint64_t* field_mask;
    const std::uint32_t* field_rank;
    const F* tail;
};

// An integer below 2^320.
struct Wide {
    std::uint64_t v[5] = {};

    void add(const F& x) {
        unsigned __int128 t = 0;
        for (int i = 0; i < 4; i++) {
            t += static_cast<unsigned __int128>(v[i]) + x.v[i];
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

    // The value mod r, if it is below terms * 2 r: subtracts r * 2^k from the highest k that can be needed.
    F reduced(std::size_t terms) {
        for (int shift = 64 - __builtin_clzll(terms | 1); shift >= 0; shift--) subtract_shifted_if_not_less(shift);
        F out;
        for (int i = 0; i < 4; i++) out.v[i] = v[i];
        return out;
    }
};

// Signed counters: counter i has the weight 2^(32 i). A row has at most 2^31 terms of up to 2^31 each.
F field_of(const std::int64_t* counters, std::size_t terms) {
    bool negative = false;
    for (int attempt = 0;; attempt++) {
        Wide sum;
        __int128 t = 0;
        for (int i = 0; i < 10; i++) {
            if (i < 8) t += negative ? -counters[i] : counters[i];
            sum.v[i / 2] |= static_cast<std::uint64_t>(t & 0xffffffff) << (32 * (i % 2));
            t >>= 32;
        }
        if (t < 0) {  // the whole is negative
            negative = true;
            continue;
        }
        const F value = sum.reduced(terms).to_mont();
        return negative ? -value : value;
    }
}

inline F product(const F& value, std::uint16_t id, const F* table) {
    if (id == 0) return value;
    if (id == 1) return -value;
    return value * table[id];
}

F row_product(const std::int32_t* col, const std::uint16_t* ids, std::size_t terms, const Copy& w) {
    std::int64_t counters[8] = {};
    Wide sum;
    bool any_field = false, any_high = false;
    for (std::size_t k = 0; k < terms; k++) {
        const std::int32_t c = col[k];
        std::int64_t bit = 1;
        if (c >= w.small_columns) {
            const std::uint32_t a = static_cast<std::uint32_t>(c - w.small_columns), word = a / 64, at = a % 64;
            const std::uint64_t mask = w.field_mask[word];
            if (mask >> at & 1) {
                const F& value = w.tail[w.field_rank[word] + __builtin_popcountll(mask & ((1ull << at) - 1))];
                sum.add(product(value, ids[k], w.table));
                any_field = true;
                continue;
            }
            bit = static_cast<std::int64_t>(w.bits[word] >> at & 1);
        } else if (c != 0) {
            sum.add(product(w.small[c], ids[k], w.table));
            any_field = true;
            continue;
        }
        const int power = w.powers[ids[k]];
        if (power == 0) {
            if (bit) sum.add(w.table[ids[k]]);
            any_field = true;
        } else {
            const int j = (power > 0 ? power : -power) - 1;
            counters[j / 32] += (power > 0 ? bit : -bit) * (std::int64_t{1} << (j % 32));
            any_high |= j >= 32;
        }
    }
    if (!any_field && !any_high && counters[0] >= -SMALL && counters[0] <= SMALL) return w.small_sums[counters[0] + SMALL];
    F total = field_of(counters, terms);
    return any_field ? total + sum.reduced(terms) : total;
}

}  // namespace

// out[i] = sum of coefficient * value over row i of one part and copy; all values Montgomery, all arrays aligned to 8 bytes.
// Offsets, columns and coefficient numbers are the caller's to check, once for a template. `powers`: see Copy.
CUZK_API std::int64_t cuzk_template_matvec(F* out, const std::uint32_t* row_ptr, std::uint64_t rows, const std::int32_t* col,
                                           const std::uint16_t* coef_id, const F* table, const std::int16_t* powers,
                                           std::uint64_t small_columns, const F* small, const std::uint64_t* bits,
                                           const std::uint64_t* field_mask, const std::uint32_t* field_rank, const F* tail,
                                           std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        F sums[2 * SMALL + 1];
        sums[SMALL] = F::zero();
        for (int i = 1; i <= SMALL; i++) {
            sums[SMALL + i] = sums[SMALL + i - 1] + F::one();
            sums[SMALL - i] = -sums[SMALL + i];
        }
        const Copy copy{table, powers, sums, static_cast<std::int32_t>(small_columns), small, bits, field_mask, field_rank, tail};
        parallel_ranges(threads, rows, 1 << 14, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i++)
                out[i] = row_product(col + row_ptr[i], coef_id + row_ptr[i], row_ptr[i + 1] - row_ptr[i], copy);
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

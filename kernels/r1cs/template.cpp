// Matrix times witness, walking a template: a part's rows are stored once, the copy's own values are passed in.
//
// The witness is bits and field elements apart: aux variable a of the copy is tail[rank(a)] where `field_mask` has its bit,
// else bit a of `bits`; rank(a) = field_rank[a / 64] + the set bits of the mask word below a.
#include "../abi/parallel.hpp"
#include "../ff/fp.hpp"

#include <cstdint>

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

inline void accumulate(F& sum, const F& value, std::uint16_t id, const F* table) {
    if (id == 0)
        sum = sum + value;
    else if (id == 1)
        sum = sum - value;
    else
        sum = sum + value * table[id];
}

void row_product(F& sum, const std::int32_t* col, const std::uint16_t* ids, std::size_t terms, const F* table, const Copy& w) {
    sum = F::zero();
    for (std::size_t k = 0; k < terms; k++) {
        const std::int32_t c = col[k];
        if (c < w.small_columns) {
            accumulate(sum, w.small[c], ids[k], table);
            continue;
        }
        const std::uint32_t a = static_cast<std::uint32_t>(c - w.small_columns), word = a / 64, at = a % 64;
        const std::uint64_t mask = w.field_mask[word];
        if (mask >> at & 1)
            accumulate(sum, w.tail[w.field_rank[word] + __builtin_popcountll(mask & ((1ull << at) - 1))], ids[k], table);
        else if (w.bits[word] >> at & 1)
            sum = sum + table[ids[k]];
    }
}

}  // namespace

// out[i] = sum of coefficient * value over row i of one part and copy; all values Montgomery. Returns 0.
extern "C" int cuzk_template_matvec(const std::uint32_t* row_ptr, const std::int32_t* col, const std::uint16_t* coef_id,
                                    std::size_t rows, const std::uint64_t* table, std::int32_t small_columns,
                                    const std::uint64_t* small, const std::uint64_t* bits, const std::uint64_t* field_mask,
                                    const std::uint32_t* field_rank, const std::uint64_t* tail, std::uint64_t* out, int threads) {
    const Copy copy{small_columns, reinterpret_cast<const F*>(small), bits, field_mask, field_rank, reinterpret_cast<const F*>(tail)};
    auto* coefficients = reinterpret_cast<const F*>(table);
    auto* target = reinterpret_cast<F*>(out);
    try {
        parallel_ranges(static_cast<std::size_t>(threads < 1 ? 1 : threads), rows, 1 << 14, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i++)
                row_product(target[i], col + row_ptr[i], coef_id + row_ptr[i], row_ptr[i + 1] - row_ptr[i], coefficients, copy);
        });
    } catch (...) {
        return 2;
    }
    return 0;
}

// Index of the first row with a * b != c, or n.
extern "C" std::size_t cuzk_first_unsatisfied(const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c, std::size_t n) {
    auto *x = reinterpret_cast<const F*>(a), *y = reinterpret_cast<const F*>(b), *z = reinterpret_cast<const F*>(c);
    for (std::size_t i = 0; i < n; i++)
        if (x[i] * y[i] != z[i]) return i;
    return n;
}

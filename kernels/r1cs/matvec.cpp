// Sparse matrix times witness, matrix as CSR with a table of coefficients.
#include <cstring>

#include "../abi/abi.hpp"
#include "../ff/fp.hpp"

using namespace cuzk;

namespace {

// Coefficient numbers with a meaning of their own: they cost an addition instead of a multiplication.
constexpr u32 PLUS_ONE = 0, MINUS_ONE = 1;

template <class Id>
std::int64_t matvec(char* out, const std::uint64_t* row_ptr, std::uint64_t rows, const std::uint32_t* col, const Id* coef,
                    std::uint64_t nnz, const char* table, std::uint64_t table_size, const char* w, std::uint64_t w_size,
                    std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        FirstIndex bad;
        const std::size_t grain = 1 << 11;
        parallel_ranges(threads, rows, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end && !bad.before(i); i++) {
                Fr sum = Fr::zero();
                if (row_ptr[i] > row_ptr[i + 1] || row_ptr[i + 1] > nnz) {
                    bad.report(i);
                    break;
                }
                for (std::uint64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
                    Fr x, c;
                    if (col[k] >= w_size || coef[k] >= table_size) {
                        bad.report(i);
                        break;
                    }
                    std::memcpy(&x, w + 32ull * col[k], 32);
                    if (coef[k] == PLUS_ONE) {
                        sum = sum + x;
                    } else if (coef[k] == MINUS_ONE) {
                        sum = sum - x;
                    } else {
                        std::memcpy(&c, table + 32ull * coef[k], 32);
                        sum = sum + c * x;
                    }
                }
                std::memcpy(out + 32 * i, &sum, 32);
            }
        });
        return bad.result();
    });
}

}  // namespace

// out[i] = sum over row i of table[coef] * w[col] (Montgomery products: mont w gives mont, std w gives std).
// Returns the first row whose pointers, columns or coefficient numbers are out of range, or NOTHING_FOUND.
CUZK_API std::int64_t cuzk_matvec_u32(char* out, const std::uint64_t* row_ptr, std::uint64_t rows, const std::uint32_t* col,
                                      const std::uint32_t* coef, std::uint64_t nnz, const char* table, std::uint64_t table_size,
                                      const char* w, std::uint64_t w_size, std::uint64_t threads) {
    return matvec(out, row_ptr, rows, col, coef, nnz, table, table_size, w, w_size, threads);
}
CUZK_API std::int64_t cuzk_matvec_u16(char* out, const std::uint64_t* row_ptr, std::uint64_t rows, const std::uint32_t* col,
                                      const std::uint16_t* coef, std::uint64_t nnz, const char* table, std::uint64_t table_size,
                                      const char* w, std::uint64_t w_size, std::uint64_t threads) {
    return matvec(out, row_ptr, rows, col, coef, nnz, table, table_size, w, w_size, threads);
}

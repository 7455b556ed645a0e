// Poseidon over Fr in the optimised form: constants behind the S-boxes, sparse matrices in the partial rounds.
#include "../abi/abi.hpp"
#include "../ff/fp.hpp"

namespace {

using namespace cuzk;
using F = Fp<FrParams>;

constexpr int MAX_WIDTH = 12;
constexpr int FULL = 8, HALF = FULL / 2;

F fifth_power(const F& x) {
    F x2 = x * x;
    return x2 * x2 * x;
}

// v = v * m (row vector times matrix of width columns, row by row in memory)
void mix(F* v, const F* m, int width) {
    F out[MAX_WIDTH];
    for (int j = 0; j < width; j++) {
        F sum = v[0] * m[j];
        for (int i = 1; i < width; i++) sum = sum + v[i] * m[i * width + j];
        out[j] = sum;
    }
    for (int j = 0; j < width; j++) v[j] = out[j];
}

F hash(const F* in, int arity, int partial, const F& tag, const F* keys, const F* mds, const F* pre_sparse, const F* sparse) {
    const int width = arity + 1;
    F v[MAX_WIDTH];
    v[0] = tag;
    for (int i = 0; i < arity; i++) v[i + 1] = in[i];
    for (int i = 0; i < width; i++) v[i] = v[i] + *keys++;
    for (int round = 0; round < HALF; round++) {
        for (int i = 0; i < width; i++) v[i] = fifth_power(v[i]) + *keys++;
        mix(v, round == HALF - 1 ? pre_sparse : mds, width);
    }
    for (int round = 0; round < partial; round++) {
        const F* column = sparse + static_cast<std::size_t>(round) * (2 * width - 1);
        const F* row = column + width;
        F first = fifth_power(v[0]) + *keys++;
        F sum = first * column[0];
        for (int i = 1; i < width; i++) {
            sum = sum + v[i] * column[i];
            v[i] = v[i] + first * row[i - 1];
        }
        v[0] = sum;
    }
    for (int round = 0; round < HALF; round++) {
        for (int i = 0; i < width; i++) {
            v[i] = fifth_power(v[i]);
            if (round != HALF - 1) v[i] = v[i] + *keys++;
        }
        mix(v, mds, width);
    }
    return v[1];
}

}  // namespace

// out[k] = hash of in[k * arity … + arity). All values Montgomery, arrays aligned to 8 bytes. `tables`: tag, keys, mds,
// pre-sparse, sparse, one after the other (1, 8 width + partial, width^2, width^2, partial (2 width - 1) elements).
CUZK_API std::int64_t cuzk_poseidon(F* out, const F* in, std::uint64_t n, std::uint64_t arity, std::uint64_t partial, const F* tables,
                                    std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        if (arity < 1 || arity >= MAX_WIDTH) return FAULT;
        const std::size_t width = arity + 1;
        const F *keys = tables + 1, *mds = keys + FULL * width + partial, *pre_sparse = mds + width * width;
        const F* sparse = pre_sparse + width * width;
        parallel_ranges(threads, n, 256, [&](std::size_t begin, std::size_t end) {
            for (std::size_t k = begin; k < end; k++)
                out[k] = hash(in + k * arity, static_cast<int>(arity), static_cast<int>(partial), tables[0], keys, mds, pre_sparse, sparse);
        });
        return DONE;
    });
}

// Poseidon over Fr in the optimised form: constants behind the S-boxes, sparse matrices in the partial rounds. Eight hashes at a
// time, and on demand with every value that the circuit of a hash has (cuzk/circuits/gadgets/poseidon.py), in its order.
#include <vector>

#include "../abi/abi.hpp"
#include "../ff/lanes.hpp"

namespace {

using namespace cuzk;
using F = Fp<FrParams>;
using V = LanesFp<FrParams>;
using Elem = V::Elem;

constexpr int MAX_WIDTH = 12;
constexpr int FULL = 8, HALF = FULL / 2;
constexpr std::size_t GROUP = 8;
static_assert(GROUP == LANES, "a group of hashes fills the lanes");

struct Tables {
    const Elem *tag, *keys, *mds, *pre_sparse, *sparse;
    int width, partial;
};

// The values of eight hashes as they appear, or nothing.
struct Trace {
    char* const* rows;  // null: nothing is kept
    std::size_t at = 0;

    void put(const V& value) {
        if (!rows) return;
        V out = value;
        out.leave();
        out.store_raw(rows, at);
        at += sizeof(F);
    }
};

// v^5 + key; the values: v where it is no variable yet, v^2, v^4, the result.
void s_box(V& v, const Elem* key, bool bare, Trace& trace) {
    V x2, x4;
    if (!bare) trace.put(v);
    V::sqr(x2, v);
    trace.put(x2);
    V::sqr(x4, x2);
    trace.put(x4);
    V::mul(v, x4, v);
    if (key) V::add(v, v, V::broadcast(*key));
    trace.put(v);
}

// v = v * m (row vector times matrix of width columns, row by row in memory)
void mix(V* v, const Elem* m, int width) {
    V out[MAX_WIDTH], term;
    for (int j = 0; j < width; j++) {
        V::mul(out[j], v[0], V::broadcast(m[j]));
        for (int i = 1; i < width; i++) {
            V::mul(term, v[i], V::broadcast(m[i * width + j]));
            V::add(out[j], out[j], term);
        }
    }
    for (int j = 0; j < width; j++) v[j] = out[j];
}

void hash(const char* const* in, char* const* out, const Tables& t, Trace& trace) {
    const int width = t.width;
    V v[MAX_WIDTH], term;
    const Elem* keys = t.keys;
    v[0] = V::broadcast(*t.tag);
    for (int i = 1; i < width; i++) {
        v[i].load_raw(in, sizeof(F) * static_cast<std::size_t>(i - 1));
        v[i].enter();
    }
    for (int i = 0; i < width; i++) V::add(v[i], v[i], V::broadcast(*keys++));
    for (int round = 0; round < HALF; round++) {
        for (int i = 0; i < width; i++) {
            Trace nothing{nullptr};  // the tag is a constant, so is what becomes of it
            s_box(v[i], keys++, round == 0, round == 0 && i == 0 ? nothing : trace);
        }
        mix(v, round == HALF - 1 ? t.pre_sparse : t.mds, width);
    }
    for (int round = 0; round < t.partial; round++) {
        const Elem* column = t.sparse + static_cast<std::size_t>(round) * static_cast<std::size_t>(2 * width - 1);
        const Elem* row = column + width;
        s_box(v[0], keys++, false, trace);
        const V first = v[0];
        V sum;
        V::mul(sum, first, V::broadcast(column[0]));
        for (int i = 1; i < width; i++) {
            V::mul(term, v[i], V::broadcast(column[i]));
            V::add(sum, sum, term);
            V::mul(term, first, V::broadcast(row[i - 1]));
            V::add(v[i], v[i], term);
        }
        v[0] = sum;
    }
    for (int round = 0; round < HALF; round++) {
        for (int i = 0; i < width; i++) s_box(v[i], round == HALF - 1 ? nullptr : keys++, false, trace);
        mix(v, t.mds, width);
    }
    trace.put(v[1]);
    v[1].leave();
    v[1].store_raw(out, 0);
}

}  // namespace

// out[k] = hash of in[k * arity … + arity). All values Montgomery, arrays aligned to 8 bytes. `tables`: tag, keys, mds,
// pre-sparse, sparse, one after the other (1, 8 width + partial, width^2, width^2, partial (2 width - 1) elements). `trace`, if not
// null: the `traced` values of each hash's circuit, those of one hash `step` elements behind those of the one before.
CUZK_API std::int64_t cuzk_poseidon(F* out, const F* in, std::uint64_t n, std::uint64_t arity, std::uint64_t partial, const F* tables,
                                    F* trace, std::uint64_t step, std::uint64_t traced, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        if (arity < 1 || arity >= MAX_WIDTH) return FAULT;
        const std::size_t width = arity + 1, keys = FULL * width + partial, square = width * width;
        const std::size_t values = 3 * arity + 4 * (HALF - 1) * width + 4 * partial + 4 * HALF * width + 1;
        if (trace && traced != values) return FAULT;
        std::vector<Elem> table(1 + keys + 2 * square + partial * (2 * width - 1));
        for (std::size_t i = 0; i < table.size(); i++) table[i] = V::to_elem(tables[i]);
        const Elem* first = table.data() + 1;
        const Tables t{table.data(), first, first + keys, first + keys + square, first + keys + 2 * square,
                       static_cast<int>(width), static_cast<int>(partial)};
        parallel_ranges(threads, (n + GROUP - 1) / GROUP, 32, [&](std::size_t begin, std::size_t end) {
            F spare;
            std::vector<F> spare_trace(trace ? traced : 0);
            for (std::size_t g = begin; g < end; g++) {
                const char* from[GROUP];
                char *to[GROUP], *rows[GROUP];
                for (std::size_t i = 0; i < GROUP; i++) {
                    const std::size_t k = g * GROUP + i, there = k < n ? k : n - 1;
                    from[i] = reinterpret_cast<const char*>(in + there * arity);
                    to[i] = reinterpret_cast<char*>(k < n ? out + k : &spare);
                    if (trace) rows[i] = reinterpret_cast<char*>(k < n ? trace + k * step : spare_trace.data());
                }
                Trace kept{trace ? rows : nullptr};
                hash(from, to, t, kept);
            }
        });
        return DONE;
    });
}

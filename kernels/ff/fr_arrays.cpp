// Elementwise operations on arrays of Fr, and the scan of a witness.
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "../abi/abi.hpp"
#include "inverse.hpp"

using namespace cuzk;

namespace {

constexpr std::size_t GRAIN = 1 << 14;

Fr get(const char* p, std::size_t i) {
    Fr r;
    std::memcpy(&r, p + 32 * i, 32);
    return r;
}
void put(char* p, std::size_t i, const Fr& x) { std::memcpy(p + 32 * i, &x, 32); }

template <class Op>
std::int64_t elementwise(char* out, const char* a, const char* b, std::uint64_t n, int b_step, std::uint64_t threads, Op op) {
    return guarded([&]() -> std::int64_t {
        parallel_ranges(threads, n, GRAIN, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i++) put(out, i, op(get(a, i), get(b, b_step ? i : 0)));
        });
        return DONE;
    });
}

// Base^e for one 64-bit exponent.
Fr power(const Fr& base, u64 e) { return base.pow(&e, 1); }

}  // namespace

// out[i] = a[i] op b[i], or op b[0] when b_step is 0. out may be a or b.
CUZK_API std::int64_t cuzk_fr_mul(char* out, const char* a, const char* b, std::uint64_t n, int b_step, std::uint64_t threads) {
    return elementwise(out, a, b, n, b_step, threads, [](const Fr& x, const Fr& y) { return x * y; });
}
CUZK_API std::int64_t cuzk_fr_add(char* out, const char* a, const char* b, std::uint64_t n, int b_step, std::uint64_t threads) {
    return elementwise(out, a, b, n, b_step, threads, [](const Fr& x, const Fr& y) { return x + y; });
}
CUZK_API std::int64_t cuzk_fr_sub(char* out, const char* a, const char* b, std::uint64_t n, int b_step, std::uint64_t threads) {
    return elementwise(out, a, b, n, b_step, threads, [](const Fr& x, const Fr& y) { return x - y; });
}

CUZK_API std::int64_t cuzk_fr_from_std(char* out, const char* a, std::uint64_t n, std::uint64_t threads) {
    Fr r2 = Fr::r2();
    return cuzk_fr_mul(out, a, reinterpret_cast<const char*>(&r2), n, 0, threads);
}
CUZK_API std::int64_t cuzk_fr_to_std(char* out, const char* a, std::uint64_t n, std::uint64_t threads) {
    Fr unit = Fr::zero();
    unit.v[0] = 1;
    return cuzk_fr_mul(out, a, reinterpret_cast<const char*>(&unit), n, 0, threads);
}

// Montgomery in and out; zero stays zero. Scratch: 64 KiB a thread.
CUZK_API std::int64_t cuzk_fr_inv(char* out, const char* a, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        constexpr std::size_t BATCH = 1024;
        parallel_ranges(threads, n, BATCH, [&](std::size_t begin, std::size_t end) {
            std::unique_ptr<Fr[]> x(new Fr[BATCH]), scratch(new Fr[BATCH]);
            std::memcpy(x.get(), a + 32 * begin, 32 * (end - begin));
            batch_inverse(x.get(), scratch.get(), end - begin);
            std::memcpy(out + 32 * begin, x.get(), 32 * (end - begin));
        });
        return DONE;
    });
}

// out[i] = scale * base^i, all Montgomery.
CUZK_API std::int64_t cuzk_fr_powers(char* out, const char* base, const char* scale, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        Fr b = get(base, 0), s = get(scale, 0);
        parallel_ranges(threads, n, GRAIN, [&](std::size_t begin, std::size_t end) {
            Fr x = s * power(b, begin);
            for (std::size_t i = begin; i < end; i++, x = x * b) put(out, i, x);
        });
        return DONE;
    });
}

// out = sum a[i] * b[i], the Montgomery product.
CUZK_API std::int64_t cuzk_fr_dot(char* out, const char* a, const char* b, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        std::mutex mutex;
        Fr total = Fr::zero();
        parallel_ranges(threads, n, GRAIN, [&](std::size_t begin, std::size_t end) {
            Fr sum = Fr::zero();
            for (std::size_t i = begin; i < end; i++) sum = sum + get(a, i) * get(b, i);
            std::lock_guard<std::mutex> lock(mutex);
            total = total + sum;
        });
        put(out, 0, total);
        return DONE;
    });
}

// Index of the first element that is not below r, or NOTHING_FOUND.
CUZK_API std::int64_t cuzk_fr_first_not_below_r(const char* a, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        FirstIndex first;
        parallel_ranges(threads, n, GRAIN, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end && !first.before(i); i++) {
                u64 v[4];
                std::memcpy(v, a + 32 * i, 32);
                int k = 3;
                while (k > 0 && v[k] == FrParams::mod(k)) k--;
                if (v[k] >= FrParams::mod(k)) first.report(i);
            }
        });
        return first.result();
    });
}

// out[k] = a[wires[k]]. Returns the first k whose wire is not below `size`, or NOTHING_FOUND.
CUZK_API std::int64_t cuzk_fr_take(char* out, const char* a, std::uint64_t size, const std::uint32_t* wires, std::uint64_t n,
                                   std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        FirstIndex bad;
        parallel_ranges(threads, n, GRAIN, [&](std::size_t begin, std::size_t end) {
            for (std::size_t k = begin; k < end; k++) {
                if (wires[k] >= size) return bad.report(k);
                std::memcpy(out + 32 * k, a + 32ull * wires[k], 32);
            }
        });
        return bad.result();
    });
}

// Generator of order 2^log_n derived from the non-residue `root` (5 or 7), Montgomery.
CUZK_API std::int64_t cuzk_root_of_unity(char* out, int log_n, int root) {
    Fr w = root == 5 ? Fr::from_table([](int i) { return FrParams::root5(i); }) : Fr::from_table([](int i) { return FrParams::root7(i); });
    for (int i = log_n; i < FrParams::TWO_ADICITY; i++) w = w.sqr();
    put(out, 0, w);
    return DONE;
}

// out: bit k % 8 of byte k / 8 is set where the k-th row of `words` 64-bit words is not all zero.
CUZK_API std::int64_t cuzk_nonzero_rows(unsigned char* out, const char* rows, std::uint64_t words, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        parallel_ranges(threads, (n + 7) / 8, GRAIN / 8, [&](std::size_t begin, std::size_t end) {
            for (std::size_t byte = begin; byte < end; byte++) {
                unsigned bits = 0;
                for (std::size_t k = 8 * byte; k < std::min<std::size_t>(n, 8 * byte + 8); k++) {
                    u64 any = 0;
                    for (std::size_t word = 0; word < words; word++) {
                        u64 v;
                        std::memcpy(&v, rows + 8 * (words * k + word), 8);
                        any |= v;
                    }
                    bits |= static_cast<unsigned>(any != 0) << k % 8;
                }
                out[byte] = static_cast<unsigned char>(bits);
            }
        });
        return DONE;
    });
}

// out: bit k % 8 of byte k / 8 is bit wires[k] of `bits`, or bit first + k where `wires` is nullptr. Returns the first k whose
// bit is not among the `size` that there are, or NOTHING_FOUND.
CUZK_API std::int64_t cuzk_gather_bits(unsigned char* out, const unsigned char* bits, std::uint64_t size, const std::uint32_t* wires,
                                       std::uint64_t first, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        FirstIndex bad;
        parallel_ranges(threads, (n + 7) / 8, GRAIN, [&](std::size_t begin, std::size_t end) {
            for (std::size_t byte = begin; byte < end && !bad.before(8 * byte); byte++) {
                unsigned gathered = 0;
                for (std::size_t k = 8 * byte; k < std::min<std::size_t>(n, 8 * byte + 8); k++) {
                    const std::uint64_t at = wires ? wires[k] : first + k;
                    if (at >= size) {
                        bad.report(k);
                        return;
                    }
                    gathered |= static_cast<unsigned>(bits[at / 8] >> at % 8 & 1) << k % 8;
                }
                out[byte] = static_cast<unsigned char>(gathered);
            }
        });
        return bad.result();
    });
}

// ones: bit i % 8 of byte i / 8 is set where w[i] = 1 (std). tail: indices of values other than 0 and 1, room for n (or
// nullptr: only count). Returns the number of tail indices.
CUZK_API std::int64_t cuzk_scan_witness(unsigned char* ones, std::uint32_t* tail, const char* w, std::uint64_t n, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        const std::size_t pieces = (n + GRAIN - 1) / GRAIN;
        std::vector<std::size_t> count(pieces + 1, 0);
        auto classify = [&](std::size_t i) {
            u64 v[4];
            std::memcpy(v, w + 32 * i, 32);
            return (v[1] | v[2] | v[3]) ? 2 : v[0] < 2 ? static_cast<int>(v[0]) : 2;
        };
        parallel_for(threads, pieces, [&](std::size_t, std::size_t p) {
            std::size_t c = 0, end = std::min<std::size_t>(n, (p + 1) * GRAIN);
            for (std::size_t i = p * GRAIN; i < end; i += 8) {
                unsigned bits = 0;
                for (std::size_t k = 0; k < 8 && i + k < end; k++) {
                    int kind = classify(i + k);
                    bits |= static_cast<unsigned>(kind == 1) << k;
                    c += kind == 2;
                }
                if (ones) ones[i / 8] = static_cast<unsigned char>(bits);
            }
            count[p + 1] = c;
        });
        for (std::size_t p = 0; p < pieces; p++) count[p + 1] += count[p];
        if (tail)
            parallel_for(threads, pieces, [&](std::size_t, std::size_t p) {
                std::size_t at = count[p];
                if (at == count[p + 1]) return;
                for (std::size_t i = p * GRAIN; i < std::min<std::size_t>(n, (p + 1) * GRAIN); i++)
                    if (classify(i) == 2) tail[at++] = static_cast<std::uint32_t>(i);
            });
        return static_cast<std::int64_t>(count[pieces]);
    });
}

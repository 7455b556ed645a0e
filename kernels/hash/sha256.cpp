// SHA-256 compression of many independent states and blocks (FIPS 180-4), words as numbers.
#include <cstring>

#include "../abi/abi.hpp"

namespace {

using namespace cuzk;

inline std::uint32_t rotr(std::uint32_t x, int n) { return x >> n | x << (32 - n); }

void compress(std::uint32_t* out, const std::uint32_t* state, const std::uint32_t* block, const std::uint32_t* constants) {
    std::uint32_t w[64];
    std::memcpy(w, block, 64);
    for (int i = 16; i < 64; i++) {
        const std::uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[i - 7] + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
    }
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        const std::uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + w[i];
        const std::uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) | (c & (a | b)));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::uint32_t last[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) out[i] = state[i] + last[i];
}

}  // namespace

// out[k] (8 words) = compression of state k and block k; a single state or block serves all where its `step` is 0.
CUZK_API std::int64_t cuzk_sha256_compress(std::uint32_t* out, const std::uint32_t* states, std::uint64_t state_step,
                                           const std::uint32_t* blocks, std::uint64_t block_step, std::uint64_t n,
                                           const std::uint32_t* constants, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        parallel_ranges(threads, n, 1 << 12, [&](std::size_t begin, std::size_t end) {
            for (std::size_t k = begin; k < end; k++)
                compress(out + 8 * k, states + 8 * k * state_step, blocks + 16 * k * block_step, constants);
        });
        return DONE;
    });
}

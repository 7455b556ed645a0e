// Signed digits of scalars without carries: digit w of s + sum_{v < top} 2^(c v + c - 1), minus 2^(c - 1) below the top window.
#pragma once

#include <cstring>
#include <mutex>

#include "../abi/parallel.hpp"
#include "../ff/fp.hpp"

namespace cuzk {

inline int bit_length(const u64* v, int words) {
    for (int i = words - 1; i >= 0; i--)
        if (v[i]) return 64 * i + 64 - __builtin_clzll(v[i]);
    return 0;
}

struct Digits;

// Scalar plus the digits' offset; up to 320 bits.
struct ShiftedScalar {
    u64 v[5];
    inline void set(const char* scalar, const Digits& digits);
};

struct Digits {
    int c = 1, windows = 0;
    u64 offset[5] = {};

    // Windows for scalars below 2^bits: c w >= bits + 1, so the top digit (unsigned, with a carry) is at most 2^(c-1).
    static int windows_for(int bits, int c) { return (bits + c) / c; }
    Digits() = default;
    Digits(int bits, int c_) : c(c_), windows(windows_for(bits, c_)) {
        for (int w = 0; w + 1 < windows; w++) {
            int bit = w * c + c - 1;
            offset[bit / 64] |= 1ull << (bit % 64);
        }
    }
    // Digits are in [-half, half].
    std::size_t half() const { return std::size_t{1} << (c - 1); }
    int digit(const ShiftedScalar& s, int w) const {
        int bit = w * c, i = bit / 64, at = bit % 64;
        u64 x = s.v[i] >> at;
        if (at + c > 64 && i < 4) x |= s.v[i + 1] << (64 - at);
        return static_cast<int>(x & ((1ull << c) - 1)) - (w + 1 == windows ? 0 : static_cast<int>(half()));
    }
    // Bit length of the longest of n scalars (32 bytes each), at least 1.
    static int longest(const char* scalars, std::size_t n, std::size_t threads) {
        std::mutex mutex;
        u64 any[4] = {1};
        parallel_ranges(threads, n, 1 << 16, [&](std::size_t begin, std::size_t end) {
            u64 o[4] = {};
            for (std::size_t i = begin; i < end; i++) {
                u64 s[4];
                std::memcpy(s, scalars + 32 * i, 32);
                for (int k = 0; k < 4; k++) o[k] |= s[k];
            }
            std::lock_guard<std::mutex> lock(mutex);
            for (int k = 0; k < 4; k++) any[k] |= o[k];
        });
        return bit_length(any, 4);
    }
};

inline void ShiftedScalar::set(const char* scalar, const Digits& digits) {
    u64 s[5] = {};
    std::memcpy(s, scalar, 32);
    u128 carry = 0;
    for (int k = 0; k < 5; k++) {
        carry += static_cast<u128>(s[k]) + digits.offset[k];
        v[k] = static_cast<u64>(carry);
        carry >>= 64;
    }
}

}  // namespace cuzk

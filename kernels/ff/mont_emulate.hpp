// Rows of mont_rows.hpp in plain C++: the device's carry chains on a CPU. For tests; the host's own arithmetic is mont_host.hpp.
#pragma once

#include "params.hpp"

#define CUZK_ROW inline

namespace cuzk {

template <class P>
inline u32 mont_factor(u32 low) {
    return low * P::N0_32;
}

// One multiply-add of a chain: {hi, lo} += a * b + carry; returns the carry.
inline u32 pair_mad(u32& lo, u32& hi, u32 a, u32 b, u32 carry) {
    unsigned __int128 t = static_cast<u64>(a) * b;
    t += (static_cast<u64>(hi) << 32 | lo);
    t += carry;
    lo = static_cast<u32>(t);
    hi = static_cast<u32>(t >> 32);
    return static_cast<u32>(t >> 64);
}

template <int K>
inline void row_mul(u32* acc, const u32* a, u32 b) {
    for (int i = 0; i < K; i++) {
        u64 t = static_cast<u64>(a[2 * i]) * b;
        acc[2 * i] = static_cast<u32>(t);
        acc[2 * i + 1] = static_cast<u32>(t >> 32);
    }
}

inline int chain_overflows = 0;  // carries that the device would lose; tests expect none

template <int K>
inline void row_mad_top(u32* acc, const u32* a, u32 b, u32& top) {
    u32 c = 0;
    for (int i = 0; i < K; i++) c = pair_mad(acc[2 * i], acc[2 * i + 1], a[2 * i], b, c);
    chain_overflows += top + c < top;
    top += c;
}

template <int K>
inline void row_mad(u32* acc, const u32* a, u32 b) {
    u32 c = 0;
    for (int i = 0; i < K; i++) c = pair_mad(acc[2 * i], acc[2 * i + 1], a[2 * i], b, c);
    chain_overflows += c;
}

template <int K>
inline void row_mad_in(u32* acc, const u32* a, u32 b, u32& low, u32 x) {
    low += x;
    u32 c = low < x;
    for (int i = 0; i < K; i++) c = pair_mad(acc[2 * i], acc[2 * i + 1], a[2 * i], b, c);
    chain_overflows += c;
}

template <int N>
inline void words_add(u32* r, const u32* b) {
    u64 c = 0;
    for (int i = 0; i < N; i++) {
        c += static_cast<u64>(r[i]) + b[i];
        r[i] = static_cast<u32>(c);
        c >>= 32;
    }
}

template <int N>
inline u32 words_sub(u32* r, const u32* b) {
    u32 borrow = 0;
    for (int i = 0; i < N; i++) {
        u64 t = static_cast<u64>(r[i]) - b[i] - borrow;
        r[i] = static_cast<u32>(t);
        borrow = static_cast<u32>(t >> 32) & 1;
    }
    return 0 - borrow;
}

template <int N>
inline void words_add2(u32* r, const u32* odd, const u32* even) {
    u64 c = 0;
    for (int i = 0; i < N; i++) {
        c += static_cast<u64>(odd[i]) + (i + 1 < N ? even[i + 1] : 0);
        r[i] = static_cast<u32>(c);
        c >>= 32;
    }
    chain_overflows += static_cast<int>(c);
}

}  // namespace cuzk

#include "mont_rows.hpp"

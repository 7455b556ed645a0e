// The eight-point transform in registers.
#pragma once

#include "../device.cuh"
#include "twiddle.hpp"

namespace cuzk {

// With w = 7^((r-1)/8), an eighth root of unity: i = w^2 = sqrt(-1), and w = (1 + i) h with h^2 = 1/2.
enum Constant { I, H, I_H };

// x = x times a constant, x below 2^256 before, below r after; the constant is split like all twiddles, in immediates once inlined.
template <Constant C>
CUZK_DEVICE void mul_constant(u32* x) {
    constexpr u32 low[3][8] = {
        {0xa932a94b, 0x1ebb51ea, 0x71204f7e, 0x85590315, 0xd1333fc5, 0xd858ed2c, 0x3e3a33b3, 0x177671e7},
        {0xb3e17f90, 0x1bc045cb, 0x3c54eb8a, 0x5d88f78a, 0xbd55d3b7, 0x1a43fd94, 0xca799d59, 0x40673954},
        {0x09d2daa4, 0xf57ffea0, 0xfecf34ea, 0x972eebec, 0x05704ac0, 0x3db91ca5, 0xb129df2c, 0x42e76657}};
    constexpr u32 high[3][8] = {
        {0xaa89cfb1, 0xf3b05674, 0x6006b9fe, 0x072f0140, 0x25667a26, 0xce9a0dbf, 0x2d598374, 0x4d2ce405},
        {0xf6c8238e, 0x2ed7d8a8, 0xef11cf0b, 0xd1843b80, 0x68ddf412, 0x6054274e, 0x2f509bb9, 0x379857e1},
        {0x357acc6a, 0x3ff770ec, 0x5e4c2b4c, 0x9d3dbf02, 0xed78bd49, 0xdfa1a7e9, 0xf34d6761, 0x1d1faa85}};
    u32 l[8], h[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        l[i] = low[C][i];
        h[i] = high[C][i];
    }
    twiddle_mul(x, l, h);
}

// a, b = a + b, a - b in [0, r)
CUZK_DEVICE void butterfly(u32* a, u32* b) {
    u32 sum[8];
    mod_add<FrParams>(sum, a, b);
    mod_sub<FrParams>(b, a, b);
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = sum[i];
}

// The difference or the sum of values in [0, r), in [0, 2r): for values that a product or reduce_once32 takes next.
CUZK_DEVICE void loose_sub(u32* r, const u32* a, const u32* b) {
    u32 t[8], p[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        t[i] = a[i];
        p[i] = FrParams::mod32(i);
    }
    words_sub<8>(t, b);
    words_add<8>(t, p);
#pragma unroll
    for (int i = 0; i < 8; i++) r[i] = t[i];
}
CUZK_DEVICE void loose_butterfly(u32* a, u32* b) {
    u32 difference[8];
    loose_sub(difference, a, b);
    words_add<8>(a, b);
#pragma unroll
    for (int i = 0; i < 8; i++) b[i] = difference[i];
}
// a in [0, r), b in [0, 2r)
CUZK_DEVICE void half_loose_butterfly(u32* a, u32* b) {
    u32 sum[8];
    mod_add<FrParams>(sum, a, b);
    loose_sub(b, a, b);
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = sum[i];
}

// Transforms of length 2^rho over groups of 2^rho neighbours among eight values: rho = 3 one, 2 two, 1 four of them.
// EIGHTS: rho is known to be 3. Decimation in frequency: value e of a group then holds frequency bit_reverse(e), for the root
// w^(8 / 2^rho). Values in [0, r) before; after, x[0] in [0, r), the others in [0, 2r).
//
// Four products for eight points: of the odd half, with d5 and d7 the differences that would take w and w^3 = i w, the second
// step's w d5 + w^3 d7 and i (w d5 - w^3 d7) are i h (d5 + d7) +- h (d5 - d7).
template <bool EIGHTS>
CUZK_DEVICE void small_transforms(u32 (&x)[8][8], u32 rho) {
    if (EIGHTS || rho == 3) {
        butterfly(x[0], x[4]);
        butterfly(x[1], x[5]);
        butterfly(x[3], x[7]);
        half_loose_butterfly(x[2], x[6]);
        mul_constant<I>(x[6]);
        loose_butterfly(x[5], x[7]);
        mul_constant<I_H>(x[5]);
        mul_constant<H>(x[7]);
    }
    if (EIGHTS || rho >= 2) {
        butterfly(x[0], x[2]);
        half_loose_butterfly(x[1], x[3]);
        mul_constant<I>(x[3]);
        butterfly(x[4], x[6]);
        butterfly(x[5], x[7]);
        if (!EIGHTS && rho == 2) mul_constant<I>(x[7]);
    }
    half_loose_butterfly(x[0], x[1]);
#pragma unroll
    for (int e = 2; e < 8; e += 2) loose_butterfly(x[e], x[e + 1]);
}

}  // namespace cuzk

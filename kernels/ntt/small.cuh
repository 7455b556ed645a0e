// The eight-point transform in registers.
#pragma once

#include "../device.cuh"
#include "twiddle.hpp"

namespace cuzk {

// Split twiddles w, w^2 = sqrt(-1), w^3 of the eighth root of unity w = 7^((r-1)/8); immediates once inlined.
template <int POWER>
CUZK_DEVICE void mul_eighth_root(u32* x) {
    static_assert(POWER >= 1 && POWER <= 3, "other powers need no product");
    constexpr u32 low[3][8] = {
        {0xbdb45a33, 0x1140446c, 0x3b25c476, 0xa0fa3f74, 0xb9244672, 0x24c34231, 0x5205ff3d, 0x0f60f859},
        {0xa932a94b, 0x1ebb51ea, 0x71204f7e, 0x85590315, 0xd1333fc5, 0xd858ed2c, 0x3e3a33b3, 0x177671e7},
        {0x55f15b14, 0xd9bfb8d4, 0xc27a4960, 0x39a5f462, 0x481a7709, 0x23751f10, 0xe6b041d3, 0x02802d02}};
    constexpr u32 high[3][8] = {
        {0x2c42eff8, 0x6ecf4995, 0x4d5dfa57, 0x6ec1fa83, 0x5656b15c, 0x3ff5cf38, 0x229e031b, 0x54b80267},
        {0xaa89cfb1, 0xf3b05674, 0x6006b9fe, 0x072f0140, 0x25667a26, 0xce9a0dbf, 0x2d598374, 0x4d2ce405},
        {0x3eb2a8dd, 0x111f9842, 0x6f38b840, 0x1f772784, 0x8e3ca13c, 0xb28758a3, 0xed9a48f0, 0x5974f9f7}};
    u32 l[8], h[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        l[i] = low[POWER - 1][i];
        h[i] = high[POWER - 1][i];
    }
    twiddle_mul(x, l, h);
}

// a, b = a + b, a - b
CUZK_DEVICE void butterfly(u32* a, u32* b) {
    u32 sum[8];
    mod_add<FrParams>(sum, a, b);
    mod_sub<FrParams>(b, a, b);
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = sum[i];
}

// Transforms of length 2^rho over groups of 2^rho neighbours among eight values: rho = 3 one, 2 two, 1 four of them.
// EIGHTS: rho is known to be 3. Decimation in frequency: value e of a group then holds frequency bit_reverse(e), for the root w^(8 / 2^rho).
template <bool EIGHTS>
CUZK_DEVICE void small_transforms(u32 (&x)[8][8], u32 rho) {
    if (EIGHTS || rho == 3) {
#pragma unroll
        for (int e = 0; e < 4; e++) butterfly(x[e], x[e + 4]);
        mul_eighth_root<1>(x[5]);
        mul_eighth_root<2>(x[6]);
        mul_eighth_root<3>(x[7]);
    }
    if (EIGHTS || rho >= 2) {
        butterfly(x[0], x[2]);
        butterfly(x[1], x[3]);
        butterfly(x[4], x[6]);
        butterfly(x[5], x[7]);
        mul_eighth_root<2>(x[3]);
        mul_eighth_root<2>(x[7]);
    }
#pragma unroll
    for (int e = 0; e < 8; e += 2) butterfly(x[e], x[e + 1]);
}

}  // namespace cuzk

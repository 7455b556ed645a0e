// Constants of BLS12-381: scalar field Fr, base field Fq. No includes: this file also compiles under NVRTC.
//
// Limbs are little-endian. Montgomery radix R = 2^256 (Fr), 2^384 (Fq). Every accessor takes a limb index and folds to an
// immediate once the surrounding loop is unrolled; `*32` accessors give the same constants as 32-bit limbs.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define CUZK_CUDA 1
#define CUZK_CONST __host__ __device__ static constexpr
#else
#define CUZK_CONST static constexpr
#endif

namespace cuzk {

using u32 = unsigned int;
using u64 = unsigned long long;

#define CUZK_LIMBS(name, count, ...)                                                 \
    CUZK_CONST u64 name(int i) {                                                     \
        constexpr u64 c[count] = {__VA_ARGS__};                                      \
        return c[i];                                                                 \
    }                                                                                \
    CUZK_CONST u32 name##32(int i) {                                                 \
        constexpr u64 c[count] = {__VA_ARGS__};                                      \
        return static_cast<u32>(c[i / 2] >> (32 * (i % 2)));                         \
    }

// r = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001
struct FrParams {
    static constexpr int N = 4, N32 = 8, BITS = 255;
    static constexpr u64 N0 = 0xfffffffeffffffffull;  // -r^-1 mod 2^64
    static constexpr u32 N0_32 = 0xffffffffu;         // -r^-1 mod 2^32
    CUZK_LIMBS(mod, 4, 0xffffffff00000001ull, 0x53bda402fffe5bfeull, 0x3339d80809a1d805ull, 0x73eda753299d7d48ull)
    CUZK_LIMBS(one, 4, 0x00000001fffffffeull, 0x5884b7fa00034802ull, 0x998c4fefecbc4ff5ull, 0x1824b159acc5056full)  // R
    CUZK_LIMBS(r2, 4, 0xc999e990f3f29c6dull, 0x2b6cedcb87925c23ull, 0x05d314967254398full, 0x0748d9d99f59ff11ull)   // R^2
    CUZK_LIMBS(r3, 4, 0xc62c1807439b73afull, 0x1b3e0d188cf06990ull, 0x73d13c71c7b5f418ull, 0x6e2a5bb9c8db33e9ull)   // R^3

    // Generators of the 2^32-th roots of unity, Montgomery form. circom/snarkjs derive theirs from the least quadratic
    // non-residue 5, bellman and its family from the multiplicative generator 7: 5^t = (7^t)^3797895509.
    static constexpr int TWO_ADICITY = 32;
    CUZK_LIMBS(root5, 4, 0x9cab6d5c0c17f47cull, 0x1ce1e93dfd4b71e5ull, 0x0d6db230471dd505ull, 0x3f0ee990743a3b6aull)
    CUZK_LIMBS(root7, 4, 0xb9b58d8c5f0e466aull, 0x5b1b4c801819d7ecull, 0x0af53ae352a31e64ull, 0x5bf3adda19e9b27bull)
};

// q = 0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab
struct FqParams {
    static constexpr int N = 6, N32 = 12, BITS = 381;
    static constexpr u64 N0 = 0x89f3fffcfffcfffdull;
    static constexpr u32 N0_32 = 0xfffcfffdu;
    CUZK_LIMBS(mod, 6, 0xb9feffffffffaaabull, 0x1eabfffeb153ffffull, 0x6730d2a0f6b0f624ull, 0x64774b84f38512bfull,
               0x4b1ba7b6434bacd7ull, 0x1a0111ea397fe69aull)
    CUZK_LIMBS(one, 6, 0x760900000002fffdull, 0xebf4000bc40c0002ull, 0x5f48985753c758baull, 0x77ce585370525745ull,
               0x5c071a97a256ec6dull, 0x15f65ec3fa80e493ull)
    CUZK_LIMBS(r2, 6, 0xf4df1f341c341746ull, 0x0a76e6a609d104f1ull, 0x8de5476c4c95b6d5ull, 0x67eb88a9939d83c0ull,
               0x9a793e85b519952dull, 0x11988fe592cae3aaull)
    CUZK_LIMBS(r3, 6, 0xed48ac6bd94ca1e0ull, 0x315f831e03a7adf8ull, 0x9a53352a615e29ddull, 0x34c04e5e921e1761ull,
               0x2512d43565724728ull, 0x0aa6346091755d4dull)
};

// E: y^2 = x^3 + 4 over Fq; E': y^2 = x^3 + 4(1+u) over Fq2 = Fq[u]/(u^2+1). All in Montgomery form.
struct CurveParams {
    static constexpr u64 SEED_ABS = 0xd201000000010000ull;  // the curve's seed is -SEED_ABS
    CUZK_LIMBS(b, 6, 0xaa270000000cfff3ull, 0x53cc0032fc34000aull, 0x478fe97a6b0a807full, 0xb1d37ebee6ba24d7ull,
               0x8ec9733bbf78ab2full, 0x09d645513d83de7eull)
    CUZK_LIMBS(g1_x, 6, 0x5cb38790fd530c16ull, 0x7817fc679976fff5ull, 0x154f95c7143ba1c1ull, 0xf0ae6acdf3d0e747ull,
               0xedce6ecc21dbf440ull, 0x120177419e0bfb75ull)
    CUZK_LIMBS(g1_y, 6, 0xbaac93d50ce72271ull, 0x8c22631a7918fd8eull, 0xdd595f13570725ceull, 0x51ac582950405194ull,
               0x0e1c8c3fad0059c0ull, 0x0bbc3efc5008a26aull)
    CUZK_LIMBS(g2_x0, 6, 0xf5f28fa202940a10ull, 0xb3f5fb2687b4961aull, 0xa1a893b53e2ae580ull, 0x9894999d1a3caee9ull,
               0x6f67b7631863366bull, 0x058191924350bcd7ull)
    CUZK_LIMBS(g2_x1, 6, 0xa5a9c0759e23f606ull, 0xaaa0c59dbccd60c3ull, 0x3bb17e18e2867806ull, 0x1b1ab6cc8541b367ull,
               0xc2b6ed0ef2158547ull, 0x11922a097360edf3ull)
    CUZK_LIMBS(g2_y0, 6, 0x4c730af860494c4aull, 0x597cfa1f5e369c5aull, 0xe7e6856caa0a635aull, 0xbbefb5e96e0d495full,
               0x07d3a975f0ef25a2ull, 0x0083fd8e7e80dae5ull)
    CUZK_LIMBS(g2_y1, 6, 0xadc0fc92df64b05dull, 0x18aa270a2b1461dcull, 0x86adac6a3be4eba0ull, 0x79495c4ec93da33aull,
               0xe7175850a43ccaedull, 0x0b2bc2a163de1bf2ull)
    // Cube root of unity of Fq: (x, y) -> (beta x, y) is an endomorphism of E.
    CUZK_LIMBS(beta, 6, 0x30f1361b798a64e8ull, 0xf3b8ddab7ece5a2aull, 0x16a8ca3ac61577f7ull, 0xc26a2ff874fd029bull,
               0x3636b76660701c6eull, 0x051ba4ab241b6160ull)
    // psi on E': (x, y) -> (conj(x) * u * psi_x, conj(y) * (psi_y0 + psi_y1 u)); psi_x u = (1+u)^-((q-1)/3), psi_y = (1+u)^-((q-1)/2).
    CUZK_LIMBS(psi_x, 6, 0x890dc9e4867545c3ull, 0x2af322533285a5d5ull, 0x50880866309b7e2cull, 0xa20d1b8c7e881024ull,
               0x14e4f04fe2db9068ull, 0x14e56d3f1564853aull)
    CUZK_LIMBS(psi_y0, 6, 0x3e2f585da55c9ad1ull, 0x4294213d86c18183ull, 0x382844c88b623732ull, 0x92ad2afd19103e18ull,
               0x1d794e4fac7cf0b9ull, 0x0bd592fc7d825ec8ull)
    CUZK_LIMBS(psi_y1, 6, 0x7bcfa7a25aa30fdaull, 0xdc17dec12a927e7cull, 0x2f088dd86b4ebef1ull, 0xd1ca2087da74d4a7ull,
               0x2da2596696cebc1dull, 0x0e2b7eedbbfd87d2ull)
};

#undef CUZK_LIMBS
}  // namespace cuzk

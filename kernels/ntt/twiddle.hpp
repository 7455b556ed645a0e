// Fr products for transforms: fewer multiply-adds than mont_mul, because twiddles are known in advance.
//
// A twiddle w is stored "split", 64 bytes: w.low = w 2^128 mod r and w.high = w 2^256 mod r (its Montgomery form). Then for
// a = a_high 2^128 + a_low
//
//     a w = (a_low w.low + a_high w.high) 2^-128   mod r,
//
// so only four limbs are left to reduce instead of eight: 64 + 4*6 = 88 products of 32 bits, where mont_mul has 64 + 8*8.
// The product keeps the form of a (std stays std, Montgomery stays Montgomery).
//
// Reduction: r = 1 mod 2^32, so adding e (2^256 - r), e the lowest limb, clears it; what was added too much, e 2^256, is
// subtracted once at the end. 2^256 - r has limbs ffffffff, 0, ...: the lowest just moves e up one limb, the next is nothing.
#pragma once

#include "../ff/fp.hpp"

namespace cuzk {

// 2^256 - r
CUZK_ROW constexpr u32 fr_complement(int i) { return i == 0 ? 0xffffffffu : i == 1 ? 0u : ~FrParams::mod32(i); }

#ifdef CUZK_CUDA
#define MAD_FIRST(lo, hi, a, b) "mad.lo.cc.u32 %" #lo ", %" #a ", %" #b ", %" #lo "; madc.hi.cc.u32 %" #hi ", %" #a ", %" #b ", %" #hi ";\n\t"
#define MAD_NEXT(lo, hi, a, b) "madc.lo.cc.u32 %" #lo ", %" #a ", %" #b ", %" #lo "; madc.hi.cc.u32 %" #hi ", %" #a ", %" #b ", %" #hi ";\n\t"

// acc += a b (a at stride 2, four products); top = its carry
CUZK_ROW void row_mad_out4(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 10, 9) MAD_NEXT(2, 3, 11, 9) MAD_NEXT(4, 5, 12, 9) MAD_NEXT(6, 7, 13, 9) "addc.u32 %8, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]),
          "=r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]));
}

// low += x, the carry goes into acc += a b; top = its carry
CUZK_ROW void row_mad_in_out4(u32* acc, const u32* a, u32 b, u32& low, u32 x, u32& top) {
    asm("add.cc.u32 %9, %9, %15;\n\t" MAD_NEXT(0, 1, 11, 10) MAD_NEXT(2, 3, 12, 10) MAD_NEXT(4, 5, 13, 10)
        MAD_NEXT(6, 7, 14, 10) "addc.u32 %8, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]),
          "=r"(top), "+r"(low)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(x));
}

// even += e (2^256 - r) on even limbs, odd likewise; limbs 8 and 9 of even take the carries. even[0] is spent.
CUZK_ROW void row_clear_low(u32* even, u32* odd) {
    asm("add.cc.u32 %0, %0, %8;\n\t" MAD_NEXT(1, 2, 9, 8) MAD_NEXT(3, 4, 10, 8) MAD_NEXT(5, 6, 11, 8) "addc.u32 %7, %7, 0;"
        : "+r"(even[1]), "+r"(even[2]), "+r"(even[3]), "+r"(even[4]), "+r"(even[5]), "+r"(even[6]), "+r"(even[7]), "+r"(even[8])
        : "r"(even[0]), "r"(fr_complement(2)), "r"(fr_complement(4)), "r"(fr_complement(6)));
    asm(MAD_FIRST(0, 1, 8, 7) MAD_NEXT(2, 3, 9, 7) MAD_NEXT(4, 5, 10, 7) "addc.u32 %6, %6, 0;"
        : "+r"(odd[2]), "+r"(odd[3]), "+r"(odd[4]), "+r"(odd[5]), "+r"(odd[6]), "+r"(odd[7]), "+r"(even[9])
        : "r"(even[0]), "r"(fr_complement(3)), "r"(fr_complement(5)), "r"(fr_complement(7)));
}

// r = (even >> 32) + odd - (sub << 32 SUB0), with the sign of the whole in the ninth limb
CUZK_ROW void merge4(u32* r, u32& sign, const u32* even, const u32* odd, const u32* sub) {
    asm("add.cc.u32 %0, %9, %18; addc.cc.u32 %1, %10, %19; addc.cc.u32 %2, %11, %20; addc.cc.u32 %3, %12, %21;\n\t"
        "addc.cc.u32 %4, %13, %22; addc.cc.u32 %5, %14, %23; addc.cc.u32 %6, %15, %24; addc.cc.u32 %7, %16, %25;\n\t"
        "addc.u32 %8, %17, 0;\n\t"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]), "=&r"(sign)
        : "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]), "r"(even[8]),
          "r"(even[9]), "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]), "r"(odd[7]));
    asm("sub.cc.u32 %0, %0, %5; subc.cc.u32 %1, %1, %6; subc.cc.u32 %2, %2, %7; subc.cc.u32 %3, %3, %8; subc.u32 %4, %4, 0;\n\t"
        : "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(sign)
        : "r"(sub[0]), "r"(sub[1]), "r"(sub[2]), "r"(sub[3]));
}

#undef MAD_FIRST
#undef MAD_NEXT
#else
CUZK_ROW void row_mad_out4(u32* acc, const u32* a, u32 b, u32& top) {
    top = 0;
    row_mad_top<4>(acc, a, b, top);
}
CUZK_ROW void row_mad_in_out4(u32* acc, const u32* a, u32 b, u32& low, u32 x, u32& top) {
    low += x;
    top = low < x;
    for (int i = 0; i < 4; i++) top = pair_mad(acc[2 * i], acc[2 * i + 1], a[2 * i], b, top);
}
CUZK_ROW void row_clear_low(u32* even, u32* odd) {
    u32 e = even[0], c, d = 0;
    even[1] += e;
    c = even[1] < e;
    for (int i = 2; i < 8; i += 2) {
        c = pair_mad(even[i], even[i + 1], fr_complement(i), e, c);
        d = pair_mad(odd[i], odd[i + 1], fr_complement(i + 1), e, d);
    }
    chain_overflows += (even[8] + c < c) + (even[9] + d < d);
    even[8] += c;
    even[9] += d;
}
CUZK_ROW void merge4(u32* r, u32& sign, const u32* even, const u32* odd, const u32* sub) {
    long long c = 0;
    for (int i = 0; i < 9; i++) {
        c += static_cast<long long>(even[i + 1]) + (i < 8 ? odd[i] : 0) - (i >= 4 && i < 8 ? sub[i - 4] : 0);
        (i < 8 ? r[i] : sign) = static_cast<u32>(c);
        c >>= 32;
    }
}
#endif

// r in (-r, 2 r) with its sign apart, to [0, r): subtract r unless negative, then add r if negative. Masks, because ptxas turns
// chains under a predicate into branches, and both sides occur in every warp.
CUZK_ROW void settle(u32* r, u32 sign) {
    u32 p[8];
    bool negative = static_cast<int>(sign) < 0;
#pragma unroll
    for (int i = 0; i < 8; i++) p[i] = negative ? 0 : FrParams::mod32(i);
    sign += words_sub<8>(r, p);
    negative = static_cast<int>(sign) < 0;
#pragma unroll
    for (int i = 0; i < 8; i++) p[i] = negative ? FrParams::mod32(i) : 0;
    words_add<8>(r, p);
}

// x = x w for a split twiddle; x below 2^256 before, below r after: the sum before `settle` is below r + x 2^-256 r < 2 r
CUZK_ROW void twiddle_mul(u32* x, const u32* low, const u32* high) {
    u32 even[10], odd[8], spent[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (j == 0) {
            row_mul<4>(even, low, x[0]);
            row_mul<4>(odd, low + 1, x[0]);
            row_mad_out4(odd, high + 1, x[4], even[9]);
            row_mad_out4(even, high, x[4], even[8]);
        } else {
            // divide by 2^32: the two accumulators change roles
            u32 carried = even[1], up[8];
#pragma unroll
            for (int i = 0; i < 8; i++) up[i] = even[i + 2];
#pragma unroll
            for (int i = 0; i < 8; i++) even[i] = odd[i];
#pragma unroll
            for (int i = 0; i < 8; i++) odd[i] = up[i];
            row_mad_in_out4(odd, low + 1, x[j], even[0], carried, even[9]);
            row_mad_out4(even, low, x[j], even[8]);
            row_mad_top<4>(odd, high + 1, x[j + 4], even[9]);
            row_mad_top<4>(even, high, x[j + 4], even[8]);
        }
        spent[j] = even[0];
        row_clear_low(even, odd);
    }
    u32 sign;
    merge4(x, sign, even, odd, spent);
    settle(x, sign);
}

}  // namespace cuzk

// Rows of mont_rows.hpp as PTX carry chains. Each row is one asm statement, so the carry flag never crosses a statement.
// ptxas fuses a mad.lo.cc / madc.hi.cc pair into one IMAD.WIDE.U32 with carry, the unit that bounds all field arithmetic.
// No includes beyond params.hpp: compiles under nvcc and NVRTC.
#pragma once

#include "params.hpp"

#define CUZK_ROW __device__ __forceinline__

namespace cuzk {

// -r^-1 mod 2^32 is -1. Seen as a constant, m = -low makes ptxas split every fused 64-bit multiply-add by m into two
// instructions; read from memory it costs one multiplication a row and keeps 48 products fused.
__constant__ u32 fr_neg_inverse = FrParams::N0_32;

template <class P>
CUZK_ROW u32 mont_factor(u32 low) {
    if constexpr (P::N32 == 8)
        return low * fr_neg_inverse;
    else
        return low * P::N0_32;
}

template <int K>
CUZK_ROW void row_mul(u32* acc, const u32* a, u32 b) {
#pragma unroll
    for (int i = 0; i < K; i++) {
        u64 t = static_cast<u64>(a[2 * i]) * b;
        acc[2 * i] = static_cast<u32>(t);
        acc[2 * i + 1] = static_cast<u32>(t >> 32);
    }
}

// {hi, lo} += a * b: first of a chain, continued, last of a chain that cannot carry out
#define MAD_FIRST(lo, hi, a, b) "mad.lo.cc.u32 %" #lo ", %" #a ", %" #b ", %" #lo "; madc.hi.cc.u32 %" #hi ", %" #a ", %" #b ", %" #hi ";\n\t"
#define MAD_NEXT(lo, hi, a, b) "madc.lo.cc.u32 %" #lo ", %" #a ", %" #b ", %" #lo "; madc.hi.cc.u32 %" #hi ", %" #a ", %" #b ", %" #hi ";\n\t"
#define MAD_LAST(lo, hi, a, b) "madc.lo.cc.u32 %" #lo ", %" #a ", %" #b ", %" #lo "; madc.hi.u32 %" #hi ", %" #a ", %" #b ", %" #hi ";\n\t"

template <int K>
CUZK_ROW void row_mad_top(u32* acc, const u32* a, u32 b, u32& top);
template <int K>
CUZK_ROW void row_mad(u32* acc, const u32* a, u32 b);
template <int K>
CUZK_ROW void row_mad_in(u32* acc, const u32* a, u32 b, u32& low, u32 x);
template <>
CUZK_ROW void row_mad_top<1>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 4, 3) "addc.u32 %2, %2, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(top)
        : "r"(b), "r"(a[0]));
}
template <>
CUZK_ROW void row_mad_top<2>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 6, 5) MAD_NEXT(2, 3, 7, 5)
        "addc.u32 %4, %4, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]));
}
template <>
CUZK_ROW void row_mad_top<3>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 8, 7) MAD_NEXT(2, 3, 9, 7)
        MAD_NEXT(4, 5, 10, 7) "addc.u32 %6, %6, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]));
}
template <>
CUZK_ROW void row_mad_top<4>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 10, 9) MAD_NEXT(2, 3, 11, 9)
        MAD_NEXT(4, 5, 12, 9) MAD_NEXT(6, 7, 13, 9)
        "addc.u32 %8, %8, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]));
}
template <>
CUZK_ROW void row_mad_top<5>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 12, 11) MAD_NEXT(2, 3, 13, 11)
        MAD_NEXT(4, 5, 14, 11) MAD_NEXT(6, 7, 15, 11)
        MAD_NEXT(8, 9, 16, 11) "addc.u32 %10, %10, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]));
}
template <>
CUZK_ROW void row_mad_top<6>(u32* acc, const u32* a, u32 b, u32& top) {
    asm(MAD_FIRST(0, 1, 14, 13) MAD_NEXT(2, 3, 15, 13)
        MAD_NEXT(4, 5, 16, 13) MAD_NEXT(6, 7, 17, 13)
        MAD_NEXT(8, 9, 18, 13) MAD_NEXT(10, 11, 19, 13)
        "addc.u32 %12, %12, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(top)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]));
}
template <>
CUZK_ROW void row_mad<4>(u32* acc, const u32* a, u32 b) {
    asm(MAD_FIRST(0, 1, 9, 8) MAD_NEXT(2, 3, 10, 8)
        MAD_NEXT(4, 5, 11, 8) MAD_LAST(6, 7, 12, 8)
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7])
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]));
}
template <>
CUZK_ROW void row_mad<6>(u32* acc, const u32* a, u32 b) {
    asm(MAD_FIRST(0, 1, 13, 12) MAD_NEXT(2, 3, 14, 12)
        MAD_NEXT(4, 5, 15, 12) MAD_NEXT(6, 7, 16, 12)
        MAD_NEXT(8, 9, 17, 12) MAD_LAST(10, 11, 18, 12)
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11])
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]));
}
template <>
CUZK_ROW void row_mad_in<4>(u32* acc, const u32* a, u32 b, u32& low, u32 x) {
    asm("add.cc.u32 %8, %8, %14;\n\t" MAD_NEXT(0, 1, 10, 9)
        MAD_NEXT(2, 3, 11, 9) MAD_NEXT(4, 5, 12, 9)
        MAD_LAST(6, 7, 13, 9)
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(low)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(x));
}
template <>
CUZK_ROW void row_mad_in<6>(u32* acc, const u32* a, u32 b, u32& low, u32 x) {
    asm("add.cc.u32 %12, %12, %20;\n\t" MAD_NEXT(0, 1, 14, 13)
        MAD_NEXT(2, 3, 15, 13) MAD_NEXT(4, 5, 16, 13)
        MAD_NEXT(6, 7, 17, 13) MAD_NEXT(8, 9, 18, 13)
        MAD_LAST(10, 11, 19, 13)
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]), "+r"(low)
        : "r"(b), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(x));
}
#undef MAD_FIRST
#undef MAD_NEXT
#undef MAD_LAST

template <int N>
CUZK_ROW void words_add(u32* r, const u32* b);
template <int N>
CUZK_ROW u32 words_sub(u32* r, const u32* b);
template <int N>
CUZK_ROW void words_add2(u32* r, const u32* odd, const u32* even);
template <>
CUZK_ROW void words_add<8>(u32* r, const u32* b) {
    asm("add.cc.u32 %0, %0, %8; addc.cc.u32 %1, %1, %9; addc.cc.u32 %2, %2, %10; addc.cc.u32 %3, %3, %11;\n\t"
        "addc.cc.u32 %4, %4, %12; addc.cc.u32 %5, %5, %13; addc.cc.u32 %6, %6, %14; addc.u32 %7, %7, %15;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7])
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}
template <>
CUZK_ROW u32 words_sub<8>(u32* r, const u32* b) {
    u32 borrow;
    asm("sub.cc.u32 %0, %0, %9; subc.cc.u32 %1, %1, %10; subc.cc.u32 %2, %2, %11; subc.cc.u32 %3, %3, %12;\n\t"
        "subc.cc.u32 %4, %4, %13; subc.cc.u32 %5, %5, %14; subc.cc.u32 %6, %6, %15; subc.cc.u32 %7, %7, %16;\n\t"
        "subc.u32 %8, 0, 0;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=r"(borrow)
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    return borrow;
}
template <>
CUZK_ROW void words_add2<8>(u32* r, const u32* odd, const u32* even) {
    asm("add.cc.u32 %0, %8, %16; addc.cc.u32 %1, %9, %17; addc.cc.u32 %2, %10, %18; addc.cc.u32 %3, %11, %19;\n\t"
        "addc.cc.u32 %4, %12, %20; addc.cc.u32 %5, %13, %21; addc.cc.u32 %6, %14, %22; addc.u32 %7, %15, 0;\n\t"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7])
        : "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]), "r"(odd[7]), "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]));
}
template <>
CUZK_ROW void words_add<12>(u32* r, const u32* b) {
    asm("add.cc.u32 %0, %0, %12; addc.cc.u32 %1, %1, %13; addc.cc.u32 %2, %2, %14; addc.cc.u32 %3, %3, %15;\n\t"
        "addc.cc.u32 %4, %4, %16; addc.cc.u32 %5, %5, %17; addc.cc.u32 %6, %6, %18; addc.cc.u32 %7, %7, %19;\n\t"
        "addc.cc.u32 %8, %8, %20; addc.cc.u32 %9, %9, %21; addc.cc.u32 %10, %10, %22; addc.u32 %11, %11, %23;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11])
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
}
template <>
CUZK_ROW u32 words_sub<12>(u32* r, const u32* b) {
    u32 borrow;
    asm("sub.cc.u32 %0, %0, %13; subc.cc.u32 %1, %1, %14; subc.cc.u32 %2, %2, %15; subc.cc.u32 %3, %3, %16;\n\t"
        "subc.cc.u32 %4, %4, %17; subc.cc.u32 %5, %5, %18; subc.cc.u32 %6, %6, %19; subc.cc.u32 %7, %7, %20;\n\t"
        "subc.cc.u32 %8, %8, %21; subc.cc.u32 %9, %9, %22; subc.cc.u32 %10, %10, %23; subc.cc.u32 %11, %11, %24;\n\t"
        "subc.u32 %12, 0, 0;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "=r"(borrow)
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]));
    return borrow;
}
template <>
CUZK_ROW void words_add2<12>(u32* r, const u32* odd, const u32* even) {
    asm("add.cc.u32 %0, %12, %24; addc.cc.u32 %1, %13, %25; addc.cc.u32 %2, %14, %26; addc.cc.u32 %3, %15, %27;\n\t"
        "addc.cc.u32 %4, %16, %28; addc.cc.u32 %5, %17, %29; addc.cc.u32 %6, %18, %30; addc.cc.u32 %7, %19, %31;\n\t"
        "addc.cc.u32 %8, %20, %32; addc.cc.u32 %9, %21, %33; addc.cc.u32 %10, %22, %34; addc.u32 %11, %23, 0;\n\t"
        : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]), "=&r"(r[6]), "=&r"(r[7]), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11])
        : "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]), "r"(odd[7]), "r"(odd[8]), "r"(odd[9]), "r"(odd[10]), "r"(odd[11]), "r"(even[1]), "r"(even[2]), "r"(even[3]), "r"(even[4]), "r"(even[5]), "r"(even[6]), "r"(even[7]), "r"(even[8]), "r"(even[9]), "r"(even[10]), "r"(even[11]));
}
template <>
CUZK_ROW void words_add<16>(u32* r, const u32* b) {
    asm("add.cc.u32 %0, %0, %16; addc.cc.u32 %1, %1, %17; addc.cc.u32 %2, %2, %18; addc.cc.u32 %3, %3, %19;\n\t"
        "addc.cc.u32 %4, %4, %20; addc.cc.u32 %5, %5, %21; addc.cc.u32 %6, %6, %22; addc.cc.u32 %7, %7, %23;\n\t"
        "addc.cc.u32 %8, %8, %24; addc.cc.u32 %9, %9, %25; addc.cc.u32 %10, %10, %26; addc.cc.u32 %11, %11, %27;\n\t"
        "addc.cc.u32 %12, %12, %28; addc.cc.u32 %13, %13, %29; addc.cc.u32 %14, %14, %30; addc.u32 %15, %15, %31;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15])
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]), "r"(b[12]), "r"(b[13]), "r"(b[14]), "r"(b[15]));
}
template <>
CUZK_ROW void words_add<24>(u32* r, const u32* b) {
    asm("add.cc.u32 %0, %0, %24; addc.cc.u32 %1, %1, %25; addc.cc.u32 %2, %2, %26; addc.cc.u32 %3, %3, %27;\n\t"
        "addc.cc.u32 %4, %4, %28; addc.cc.u32 %5, %5, %29; addc.cc.u32 %6, %6, %30; addc.cc.u32 %7, %7, %31;\n\t"
        "addc.cc.u32 %8, %8, %32; addc.cc.u32 %9, %9, %33; addc.cc.u32 %10, %10, %34; addc.cc.u32 %11, %11, %35;\n\t"
        "addc.cc.u32 %12, %12, %36; addc.cc.u32 %13, %13, %37; addc.cc.u32 %14, %14, %38; addc.cc.u32 %15, %15, %39;\n\t"
        "addc.cc.u32 %16, %16, %40; addc.cc.u32 %17, %17, %41; addc.cc.u32 %18, %18, %42; addc.cc.u32 %19, %19, %43;\n\t"
        "addc.cc.u32 %20, %20, %44; addc.cc.u32 %21, %21, %45; addc.cc.u32 %22, %22, %46; addc.u32 %23, %23, %47;\n\t"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15]), "+r"(r[16]), "+r"(r[17]), "+r"(r[18]), "+r"(r[19]), "+r"(r[20]), "+r"(r[21]), "+r"(r[22]), "+r"(r[23])
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]), "r"(b[12]), "r"(b[13]), "r"(b[14]), "r"(b[15]), "r"(b[16]), "r"(b[17]), "r"(b[18]), "r"(b[19]), "r"(b[20]), "r"(b[21]), "r"(b[22]), "r"(b[23]));
}

}  // namespace cuzk

#include "mont_rows.hpp"

// What the library is and what the CPU offers. The loader asks the portable variant, which every CPU can run.
#include "abi.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#ifndef CUZK_VARIANT
#define CUZK_VARIANT "portable"
#endif

// Changes with the C ABI, so that a stale library is refused instead of misread.
CUZK_API std::int64_t cuzk_abi_version() { return 2; }
CUZK_API const char* cuzk_variant() { return CUZK_VARIANT; }

// Bit 0: BMI2 and ADX. Bit 1: AVX-512 F, DQ, BW, VL and IFMA, enabled by the operating system.
CUZK_API std::int64_t cuzk_cpu_features() {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    std::int64_t features = (b >> 8 & 1) && (b >> 19 & 1);
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31 | 1u << 21;
    unsigned a1, b1, c1, d1;
    if ((b & avx512) == avx512 && __get_cpuid(1, &a1, &b1, &c1, &d1) && (c1 >> 27 & 1)) {
        unsigned low, high;
        asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 0xe6) == 0xe6) features |= 2;
    }
    return features;
#else
    return 0;
#endif
}

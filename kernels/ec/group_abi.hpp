// The C functions of one group, defined by CUZK_GROUP_ABI(g1, Fq): g1.cpp and g2.cpp are one line each, compiled in parallel.
#pragma once

#include "../abi/abi.hpp"
#include "../msm/msm_host.hpp"
#include "encoding.hpp"
#include "point_transforms.hpp"

namespace cuzk {

// Applies convert(out bytes, in bytes) to n items; the first for which it returns false is the result.
template <class Convert>
inline std::int64_t convert_all(std::size_t n, std::size_t threads, Convert&& convert) {
    return guarded([&]() -> std::int64_t {
        FirstIndex bad;
        parallel_ranges(threads, n, 256, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end && !bad.before(i); i++)
                if (!convert(i)) bad.report(i);
        });
        return bad.result();
    });
}

template <class T>
inline T load_at(const void* base, std::size_t i) {
    T r;
    std::memcpy(static_cast<void*>(&r), static_cast<const char*>(base) + sizeof(T) * i, sizeof(T));
    return r;
}
template <class T>
inline void store_at(void* base, std::size_t i, const T& x) {
    std::memcpy(static_cast<char*>(base) + sizeof(T) * i, static_cast<const void*>(&x), sizeof(T));
}

}  // namespace cuzk

#define CUZK_GROUP_ABI(g, F)                                                                                                 \
    using namespace cuzk;                                                                                                    \
    using P = Affine<F>;                                                                                                     \
    using bytes = unsigned char;                                                                                             \
    using count_t = std::uint64_t;                                                                                           \
    CUZK_API std::int64_t cuzk_##g##_msm(char* out, const char* points, const char* scalars, count_t n, count_t threads) {   \
        return guarded([&]() -> std::int64_t {                                                                               \
            store_at(out, 0, msm<F>(points, scalars, n, threads));                                                           \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_msm_bytes(count_t n, count_t threads) {                                                 \
        return static_cast<std::int64_t>(MsmPlan::make(n, FrParams::BITS, threads).template bytes<F>(n));                    \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_sum(char* out, const char* points, const bytes* bitmap, count_t n, count_t threads) {   \
        return guarded([&]() -> std::int64_t {                                                                               \
            store_at(out, 0, sum_points<F>(points, n, bitmap, threads));                                                     \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_shifted_sum(char* out, const char* points, const std::uint32_t* shift, count_t n) {     \
        return guarded([&]() -> std::int64_t {                                                                               \
            store_at(out, 0, shifted_sum<F>(points, shift, n));                                                              \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_add(char* out, const char* a, const char* b, count_t n, count_t threads) {              \
        return guarded([&]() -> std::int64_t {                                                                               \
            add_points<F>(out, a, b, n, threads);                                                                            \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_neg(char* out, const char* a, count_t n, count_t threads) {                             \
        return convert_all(n, threads, [&](std::size_t i) {                                                                  \
            store_at(out, i, -load_at<P>(a, i));                                                                             \
            return true;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_generator(char* out) {                                                                  \
        store_at(out, 0, g##_generator());                                                                                   \
        return DONE;                                                                                                         \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_fixed_base(char* out, const char* base, const char* scalars, count_t n, count_t threads) { \
        return guarded([&]() -> std::int64_t {                                                                               \
            fixed_base<F>(out, load_at<P>(base, 0), scalars, n, threads);                                                    \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_scale(char* out, const char* points, const char* scalars, count_t n, count_t threads) { \
        return guarded([&]() -> std::int64_t {                                                                               \
            scale_points<F>(out, points, scalars, n, threads);                                                               \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_ntt(char* data, int log_n, const char* root_mont, int inverse, count_t threads) {       \
        return guarded([&]() -> std::int64_t {                                                                               \
            group_ntt<F>(data, log_n, load_at<Fr>(root_mont, 0), inverse != 0, threads);                                     \
            return DONE;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_sparse_combine(char* out, const count_t* row_ptr, count_t rows, const std::uint32_t* col, \
                                                    const std::uint32_t* coef, count_t nnz, const char* table_std,           \
                                                    count_t table_size, const char* points, count_t n, count_t threads) {    \
        return guarded([&]() -> std::int64_t {                                                                               \
            return sparse_combine<F>(out, row_ptr, rows, col, coef, nnz, table_std, table_size, points, n, threads);         \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_check(const char* points, count_t n, int subgroup, count_t threads) {                   \
        return guarded([&]() -> std::int64_t { return check_points<F>(points, n, subgroup != 0, threads); });                \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_compress(bytes* out, const char* points, count_t n, count_t threads) {                  \
        return convert_all(n, threads, [&](std::size_t i) {                                                                  \
            compress(out + sizeof(F) * i, load_at<P>(points, i));                                                            \
            return true;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_decompress(char* out, const bytes* in, count_t n, count_t threads) {                    \
        return convert_all(n, threads, [&](std::size_t i) {                                                                  \
            P p;                                                                                                             \
            if (!decompress(p, in + sizeof(F) * i)) return false;                                                            \
            store_at(out, i, p);                                                                                             \
            return true;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_to_uncompressed(bytes* out, const char* points, count_t n, count_t threads) {           \
        return convert_all(n, threads, [&](std::size_t i) {                                                                  \
            to_uncompressed(out + sizeof(P) * i, load_at<P>(points, i));                                                     \
            return true;                                                                                                     \
        });                                                                                                                  \
    }                                                                                                                        \
    CUZK_API std::int64_t cuzk_##g##_from_uncompressed(char* out, const bytes* in, count_t n, count_t threads) {             \
        return convert_all(n, threads, [&](std::size_t i) {                                                                  \
            P p;                                                                                                             \
            if (!from_uncompressed(p, in + sizeof(P) * i)) return false;                                                     \
            store_at(out, i, p);                                                                                             \
            return true;                                                                                                     \
        });                                                                                                                  \
    }

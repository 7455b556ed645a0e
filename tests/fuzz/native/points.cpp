// Any bytes as points: what decodes encodes to the same bytes, is below the modulus, and the checks of curve and subgroup agree with
// the decoder. Under AddressSanitizer and UndefinedBehaviorSanitizer.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#define GROUP(g)                                                                                                    \
    extern "C" std::int64_t cuzk_##g##_decompress(char*, const unsigned char*, std::uint64_t, std::uint64_t);         \
    extern "C" std::int64_t cuzk_##g##_compress(unsigned char*, const char*, std::uint64_t, std::uint64_t);           \
    extern "C" std::int64_t cuzk_##g##_from_uncompressed(char*, const unsigned char*, std::uint64_t, std::uint64_t);  \
    extern "C" std::int64_t cuzk_##g##_to_uncompressed(unsigned char*, const char*, std::uint64_t, std::uint64_t);    \
    extern "C" std::int64_t cuzk_##g##_check(const char*, std::uint64_t, int, std::uint64_t);                         \
    extern "C" std::int64_t cuzk_##g##_add(char*, const char*, const char*, std::uint64_t, std::uint64_t);
GROUP(g1)
GROUP(g2)

namespace {

using Decode = std::int64_t (*)(char*, const unsigned char*, std::uint64_t, std::uint64_t);
using Encode = std::int64_t (*)(unsigned char*, const char*, std::uint64_t, std::uint64_t);
using Check = std::int64_t (*)(const char*, std::uint64_t, int, std::uint64_t);

void require(bool holds) {
    if (!holds) std::abort();
}

void round_trip(const unsigned char* data, std::size_t size, std::size_t encoded, std::size_t affine, Decode decode, Encode encode,
                Check check, bool on_curve) {
    const std::size_t n = std::min<std::size_t>(size / encoded, 3);
    if (!n) return;
    std::vector<unsigned char> in(data, data + n * encoded), out(n * encoded);
    std::vector<char> points(n * affine);
    const std::int64_t bad = decode(points.data(), in.data(), n, 1);
    require(bad >= -1 && bad < static_cast<std::int64_t>(n));
    const std::size_t good = bad < 0 ? n : static_cast<std::size_t>(bad);
    require(encode(out.data(), points.data(), good, 1) == -1);
    require(std::memcmp(in.data(), out.data(), good * encoded) == 0);
    if (on_curve) require(check(points.data(), good, 0, 1) == -1);
    if (good == 1) check(points.data(), good, 1, 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size < 1) return 0;
    const unsigned way = data[0] & 7;
    data++;
    size--;
    if (way == 0) round_trip(data, size, 48, 96, cuzk_g1_decompress, cuzk_g1_compress, cuzk_g1_check, true);
    if (way == 1) round_trip(data, size, 96, 192, cuzk_g2_decompress, cuzk_g2_compress, cuzk_g2_check, true);
    if (way == 2) round_trip(data, size, 96, 96, cuzk_g1_from_uncompressed, cuzk_g1_to_uncompressed, cuzk_g1_check, false);
    if (way == 3) round_trip(data, size, 192, 192, cuzk_g2_from_uncompressed, cuzk_g2_to_uncompressed, cuzk_g2_check, false);
    if (way == 4 && size >= 192) {  // any limbs, on the curve or not: no fault, and infinity is neutral
        std::vector<char> zero(96), sum(96);
        cuzk_g1_check(reinterpret_cast<const char*>(data), 2, 0, 1);
        cuzk_g1_add(sum.data(), reinterpret_cast<const char*>(data), reinterpret_cast<const char*>(data) + 96, 1, 1);
        cuzk_g1_add(sum.data(), reinterpret_cast<const char*>(data), zero.data(), 1, 1);
    }
    return 0;
}

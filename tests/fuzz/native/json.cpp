// Any text under a schema with every kind of element: it is refused with a place inside the text, or read into the arrays and nowhere
// else. Under AddressSanitizer and UndefinedBehaviorSanitizer.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

extern "C" std::int64_t cuzk_json_records(const std::uint8_t*, std::uint64_t, const std::int32_t*, std::uint64_t, const char*, std::uint8_t*,
                                          std::uint64_t, std::uint64_t*, std::uint64_t, void*);

namespace {

enum : std::int32_t { OBJECT, ARRAY, HASH, NUMBER, SKIP, STRING, TAGGED, BASE64, LIST };
constexpr std::int32_t HASH_AT = 58, NUMBER_AT = 59, ARRAY_AT = 62, LIST_AT = 67, STRING_AT = 75, TAGGED_AT = 77, BASE64_AT = 85, SKIP_AT = 87;
// (name, its length, element, hashes, numbers, required, flag); the numbers of the flags lie behind all others
constexpr std::int32_t PROGRAM[] = {
    OBJECT, 8,
    0, 1, HASH_AT, 0, 0, 1, -1,
    1, 1, NUMBER_AT, 0, 0, 0, 40,
    2, 1, ARRAY_AT, 1, 1, 0, 41,
    3, 1, LIST_AT, 3, 3, 0, 42,
    4, 1, STRING_AT, 8, 10, 0, -1,
    5, 1, TAGGED_AT, 12, 12, 0, -1,
    6, 1, BASE64_AT, 14, 20, 0, -1,
    7, 2, SKIP_AT, 0, 0, 0, -1,
    HASH,
    NUMBER, 1000, 0,
    ARRAY, 2, HASH_AT, 1, 0,
    LIST, 3, NUMBER_AT, 0, 1, 5, 0, 6,
    STRING, 2,
    TAGGED, 2, 0, 1, HASH_AT, 1, 1, NUMBER_AT,
    BASE64, TAGGED_AT,
    SKIP,
};
static_assert(sizeof PROGRAM / sizeof *PROGRAM == SKIP_AT + 1);
constexpr char NAMES[] = "hnalstbxy";
constexpr std::uint64_t HASHES = 24, NUMBERS = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    std::unique_ptr<std::uint8_t[]> text(new std::uint8_t[size]), hashes(new std::uint8_t[32 * HASHES]());
    std::unique_ptr<std::uint64_t[]> numbers(new std::uint64_t[NUMBERS]());
    if (size) std::memcpy(text.get(), data, size);
    std::unique_ptr<char[]> report(new char[16 + 496 + 512]());
    const auto result = cuzk_json_records(text.get(), size, PROGRAM, 0, NAMES, hashes.get(), HASHES, numbers.get(), NUMBERS, report.get());
    if (result != 0 && result != 1) std::abort();
    if (result == 1) {
        std::int64_t offset;
        std::memcpy(&offset, report.get(), 8);
        if (offset < 0 || offset > static_cast<std::int64_t>(size)) std::abort();
    }
    return 0;
}

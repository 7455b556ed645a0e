// The C ABI: plain functions, arrays as bytes of any alignment, sizes as 64-bit counts.
//
// Return values: >= 0 or NOTHING_FOUND as each function says, OUT_OF_MEMORY, FAULT. No exception leaves the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "parallel.hpp"

#define CUZK_API extern "C" __attribute__((visibility("default")))

namespace cuzk {

enum : std::int64_t { DONE = 0, NOTHING_FOUND = -1, OUT_OF_MEMORY = -2, FAULT = -3 };

template <class Body>
inline std::int64_t guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return OUT_OF_MEMORY;
    } catch (...) {
        return FAULT;
    }
}

// Lowest index for which some thread reported something, or NOTHING_FOUND.
class FirstIndex {
  public:
    void report(std::size_t i) {
        std::size_t seen = index_.load();
        while (i < seen && !index_.compare_exchange_weak(seen, i)) {}
    }
    bool before(std::size_t i) const { return index_.load() < i; }
    std::int64_t result() const {
        std::size_t i = index_.load();
        return i == SIZE_MAX ? NOTHING_FOUND : static_cast<std::int64_t>(i);
    }

  private:
    std::atomic<std::size_t> index_{SIZE_MAX};
};

}  // namespace cuzk

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

enum : std::int64_t { DONE = 0, OUT_OF_MEMORY = -2, FAULT = -3 };  // and NOTHING_FOUND

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

}  // namespace cuzk

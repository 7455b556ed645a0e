// How the kernels of an MSM name a point: 32 bits.
//
//   bit 31       the point is to be negated
//   bit 30       it lies in the caller's array of points; otherwise in the pool of partial sums
//   bits 29..0   its index there
//
// Partial sums are made in the pool and overwritten in place by the sums they enter, so a pool of half as many slots as there are
// summands suffices, and a summand left without a partner moves to the next round as four bytes.
#pragma once

#include "../device.cuh"

namespace cuzk {

constexpr u32 REF_NEGATIVE = 1u << 31;
constexpr u32 REF_POINT = 1u << 30;
constexpr u32 REF_INDEX = REF_POINT - 1;
constexpr u32 REF_NONE = 0xffffffffu;  // no point: infinity

}  // namespace cuzk

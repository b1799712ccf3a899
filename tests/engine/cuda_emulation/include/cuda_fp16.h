#pragma once
#include "engine/host/number_types.h"

struct __half {
  std::uint16_t bits;
};
inline float __half2float(__half x) { return krigtune::engine::from_fp16(x.bits); }
inline __half __float2half_rn(float x) { return {krigtune::engine::to_fp16(x)}; }
inline __half __ushort_as_half(std::uint16_t bits) { return {bits}; }
inline std::uint16_t __half_as_ushort(__half x) { return x.bits; }

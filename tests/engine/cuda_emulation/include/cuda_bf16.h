#pragma once
#include "engine/host/number_types.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) { return krigtune::engine::from_bf16(x.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {krigtune::engine::to_bf16(x)}; }
inline __nv_bfloat16 __ushort_as_bfloat16(std::uint16_t bits) { return {bits}; }
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }

#pragma once
// Conversions between 16-bit floating-point numbers and float. bfloat16 is the upper half of a float: 8 bits of
// exponent, 7 of fraction. binary16 (IEEE 754) has 5 and 10, subnormals below 2^-14, and 65504 as its largest number.
// Rounding is to nearest, ties to even. Numbers that exceed the largest one by half a unit or more become infinite; NaN
// stays NaN. The code has no branches, so loops over arrays vectorise.
#include <bit>
#include <cstdint>

#include "plan/step_plan.h"

namespace krigtune::engine {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = (bits >> 16U) & 1U;
  const std::uint32_t rounded = (bits + 0x7FFFU + odd) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet_nan : rounded);
}

inline float from_fp16(std::uint16_t bits) {
  constexpr std::uint32_t kBias = (127U - 15U) << 23U;
  constexpr std::uint32_t kSmallestNormal = 113U << 23U;  // 2^-14 as a float
  const std::uint32_t magnitude = (bits & 0x7FFFU) << 13U;
  const std::uint32_t exponent = magnitude & (0x7C00U << 13U);
  const std::uint32_t normal = magnitude + kBias;
  const std::uint32_t infinite = normal + kBias;  // exponent 31 becomes 255; NaN keeps its fraction
  // Placing a subnormal's fraction behind the exponent of 2^-14 gives a number that is 2^-14 too large.
  const float above = std::bit_cast<float>(magnitude + kSmallestNormal) - std::bit_cast<float>(kSmallestNormal);
  const std::uint32_t finite = exponent == 0U ? std::bit_cast<std::uint32_t>(above) : normal;
  const std::uint32_t value = exponent == (0x7C00U << 13U) ? infinite : finite;
  return std::bit_cast<float>(value | (static_cast<std::uint32_t>(bits & 0x8000U) << 16U));
}

inline std::uint16_t to_fp16(float value) {
  constexpr std::uint32_t kInfinite = 255U << 23U;
  constexpr std::uint32_t kTooLarge = (127U + 16U) << 23U;                    // 2^16
  constexpr std::uint32_t kSmallestNormal = 113U << 23U;                      // 2^-14
  constexpr std::uint32_t kAlign = ((127U - 15U) + (23U - 10U) + 1U) << 23U;  // 2^-1: adding it rounds to 2^-24
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  const std::uint32_t normal = (magnitude - ((127U - 15U) << 23U) + 0xFFFU + odd) >> 13U;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAlign)) - kAlign;
  const std::uint32_t quiet_nan = 0x7E00U | ((magnitude >> 13U) & 0x3FFU);
  const std::uint32_t finite = magnitude < kSmallestNormal ? subnormal : normal;
  const std::uint32_t beyond = magnitude > kInfinite ? quiet_nan : 0x7C00U;
  const std::uint32_t result = magnitude >= kTooLarge ? beyond : finite;
  return static_cast<std::uint16_t>(result | ((bits & 0x80000000U) >> 16U));
}

inline bool is_16_bit(schedule::DType type) { return type == schedule::DType::kBf16 || type == schedule::DType::kFp16; }

/// Converts numbers of a 16-bit `type` to float.
inline void widen(schedule::DType type, const std::uint16_t* from, std::int64_t count, float* to) {
  if (type == schedule::DType::kBf16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_fp16(from[i]);
  }
}

/// Converts float to a 16-bit `type`.
inline void round_to(schedule::DType type, const float* from, std::int64_t count, std::uint16_t* to) {
  if (type == schedule::DType::kBf16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_fp16(from[i]);
  }
}

}  // namespace krigtune::engine

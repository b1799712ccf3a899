#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace krigtune::engine::KRIGTUNE_KERNELS {

/// Returns the sum of term(0) ... term(count - 1), formed in 32 interleaved lanes that are combined in a fixed tree.
/// The order depends only on the count, never on an address, so equal data give equal bits on every rank and in every
/// plan.
template <class T, class Term>
T ordered_sum(std::int64_t count, Term term) {
  constexpr std::int64_t kLanes = 32;
  T lanes[kLanes]{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += term(i);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// Sets out[i] = value(i), or adds it: out[i] += value(i).
template <class T, class Value>
void put(T* out, std::int64_t count, bool adds, Value value) {
  if (adds) {
    for (std::int64_t i = 0; i < count; ++i) out[i] += value(i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = value(i);
  }
}

template <class T>
void clear(T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = T(0);
}

/// Returns the largest of `least` and the values. NaN values are ignored, unless `least` is NaN.
template <class T>
T largest(const T* values, std::int64_t count, T least) {
  constexpr std::int64_t kLanes = 32;
  T lanes[kLanes];
  for (T& lane : lanes) lane = least;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  T top = least;
  for (; i < count; ++i) top = values[i] > top ? values[i] : top;
  for (const T lane : lanes) top = lane > top ? lane : top;
  return top;
}

[[gnu::always_inline]] inline double exponential(double x) { return std::exp(x); }

/// exp without branches, so that loops over it vectorise. x = n ln 2 + r with |r| <= ln 2 / 2, with ln 2 in two parts
/// (Cody and Waite), and a polynomial of degree 7 in r from Cephes' expf (Moshier). The relative error is below 2e-7
/// within [-87, 88]; arguments outside are clamped to that range, and NaN stays NaN.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float kLow = -87.0F;
  constexpr float kHigh = 88.0F;
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding and subtracting it rounds to an integer
  x = x < kLow ? kLow : x;
  x = x > kHigh ? kHigh : x;
  const float n = (x * kLog2E + kRound) - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const float safe = n == n ? n : 0.0F;  // NaN cannot be converted to an integer
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(safe) + 127);
  return p * std::bit_cast<float>(exponent << 23U);
}

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

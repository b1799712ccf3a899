#include <cmath>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

// Layer normalisation (Ba, Kiros and Hinton 2016) over the last axis, h elements:
//
//   x^ = (x - mean) / stddev,  stddev = sqrt(variance + 1e-5),  y = gain x^ + bias
//   g  = dy gain;  dx = (g - mean_j(g) - x^ mean_j(g x^)) / stddev;  dgain = sum_rows dy x^;  dbias = sum_rows dy
//
// Without the operands gain and bias, these are 1 and 0. Frozen ones have no gradients.

namespace {

constexpr double kLayerNormEpsilon = 1e-5;

/// Calls act(gain), a function of the column.
template <class T, class Do>
void with_gain(const KernelCall& call, std::size_t operand, Do act) {
  if (!call.has(operand)) return act([](std::int64_t) { return T(1); });
  const T* gain = call.data<const T>(operand);
  act([gain](std::int64_t j) { return gain[j]; });
}

/// Returns a sum over the rows, which starts at 0 if it is not added to; null if the call has no such operand.
template <class T>
T* sum_of_rows(const KernelCall& call, std::size_t operand, std::int64_t elems) {
  if (!call.has(operand)) return nullptr;
  T* sum = call.data<T>(operand);
  if (!call.adds(operand)) clear(sum, elems);
  return sum;
}

}  // namespace

template <class T>
void layer_norm_forward(const KernelCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const T* bias = call.has(4) ? call.data<const T>(4) : nullptr;
  T* means = call.data<T>(2);
  T* inverses = means + rows;
  const T count = static_cast<T>(h);
  with_gain<T>(call, 3, [&](auto gain) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* x = call.data<const T>(0) + row * h;
      T* y = call.data<T>(1) + row * h;
      const T mean = ordered_sum<T>(h, [&](std::int64_t j) { return x[j]; }) / count;
      const T variance = ordered_sum<T>(h, [&](std::int64_t j) { return (x[j] - mean) * (x[j] - mean); }) / count;
      const T inverse = T(1) / std::sqrt(variance + static_cast<T>(kLayerNormEpsilon));
      const auto scaled = [&](std::int64_t j) { return (x[j] - mean) * inverse * gain(j); };
      if (bias != nullptr) {
        put(y, h, call.adds(1), [&](std::int64_t j) { return scaled(j) + bias[j]; });
      } else {
        put(y, h, call.adds(1), scaled);
      }
      means[row] = mean;
      inverses[row] = inverse;
    }
  });
}

template <class T>
void layer_norm_backward(const KernelCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const T* means = call.data<const T>(2);
  T* dgain = sum_of_rows<T>(call, 5, h);
  T* dbias = sum_of_rows<T>(call, 6, h);
  const T count = static_cast<T>(h);
  with_gain<T>(call, 4, [&](auto gain) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* dy = call.data<const T>(0) + row * h;
      const T* x = call.data<const T>(1) + row * h;
      const T mean = means[row];
      const T inverse = means[rows + row];
      const auto normal = [&](std::int64_t j) { return (x[j] - mean) * inverse; };
      const T g = ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain(j); }) / count;
      const T gx = ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain(j) * normal(j); }) / count;
      if (dgain != nullptr) put(dgain, h, true, [&](std::int64_t j) { return dy[j] * normal(j); });
      if (dbias != nullptr) put(dbias, h, true, [&](std::int64_t j) { return dy[j]; });
      put(call.data<T>(3) + row * h, h, call.adds(3),
          [&](std::int64_t j) { return inverse * (dy[j] * gain(j) - g - normal(j) * gx); });
    }
  });
}

template void layer_norm_forward<float>(const KernelCall&);
template void layer_norm_forward<double>(const KernelCall&);
template void layer_norm_backward<float>(const KernelCall&);
template void layer_norm_backward<double>(const KernelCall&);

// Root-mean-square normalisation (Zhang and Sennrich 2019) over the last axis, h elements:
//
//   rms = sqrt(mean_j(x^2) + 1e-5),  x^ = x / rms,  y = gain x^
//   g   = dy gain;  dx = (g - x^ mean_j(g x^)) / rms;  dgain = sum_rows dy x^
namespace {

constexpr double kRmsNormEpsilon = 1e-5;

/// Returns 1 / rms.
template <class T>
T inverse_rms(const T* x, std::int64_t h) {
  const T square = ordered_sum<T>(h, [&](std::int64_t j) { return x[j] * x[j]; }) / static_cast<T>(h);
  return T(1) / std::sqrt(square + static_cast<T>(kRmsNormEpsilon));
}

/// Returns mean_j(g x^).
template <class T, class Gain>
T mean_of_gx(const T* dy, const T* x, Gain gain, T inverse, std::int64_t h) {
  return ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain(j) * x[j]; }) * inverse / static_cast<T>(h);
}

}  // namespace

template <class T>
void rms_norm_forward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  T* inverses = call.data<T>(2);
  with_gain<T>(call, 3, [&](auto gain) {
    for (std::int64_t row = 0; row < call.shape().rows; ++row) {
      const T* x = call.data<const T>(0) + row * h;
      const T inverse = inverse_rms(x, h);
      put(call.data<T>(1) + row * h, h, call.adds(1), [&](std::int64_t j) { return x[j] * inverse * gain(j); });
      inverses[row] = inverse;
    }
  });
}

template <class T>
void rms_norm_backward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  T* dgain = sum_of_rows<T>(call, 5, h);
  with_gain<T>(call, 4, [&](auto gain) {
    for (std::int64_t row = 0; row < call.shape().rows; ++row) {
      const T* dy = call.data<const T>(0) + row * h;
      const T* x = call.data<const T>(1) + row * h;
      const T inverse = call.data<const T>(2)[row];
      const T gx = mean_of_gx(dy, x, gain, inverse, h);
      if (dgain != nullptr) put(dgain, h, true, [&](std::int64_t j) { return dy[j] * (x[j] * inverse); });
      put(call.data<T>(3) + row * h, h, call.adds(3),
          [&](std::int64_t j) { return inverse * (dy[j] * gain(j) - x[j] * inverse * gx); });
    }
  });
}

template void rms_norm_forward<float>(const KernelCall&);
template void rms_norm_forward<double>(const KernelCall&);
template void rms_norm_backward<float>(const KernelCall&);
template void rms_norm_backward<double>(const KernelCall&);

// RMS norms of queries and of keys, which are the first columns of the rows of qkv (Henry et al. 2020, "Query-key
// normalization for transformers", in the form of Qwen3 and OLMo 2): of each head by itself, with a gain that all heads
// share, or of all heads together.
namespace {

/// The columns of a row of qkv with the queries, or with the keys.
struct NormedColumns {
  std::int64_t begin;             ///< in a row of qkv; in one of `before`, which has no values, it is the same
  std::int64_t norms, width;      ///< beside each other
  std::int64_t stat, stats_each;  ///< the first number in a row of stats, and how many a norm has
  std::size_t gain, dgain;        ///< operands
};

/// Calls act for the queries and for the keys.
template <class Do>
void for_queries_and_keys(const plan::Shape& s, Do act) {
  const std::int64_t d = s.inner / s.heads;
  const bool of_each_head = s.outer == d;
  const std::int64_t q_norms = of_each_head ? s.heads : 1;
  const std::int64_t k_norms = of_each_head ? s.kv_heads : 1;
  act(NormedColumns{0, q_norms, s.inner / q_norms, 0, s.heads / q_norms, 1, 5});
  act(NormedColumns{s.inner, k_norms, s.kv_heads * d / k_norms, s.heads, s.kv_heads / k_norms, 2, 6});
}

/// The lengths of the rows of qkv, of `before` and of stats.
struct QkvLengths {
  std::int64_t qkv, before, stats;
  explicit QkvLengths(const plan::Shape& s)
      : qkv(s.inner / s.heads * (s.heads + 2 * s.kv_heads)),
        before(s.inner / s.heads * (s.heads + s.kv_heads)),
        stats(s.heads + s.kv_heads) {}
};

}  // namespace

template <class T>
void qk_norm_forward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const QkvLengths lengths(s);
  for_queries_and_keys(s, [&](const NormedColumns& at) {
    const T* gain = call.data<const T>(at.gain);
    for (std::int64_t row = 0; row < s.batch * s.seq; ++row) {
      for (std::int64_t norm = 0; norm < at.norms; ++norm) {
        T* x = call.data<T>(0) + row * lengths.qkv + at.begin + norm * at.width;
        T* before = call.data<T>(3) + row * lengths.before + at.begin + norm * at.width;
        const T inverse = inverse_rms<T>(x, at.width);
        put(before, at.width, false, [&](std::int64_t j) { return x[j]; });
        put(x, at.width, false, [&](std::int64_t j) { return before[j] * inverse * gain[j]; });
        put(call.data<T>(4) + row * lengths.stats + at.stat + norm * at.stats_each, at.stats_each, false,
            [&](std::int64_t) { return inverse; });
      }
    }
  });
}

template <class T>
void qk_norm_backward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const QkvLengths lengths(s);
  for_queries_and_keys(s, [&](const NormedColumns& at) {
    const T* gains = call.data<const T>(at.gain);
    const auto gain = [&](std::int64_t j) { return gains[j]; };
    T* dgain = sum_of_rows<T>(call, at.dgain, at.width);
    for (std::int64_t row = 0; row < s.batch * s.seq; ++row) {
      for (std::int64_t norm = 0; norm < at.norms; ++norm) {
        T* dy = call.data<T>(0) + row * lengths.qkv + at.begin + norm * at.width;
        const T* x = call.data<const T>(3) + row * lengths.before + at.begin + norm * at.width;
        const T inverse = call.data<const T>(4)[row * lengths.stats + at.stat + norm * at.stats_each];
        const T gx = mean_of_gx<T>(dy, x, gain, inverse, at.width);
        if (dgain != nullptr) put(dgain, at.width, true, [&](std::int64_t j) { return dy[j] * (x[j] * inverse); });
        put(dy, at.width, false, [&](std::int64_t j) { return inverse * (dy[j] * gain(j) - x[j] * inverse * gx); });
      }
    }
  });
}

template void qk_norm_forward<float>(const KernelCall&);
template void qk_norm_forward<double>(const KernelCall&);
template void qk_norm_backward<float>(const KernelCall&);
template void qk_norm_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

#include <cmath>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

// Layer normalisation (Ba, Kiros and Hinton 2016) over the last axis, h elements:
//
//   x^ = (x - mean) / stddev,  stddev = sqrt(variance + 1e-5),  y = gain x^ + bias
//   g  = dy gain;  dx = (g - mean_j(g) - x^ mean_j(g x^)) / stddev;  dgain = sum_rows dy x^;  dbias = sum_rows dy

namespace {

constexpr double kLayerNormEpsilon = 1e-5;

}  // namespace

template <class T>
void layer_norm_forward(const KernelCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const T* gain = call.data<const T>(1);
  const T* bias = call.data<const T>(2);
  T* means = call.data<T>(4);
  T* inverses = means + rows;
  const T count = static_cast<T>(h);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* x = call.data<const T>(0) + row * h;
    const T mean = ordered_sum<T>(h, [&](std::int64_t j) { return x[j]; }) / count;
    const T variance = ordered_sum<T>(h, [&](std::int64_t j) { return (x[j] - mean) * (x[j] - mean); }) / count;
    const T inverse = T(1) / std::sqrt(variance + static_cast<T>(kLayerNormEpsilon));
    put(call.data<T>(3) + row * h, h, call.adds(3),
        [&](std::int64_t j) { return (x[j] - mean) * inverse * gain[j] + bias[j]; });
    means[row] = mean;
    inverses[row] = inverse;
  }
}

template <class T>
void layer_norm_backward(const KernelCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const T* gain = call.data<const T>(2);
  const T* means = call.data<const T>(3);
  T* dgain = call.data<T>(5);
  T* dbias = call.data<T>(6);
  if (!call.adds(5)) clear(dgain, h);
  if (!call.adds(6)) clear(dbias, h);
  const T count = static_cast<T>(h);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* dy = call.data<const T>(0) + row * h;
    const T* x = call.data<const T>(1) + row * h;
    const T mean = means[row];
    const T inverse = means[rows + row];
    const auto normal = [&](std::int64_t j) { return (x[j] - mean) * inverse; };
    const T g = ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain[j]; }) / count;
    const T gx = ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain[j] * normal(j); }) / count;
    put(dgain, h, true, [&](std::int64_t j) { return dy[j] * normal(j); });
    put(dbias, h, true, [&](std::int64_t j) { return dy[j]; });
    put(call.data<T>(4) + row * h, h, call.adds(4),
        [&](std::int64_t j) { return inverse * (dy[j] * gain[j] - g - normal(j) * gx); });
  }
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

}  // namespace

template <class T>
void rms_norm_forward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  const T* gain = call.data<const T>(1);
  T* inverses = call.data<T>(3);
  for (std::int64_t row = 0; row < call.shape().rows; ++row) {
    const T* x = call.data<const T>(0) + row * h;
    const T square = ordered_sum<T>(h, [&](std::int64_t j) { return x[j] * x[j]; }) / static_cast<T>(h);
    const T inverse = T(1) / std::sqrt(square + static_cast<T>(kRmsNormEpsilon));
    put(call.data<T>(2) + row * h, h, call.adds(2), [&](std::int64_t j) { return x[j] * inverse * gain[j]; });
    inverses[row] = inverse;
  }
}

template <class T>
void rms_norm_backward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  const T* gain = call.data<const T>(2);
  T* dgain = call.data<T>(5);
  if (!call.adds(5)) clear(dgain, h);
  for (std::int64_t row = 0; row < call.shape().rows; ++row) {
    const T* dy = call.data<const T>(0) + row * h;
    const T* x = call.data<const T>(1) + row * h;
    const T inverse = call.data<const T>(3)[row];
    const T gx =
        ordered_sum<T>(h, [&](std::int64_t j) { return dy[j] * gain[j] * x[j]; }) * inverse / static_cast<T>(h);
    put(dgain, h, true, [&](std::int64_t j) { return dy[j] * (x[j] * inverse); });
    put(call.data<T>(4) + row * h, h, call.adds(4),
        [&](std::int64_t j) { return inverse * (dy[j] * gain[j] - x[j] * inverse * gx); });
  }
}

template void rms_norm_forward<float>(const KernelCall&);
template void rms_norm_forward<double>(const KernelCall&);
template void rms_norm_backward<float>(const KernelCall&);
template void rms_norm_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

// Root-mean-square normalisation (Zhang and Sennrich 2019) over the last axis, h elements:
//
//   rms = sqrt(mean_j(x^2) + 1e-5),  x^ = x / rms,  y = gain x^
//   g   = dy gain;  dx = (g - x^ mean_j(g x^)) / rms;  dgain = sum_rows dy x^
#include <cmath>

#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
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

}  // namespace krigtune::KRIGTUNE_KERNELS

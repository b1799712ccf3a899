// GELU in its tanh form (Hendrycks and Gimpel 2016; GPT-2 uses this one):
//
//   y = x / 2 (1 + tanh(u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//     = x s,  s = 1 / (1 + exp(-2 u))
//   dy/dx = s + 2 x s (1 - s) du/dx
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

constexpr double kRoot = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;

template <class T>
[[gnu::always_inline]] inline T gate(T x) {
  const T u = static_cast<T>(kRoot) * (x + static_cast<T>(kCubic) * x * x * x);
  return T(1) / (T(1) + exponential(T(-2) * u));
}

}  // namespace

template <class T>
void gelu_forward(const KernelCall& call) {
  const T* x = call.data<const T>(0);
  put(call.data<T>(1), call.shape().rows * call.shape().inner, call.adds(1),
      [&](std::int64_t i) { return x[i] * gate(x[i]); });
}

template <class T>
void gelu_backward(const KernelCall& call) {
  const T* x = call.data<const T>(0);
  T* dy = call.data<T>(1);
  for (std::int64_t i = 0; i < call.shape().rows * call.shape().inner; ++i) {
    const T s = gate(x[i]);
    const T du = static_cast<T>(kRoot) * (T(1) + T(3) * static_cast<T>(kCubic) * x[i] * x[i]);
    dy[i] *= s + T(2) * x[i] * s * (T(1) - s) * du;
  }
}

template void gelu_forward<float>(const KernelCall&);
template void gelu_forward<double>(const KernelCall&);
template void gelu_backward<float>(const KernelCall&);
template void gelu_backward<double>(const KernelCall&);

}  // namespace krigtune::KRIGTUNE_KERNELS

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

// GELU in its tanh form (Hendrycks and Gimpel 2016), which GPT-2 uses:
//
//   y = x / 2 (1 + tanh(u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//     = x s,  s = 1 / (1 + exp(-2 u))
//   dy/dx = s + 2 x s (1 - s) du/dx

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

// SwiGLU (Shazeer 2020, "GLU variants improve transformer"), s = 1 / (1 + exp(-g)):
//
//   y = g s u;  dg = dy u s (1 + g (1 - s));  du = dy g s
namespace {

template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}

}  // namespace

template <class T>
void swiglu_forward(const KernelCall& call) {
  const std::int64_t f = call.shape().inner;
  for (std::int64_t row = 0; row < call.shape().rows; ++row) {
    const T* gate = call.data<const T>(0) + row * 2 * f;
    const T* up = gate + f;
    put(call.data<T>(1) + row * f, f, call.adds(1), [&](std::int64_t j) { return gate[j] * sigmoid(gate[j]) * up[j]; });
  }
}

template <class T>
void swiglu_backward(const KernelCall& call) {
  const std::int64_t f = call.shape().inner;
  for (std::int64_t row = 0; row < call.shape().rows; ++row) {
    const T* gate = call.data<const T>(0) + row * 2 * f;
    const T* up = gate + f;
    const T* dy = call.data<const T>(1) + row * f;
    T* dgate = call.data<T>(2) + row * 2 * f;
    put(dgate, f, call.adds(2), [&](std::int64_t j) {
      const T s = sigmoid(gate[j]);
      return dy[j] * up[j] * s * (T(1) + gate[j] * (T(1) - s));
    });
    put(dgate + f, f, call.adds(2), [&](std::int64_t j) { return dy[j] * gate[j] * sigmoid(gate[j]); });
  }
}

template void swiglu_forward<float>(const KernelCall&);
template void swiglu_forward<double>(const KernelCall&);
template void swiglu_backward<float>(const KernelCall&);
template void swiglu_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

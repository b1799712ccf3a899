// SwiGLU (Shazeer 2020, "GLU variants improve transformer"), s = 1 / (1 + exp(-g)):
//
//   y = g s u;  dg = dy u s (1 + g (1 - s));  du = dy g s
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
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

}  // namespace krigtune::KRIGTUNE_KERNELS

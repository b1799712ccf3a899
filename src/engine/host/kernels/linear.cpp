// y = x W^T + b with x: rows x inner, W: outer x inner, y: rows x outer.
// dx = dy W;  dW = dy^T x;  db = sum over rows of dy, in the order of the rows. y and dy may be columns of wider rows.
#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

namespace {

/// Returns the product's columns of y or of its gradient.
template <class T>
MatrixView<T> outputs(T* y, const plan::Shape& s) {
  return {y + s.begin, s.rows, s.outer, s.width > 0 ? s.width : s.outer};
}

}  // namespace

template <class T>
void linear_forward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  multiply<T>({.a = dense(call.data<const T>(0), s.rows, s.inner),
               .b = dense(call.data<const T>(1), s.outer, s.inner),
               .c = outputs(call.data<T>(2), s),
               .b_transposed = true,
               .adds = call.adds(2),
               .bias = call.has(3) ? call.data<const T>(3) : nullptr},
              static_cast<T*>(call.scratch));
}

template <class T>
void linear_backward_input(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  multiply<T>({.a = outputs(call.data<const T>(0), s),
               .b = dense(call.data<const T>(1), s.outer, s.inner),
               .c = dense(call.data<T>(2), s.rows, s.inner),
               .adds = call.adds(2)},
              static_cast<T*>(call.scratch));
}

template <class T>
void linear_backward_weight(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T* dy = call.data<const T>(0);
  multiply<T>({.a = outputs(dy, s),
               .b = dense(call.data<const T>(1), s.rows, s.inner),
               .c = dense(call.data<T>(2), s.outer, s.inner),
               .a_transposed = true,
               .adds = call.adds(2)},
              static_cast<T*>(call.scratch));
  if (!call.has(3)) return;
  T* dbias = call.data<T>(3);
  if (!call.adds(3)) clear(dbias, s.outer);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    put(dbias, s.outer, true, [&](std::int64_t j) { return dy[row * s.outer + j]; });
  }
}

template <class T>
void add_bias(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T* bias = call.data<const T>(1);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    put(call.data<T>(0) + row * s.inner, s.inner, true, [&](std::int64_t j) { return bias[j]; });
  }
}

template <class T>
void bias_backward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T* dy = call.data<const T>(0);
  T* dbias = call.data<T>(1);
  if (!call.adds(1)) clear(dbias, s.inner);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    put(dbias, s.inner, true, [&](std::int64_t j) { return dy[row * s.inner + j]; });
  }
}

std::int64_t linear_scratch(const plan::Shape&) { return kGemmScratchElems; }

template void add_bias<float>(const KernelCall&);
template void add_bias<double>(const KernelCall&);
template void bias_backward<float>(const KernelCall&);
template void bias_backward<double>(const KernelCall&);
template void linear_forward<float>(const KernelCall&);
template void linear_forward<double>(const KernelCall&);
template void linear_backward_input<float>(const KernelCall&);
template void linear_backward_input<double>(const KernelCall&);
template void linear_backward_weight<float>(const KernelCall&);
template void linear_backward_weight<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

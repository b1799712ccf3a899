// y = x W^T + b with x: rows x inner, W: outer x inner, y: rows x outer.
// dx = dy W;  dW = dy^T x;  db = sum over rows of dy, in the order of the rows.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

void add_to_rows(const DeviceCall& call, const Elements& y, const Elements& bias, std::int64_t width) {
  launch_elements(call.queue, call.shape().rows * width, [=] __device__(std::int64_t e) { y.add(e, bias(e % width)); });
}

void sum_rows(const DeviceCall& call, const Elements& dy, const Elements& dbias, std::int64_t width) {
  const std::int64_t rows = call.shape().rows;
  launch_elements(call.queue, width, [=] __device__(std::int64_t j) {
    float sum = 0.0F;
    for (std::int64_t row = 0; row < rows; ++row) sum += dy(row * width + j);
    dbias.put(j, sum);
  });
}

}  // namespace

void linear_forward(const DeviceCall& call) { call.gemm->multiply(product_of(call), call.queue); }

void linear_backward_input(const DeviceCall& call) { call.gemm->multiply(product_of(call), call.queue); }

void linear_backward_weight(const DeviceCall& call) {
  call.gemm->multiply(product_of(call), call.queue);
  if (call.has(3)) sum_rows(call, {call, 0}, {call, 3}, call.shape().outer);
}

void add_bias(const DeviceCall& call) { add_to_rows(call, {call, 0}, {call, 1}, call.shape().inner); }
void bias_backward(const DeviceCall& call) { sum_rows(call, {call, 0}, {call, 1}, call.shape().inner); }

}  // namespace krigtune::cuda

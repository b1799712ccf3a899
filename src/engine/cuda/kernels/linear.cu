// y = x W^T + b with x: rows x inner, W: outer x inner, y: rows x outer.
// dx = dy W;  dW = dy^T x;  db = sum over rows of dy.
#include "engine/cuda/kernels/column_sums.h"

namespace krigtune::cuda {
namespace {

void add_to_rows(const DeviceCall& call, const Elements& y, const Elements& bias, std::int64_t width) {
  launch_row_packs(call.queue, call.shape().rows, width, {y, bias},
                   [=] __device__(std::int64_t row, auto at) { y.add(at + row * width, bias(at)); });
}

void sum_rows_of(const DeviceCall& call, const Elements& dy, const Elements& dbias, std::int64_t width) {
  sum_rows(
      call, call.shape().rows, width, walk_of({dy}, width),
      [=] __device__(std::int64_t row, auto place) { return dy(place + row * width); }, dbias);
}

}  // namespace

std::int64_t linear_backward_weight_scratch(const plan::Operation& operation) {
  return operation.operands.size() > 3 ? column_sums_scratch(operation.shape.rows, operation.shape.outer) : 0;
}
std::int64_t bias_backward_scratch(const plan::Operation& operation) {
  return column_sums_scratch(operation.shape.rows, operation.shape.inner);
}

void linear_forward(const DeviceCall& call) { call.gemm->multiply(product_of(call), call.queue); }
void linear_backward_input(const DeviceCall& call) { call.gemm->multiply(product_of(call), call.queue); }

// The library overwrites its sums, so gradients of later micro-steps are added here.
void add_sums(const DeviceCall& weight, const Product& product) {
  const Elements sums(product.sums.data, product.sums.type, false);
  const Elements dbias(weight, 3);
  launch_packs(weight.queue, weight.operands[3].elems, {sums, dbias},
               [=] __device__(auto at) { dbias.add(at, sums(at)); });
}

void linear_backward_weight(const DeviceCall& call) {
  const std::optional<Product> both = with_bias_gradient(call);
  if (both && call.gemm->is_preferred(*both)) {
    call.gemm->multiply(*both, call.queue);
    if (call.adds(3)) add_sums(call, *both);
    return;
  }
  call.gemm->multiply(product_of(call), call.queue);
  if (call.has(3)) sum_rows_of(call, {call, 0}, {call, 3}, call.shape().outer);
}

void add_bias(const DeviceCall& call) { add_to_rows(call, {call, 0}, {call, 1}, call.shape().inner); }
void bias_backward(const DeviceCall& call) { sum_rows_of(call, {call, 0}, {call, 1}, call.shape().inner); }

}  // namespace krigtune::cuda

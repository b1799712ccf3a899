// The products y = x W^T + b, dx = dy W and dW = dy^T x, of which y and dy may be columns of wider rows, and what the
// library can compute together with them if that is faster:
//
//   the GELU of y, which keeps y for the backward pass;
//   the GELU's gradient of dx, if x was a GELU's output;
//   db = sum over the rows of dy, which are the depth of dW: the sums of the rows of dy^T.
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {
namespace {

// Returns the product's columns of y or of its gradient, which begin in the first row.
engine::OperandView outputs(engine::OperandView y, const plan::Shape& s) {
  y.data = static_cast<std::byte*>(y.data) + s.begin * schedule::size_bytes(y.type);
  y.elems -= s.begin;
  return y;
}

}  // namespace

Product product_of(const DeviceCall& call) {
  const plan::Shape& s = call.shape();
  Product product{.a = call.operands[0], .b = call.operands[1], .d = call.operands[2], .bias = {}};
  const bool is_forward = call.operation.kind == schedule::OpKind::kLinearForward;
  (is_forward ? product.d_stride : product.a_stride) = s.width;
  (is_forward ? product.d : product.a) = outputs(call.operands[is_forward ? 2 : 0], s);
  switch (call.operation.kind) {
    case schedule::OpKind::kLinearForward:
      product.rows = s.rows;
      product.cols = s.outer;
      product.depth = s.inner;
      product.transpose_b = true;
      if (call.has(3)) product.bias = call.operands[3];
      return product;
    case schedule::OpKind::kLinearBackwardInput:
      product.rows = s.rows;
      product.cols = s.inner;
      product.depth = s.outer;
      return product;
    default:
      product.rows = s.outer;
      product.cols = s.inner;
      product.depth = s.rows;
      product.transpose_a = true;
      return product;
  }
}

namespace {

bool is_same(const engine::OperandView& a, const engine::OperandView& b) {
  return a.data == b.data && a.elems == b.elems && a.type == b.type;
}

// y is the pre-activation. D is written earlier than the activation would be, so it must not overlap anything that the
// product reads.
std::optional<Product> with_gelu(const DeviceCall& linear, const DeviceCall& gelu) {
  const bool fits = linear.operation.kind == schedule::OpKind::kLinearForward && linear.shape().width == 0 &&
                    gelu.operation.kind == schedule::OpKind::kGeluForward;
  if (!fits) return std::nullopt;
  const engine::OperandView& pre = linear.operands[2];
  const engine::OperandView& out = gelu.operands[1];
  if (!is_same(gelu.operands[0], pre) || pre.adds() || out.adds() || out.type != pre.type) return std::nullopt;
  for (const engine::OperandView& operand : linear.operands) {
    if (overlap(out, operand)) return std::nullopt;
  }
  Product product = product_of(linear);
  product.epilogue = Epilogue::kGelu;
  product.aux = pre;
  product.d = out;
  return product;
}

std::optional<Product> with_gelu_gradient(const DeviceCall& linear, const DeviceCall& gelu) {
  const bool fits = linear.operation.kind == schedule::OpKind::kLinearBackwardInput &&
                    gelu.operation.kind == schedule::OpKind::kGeluBackward;
  if (!fits) return std::nullopt;
  const engine::OperandView& pre = gelu.operands[0];
  const engine::OperandView& dx = linear.operands[2];
  if (!is_same(gelu.operands[1], dx) || dx.adds() || pre.type != dx.type || overlap(pre, dx)) return std::nullopt;
  Product product = product_of(linear);
  product.epilogue = Epilogue::kGeluGradient;
  product.aux = pre;
  return product;
}

std::optional<Product> with_activation(const DeviceCall& first, const DeviceCall& second) {
  const std::optional<Product> forward = with_gelu(first, second);
  return forward ? forward : with_gelu_gradient(first, second);
}

// The sums of dx's columns are the gradient of a bias. The gradient of that bias's weight comes next.
std::optional<Product> with_both_gradients(const DeviceCall& first, const DeviceCall& second,
                                           const DeviceCall& weight) {
  std::optional<Product> product = with_gelu_gradient(first, second);
  const std::optional<Product> of_weight = with_bias_gradient(weight);
  if (!product || !of_weight || !is_same(weight.operands[0], product->d)) return std::nullopt;
  if (of_weight->sums.type != product->d.type) return std::nullopt;
  for (const DeviceCall* call : {&first, &second}) {
    for (const engine::OperandView& operand : call->operands) {
      if (overlap(weight.operands[3], operand)) return std::nullopt;
    }
  }
  product->sums = of_weight->sums;
  return product;
}

void multiply_and_activate(const DeviceCall& first, const DeviceCall& second) {
  if (const auto product = with_activation(first, second)) first.gemm->multiply(*product, first.queue);
}

void start_on(Queue queue, const DeviceCall& call) {
  DeviceCall there = call;
  there.queue = queue;
  device_kernel_for(call.operation.kind)(there);
}

}  // namespace

DeviceCall without_bias(const DeviceCall& weight) {
  DeviceCall call = weight;
  call.operands = weight.operands.first(3);
  return call;
}

bool sums_bias_along(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight) {
  const std::optional<Product> product = with_both_gradients(first, second, weight);
  if (!product) return false;
  const PairKernel pair = pair_kernel_for(first, second);
  const auto apart = [&](Queue queue) {
    DeviceCall there = first;
    there.queue = queue;
    if (pair != nullptr) {
      pair(there, second);
    } else {
      start_on(queue, first);
      start_on(queue, second);
    }
    start_on(queue, weight);
  };
  const auto besides = [&](Queue queue) {
    DeviceCall there = weight;
    there.queue = queue;
    if (weight.adds(3)) add_sums(there, *product);
    start_on(queue, without_bias(weight));
  };
  return first.gemm->prefers(*product, apart, besides);
}

void multiply_and_sum_bias(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight) {
  const std::optional<Product> product = with_both_gradients(first, second, weight);
  if (!product) return;
  first.gemm->multiply(*product, first.queue);
  if (weight.adds(3)) add_sums(weight, *product);
}

PairKernel product_pair_for(const DeviceCall& first, const DeviceCall& second) {
  const std::optional<Product> product = with_activation(first, second);
  if (!product) return nullptr;
  const auto apart = [&](Queue queue) {
    start_on(queue, first);
    start_on(queue, second);
  };
  return first.gemm->prefers(*product, apart, {}) ? multiply_and_activate : nullptr;
}

std::optional<Product> with_bias_gradient(const DeviceCall& call) {
  const bool fits = call.operation.kind == schedule::OpKind::kLinearBackwardWeight && call.has(3) &&
                    call.operands[3].type == call.operands[2].type;
  if (!fits) return std::nullopt;
  Product product = product_of(call);
  product.epilogue = Epilogue::kRowSums;
  product.sums = call.operands[3];
  if (call.adds(3)) product.sums.data = call.scratch;
  return product;
}

void prepare_product(const DeviceCall& call) {
  call.gemm->prepare(product_of(call));
  const std::optional<Product> product = with_bias_gradient(call);
  if (!product) return;
  const auto apart = [&](Queue queue) { start_on(queue, call); };
  call.gemm->prefers(*product, apart, {});
}

}  // namespace krigtune::cuda

// y = x W^T + b;  dx = dy W;  dW = dy^T x.
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

Product product_of(const DeviceCall& call) {
  const plan::Shape& s = call.shape();
  Product product{.a = call.operands[0], .b = call.operands[1], .d = call.operands[2], .bias = {}};
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

}  // namespace krigtune::cuda

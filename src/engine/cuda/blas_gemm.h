#pragma once
#include <memory>

#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// cuBLASLt: fp32, bf16 and fp16 with sums in fp32. The algorithm of each shape is chosen once: the fastest of some
/// forty, which are tried on the operands themselves (what they hold afterwards means nothing), or the choice of an
/// earlier run. An epilogue is chosen in the same way. So the bits of a product are the same in every step. One stream
/// at a time.
std::unique_ptr<Gemm> make_blas_gemm();

}  // namespace krigtune::cuda

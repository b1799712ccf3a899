#pragma once
#include <memory>

#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Returns a Gemm that multiplies with cuBLASLt: fp32, bf16 and fp16 with sums in fp32. The algorithm of each shape is
/// chosen once: it is the choice of an earlier run or the fastest of about forty, which are tried on the operands
/// themselves (whose values are undefined afterwards). An epilogue is chosen in the same way. So a product has the same
/// bits in every step. Use it on one stream at a time.
std::unique_ptr<Gemm> make_blas_gemm();

}  // namespace krigtune::cuda

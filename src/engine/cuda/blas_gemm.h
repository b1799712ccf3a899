#pragma once
#include <memory>

#include "cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// cuBLASLt: fp32, bf16 and fp16 with sums in fp32. The algorithm of each shape is chosen once, by the library's
/// heuristic, and kept: so the bits of a product are the same in every step. One stream at a time.
std::unique_ptr<Gemm> make_blas_gemm();

}  // namespace krigtune::cuda

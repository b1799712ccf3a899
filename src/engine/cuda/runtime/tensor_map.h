#pragma once
#include <cuda.h>

#include <cstdint>

namespace krigtune::cuda {

/// A tensor of 16-bit numbers in device memory as the tensor memory accelerator sees it: planes of rows that follow one
/// another without a gap. A box is part of one plane: what lies beyond its last row is read as zeros.
struct BoxedTensor {
  const void* data = nullptr;  ///< 16-byte aligned
  std::int64_t columns = 0;    ///< a multiple of 8
  std::int64_t rows = 0;
  std::int64_t planes = 0;
  bool bf16 = true;  ///< else fp16
};

/// Elements of a row that a box has: 128 bytes, whose chunks of 16 bytes lie in shared memory as the 128-byte swizzle
/// has it: chunk c of row r at place c ^ (r % 8).
inline constexpr int kBoxElems = 64;

/// How load_box (kernels/hopper_ptx.h) finds boxes of box_rows x kBoxElems. Computed on the host by the driver, which
/// is asked for its function (CUDA Driver API, cuTensorMapEncodeTiled); nothing on the GPU changes. Throws DeviceError
/// where the driver has no such function or refuses the tensor.
CUtensorMap box_map(const BoxedTensor& tensor, int box_rows);

}  // namespace krigtune::cuda

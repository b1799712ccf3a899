#pragma once
#include <cuda.h>

#include <cstdint>

namespace krigtune::cuda {

/// A tensor of 16-bit numbers in device memory as the tensor memory accelerator sees it: planes of rows that follow one
/// another without a gap. A box is part of one plane; rows of a box beyond the plane's last row are read as zeros.
struct BoxedTensor {
  const void* data = nullptr;  ///< 16-byte aligned
  std::int64_t columns = 0;    ///< a multiple of 8
  std::int64_t rows = 0;
  std::int64_t planes = 0;
  bool bf16 = true;  ///< otherwise fp16
};

/// Elements in a row of a box: 128 bytes. Their chunks of 16 bytes are stored in shared memory with the 128-byte
/// swizzle: chunk c of row r is at place c ^ (r % 8).
inline constexpr int kBoxElems = 64;

/// Returns the map from which load_box (kernels/hopper_ptx.h) finds boxes of box_rows x kBoxElems. The driver computes
/// it on the host (CUDA Driver API, cuTensorMapEncodeTiled); nothing changes on the GPU. Throws DeviceError if the
/// driver has no such function or refuses the tensor.
CUtensorMap box_map(const BoxedTensor& tensor, int box_rows);

}  // namespace krigtune::cuda

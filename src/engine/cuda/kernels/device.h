#pragma once
// How kernels are written here: a body is a lambda of one element, or of one row with a Block whose threads share the
// row. Inside a body all code is uniform; threads part only within for_each, sum and largest, and are together again
// after them. So the same source is also plain C++, a block being one thread: the kernels are tested where there is no
// GPU (device_on_cpu.h). Only sources of kernels include this.
#include "cuda/kernels/queue.h"

namespace krigtune::cuda {

inline constexpr int kBlockThreads = 256;
/// Floats of shared memory that each block of launch_rows has at Block::shared.
inline constexpr int kSharedFloats = 2048;

}  // namespace krigtune::cuda

#ifdef __CUDACC__
#include "cuda/kernels/device_on_gpu.h"
#else
#include "cuda/kernels/device_on_cpu.h"
#endif

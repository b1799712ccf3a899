#pragma once
#include <cstdint>

struct CUstream_st;

namespace krigtune::cuda {

/// A CUDA stream, spelled so that files which see no CUDA header may pass it on.
using Queue = CUstream_st*;

}  // namespace krigtune::cuda

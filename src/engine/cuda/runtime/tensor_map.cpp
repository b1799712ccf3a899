#include "engine/cuda/runtime/tensor_map.h"

#include <cuda_runtime_api.h>

#include <array>

#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// Returns the driver's function through the runtime, because the program is not linked with the driver's library.
Encode encoder() {
  constexpr unsigned kSinceCuda = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  KRIGTUNE_CHECK_CUDA(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSinceCuda, cudaEnableDefault, &found));
#else
  static_assert(CUDART_VERSION >= kSinceCuda);
  KRIGTUNE_CHECK_CUDA(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    fail(BenchExit::kInternal, "cudaGetDriverEntryPoint", "no cuTensorMapEncodeTiled in this driver", found, __FILE__,
         __LINE__);
  }
  return reinterpret_cast<Encode>(function);
}

}  // namespace

CUtensorMap box_map(const BoxedTensor& tensor, int box_rows) {
  constexpr std::size_t kRank = 3;
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(tensor.columns) * sizeof(std::uint16_t);
  const std::array<cuuint64_t, kRank> sizes = {static_cast<cuuint64_t>(tensor.columns),
                                               static_cast<cuuint64_t>(tensor.rows),
                                               static_cast<cuuint64_t>(tensor.planes)};
  const std::array<cuuint64_t, kRank - 1> strides = {row_bytes, row_bytes * static_cast<cuuint64_t>(tensor.rows)};
  const std::array<cuuint32_t, kRank> box = {kBoxElems, static_cast<cuuint32_t>(box_rows), 1};
  const std::array<cuuint32_t, kRank> steps = {1, 1, 1};
  const CUtensorMapDataType elements = tensor.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap map{};
  const CUresult code = encoder()(&map, elements, kRank, const_cast<void*>(tensor.data), sizes.data(), strides.data(),
                                  box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code != CUDA_SUCCESS) {
    fail(BenchExit::kInternal, "cuTensorMapEncodeTiled", "the driver refuses the tensor", code, __FILE__, __LINE__);
  }
  return map;
}

}  // namespace krigtune::cuda

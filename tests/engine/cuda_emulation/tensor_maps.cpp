#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType /*type*/, cuuint32_t rank, void* data,
                                const cuuint64_t* sizes, const cuuint64_t* strides_bytes, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave /*interleave*/,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion /*promotion*/,
                                CUtensorMapFloatOOBfill /*fill*/) {
  constexpr cuuint32_t kMostOfABox = 256;
  constexpr cuuint64_t kMostOfATensor = cuuint64_t{1} << 32U;
  constexpr cuuint64_t kMostStrideBytes = cuuint64_t{1} << 40U;
  constexpr cuuint64_t kChunkBytes = 16;
  constexpr cuuint32_t kRowElems = 64;  // 128 bytes, the width of the swizzle; load_box copies no others
  const auto is_whole = [](cuuint64_t bytes) { return bytes % kChunkBytes == 0; };
  if (rank != 3 || swizzle != CU_TENSOR_MAP_SWIZZLE_128B || box[0] != kRowElems || box[2] != 1 ||
      !is_whole(reinterpret_cast<std::uintptr_t>(data))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > kMostOfATensor || box[i] == 0 || box[i] > kMostOfABox || steps[i] != 1) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (i + 1 < rank && (!is_whole(strides_bytes[i]) || strides_bytes[i] >= kMostStrideBytes)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  map->planes = {static_cast<const std::byte*>(data), {}, {}, {box[0], box[1]}};
  std::copy(sizes, sizes + 3, map->planes.sizes);
  std::copy(strides_bytes, strides_bytes + 2, map->planes.strides_bytes);
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* found) {
  const bool there = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *function = there ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  *found = there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

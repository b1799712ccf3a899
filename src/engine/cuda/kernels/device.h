#pragma once
// How kernels are written here. Most are a body: a lambda or functor for one element, or for one row with a Block whose
// threads share the row. Others are __global__ functions. All are started by `launch`. What only PTX can express is in
// ptx.h. So the same sources are compiled for a GPU, and for a CPU against an emulation of CUDA's language and runtime
// (tests/engine/cuda_emulation). Only sources of kernels include this file.
#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/kernels/ptx.h"
#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kWarpThreads = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Puts a kernel on a stream. Its arguments are copied.
template <class... P, class... A>
void launch(Queue queue, dim3 blocks, unsigned threads, std::size_t shared_bytes, void (*kernel)(P...),
            A&&... arguments) {
  constexpr std::size_t kWithoutAsking = std::size_t{48} << 10U;
  if (shared_bytes > kWithoutAsking) {
    KRIGTUNE_CHECK_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  }
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue;
  KRIGTUNE_CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, P(std::forward<A>(arguments))...));
}

/// Numbers that one thread holds in registers.
template <int kWidth>
struct Pack {
  float at[kWidth];
};

/// Floats of shared memory that each block of launch_rows has at Block::shared.
inline constexpr int kSharedFloats = 2048;

/// The threads of a block, in whole warps, that share a row. All of them must make the same calls in the same order.
/// For a sum, each thread adds its elements in order, then each warp reduces by butterfly, then the warps' sums are
/// added in order: the bits are the same whenever the count is the same.
class Block {
 public:
  static constexpr int kMostWarps = 32;
  static constexpr int kMostCombined = 2;
  static constexpr int kWarpFloats = kMostWarps * kMostCombined;  ///< number of floats at of_warps

  __device__ Block(float* shared, float* of_warps) : shared_(shared), of_warps_(of_warps) {}

  __device__ float* shared() const { return shared_; }

  template <class Each>
  __device__ void for_each(std::int64_t count, Each each) const {
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) each(i);
    __syncthreads();
  }
  template <class Term>
  __device__ float sum(std::int64_t count, Term term) const {
    float mine = 0.0F;
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += term(i);
    return sum(Pack<1>{{mine}}).at[0];
  }
  template <class Term>
  __device__ float largest(std::int64_t count, Term term) const {
    float mine = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mine = fmaxf(mine, term(i));
    return combined(Pack<1>{{mine}}, [](auto& a, const auto& b) { a.at[0] = fmaxf(a.at[0], b.at[0]); }).at[0];
  }
  /// Returns the sum of each of the numbers over all threads.
  template <int kCount>
  __device__ Pack<kCount> sum(const Pack<kCount>& mine) const {
    return combined(mine, [](auto& a, const auto& b) {
      for (int k = 0; k < kCount; ++k) a.at[k] += b.at[k];
    });
  }
  /// Reduces all threads' numbers by combine(a, b), which combines both into a. There are barriers on both sides: what
  /// was written before is visible afterwards, and of_warps_ is free for the next call.
  template <int kCount, class Combine>
  __device__ Pack<kCount> combined(Pack<kCount> mine, Combine combine) const {
    static_assert(kCount <= kMostCombined);
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      Pack<kCount> other;
      for (int k = 0; k < kCount; ++k) other.at[k] = __shfl_xor_sync(kAllLanes, mine.at[k], distance);
      combine(mine, other);
    }
    auto* all = reinterpret_cast<Pack<kCount>*>(of_warps_);
    if (threadIdx.x % kWarpThreads == 0) all[threadIdx.x / kWarpThreads] = mine;
    __syncthreads();
    Pack<kCount> result = all[0];
    for (unsigned warp = 1; warp < blockDim.x / kWarpThreads; ++warp) combine(result, all[warp]);
    __syncthreads();
    return result;
  }

 private:
  float* shared_;
  float* of_warps_;
};

template <class Body>
__global__ void __launch_bounds__(kBlockThreads) run_elements(std::int64_t count, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < count; i += stride) {
    body(i);
  }
}

template <int kThreads, class Body>
__global__ void __launch_bounds__(kThreads) run_rows(std::int64_t rows, Body body) {
  auto* shared = dynamic_shared<float>();
  const Block block(shared, shared + kSharedFloats);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    body(block, row);
  }
}

inline unsigned blocks_for(std::int64_t wanted) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20U;
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

inline void clear_bytes(Queue queue, void* data, std::int64_t bytes) {
  KRIGTUNE_CHECK_CUDA(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), queue));
}

/// Copies from device or host memory to either.
inline void copy_bytes(Queue queue, const void* from, void* to, std::int64_t bytes) {
  KRIGTUNE_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, queue));
}

/// Runs body(i) for 0 <= i < count.
template <class Body>
void launch_elements(Queue queue, std::int64_t count, Body body) {
  if (count <= 0) return;
  launch(queue, blocks_for((count + kBlockThreads - 1) / kBlockThreads), kBlockThreads, 0, run_elements<Body>, count,
         body);
}

/// Runs body(block, row) for 0 <= row < rows.
template <int kThreads = kBlockThreads, class Body>
void launch_rows(Queue queue, std::int64_t rows, Body body) {
  if (rows <= 0) return;
  constexpr std::size_t kBytes = (kSharedFloats + Block::kWarpFloats) * sizeof(float);
  launch(queue, blocks_for(rows), kThreads, kBytes, run_rows<kThreads, Body>, rows, body);
}

}  // namespace krigtune::cuda

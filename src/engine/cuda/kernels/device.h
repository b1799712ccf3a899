#pragma once
// How kernels are written here. Most are a body: a lambda or functor of one element, or of one row with a Block whose
// threads share the row; others are __global__ functions. All are started by launch. What only PTX can say stands in
// ptx.h. So the same sources are compiled for a GPU, and for a CPU against an emulation of CUDA's language and runtime
// (tests/engine/cuda_emulation). Only sources of kernels include this.
#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/check.h"
#include "cuda/kernels/ptx.h"
#include "cuda/kernels/queue.h"

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

/// Floats of shared memory that each block of launch_rows has at Block::shared.
inline constexpr int kSharedFloats = 2048;

/// The threads that share a row. All of them call the same things in the same order. Sums: each thread adds its
/// elements in order, then warps by butterfly, then the warps in order: the same bits whenever the count is the same.
class Block {
 public:
  static constexpr int kWarps = kBlockThreads / kWarpThreads;

  __device__ Block(float* shared, float* of_warps) : shared_(shared), of_warps_(of_warps) {}

  __device__ float* shared() const { return shared_; }

  template <class Each>
  __device__ void for_each(std::int64_t count, Each each) const {
    for (std::int64_t i = threadIdx.x; i < count; i += kBlockThreads) each(i);
    __syncthreads();
  }
  template <class Term>
  __device__ float sum(std::int64_t count, Term term) const {
    float mine = 0.0F;
    for (std::int64_t i = threadIdx.x; i < count; i += kBlockThreads) mine += term(i);
    return combined(mine, 0.0F, [](float a, float b) { return a + b; });
  }
  template <class Term>
  __device__ float largest(std::int64_t count, Term term) const {
    float mine = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < count; i += kBlockThreads) mine = fmaxf(mine, term(i));
    return combined(mine, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  }

 private:
  // Barriers on both sides: what was written before is seen after, and of_warps_ is free for the next call.
  template <class Combine>
  __device__ float combined(float mine, float neutral, Combine combine) const {
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      mine = combine(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    if (threadIdx.x % kWarpThreads == 0) of_warps_[threadIdx.x / kWarpThreads] = mine;
    __syncthreads();
    float all = neutral;
    for (int warp = 0; warp < kWarps; ++warp) all = combine(all, of_warps_[warp]);
    __syncthreads();
    return all;
  }

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

template <class Body>
__global__ void __launch_bounds__(kBlockThreads) run_rows(std::int64_t rows, Body body) {
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

/// From device or host memory to either.
inline void copy_bytes(Queue queue, const void* from, void* to, std::int64_t bytes) {
  KRIGTUNE_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, queue));
}

/// body(i) for 0 <= i < count.
template <class Body>
void launch_elements(Queue queue, std::int64_t count, Body body) {
  if (count <= 0) return;
  launch(queue, blocks_for((count + kBlockThreads - 1) / kBlockThreads), kBlockThreads, 0, run_elements<Body>, count,
         body);
}

/// body(block, row) for 0 <= row < rows.
template <class Body>
void launch_rows(Queue queue, std::int64_t rows, Body body) {
  if (rows <= 0) return;
  constexpr std::size_t kBytes = (kSharedFloats + Block::kWarps) * sizeof(float);
  launch(queue, blocks_for(rows), kBlockThreads, kBytes, run_rows<Body>, rows, body);
}

}  // namespace krigtune::cuda

#pragma once
// Bodies as CUDA kernels. Sums: each thread adds its elements in order, then warps by butterfly, then the warps in
// order: the same bits whenever the count is the same.
#include <cuda_runtime.h>

#include "cuda/check.h"

#define KRIGTUNE_DEVICE __device__
#define KRIGTUNE_HOST_AND_DEVICE __host__ __device__
#define KRIGTUNE_BODY [=] __device__

namespace krigtune::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarps = kBlockThreads / kWarpThreads;

/// The threads that share a row. All of them call the same things in the same order.
class Block {
 public:
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
      mine = combine(mine, __shfl_xor_sync(0xFFFFFFFFU, mine, distance));
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
  __shared__ float shared[kSharedFloats];
  __shared__ float of_warps[kWarps];
  const Block block(shared, of_warps);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    body(block, row);
  }
}

inline constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20U;

inline unsigned blocks_for(std::int64_t wanted) {
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
  run_elements<<<blocks_for((count + kBlockThreads - 1) / kBlockThreads), kBlockThreads, 0, queue>>>(count, body);
  KRIGTUNE_CHECK_CUDA(cudaGetLastError());
}

/// body(block, row) for 0 <= row < rows.
template <class Body>
void launch_rows(Queue queue, std::int64_t rows, Body body) {
  if (rows <= 0) return;
  run_rows<<<blocks_for(rows), kBlockThreads, 0, queue>>>(rows, body);
  KRIGTUNE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace krigtune::cuda

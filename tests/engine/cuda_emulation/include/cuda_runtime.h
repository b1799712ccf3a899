#pragma once
// The part of CUDA's language that the kernels use, in C++ for a CPU (fibers.h explains how it runs). Sources that are
// compiled for the emulation find this header in place of NVIDIA's.
#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../fibers.h"

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static const
#define __restrict__ __restrict

namespace krigtune::emulation {

/// One of CUDA's built-in variables, as this thread reads it.
template <class Triple, Triple ThreadPlace::*kOf>
struct BuiltIn {
  template <unsigned Triple::*kAxis>
  struct Axis {
    operator unsigned() const { return (this_thread().*kOf).*kAxis; }  // NOLINT: used as the number that it is
  };
  Axis<&Triple::x> x;
  Axis<&Triple::y> y;
  Axis<&Triple::z> z;
};

}  // namespace krigtune::emulation

inline constexpr krigtune::emulation::BuiltIn<uint3, &krigtune::emulation::ThreadPlace::thread> threadIdx{};
inline constexpr krigtune::emulation::BuiltIn<uint3, &krigtune::emulation::ThreadPlace::block> blockIdx{};
inline constexpr krigtune::emulation::BuiltIn<dim3, &krigtune::emulation::ThreadPlace::block_size> blockDim{};
inline constexpr krigtune::emulation::BuiltIn<dim3, &krigtune::emulation::ThreadPlace::grid_size> gridDim{};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline void __syncthreads(krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::wait_for_block(site);
}

namespace krigtune::emulation {

// The engine's kernels use whole warps only.
inline void require_whole_warp(unsigned mask, Site site) {
  if (mask == 0xFFFFFFFFU) return;
  throw KernelError("only whole warps are emulated, at " + std::string(site.file) + ":" + std::to_string(site.line));
}

}  // namespace krigtune::emulation

inline void __syncwarp(unsigned mask = 0xFFFFFFFFU,
                       krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::require_whole_warp(mask, site);
  krigtune::emulation::in_warp(0, site);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::require_whole_warp(mask, site);
  const unsigned mine = krigtune::emulation::this_lane();
  const auto group = static_cast<unsigned>(width);
  return krigtune::emulation::in_warp(value, site)[mine / group * group + static_cast<unsigned>(lane) % group];
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::require_whole_warp(mask, site);
  const unsigned mine = krigtune::emulation::this_lane();
  const unsigned other = mine ^ static_cast<unsigned>(lanes);
  const auto group = static_cast<unsigned>(width);
  return krigtune::emulation::in_warp(value, site)[other / group == mine / group ? other : mine];
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::require_whole_warp(mask, site);
  const unsigned mine = krigtune::emulation::this_lane();
  const auto group = static_cast<unsigned>(width);
  return krigtune::emulation::in_warp(value, site)[mine % group + lanes < group ? mine + lanes : mine];
}
inline unsigned __ballot_sync(unsigned mask, bool vote,
                              krigtune::emulation::Site site = krigtune::emulation::Site::current()) {
  krigtune::emulation::require_whole_warp(mask, site);
  const auto votes = krigtune::emulation::in_warp(vote, site);
  unsigned all = 0;
  for (unsigned lane = 0; lane < krigtune::emulation::kWarpLanes; ++lane) all |= (votes[lane] ? 1U : 0U) << lane;
  return all;
}

// This is atomic because threads run one after another.
template <class T>
T atomicCAS(T* at, T expected, T wanted) {
  const T there = *at;
  if (there == expected) *at = wanted;
  return there;
}

inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }

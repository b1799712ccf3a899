#pragma once
// Rows of h elements that a block normalises. Rows of at most 4 packs per thread (h = 8192 of 16 bits) are held in
// registers, so that memory is read once; longer rows are read again each time they are needed.
#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {

inline constexpr float kNormEpsilon = 1e-5F;

template <class At_, int kPacks_>
struct HeldRow {
  using At = At_;
  static constexpr int kWidth = At::width;
  static constexpr int kPacks = kPacks_;
  Pack<kWidth> packs[kPacks];

  /// Calls f(place, k) for this thread's packs of a row.
  template <class F>
  __device__ static void each(std::int64_t h, F f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::int64_t first = static_cast<std::int64_t>(k * blockDim.x + threadIdx.x) * kWidth;
      if (first < h) f(At{first}, k);
    }
  }
  /// Loads the row. read(place) returns a pack of `source`, and may change it.
  template <class Read>
  __device__ void load(std::int64_t h, const Elements& /*source*/, Read read) {
    each(h, [&](auto place, int k) { packs[k] = read(place); });
  }
  /// Calls f(place, pack) for this thread's packs.
  template <class F>
  __device__ void for_each(std::int64_t h, F f) const {
    each(h, [&](auto place, int k) { f(place, packs[k]); });
  }
};

template <class At_>
struct ReadRow {
  using At = At_;
  Elements source;

  template <class Read>
  __device__ void load(std::int64_t h, const Elements& from, Read read) {
    source = from;
    each(h, [&](auto place) { read(place); });
  }
  template <class F>
  __device__ void for_each(std::int64_t h, F f) const {
    each(h, [&](auto place) { f(place, source(place)); });
  }

 private:
  template <class F>
  __device__ static void each(std::int64_t h, F f) {
    for (std::int64_t i = threadIdx.x * At::width; i < h; i += blockDim.x * At::width) f(At{i});
  }
};

/// Returns how many packs each thread of the largest block would have.
inline std::int64_t packs_each(std::int64_t h, int width) {
  return (h + std::int64_t{kBlockThreads} * width - 1) / (std::int64_t{kBlockThreads} * width);
}
inline bool is_held(std::int64_t h, int width) { return width > 1 && packs_each(h, width) <= 4; }

/// Returns the smallest number of threads, in whole warps, of which none has more packs than that.
inline unsigned row_threads(std::int64_t h, int width) {
  const std::int64_t packs = (h + width - 1) / width;
  const std::int64_t each = packs_each(h, width);
  return static_cast<unsigned>(((packs + each - 1) / each + kWarpThreads - 1) / kWarpThreads * kWarpThreads);
}

/// Calls f with an empty row that is held in registers. Requires is_held.
template <class F>
void with_held_row(std::int64_t h, const Walk& walk, F f) {
  const std::int64_t packs = packs_each(h, walk.width);
  with_place(walk, [&](auto place) {
    using At = decltype(place);
    if constexpr (At::width > 1) {
      if (packs == 1) return f(HeldRow<At, 1>{});
      if (packs == 2) return f(HeldRow<At, 2>{});
      f(HeldRow<At, 4>{});
    }
  });
}
template <class F>
void with_read_row(const Walk& walk, F f) {
  with_place(walk, [&](auto place) { f(ReadRow<decltype(place)>{}); });
}

template <class Row, class Body>
__global__ void __launch_bounds__(kBlockThreads) run_norm_rows(std::int64_t rows, Body body) {
  __shared__ float of_warps[Block::kWarpFloats];
  const Block block(nullptr, of_warps);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) body(Row{}, block, row);
}

/// Runs body(an empty row, block, the row's number), with one block for each row.
template <class Row, class Body>
void launch_norm_rows(Queue queue, std::int64_t rows, unsigned threads, Body body) {
  if (rows > 0) launch(queue, blocks_for(rows), threads, 0, run_norm_rows<Row, Body>, rows, body);
}

}  // namespace krigtune::cuda

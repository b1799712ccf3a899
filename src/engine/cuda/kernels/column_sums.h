#pragma once
// Sums over the rows of a matrix, deterministic and without atomics. The rows are cut into slabs of a size that depends
// on the shape alone. A block sums 32 packs of columns of one slab into scratch memory, each warp every eighth row;
// then blocks of 32 warps sum the slabs' rows. If one slab is enough, the first kernel writes the result.
#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {

/// Sums the columns of each slab. term(row, place) returns a pack of addends; put(slab, column, sum) takes a sum.
template <class At, int kWarps, class Term, class Put>
__global__ void __launch_bounds__(kWarps* kWarpThreads)
    sum_columns(std::int64_t rows, std::int64_t columns, std::int64_t slab_rows, Term term, Put put) {
  constexpr int kWidth = At::width;
  constexpr int kTile = kWarpThreads * kWidth;
  static_assert(kTile <= kWarps * kWarpThreads);
  __shared__ float of_warps[kWarps * kTile];
  const auto warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const auto lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t begin = blockIdx.y * slab_rows;
  const std::int64_t end = begin + slab_rows < rows ? begin + slab_rows : rows;
  const At place{tile + lane * kWidth};
  Pack<kWidth> sum{};
  if (place.first < columns) {
#pragma unroll 4
    for (std::int64_t row = begin + warp; row < end; row += kWarps) sum = plus(sum, term(row, place));
  }
  for (int k = 0; k < kWidth; ++k) of_warps[warp * kTile + lane * kWidth + k] = sum.at[k];
  __syncthreads();
  const std::int64_t column = tile + threadIdx.x;
  if (threadIdx.x >= kTile || column >= columns) return;
  float all = 0.0F;
  for (int w = 0; w < kWarps; ++w) all += of_warps[w * kTile + static_cast<int>(threadIdx.x)];
  put(static_cast<std::int64_t>(blockIdx.y), column, all);
}

/// Sums the columns of an fp32 matrix in scratch memory.
struct ScratchTerm {
  const float* matrix;
  std::int64_t columns;

  __device__ Pack<1> operator()(std::int64_t row, Place<1> place) const {
    return {{matrix[row * columns + place.first]}};
  }
};
template <class Put>
void sum_scratch_columns(const DeviceCall& call, std::int64_t rows, std::int64_t columns, Put put) {
  constexpr int kWarps = 32;
  const auto tiles = static_cast<unsigned>((columns + kWarpThreads - 1) / kWarpThreads);
  launch(call.queue, dim3(tiles), kWarps * kWarpThreads, 0, sum_columns<Place<1>, kWarps, ScratchTerm, Put>, rows,
         columns, rows, ScratchTerm{call.scratch, columns}, put);
}

/// Returns the number of rows of a slab: at least 64, and as many as give eight blocks for each of an H100's 132
/// multiprocessors.
inline std::int64_t slab_rows_of(std::int64_t rows, std::int64_t columns, int width) {
  constexpr std::int64_t kBlocks = std::int64_t{132} * 8;
  constexpr std::int64_t kLeastRows = 64;
  const std::int64_t tiles = (columns + kWarpThreads * width - 1) / (kWarpThreads * width);
  const std::int64_t slabs = tiles < kBlocks ? kBlocks / tiles : 1;
  const std::int64_t even = (rows + slabs - 1) / slabs;
  return even < kLeastRows ? kLeastRows : even;
}

/// Returns how many floats of scratch memory suffice for every width.
inline std::int64_t column_sums_scratch(std::int64_t rows, std::int64_t columns) {
  const std::int64_t slab_rows = slab_rows_of(rows, columns, 8);
  return (rows + slab_rows - 1) / slab_rows * columns;
}

struct PutPartials {
  float* partials;
  std::int64_t columns;

  __device__ void operator()(std::int64_t slab, std::int64_t column, float sum) const {
    partials[slab * columns + column] = sum;
  }
};
struct PutSums {
  Elements sums;

  __device__ void operator()(std::int64_t /*slab*/, std::int64_t column, float sum) const { sums.put(column, sum); }
};

/// Computes sums[j] = sum over the rows of term(row, place)[j], added or overwritten as the access of `sums` says.
/// `walk` is that of the operands that `term` reads.
template <class Term>
void sum_rows(const DeviceCall& call, std::int64_t rows, std::int64_t columns, const Walk& walk, Term term,
              const Elements& sums) {
  constexpr int kWarps = 8;
  if (rows <= 0 || columns <= 0) return;
  const std::int64_t slab_rows = slab_rows_of(rows, columns, walk.width);
  const std::int64_t slabs = (rows + slab_rows - 1) / slab_rows;
  with_place(walk, [&](auto place) {
    using At = decltype(place);
    constexpr std::int64_t kTile = kWarpThreads * At::width;
    const dim3 blocks(static_cast<unsigned>((columns + kTile - 1) / kTile), static_cast<unsigned>(slabs));
    const auto sum_to = [&](auto put) {
      launch(call.queue, blocks, kWarps * kWarpThreads, 0, sum_columns<At, kWarps, Term, decltype(put)>, rows, columns,
             slab_rows, term, put);
    };
    if (slabs == 1) return sum_to(PutSums{sums});
    sum_to(PutPartials{call.scratch, columns});
    sum_scratch_columns(call, slabs, columns, PutSums{sums});
  });
}

}  // namespace krigtune::cuda

// The gradient of a table row is the sum of dx over the tokens that name it. Tokens may be all different or a few that
// come again and again, so the tokens are sorted, and equal ones are summed by warps that share the list:
//
//   place of token p = #{q: token[q] < token[p]} + #{q < p: token[q] = token[p]}
//
// Counting is integers only: rows^2 comparisons (2.7e8 for 16384 rows, some 30 us of an H100's integer units), no
// atomics, no memory of the size of the vocabulary. Then a block for each first of equal tokens and 32 packs of columns
// adds every fourth row of the list in each of its warps, and the warps in order: the same bits always. A table split
// over tensor ranks holds the tokens [rank * outer, (rank + 1) * outer).
#include <limits>

#include "cuda/kernels/packs.h"

namespace krigtune::cuda {
namespace {

constexpr std::int32_t kBehindAll = std::numeric_limits<std::int32_t>::max();
constexpr int kTileTokens = 2048;
constexpr int kSortWarps = 8;
constexpr int kSumWarps = 4;
constexpr int kRowsAtOnce = 4;  // loads of one warp that are under way together

/// Tokens in ascending order, equal ones in that of the sequence, and where they were.
struct Sorted {
  std::int32_t* tokens;
  std::int32_t* places;
};

/// How many of the tile's tokens, every kSortWarps-th from `warp` on, come before token `mine` at place p.
__device__ inline int count_before(const std::int32_t* tile, int warp, std::int64_t begin, std::int32_t mine,
                                   std::int64_t p) {
  int before = 0;
  constexpr int kShare = kTileTokens / kSortWarps;
  const std::int32_t* share = tile + warp * kShare;
  const std::int64_t first = begin + warp * kShare;
  if (first <= p && p < first + kShare) {
    for (int q = 0; q < kShare; ++q) before += share[q] < mine + (first + q < p ? 1 : 0) ? 1 : 0;
    return before;
  }
  const std::int32_t bound = first < p ? mine + 1 : mine;
#pragma unroll 16
  for (int q = 0; q < kShare; ++q) before += share[q] < bound ? 1 : 0;
  return before;
}

/// A lane has a token, the block's warps share those that it is compared with.
__global__ void __launch_bounds__(kSortWarps* kWarpThreads)
    sort_tokens(const std::int32_t* tokens, std::int64_t rows, Sorted sorted) {
  alignas(16) __shared__ std::int32_t tile[kTileTokens];
  __shared__ int counts[kSortWarps][kWarpThreads];
  const auto warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const auto lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * kWarpThreads + lane;
  const std::int32_t mine = p < rows ? tokens[p] : 0;
  int before = 0;
  for (std::int64_t begin = 0; begin < rows; begin += kTileTokens) {
    for (std::int64_t i = threadIdx.x; i < kTileTokens; i += kSortWarps * kWarpThreads) {
      tile[i] = begin + i < rows ? tokens[begin + i] : kBehindAll;
    }
    __syncthreads();
    before += count_before(tile, warp, begin, mine, p);
    __syncthreads();
  }
  counts[warp][lane] = before;
  __syncthreads();
  if (warp > 0 || p >= rows) return;
  for (int other = 1; other < kSortWarps; ++other) before += counts[other][lane];
  sorted.tokens[before] = mine;
  sorted.places[before] = static_cast<std::int32_t>(p);
}

struct RowSums {
  Sorted sorted;
  Elements dx, dtable;
  std::int64_t rows, h;
  std::int64_t first, held;  ///< tokens of this rank
};

/// This warp's share of the sum over the tokens that equal the one at `begin`.
template <int kWidth, DType kType>
__device__ inline Pack<kWidth> sum_equal(const RowSums& s, std::int64_t begin, int warp, Place<kWidth, kType> place) {
  const std::int32_t token = s.sorted.tokens[begin];
  Pack<kWidth> sum{};
  for (std::int64_t i = begin + warp; i < s.rows && s.sorted.tokens[i] == token; i += kRowsAtOnce * kSumWarps) {
    Pack<kWidth> rows[kRowsAtOnce];
    bool equal[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const std::int64_t at = i + r * kSumWarps;
      equal[r] = at < s.rows && s.sorted.tokens[at] == token;
      rows[r] = s.dx(place + s.sorted.places[equal[r] ? at : i] * s.h);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) sum = equal[r] ? plus(sum, rows[r]) : sum;
  }
  return sum;
}

template <class At>
__global__ void __launch_bounds__(kSumWarps* kWarpThreads) sum_rows_of_tokens(RowSums s) {
  constexpr int kWidth = At::width;
  __shared__ Pack<kWidth> of_warps[kSumWarps][kWarpThreads];
  const std::int64_t begin = blockIdx.x;
  const std::int32_t token = s.sorted.tokens[begin];
  const std::int64_t row = token - s.first;
  if (row < 0 || row >= s.held || (begin > 0 && s.sorted.tokens[begin - 1] == token)) return;
  const auto warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const auto lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const At place{(static_cast<std::int64_t>(blockIdx.y) * kWarpThreads + lane) * kWidth};
  const bool inside = place.first < s.h;
  of_warps[warp][lane] = inside ? sum_equal(s, begin, warp, place) : Pack<kWidth>{};
  __syncthreads();
  if (warp > 0 || !inside) return;
  Pack<kWidth> sum = of_warps[0][lane];
  for (int other = 1; other < kSumWarps; ++other) sum = plus(sum, of_warps[other][lane]);
  s.dtable.put(place + row * s.h, sum);
}

}  // namespace

std::int64_t embedding_backward_scratch(const Operation& operation) { return 2 * operation.shape.rows; }

void embedding_backward(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const std::int64_t held = call.shape().outer;
  const OperandView& whole = call.operands[2];
  if (!call.adds(2)) clear_bytes(call.queue, whole.data, whole.elems * size_bytes(whole.type));
  if (rows <= 0) return;
  auto* scratch = reinterpret_cast<std::int32_t*>(call.scratch);
  const Sorted sorted{scratch, scratch + rows};
  const auto sort_blocks = static_cast<unsigned>((rows + kWarpThreads - 1) / kWarpThreads);
  launch(call.queue, dim3(sort_blocks), kSortWarps * kWarpThreads, 0, sort_tokens, call.data<const std::int32_t>(0),
         rows, sorted);
  const RowSums sums{sorted, {call, 1}, {call, 2}, rows, h, call.context.tensor_rank * held, held};
  with_place(walk_of({sums.dx, sums.dtable}, h), [&](auto place) {
    using At = decltype(place);
    constexpr std::int64_t kTile = kWarpThreads * At::width;
    const dim3 blocks(static_cast<unsigned>(rows), static_cast<unsigned>((h + kTile - 1) / kTile));
    launch(call.queue, blocks, kSumWarps * kWarpThreads, 0, sum_rows_of_tokens<At>, sums);
  });
}

}  // namespace krigtune::cuda

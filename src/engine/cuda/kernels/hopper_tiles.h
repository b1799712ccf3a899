#pragma once
// What the attention kernels for Hopper share: how a block is divided into warp groups, tiles as load_box leaves them
// in shared memory, and the buffers that a producer fills and consumers empty.
#include "engine/cuda/kernels/flash_attention_tiles.h"
#include "engine/cuda/kernels/hopper_operands.h"
#include "engine/cuda/runtime/tensor_map.h"

// This namespace has a name because a kernel that is compiled for another GPU uses nothing of it, which nvcc would
// report.
namespace krigtune::cuda::hopper {

inline constexpr int kGroupThreads = 128;
inline constexpr int kGroupWarps = kGroupThreads / kWarpThreads;
inline constexpr int kConsumers = 2;
inline constexpr int kThreads = (1 + kConsumers) * kGroupThreads;
inline constexpr int kGroupRows = 64;                  ///< rows of a consumer group
inline constexpr int kRows = kConsumers * kGroupRows;  ///< rows of a block
inline constexpr int kStages = 2;                      ///< buffers for the tiles of the loop
inline constexpr int kSliceElems = 16;                 ///< of the inner dimension of a product
inline constexpr int kBoxRows = 64;
inline constexpr int kRowBytes = kBoxElems * 2;
inline constexpr int kBoxBytes = kBoxRows * kRowBytes;

// A multiprocessor has 512 registers for each thread of a warp group. By default, all threads get the same number.
inline constexpr int kProducerRegisters = 24;
inline constexpr int kConsumerRegisters = 240;
static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <= 65536 / kGroupThreads);

/// kHeight rows of kWidth elements of a head. In shared memory they are stored in parts of 64 columns, each with all
/// rows of 128 bytes.
template <int kWidth, int kHeight>
struct HeadTile {
  static constexpr int kParts = kWidth / kBoxElems;
  static constexpr int kPartBytes = kHeight * kRowBytes;
  static constexpr int kBytes = kParts * kPartBytes;
  static constexpr int kSlicesOfBox = kBoxElems / kSliceElems;
  static_assert(kHeight % kBoxRows == 0);

  /// Begins to load the tile from (column, row, plane) on.
  __device__ static void load(std::byte* tile, const CUtensorMap& map, PhaseBarrier* full, int column, int row,
                              int plane) {
    for (int part = 0; part < kParts; ++part) {
      for (int r = 0; r < kHeight; r += kBoxRows) {
        load_box(tile + part * kPartBytes + r * kRowBytes, map, full, column + part * kBoxElems, row + r, plane);
      }
    }
  }
  /// Returns a side of a product: 16 elements of all rows.
  __device__ static std::uint64_t elements(const std::byte* tile, int slice) {
    const int within = slice % kSlicesOfBox * kSliceElems * 2;
    return shared_rows(tile + slice / kSlicesOfBox * kPartBytes + within, 8 * kRowBytes);
  }
  /// Returns a side of a product: all elements of 16 rows.
  __device__ static std::uint64_t rows(const std::byte* tile, int slice) {
    return shared_columns(tile + slice * kSliceElems * kRowBytes, kPartBytes, 8 * kRowBytes);
  }
};

/// Begins and commits sums = A B^T: 64 rows of a tile with 8 kN rows of another one.
template <bool kBf16, int kWidth, int kN>
__device__ void begin_scores(float (&sums)[kN][4], const std::byte* a, const std::byte* b) {
#pragma unroll
  for (int slice = 0; slice < kWidth / kSliceElems; ++slice) {
    multiply_by_rows<kBf16>(sums, HeadTile<kWidth, kGroupRows>::elements(a, slice),
                            HeadTile<kWidth, 8 * kN>::elements(b, slice), slice > 0);
  }
  commit_products();
}

/// Begins and commits sums += W B: weights in registers with 16 kSlices rows of a tile.
template <bool kBf16, int kWidth, int kSlices>
__device__ void begin_weighted_rows(float (&sums)[kWidth / 8][4], const std::uint32_t (&w)[kSlices][4],
                                    const std::byte* b) {
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    multiply_weights_by_rows<kBf16>(sums, w[slice], HeadTile<kWidth, kSlices * kSliceElems>::rows(b, slice));
  }
  commit_products();
}

/// Packs a product's sums as the left side of the next one.
template <bool kBf16, int kSlices>
__device__ void pack_weights(std::uint32_t (&w)[kSlices][4], const float (&s)[2 * kSlices][4]) {
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&part)[4] = s[2 * slice + i / 2];
      w[slice][i] = pack<kBf16>(part[i % 2 * 2], part[i % 2 * 2 + 1]);
    }
  }
}

/// These return the buffer of tile number i of a sequence, and the parity of its phase: tiles i, i + 2, ... are phases
/// 0, 1, ... of a buffer's barriers.
__device__ inline int stage_of(int i) { return i % kStages; }
__device__ inline unsigned parity_of(int i) { return static_cast<unsigned>(i / kStages % 2); }

/// Reports that this warp is done with a buffer. Its barrier expects all warps of the consumers.
__device__ inline void release(PhaseBarrier* empty) {
  if (lane_of_warp() == 0) arrive(empty);
}
inline constexpr unsigned kReleases = kConsumers * kGroupWarps;

/// Returns the consumer group of this thread; -1: it belongs to the producer.
__device__ inline int group_of_thread() { return static_cast<int>(threadIdx.x) / kGroupThreads - 1; }
/// Returns the first row of this warp within its group.
__device__ inline int row_of_warp() { return warp_of_block() % kGroupWarps * kSliceElems; }

/// Writes a warp's sums to the rows from `first` on that are before `there`. They pass through the warp's own rows of
/// `scratch`, a tile of its group. All of the group's warps must have finished reading it.
template <bool kBf16, int kWidth>
__device__ void store_sums(const float (&sums)[1][kWidth / 8][4], std::byte* scratch, const HeadRows& to, int first,
                           int there, bool adds) {
  const auto chunk = (scratch - dynamic_shared<std::byte>()) / static_cast<std::ptrdiff_t>(sizeof(uint4));
  const Tile<kWidth> rows{static_cast<int>(chunk)};
  store_rows<kBf16>(sums, rows.from(row_of_warp()), to, first, there, adds);
}

}  // namespace krigtune::cuda::hopper

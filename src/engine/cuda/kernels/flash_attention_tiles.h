#pragma once
// What the kernels of flash attention share: rows of 16-bit numbers in shared memory, and the products of a warp's rows
// with them on tensor cores (mma.m16n8k16: PTX ISA, "Matrix fragments for mma.m16n8k16").
//
// Memory is divided into chunks of 16 bytes. Chunk c of row r of a tile is at place c ^ (r % 8) of that row. Then
// ldmatrix, which reads the same chunk of 8 rows, and copies, which write 8 chunks of a row, touch every bank once.
// Sums are held as mma returns them, in kM x kN parts of 16 x 8. A lane has these elements of each part:
//
//   (g, c), (g, c + 1), (g + 8, c), (g + 8, c + 1),  g = lane / 4,  c = 2 (lane % 4)
#include "engine/cuda/kernels/attention_views.h"

namespace krigtune::cuda {

inline constexpr int kChunkElems = 8;
inline constexpr float kLog2E = 1.4426950408889634F;

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % kWarpThreads); }
__device__ inline int warp_of_block() { return static_cast<int>(threadIdx.x / kWarpThreads); }

/// One head's part of consecutive rows in global memory.
struct HeadRows {
  uint4* first;
  int stride;  ///< chunks from row to row

  __device__ uint4* row(int i) const { return first + i * stride; }
  __device__ HeadRows right(int chunks) const { return {first + chunks, stride}; }
};

/// Where the heads are in rows of qkv (dqkv) and of out (dout). Row i is token i of sequence b.
struct HeadPlaces {
  int seq, heads, kv_heads, d_chunks;

  explicit HeadPlaces(const AttentionSizes& z)
      : seq(static_cast<int>(z.seq)),
        heads(static_cast<int>(z.heads)),
        kv_heads(static_cast<int>(z.kv_heads)),
        d_chunks(static_cast<int>(z.d) / kChunkElems) {}

  __device__ int group() const { return heads / kv_heads; }  ///< query heads that share keys
  __device__ HeadRows query(uint4* qkv, int b, int head) const { return part(qkv, b, head, heads + 2 * kv_heads); }
  __device__ HeadRows key(uint4* qkv, int b, int kv_head) const { return query(qkv, b, heads + kv_head); }
  __device__ HeadRows value(const HeadRows& key) const { return key.right(kv_heads * d_chunks); }
  __device__ HeadRows output(uint4* out, int b, int head) const { return part(out, b, head, heads); }

 private:
  __device__ HeadRows part(uint4* rows, int b, int place, int places) const {
    return {rows + (static_cast<std::int64_t>(b) * seq * places + place) * d_chunks, places * d_chunks};
  }
};

/// Determines the head and the tile that a block works on. Blocks start in the order of their numbers. They take as
/// many heads together as the L2 cache has room for, and of these the tiles with the most work first, so that the last
/// blocks to end are short.
class BlockOrder {
 public:
  /// `heads` counts the heads of all sequences. `read_bytes` is what all blocks of one head read.
  BlockOrder(std::int64_t heads, std::int64_t tiles, std::int64_t read_bytes)
      : heads_(static_cast<int>(heads)), tiles_(static_cast<int>(tiles)) {
    constexpr std::int64_t kCacheBytes = std::int64_t{16} << 20U;  // of 40 MB (A100) or 50 MB (H100), in two halves
    const std::int64_t together = kCacheBytes / read_bytes;
    together_ = static_cast<int>(together < 1 ? 1 : together < heads ? together : heads);
  }

  unsigned blocks() const { return static_cast<unsigned>(heads_) * static_cast<unsigned>(tiles_); }

  struct Place {
    int head;
    int tile;  ///< 0: the one with the most work
  };
  __device__ Place of_block() const {
    const int block = static_cast<int>(blockIdx.x);
    const int first = block / (together_ * tiles_) * together_;
    const int here = heads_ - first < together_ ? heads_ - first : together_;
    const int within = block - first * tiles_;
    return {first + within % here, within / here};
  }

 private:
  int heads_, tiles_, together_;
};

/// A tile in the block's dynamic shared memory. kWidth is the number of elements of a row, 64 or 128.
template <int kWidth>
struct Tile {
  static constexpr int kChunks = kWidth / kChunkElems;
  int first = 0;  ///< first chunk in the block's memory; a multiple of 8 rows

  static constexpr int bytes(int rows) { return rows * kWidth * 2; }
  __device__ uint4* chunk(int row, int c) const {
    return dynamic_shared<uint4>() + first + row * kChunks + (c ^ (row % 8));
  }
  /// Returns the address that this lane passes to ldmatrix for the rows from `row` on (a multiple of 8) and the 16
  /// elements from chunk c on (c even). The matrices are rows 0-7 and 8-15 of chunk c, then of chunk c + 1.
  __device__ const uint4* rows_first(int row, int c) const {
    return named(lane_of_warp() % 16, lane_of_warp() / 16, row, c);
  }
  /// Does the same, but the matrices are chunks c and c + 1 of rows 0-7, then of rows 8-15. A pair of them is what mma
  /// wants as its right side.
  __device__ const uint4* chunks_first(int row, int c) const {
    return named(lane_of_warp() / 16 * 8 + lane_of_warp() % 8, lane_of_warp() / 8 % 2, row, c);
  }
  __device__ Tile from(int row) const { return {first + row * kChunks}; }  ///< `row` is a multiple of 8

 private:
  // This is written so that the places of all slices and rows differ from one another by constants.
  __device__ const uint4* named(int lane_row, int lane_chunk, int row, int c) const {
    const int place = first + lane_row * kChunks + (lane_chunk ^ lane_row % 8);
    return dynamic_shared<uint4>() + (place ^ c % 8) + row * kChunks + c / 8 * 8;
  }
};

/// Begins to copy kRows rows into a tile, with all kThreads threads of the block. Rows from `there` on become zeros.
template <int kRows, int kThreads, int kWidth>
__device__ void copy_rows(const Tile<kWidth>& tile, const HeadRows& rows, int first, int there) {
  constexpr int kChunks = Tile<kWidth>::kChunks;
  constexpr int kStep = kThreads / kChunks;
  static_assert(kStep % 8 == 0 && kRows % kStep == 0);
  const auto c = static_cast<int>(threadIdx.x % kChunks);
  const auto r = static_cast<int>(threadIdx.x / kChunks);
  uint4* to = tile.chunk(r, c);
#pragma unroll
  for (int step = 0; step < kRows; step += kStep) {
    copy_async(to + step * kChunks, rows.row(first + r + step) + c, first + r + step < there);
  }
}

/// Keys and values of one head in tiles, from row 0 of `tiles` on. There are two buffers of each, so that the next
/// tiles are copied while the current ones are read. j is the first key of a tile.
template <int kKeys, int kThreads, int kWidth>
struct KeyTiles {
  Tile<kWidth> tiles;
  HeadRows keys, values;

  __device__ Tile<kWidth> key(int j) const { return tiles.from(j / kKeys % 2 * 2 * kKeys); }
  __device__ Tile<kWidth> value(int j) const { return key(j).from(kKeys); }
  /// Begins to copy a tile. It is one group together with the copies begun before and not committed.
  __device__ void copy(int j, int seq) const {
    copy_rows<kKeys, kThreads>(key(j), keys, j, seq);
    copy_rows<kKeys, kThreads>(value(j), values, j, seq);
    commit_copies();
  }
};

template <int kM, int kN>
__device__ void clear(float (&sums)[kM][kN][4]) {
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (auto& part : row) {
#pragma unroll
      for (float& sum : part) sum = 0.0F;
    }
  }
}

/// Loads the left side of a product: 16 elements of each of the 16 kM rows from `rows` on, from element 16 slice on.
template <int kM, int kWidth>
__device__ void load_left(std::uint32_t (&left)[kM][4], const Tile<kWidth>& rows, int slice) {
#pragma unroll
  for (int m = 0; m < kM; ++m) load_matrices(left[m], rows.rows_first(16 * m, 2 * slice));
}

/// Computes sums (16 kM x 8 kN) += A B^T over one slice of 16 elements. B is 8 kN rows of a tile.
template <bool kBf16, int kM, int kN, int kWidth>
__device__ void multiply_slice(float (&sums)[kM][kN][4], const std::uint32_t (&left)[kM][4], const Tile<kWidth>& b,
                               int slice) {
#pragma unroll
  for (int n = 0; n < kN; n += 2) {
    std::uint32_t right[4];
    load_matrices(right, b.chunks_first(8 * n, 2 * slice));
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      multiply_add<kBf16>(sums[m][n], left[m], right[0], right[1]);
      multiply_add<kBf16>(sums[m][n + 1], left[m], right[2], right[3]);
    }
  }
}

/// Computes sums = A B^T, where A and B are rows of tiles.
template <bool kBf16, int kM, int kN, int kWidth>
__device__ void multiply_rows(float (&sums)[kM][kN][4], const Tile<kWidth>& a, const Tile<kWidth>& b) {
  clear(sums);
#pragma unroll 4  // 8 would need too many registers
  for (int slice = 0; slice < kWidth / 16; ++slice) {
    std::uint32_t left[kM][4];
    load_left(left, a, slice);
    multiply_slice<kBf16>(sums, left, b, slice);
  }
}

/// Computes sums (16 kM x kWidth) += W B over the 16 rows of a tile from `row` on. W (16 kM x 16) consists of parts of
/// an earlier product, which mma takes as its left side in the layout in which it returned them, only packed.
template <bool kBf16, int kM, int kC, int kWidth>
__device__ void multiply_weights(float (&sums)[kM][kC][4], const std::uint32_t (&weights)[kM][4], const Tile<kWidth>& b,
                                 int row) {
  static_assert(kC == kWidth / 8);
#pragma unroll
  for (int c = 0; c < kC; c += 2) {
    std::uint32_t right[4];
    load_matrices_transposed(right, b.rows_first(row, c));
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      multiply_add<kBf16>(sums[m][c], weights[m], right[0], right[1]);
      multiply_add<kBf16>(sums[m][c + 1], weights[m], right[2], right[3]);
    }
  }
}

/// Packs parts n and n + 1 as the left side of a product.
template <bool kBf16, int kM, int kN>
__device__ void pack_parts(std::uint32_t (&weights)[kM][4], const float (&w)[kM][kN][4], int n) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[m][i] = pack<kBf16>(w[m][n + i / 2][i % 2 * 2], w[m][n + i / 2][i % 2 * 2 + 1]);
    }
  }
}

/// Sets the scores of keys after their query to -infinity. `ahead` is the first column, counted from the warp's first
/// row.
template <bool kColumnsAreKeys, int kM, int kN>
__device__ void mask(float (&s)[kM][kN][4], int ahead) {
  const int diagonal = lane_of_warp() / 4 - lane_of_warp() % 4 * 2 - ahead;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int place = 8 * n + e % 2 - 16 * m - e / 2 * 8;
        if (kColumnsAreKeys ? place > diagonal : place < diagonal) s[m][n][e] = -INFINITY;
      }
    }
  }
}

template <int kM, int kC>
__device__ void scale_by(float (&sums)[kM][kC][4], float factor) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int c = 0; c < kC; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][c][e] *= factor;
    }
  }
}

template <bool kBf16>
__device__ inline unsigned added(unsigned a, unsigned b) {
  constexpr schedule::DType kType = kBf16 ? schedule::DType::kBf16 : schedule::DType::kFp16;
  const auto sum = [&](unsigned shift) {
    return widened(kType, static_cast<std::uint16_t>(a >> shift)) +
           widened(kType, static_cast<std::uint16_t>(b >> shift));
  };
  return pack<kBf16>(sum(0), sum(16));
}

/// Writes a warp's sums, rounded, to the global rows from `first` on that are before `there`; adds them if `adds`. They
/// pass through `rows`, the warp's own rows in shared memory, so that whole chunks are written.
template <bool kBf16, int kM, int kC, int kWidth>
__device__ void store_rows(const float (&sums)[kM][kC][4], const Tile<kWidth>& rows, const HeadRows& to, int first,
                           int there, bool adds) {
  constexpr int kChunks = Tile<kWidth>::kChunks;
  const int lane = lane_of_warp();
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int c = 0; c < kC; ++c) {
      const int row = 16 * m + lane / 4;
      reinterpret_cast<unsigned*>(rows.chunk(row, c))[lane % 4] = pack<kBf16>(sums[m][c][0], sums[m][c][1]);
      reinterpret_cast<unsigned*>(rows.chunk(row + 8, c))[lane % 4] = pack<kBf16>(sums[m][c][2], sums[m][c][3]);
    }
  }
  __syncwarp();
  for (int row = lane / kChunks; row < 16 * kM && first + row < there; row += kWarpThreads / kChunks) {
    uint4 value = *rows.chunk(row, lane % kChunks);
    uint4& place = to.row(first + row)[lane % kChunks];
    if (adds) {
      const uint4 old = place;
      value = make_uint4(added<kBf16>(old.x, value.x), added<kBf16>(old.y, value.y), added<kBf16>(old.z, value.z),
                         added<kBf16>(old.w, value.w));
    }
    place = value;
  }
}

}  // namespace krigtune::cuda

// Gradients of keys and values (flash_attention_backward.cu). A block has 128 keys and loops over the queries from the
// diagonal on, of every head that shares the keys, one head after another.
//
// For d = 128, a warp needs 256 mma and 144 ldmatrix for 64 queries and 16 keys. Shared memory is the limit: the reads
// of 8 warps take 4600 cycles, their mma about 3200.
#include "engine/cuda/kernels/flash_attention_backward.h"

namespace krigtune::cuda {
namespace {

/// The sizes of the keys' kernel. Registers hold dK and dV of a warp's keys, and the scores of a tile of queries.
template <int kWidth>
struct OfKeys {
  static constexpr int kM = kWidth == 64 ? 2 : 1;  ///< parts of 16 keys of a warp
  static constexpr int kN = kWidth == 64 ? 4 : 8;  ///< parts of 8 queries in a tile
  static constexpr int kQueries = 8 * kN;
  static constexpr int kThreads = kBlockRows / (16 * kM) * kWarpThreads;
  static constexpr int kBlocks = kWidth == 64 ? 2 : 1;             ///< blocks on a multiprocessor
  static constexpr int kTileRows = 2 * kBlockRows + 4 * kQueries;  ///< keys, values; twice queries and dout
  static constexpr int kStatistics = kQueries * 8 / 16;            ///< in chunks
  static constexpr int kBytes = Tile<kWidth>::bytes(kTileRows) + 2 * 16 * kStatistics;
};

/// A tile of queries. Those of the heads that share a key follow one another.
struct QueryTile {
  int head, i, turn;

  __device__ QueryTile next(int step, int first, int seq) const {
    return i + step < seq ? QueryTile{head, i + step, 1 - turn} : QueryTile{head + 1, first, 1 - turn};
  }
};

template <bool kBf16, int kWidth>
struct KeyBlock {
  using Cut = OfKeys<kWidth>;
  static constexpr int kM = Cut::kM, kN = Cut::kN, kC = kWidth / 8;
  const FlashBackward& g;
  int b;

  __device__ Tile<kWidth> queries(int turn) const {
    return Tile<kWidth>().from(2 * kBlockRows + turn * 2 * Cut::kQueries);
  }
  __device__ Tile<kWidth> dout(int turn) const { return queries(turn).from(Cut::kQueries); }
  /// Returns a tile's statistics. Each element has L and D of a query, then L and D of the next one.
  __device__ float4* statistics(int turn) const {
    return dynamic_shared<float4>() + Cut::kTileRows * Tile<kWidth>::kChunks + turn * Cut::kStatistics;
  }

  __device__ void copy(const QueryTile& t) const {
    const int seq = g.places.seq;
    copy_rows<Cut::kQueries, Cut::kThreads>(queries(t.turn), g.places.query(g.qkv, b, t.head), t.i, seq);
    copy_rows<Cut::kQueries, Cut::kThreads>(dout(t.turn), g.places.output(g.dout, b, t.head), t.i, seq);
    if (threadIdx.x < Cut::kStatistics) {
      copy_async(statistics(t.turn) + threadIdx.x, g.of_head(b, t.head) + t.i + 2 * threadIdx.x);
    }
    commit_copies();
  }

  __device__ void add(float (&dk)[kM][kC][4], float (&dv)[kM][kC][4], const Tile<kWidth>& keys,
                      const Tile<kWidth>& values, const QueryTile& t, int ahead) const {
    const float4* of_lane = statistics(t.turn) + lane_of_warp() % 4;
    float p[kM][kN][4];
    multiply_rows<kBf16>(p, keys, queries(t.turn));
    if (ahead < 16 * kM) mask<false>(p, ahead);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const float4 two = of_lane[4 * n];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          p[m][n][e] = exp2_fast(fmaf(p[m][n][e], g.scale * kLog2E, e % 2 == 0 ? -two.x : -two.z));
        }
      }
    }
    float ds[kM][kN][4];
    multiply_rows<kBf16>(ds, values, dout(t.turn));
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t weights[kM][4];
      pack_parts<kBf16>(weights, p, n);
      multiply_weights<kBf16>(dv, weights, dout(t.turn), 8 * n);
#pragma unroll
      for (int part = n; part < n + 2; ++part) {
        const float4 two = of_lane[4 * part];
#pragma unroll
        for (int m = 0; m < kM; ++m) {
#pragma unroll
          for (int e = 0; e < 4; ++e) ds[m][part][e] = p[m][part][e] * (ds[m][part][e] - (e % 2 == 0 ? two.y : two.w));
        }
      }
      pack_parts<kBf16>(weights, ds, n);
      multiply_weights<kBf16>(dk, weights, queries(t.turn), 8 * n);
    }
  }
};

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(OfKeys<kWidth>::kThreads, OfKeys<kWidth>::kBlocks)
    key_gradients(FlashBackward g, BlockOrder order) {
  using Block = KeyBlock<kBf16, kWidth>;
  using Cut = OfKeys<kWidth>;
  const BlockOrder::Place place = order.of_block();
  const int b = place.head / g.places.kv_heads;
  const int kv_head = place.head % g.places.kv_heads;
  const int first = place.tile * kBlockRows;  // the first key and the first query
  const int of_warp = warp_of_block() * Cut::kM * 16;
  const Block block{g, b};
  const Tile<kWidth> keys;
  const Tile<kWidth> values = keys.from(kBlockRows);
  const HeadRows key_rows = g.places.key(g.qkv, b, kv_head);
  copy_rows<kBlockRows, Cut::kThreads>(keys, key_rows, first, g.places.seq);
  copy_rows<kBlockRows, Cut::kThreads>(values, g.places.value(key_rows), first, g.places.seq);
  QueryTile tile{kv_head * g.places.group(), first, 0};
  block.copy(tile);

  float dk[Cut::kM][kWidth / 8][4];
  float dv[Cut::kM][kWidth / 8][4];
  clear(dk);
  clear(dv);
  for (const int end = tile.head + g.places.group(); tile.head < end;) {
    const QueryTile next = tile.next(Cut::kQueries, first, g.places.seq);
    wait_for_copies<0>();
    __syncthreads();
    if (next.head < end) block.copy(next);
    const int ahead = tile.i - first - of_warp;
    if (ahead + Cut::kQueries > 0) block.add(dk, dv, keys.from(of_warp), values.from(of_warp), tile, ahead);
    tile = next;
  }
  scale_by(dk, g.scale);
  const HeadRows to = g.places.key(g.dqkv, b, kv_head);
  store_rows<kBf16>(dk, keys.from(of_warp), to, first + of_warp, g.places.seq, g.adds);
  store_rows<kBf16>(dv, values.from(of_warp), g.places.value(to), first + of_warp, g.places.seq, g.adds);
}

template <bool kBf16, int kWidth>
void start(Queue queue, const AttentionSizes& z, const FlashBackward& g) {
  const BlockOrder order(z.batch * z.kv_heads, g.padded_seq / kBlockRows, head_bytes(z) * z.queries_per_key);
  launch(queue, order.blocks(), OfKeys<kWidth>::kThreads, OfKeys<kWidth>::kBytes, key_gradients<kBf16, kWidth>, g,
         order);
}

}  // namespace

int key_gradient_shared_bytes(std::int64_t head_size) {
  return head_size == 64 ? OfKeys<64>::kBytes : OfKeys<128>::kBytes;
}

void start_key_gradients(Queue queue, schedule::DType type, const AttentionSizes& z, const FlashBackward& g) {
  if (type == schedule::DType::kBf16) return z.d == 64 ? start<true, 64>(queue, z, g) : start<true, 128>(queue, z, g);
  z.d == 64 ? start<false, 64>(queue, z, g) : start<false, 128>(queue, z, g);
}

}  // namespace krigtune::cuda

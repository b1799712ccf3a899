// Gradients of causal attention on tensor cores (Dao 2023, "FlashAttention-2", algorithm 2; attention_backward.cu has
// the equations). First D_i = sum_c dO_ic O_ic. Then a block has 128 keys and goes through the queries from the
// diagonal on, of every head that shares the keys, one after another, with scores transposed,
//
//   P^T = exp2(c K Q^T - log2(e) L),  dV += P^T dO,  dS^T = P^T o (V dO^T - D),  dK += dS^T Q / sqrt(d),
//
// so that P^T and dS^T are what the next product wants as its left side, in registers. Then a block has 128 queries and
// goes through their keys: dQ += dS K / sqrt(d). S and V dO^T are computed in both, 7 products for 5: the price of sums
// without atomics, which have the same bits in every run.
//
// A warp of the keys' kernel, d = 128: 256 mma and 144 ldmatrix for 64 queries and 16 keys, so that shared memory (576
// cycles beside about 400 of mma) limits it; of the queries' kernel: 192 mma and 80 ldmatrix for 32 of each, mma does.
#include "cuda/kernels/flash_attention.h"
#include "cuda/kernels/flash_attention_tiles.h"

namespace krigtune::cuda {
namespace {

constexpr int kRows = 128;  // keys, or queries, of a block

struct Backward {
  HeadPlaces places;
  float scale;
  uint4* dout;
  uint4* qkv;
  uint4* out;
  const float* logsumexp;
  uint4* dqkv;
  bool adds;
  std::int64_t padded_seq;  ///< a multiple of kRows
  float2* of_queries;       ///< batch x heads x padded_seq: log2(e) L and D; infinity and 0 behind the sequence

  __device__ const float2* of_head(int b, int head) const {
    return of_queries + (static_cast<std::int64_t>(b) * places.heads + head) * padded_seq;
  }
};

std::int64_t padded(std::int64_t seq) { return (seq + kRows - 1) / kRows * kRows; }

template <bool kBf16>
__device__ float product(unsigned a, unsigned b) {
  constexpr DType kType = kBf16 ? DType::kBf16 : DType::kFp16;
  const auto high = [](unsigned two) { return widened(kType, static_cast<std::uint16_t>(two >> 16U)); };
  const auto low = [](unsigned two) { return widened(kType, static_cast<std::uint16_t>(two)); };
  return low(a) * low(b) + high(a) * high(b);
}

// A thread has a chunk of a row, and the threads of a row add up. rows: batch x padded_seq x heads.
template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kBlockThreads) sum_rows(Backward g, std::int64_t rows) {
  constexpr unsigned kChunks = Tile<kWidth>::kChunks;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (kBlockThreads / kChunks) + threadIdx.x / kChunks;
  const unsigned c = threadIdx.x % kChunks;
  const auto head = static_cast<int>(row % g.places.heads);
  const auto i = static_cast<int>(row / g.places.heads % g.padded_seq);
  const auto b = static_cast<int>(row / g.places.heads / g.padded_seq);
  const bool there = row < rows && i < g.places.seq;
  float sum = 0.0F;
  if (there) {
    const uint4 x = g.places.output(g.dout, b, head).row(i)[c];
    const uint4 y = g.places.output(g.out, b, head).row(i)[c];
    sum = product<kBf16>(x.x, y.x) + product<kBf16>(x.y, y.y) + product<kBf16>(x.z, y.z) + product<kBf16>(x.w, y.w);
  }
#pragma unroll
  for (int distance = kChunks / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (c != 0 || row >= rows) return;
  const std::int64_t all = static_cast<std::int64_t>(b) * g.places.heads + head;
  g.of_queries[all * g.padded_seq + i] =
      there ? make_float2(g.logsumexp[all * g.places.seq + i] * kLog2E, sum) : make_float2(INFINITY, 0.0F);
}

/// How the keys' kernel is cut: registers hold dK and dV of a warp's keys, and the scores of a tile of queries.
template <int kWidth>
struct OfKeys {
  static constexpr int kM = kWidth == 64 ? 2 : 1;  ///< parts of 16 keys that a warp has
  static constexpr int kN = kWidth == 64 ? 4 : 8;  ///< parts of 8 queries in a tile
  static constexpr int kQueries = 8 * kN;
  static constexpr int kThreads = kRows / (16 * kM) * kWarpThreads;
  static constexpr int kBlocks = kWidth == 64 ? 2 : 1;        ///< on a multiprocessor
  static constexpr int kTileRows = 2 * kRows + 4 * kQueries;  ///< keys, values; twice queries and dout
  static constexpr int kStatistics = kQueries * 8 / 16;       ///< chunks
  static constexpr int kBytes = Tile<kWidth>::bytes(kTileRows) + 2 * 16 * kStatistics;
};

/// A tile of queries, of the heads that share a key in turn.
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
  const Backward& g;
  int b;

  __device__ Tile<kWidth> queries(int turn) const { return Tile<kWidth>().from(2 * kRows + turn * 2 * Cut::kQueries); }
  __device__ Tile<kWidth> dout(int turn) const { return queries(turn).from(Cut::kQueries); }
  /// L and D, L and D of two queries that follow one another.
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
    key_gradients(Backward g, BlockOrder order) {
  using Block = KeyBlock<kBf16, kWidth>;
  using Cut = OfKeys<kWidth>;
  const BlockOrder::Place place = order.of_block();
  const int b = place.head / g.places.kv_heads;
  const int kv_head = place.head % g.places.kv_heads;
  const int first = place.tile * kRows;  // key, and query
  const int of_warp = warp_of_block() * Cut::kM * 16;
  const Block block{g, b};
  const Tile<kWidth> keys;
  const Tile<kWidth> values = keys.from(kRows);
  const HeadRows key_rows = g.places.key(g.qkv, b, kv_head);
  copy_rows<kRows, Cut::kThreads>(keys, key_rows, first, g.places.seq);
  copy_rows<kRows, Cut::kThreads>(values, g.places.value(key_rows), first, g.places.seq);
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
    block.add(dk, dv, keys.from(of_warp), values.from(of_warp), tile, tile.i - first - of_warp);
    tile = next;
  }
  scale_by(dk, g.scale);
  const HeadRows to = g.places.key(g.dqkv, b, kv_head);
  store_rows<kBf16>(dk, keys.from(of_warp), to, first + of_warp, g.places.seq, g.adds);
  store_rows<kBf16>(dv, values.from(of_warp), g.places.value(to), first + of_warp, g.places.seq, g.adds);
}

/// How the queries' kernel is cut.
template <int kWidth>
struct OfQueries {
  static constexpr int kM = 2;                     ///< parts of 16 queries that a warp has
  static constexpr int kN = kWidth == 64 ? 8 : 4;  ///< parts of 8 keys in a tile
  static constexpr int kKeys = 8 * kN;
  static constexpr int kThreads = kRows / (16 * kM) * kWarpThreads;
  static constexpr int kBytes = Tile<kWidth>::bytes(2 * kRows + 4 * kKeys);  // queries, dout; twice keys and values
};

/// L and D of a lane's rows.
template <int kM>
struct Statistics {
  float2 rows[kM][2];

  __device__ explicit Statistics(const float2* of_warp) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) rows[m][half] = of_warp[16 * m + 8 * half + lane_of_warp() / 4];
    }
  }
  template <int kN>
  __device__ void probabilities(float (&s)[kM][kN][4], float scale_log2) const {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][n][e] = exp2_fast(fmaf(s[m][n][e], scale_log2, -rows[m][e / 2].x));
      }
    }
  }
  template <int kN>
  __device__ void score_gradients(float (&da)[kM][kN][4], const float (&p)[kM][kN][4]) const {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) da[m][n][e] = p[m][n][e] * (da[m][n][e] - rows[m][e / 2].y);
      }
    }
  }
};

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(OfQueries<kWidth>::kThreads, 2) query_gradients(Backward g, BlockOrder order) {
  using Cut = OfQueries<kWidth>;
  constexpr int kM = Cut::kM, kN = Cut::kN, kKeys = Cut::kKeys;
  const BlockOrder::Place place = order.of_block();
  const int seq = g.places.seq;
  const int b = place.head / g.places.heads;
  const int head = place.head % g.places.heads;
  const int first = ((seq - 1) / kRows - place.tile) * kRows;
  const int of_warp = warp_of_block() * kM * 16;
  const int end = first + kRows < seq ? first + kRows : seq;
  const HeadRows keys = g.places.key(g.qkv, b, head / g.places.group());
  const Tile<kWidth> queries;
  const Tile<kWidth> dout = queries.from(kRows);
  const auto key_tile = [&](int j) { return queries.from(2 * kRows + j / kKeys % 2 * 2 * kKeys); };
  const auto copy_keys = [&](int j) {
    copy_rows<kKeys, Cut::kThreads>(key_tile(j), keys, j, seq);
    copy_rows<kKeys, Cut::kThreads>(key_tile(j).from(kKeys), g.places.value(keys), j, seq);
    commit_copies();
  };
  copy_rows<kRows, Cut::kThreads>(queries, g.places.query(g.qkv, b, head), first, seq);
  copy_rows<kRows, Cut::kThreads>(dout, g.places.output(g.dout, b, head), first, seq);
  copy_keys(0);

  const Statistics<kM> statistics(g.of_head(b, head) + first + of_warp);
  float dq[kM][kWidth / 8][4];
  clear(dq);
  for (int j = 0; j < end; j += kKeys) {
    wait_for_copies<0>();
    __syncthreads();
    if (j + kKeys < end) copy_keys(j + kKeys);
    float p[kM][kN][4];
    multiply_rows<kBf16>(p, queries.from(of_warp), key_tile(j));
    if (j + kKeys > first + of_warp) mask<true>(p, j - first - of_warp);
    statistics.probabilities(p, g.scale * kLog2E);
    float ds[kM][kN][4];
    multiply_rows<kBf16>(ds, dout.from(of_warp), key_tile(j).from(kKeys));
    statistics.score_gradients(ds, p);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t weights[kM][4];
      pack_parts<kBf16>(weights, ds, n);
      multiply_weights<kBf16>(dq, weights, key_tile(j), 8 * n);
    }
  }
  scale_by(dq, g.scale);
  store_rows<kBf16>(dq, queries.from(of_warp), g.places.query(g.dqkv, b, head), first + of_warp, seq, g.adds);
}

template <bool kBf16, int kWidth>
void start(const DeviceCall& call, const AttentionSizes& z, const Backward& g) {
  const std::int64_t rows = z.batch * z.heads * g.padded_seq;
  const auto sum_blocks = static_cast<unsigned>(rows * Tile<kWidth>::kChunks / kBlockThreads);
  launch(call.queue, sum_blocks, kBlockThreads, 0, sum_rows<kBf16, kWidth>, g, rows);
  const std::int64_t tiles = g.padded_seq / kRows;
  const std::int64_t head_bytes = 2 * 2 * z.seq * z.d;  // keys and values, or queries and dout
  const BlockOrder of_keys(z.batch * z.kv_heads, tiles, head_bytes * z.queries_per_key);
  launch(call.queue, of_keys.blocks(), OfKeys<kWidth>::kThreads, OfKeys<kWidth>::kBytes, key_gradients<kBf16, kWidth>,
         g, of_keys);
  const BlockOrder of_queries(z.batch * z.heads, tiles, head_bytes / z.queries_per_key);
  launch(call.queue, of_queries.blocks(), OfQueries<kWidth>::kThreads, OfQueries<kWidth>::kBytes,
         query_gradients<kBf16, kWidth>, g, of_queries);
}

}  // namespace

std::int64_t flash_attention_scratch_bytes(const Shape& shape) {
  return shape.batch * shape.heads * padded(shape.seq) * static_cast<std::int64_t>(sizeof(float2));
}

void flash_attention_backward(const DeviceCall& call) {
  const AttentionSizes z(call.shape());
  const Backward g{HeadPlaces(z),       z.scale,
                   call.data<uint4>(0), call.data<uint4>(1),
                   call.data<uint4>(2), call.data<float>(3),
                   call.data<uint4>(4), call.adds(4),
                   padded(z.seq),       reinterpret_cast<float2*>(call.scratch)};
  const bool bf16 = call.operands[0].type == DType::kBf16;
  if (z.d == 64) return bf16 ? start<true, 64>(call, z, g) : start<false, 64>(call, z, g);
  bf16 ? start<true, 128>(call, z, g) : start<false, 128>(call, z, g);
}

}  // namespace krigtune::cuda

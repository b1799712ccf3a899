// Gradients of causal attention on tensor cores (Dao 2023, "FlashAttention-2", algorithm 2; attention.cu has the
// equations). First, D_i = sum_c dO_ic O_ic. Then a block has 128 keys and loops over their queries, with transposed
// scores,
//
//   P^T = exp2(c K Q^T - log2(e) L),  dV += P^T dO,  dS^T = P^T o (V dO^T - D),  dK += dS^T Q / sqrt(d),
//
// so that the registers of P^T and dS^T are already the left side of the next product. Then a block has 128 queries and
// loops over their keys: dQ += dS K / sqrt(d). S and V dO^T are computed in both kernels, so there are 7 products
// instead of 5. That is the price of sums without atomics, which have the same bits in every run.
//
// For d = 128, a warp of the queries' kernel needs 192 mma and 80 ldmatrix for 32 queries and 32 keys: mma is the
// limit.
#include "engine/cuda/kernels/flash_attention.h"
#include "engine/cuda/kernels/flash_attention_backward.h"

namespace krigtune::cuda {
namespace {

std::int64_t padded(std::int64_t seq) { return (seq + kBlockRows - 1) / kBlockRows * kBlockRows; }

template <bool kBf16>
__device__ float product(unsigned a, unsigned b) {
  constexpr schedule::DType kType = kBf16 ? schedule::DType::kBf16 : schedule::DType::kFp16;
  const auto high = [](unsigned two) { return widened(kType, static_cast<std::uint16_t>(two >> 16U)); };
  const auto low = [](unsigned two) { return widened(kType, static_cast<std::uint16_t>(two)); };
  return low(a) * low(b) + high(a) * high(b);
}

// Each thread has a chunk of a row, and the threads of a row add their products. The rows are batch x padded_seq x
// heads; a block has whole rows.
template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kBlockThreads) sum_rows(FlashBackward g) {
  constexpr unsigned kChunks = Tile<kWidth>::kChunks;
  const unsigned row = blockIdx.x * (kBlockThreads / kChunks) + threadIdx.x / kChunks;
  const unsigned c = threadIdx.x % kChunks;
  const auto heads = static_cast<unsigned>(g.places.heads);
  const auto seq = static_cast<unsigned>(g.padded_seq);
  const auto head = static_cast<int>(row % heads);
  const auto i = static_cast<int>(row / heads % seq);
  const auto b = static_cast<int>(row / heads / seq);
  const bool there = i < g.places.seq;
  float sum = 0.0F;
  if (there) {
    const uint4 x = g.places.output(g.dout, b, head).row(i)[c];
    const uint4 y = g.places.output(g.out, b, head).row(i)[c];
    sum = product<kBf16>(x.x, y.x) + product<kBf16>(x.y, y.y) + product<kBf16>(x.z, y.z) + product<kBf16>(x.w, y.w);
  }
#pragma unroll
  for (int distance = kChunks / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (c != 0) return;
  const std::int64_t all = static_cast<std::int64_t>(b) * g.places.heads + head;
  g.of_queries[all * g.padded_seq + i] =
      there ? make_float2(g.logsumexp[all * g.places.seq + i] * kLog2E, sum) : make_float2(INFINITY, 0.0F);
}

/// The sizes of the queries' kernel.
template <int kWidth>
struct OfQueries {
  static constexpr int kM = 2;                     ///< parts of 16 queries of a warp
  static constexpr int kN = kWidth == 64 ? 8 : 4;  ///< parts of 8 keys in a tile
  static constexpr int kKeys = 8 * kN;
  static constexpr int kThreads = kBlockRows / (16 * kM) * kWarpThreads;
  static constexpr int kBytes =
      Tile<kWidth>::bytes(2 * kBlockRows + 4 * kKeys);  // queries, dout; twice keys and values
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
__global__ void __launch_bounds__(OfQueries<kWidth>::kThreads, 2) query_gradients(FlashBackward g, BlockOrder order) {
  using Cut = OfQueries<kWidth>;
  constexpr int kM = Cut::kM, kN = Cut::kN, kKeys = Cut::kKeys;
  const BlockOrder::Place place = order.of_block();
  const int seq = g.places.seq;
  const int b = place.head / g.places.heads;
  const int head = place.head % g.places.heads;
  const int first = ((seq - 1) / kBlockRows - place.tile) * kBlockRows;
  const int of_warp = warp_of_block() * kM * 16;
  const int end = first + kBlockRows < seq ? first + kBlockRows : seq;
  const HeadRows keys = g.places.key(g.qkv, b, head / g.places.group());
  const Tile<kWidth> queries;
  const Tile<kWidth> dout = queries.from(kBlockRows);
  const KeyTiles<kKeys, Cut::kThreads, kWidth> tiles{queries.from(2 * kBlockRows), keys, g.places.value(keys)};
  copy_rows<kBlockRows, Cut::kThreads>(queries, g.places.query(g.qkv, b, head), first, seq);
  copy_rows<kBlockRows, Cut::kThreads>(dout, g.places.output(g.dout, b, head), first, seq);
  tiles.copy(0, seq);

  const Statistics<kM> statistics(g.of_head(b, head) + first + of_warp);
  float dq[kM][kWidth / 8][4];
  clear(dq);
  for (int j = 0; j < end; j += kKeys) {
    wait_for_copies<0>();
    __syncthreads();
    if (j + kKeys < end) tiles.copy(j + kKeys, seq);
    if (j >= first + of_warp + 16 * kM) continue;  // beyond the diagonal
    float p[kM][kN][4];
    multiply_rows<kBf16>(p, queries.from(of_warp), tiles.key(j));
    if (j + kKeys > first + of_warp) mask<true>(p, j - first - of_warp);
    statistics.probabilities(p, g.scale * kLog2E);
    float ds[kM][kN][4];
    multiply_rows<kBf16>(ds, dout.from(of_warp), tiles.value(j));
    statistics.score_gradients(ds, p);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t weights[kM][4];
      pack_parts<kBf16>(weights, ds, n);
      multiply_weights<kBf16>(dq, weights, tiles.key(j), 8 * n);
    }
  }
  scale_by(dq, g.scale);
  store_rows<kBf16>(dq, queries.from(of_warp), g.places.query(g.dqkv, b, head), first + of_warp, seq, g.adds);
}

template <bool kBf16, int kWidth>
void start_sums(Queue queue, const AttentionSizes& z, const FlashBackward& g) {
  const std::int64_t chunks = z.batch * z.heads * g.padded_seq * Tile<kWidth>::kChunks;
  launch(queue, static_cast<unsigned>(chunks / kBlockThreads), kBlockThreads, 0, sum_rows<kBf16, kWidth>, g);
}

template <bool kBf16, int kWidth>
void start(const DeviceCall& call, const AttentionSizes& z, const FlashBackward& g) {
  start_sums<kBf16, kWidth>(call.queue, z, g);
  if (call.hopper_attention) return start_hopper_gradients(call.queue, call.operands[0].type, z, g);
  start_key_gradients(call.queue, call.operands[0].type, z, g);
  const BlockOrder order(z.batch * z.heads, g.padded_seq / kBlockRows, head_bytes(z) / z.queries_per_key);
  launch(call.queue, order.blocks(), OfQueries<kWidth>::kThreads, OfQueries<kWidth>::kBytes,
         query_gradients<kBf16, kWidth>, g, order);
}

}  // namespace

std::int64_t attention_backward_scratch(const plan::Operation& operation) {
  const plan::Shape& shape = operation.shape;
  const std::int64_t d = shape.inner / shape.heads;
  return d == 64 || d == 128 ? 2 * shape.batch * shape.heads * padded(shape.seq) : 0;
}

void flash_attention_backward(const DeviceCall& call) {
  const AttentionSizes z(call.shape());
  const FlashBackward g{HeadPlaces(z),
                        z.scale,
                        call.data<uint4>(0),
                        call.data<uint4>(1),
                        call.data<uint4>(2),
                        call.data<float>(3),
                        call.data<uint4>(4),
                        call.adds(4),
                        static_cast<int>(padded(z.seq)),
                        reinterpret_cast<float2*>(call.scratch)};
  const bool bf16 = call.operands[0].type == schedule::DType::kBf16;
  if (z.d == 64) return bf16 ? start<true, 64>(call, z, g) : start<false, 64>(call, z, g);
  bf16 ? start<true, 128>(call, z, g) : start<false, 128>(call, z, g);
}

}  // namespace krigtune::cuda

// Gradients of attention with Hopper's wgmma and TMA. flash_attention_backward.cu has the equations and says why there
// are two kernels; flash_attention_hopper.cu says what the warp groups of a block do. A block has 128 keys and loops
// over tiles of 64 queries, or it has 128 queries and loops over tiles of 64 keys. In either case both sides of the
// first two products are in shared memory, and the weights of the other products are in registers, as the first two
// left them.
//
// The queries' kernel sums dQ while the scores of the next tile are computed. The keys' kernel has no registers left
// for this; its two groups run beside one another.
#include "engine/cuda/kernels/flash_attention_backward.h"
#include "engine/cuda/kernels/hopper_tiles.h"

namespace krigtune::cuda {
namespace hopper {

inline constexpr int kTileRows = 64;
inline constexpr int kTileParts = kTileRows / 8;
inline constexpr int kTileSlices = kTileRows / kSliceElems;

// There are three buffers because dQ reads the tile before the one whose scores are computed, while the next one
// arrives.
inline constexpr int kPassingStages = 3;
__device__ inline int buffer_of(int i) { return i % kPassingStages; }
__device__ inline unsigned phase_of(int i) { return static_cast<unsigned>(i / kPassingStages % 2); }

struct Backward {
  CUtensorMap qkv;   ///< as in the forward pass
  CUtensorMap dout;  ///< columns: of all heads; rows: of a sequence; planes: sequences
  BlockOrder order;
  FlashBackward g;
};

/// A tile of the loop. It begins at `row` of a head.
struct Step {
  int head, row;
};

/// The shared memory of a block: two tiles of 128 rows that stay, by group, and three pairs of tiles of 64 rows that
/// follow one another, each with the statistics of its rows, which only the keys' kernel uses, because there the rows
/// are queries. The barriers are that of the tiles that stay, then for each buffer whether it is full, then whether it
/// is empty.
template <int kWidth>
struct Held {
  using Rows = HeadTile<kWidth, kGroupRows>;
  using Passing = HeadTile<kWidth, kTileRows>;
  static constexpr int kStatisticsBytes = kTileRows * static_cast<int>(sizeof(float2));
  static constexpr int kPassingAt = 2 * kConsumers * Rows::kBytes;
  static constexpr int kStatisticsAt = kPassingAt + 2 * kPassingStages * Passing::kBytes;
  static constexpr int kBarriersAt = kStatisticsAt + kPassingStages * kStatisticsBytes;
  static constexpr int kBytes = kBarriersAt + (1 + 2 * kPassingStages) * static_cast<int>(sizeof(PhaseBarrier));

  __device__ static std::byte* at(int bytes) { return dynamic_shared<std::byte>() + bytes; }
  /// `which` is 0 or 1: the first or the second of the two tiles.
  __device__ static std::byte* staying(int which, int group) { return at((which * kConsumers + group) * Rows::kBytes); }
  __device__ static std::byte* passing(int which, int stage) {
    return at(kPassingAt + (2 * stage + which) * Passing::kBytes);
  }
  __device__ static float4* statistics(int stage) {
    return reinterpret_cast<float4*>(at(kStatisticsAt + stage * kStatisticsBytes));
  }
  __device__ static PhaseBarrier* barrier(int i) { return reinterpret_cast<PhaseBarrier*>(at(kBarriersAt)) + i; }
  __device__ static PhaseBarrier* all_here() { return barrier(0); }
  __device__ static PhaseBarrier* full(int stage) { return barrier(1 + stage); }
  __device__ static PhaseBarrier* empty(int stage) { return barrier(1 + kPassingStages + stage); }

  __device__ static void init() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < 1 + kPassingStages; ++i) init_barrier(barrier(i), 1);
      for (int i = 0; i < kPassingStages; ++i) init_barrier(empty(i), kReleases);
      publish_barriers();
    }
    __syncthreads();
  }
  /// Loads both tiles that stay, from row `first` on.
  __device__ static void load_staying(const CUtensorMap& a, int column_a, const CUtensorMap& b, int column_b, int first,
                                      int plane) {
    arrive_and_expect(all_here(), 2 * kConsumers * Rows::kBytes);
    for (int group = 0; group < kConsumers; ++group) {
      Rows::load(staying(0, group), a, all_here(), column_a, first + group * kGroupRows, plane);
      Rows::load(staying(1, group), b, all_here(), column_b, first + group * kGroupRows, plane);
    }
  }
  /// Loads both tiles of number i; more(stage) loads another `more_bytes` bytes.
  template <class More>
  __device__ static void load_passing(int i, const CUtensorMap& a, int column_a, const CUtensorMap& b, int column_b,
                                      int row, int plane, int more_bytes, const More& more) {
    const int stage = buffer_of(i);
    if (i >= kPassingStages) wait_for_phase(empty(stage), phase_of(i - kPassingStages));
    arrive_and_expect(full(stage), 2 * Passing::kBytes + more_bytes);
    Passing::load(passing(0, stage), a, full(stage), column_a, row, plane);
    Passing::load(passing(1, stage), b, full(stage), column_b, row, plane);
    more(stage);
  }
};

__device__ inline void scale_sums(float (&sums)[4], float factor) {
#pragma unroll
  for (float& sum : sums) sum *= factor;
}

// dK and dV: keys and values stay; queries and dout of all heads that share the keys pass.

template <int kWidth>
struct KeyWork {
  int b, kv_head, first, tiles_of_head, tiles;

  __device__ explicit KeyWork(const Backward& f) {
    const BlockOrder::Place place = f.order.of_block();
    b = place.head / f.g.places.kv_heads;
    kv_head = place.head % f.g.places.kv_heads;
    first = place.tile * kRows;
    tiles_of_head = (f.g.places.seq - first + kTileRows - 1) / kTileRows;
    tiles = tiles_of_head * f.g.places.group();
  }
  /// Returns tile number i. The tiles before the block's first key are left out, because their queries attend to none
  /// of its keys.
  __device__ Step step(const Backward& f, int i) const {
    return {kv_head * f.g.places.group() + i / tiles_of_head, first + i % tiles_of_head * kTileRows};
  }
};

template <int kWidth>
__device__ void produce_queries(const Backward& f, const KeyWork<kWidth>& work) {
  using Here = Held<kWidth>;
  const int keys = (f.g.places.heads + work.kv_head) * kWidth;
  Here::load_staying(f.qkv, keys, f.qkv, keys + f.g.places.kv_heads * kWidth, work.first, work.b);
  for (int i = 0; i < work.tiles; ++i) {
    const Step step = work.step(f, i);
    Here::load_passing(i, f.qkv, step.head * kWidth, f.dout, step.head * kWidth, step.row, work.b,
                       Here::kStatisticsBytes, [&](int stage) {
                         load_bytes(Here::statistics(stage), f.g.of_head(work.b, step.head) + step.row,
                                    Here::kStatisticsBytes, Here::full(stage));
                       });
  }
}

// Computes P^T from S^T, with keys in rows and queries in columns. `ahead` is the tile's first query, counted from the
// warp's first key. Returns the sum of all.
__device__ inline float probabilities_of_keys(float (&p)[kTileParts][4], const float4* statistics, int ahead,
                                              float scale_log2) {
  const int diagonal = lane_of_warp() / 4 - lane_of_warp() % 4 * 2 - ahead;
  float all = 0.0F;
#pragma unroll
  for (int n = 0; n < kTileParts; ++n) {
    const float4 two = statistics[4 * n + lane_of_warp() % 4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool meets = 8 * n + e % 2 - e / 2 * 8 >= diagonal;
      const float weight = exp2_fast(fmaf(p[n][e], scale_log2, e % 2 == 0 ? -two.x : -two.z));
      p[n][e] = meets ? weight : 0.0F;
      all += p[n][e];
    }
  }
  return all;
}

// Computes dS^T from V dO^T.
__device__ inline void score_gradients_of_keys(float (&ds)[kTileParts][4], const float (&p)[kTileParts][4],
                                               const float4* statistics) {
#pragma unroll
  for (int n = 0; n < kTileParts; ++n) {
    const float4 two = statistics[4 * n + lane_of_warp() % 4];
#pragma unroll
    for (int e = 0; e < 4; ++e) ds[n][e] = p[n][e] * (ds[n][e] - (e % 2 == 0 ? two.y : two.w));
  }
}

template <bool kBf16, int kWidth>
__device__ void consume_queries(const Backward& f, const KeyWork<kWidth>& work, int group) {
  using Here = Held<kWidth>;
  const int key = work.first + group * kGroupRows + row_of_warp();
  float dk[1][kWidth / 8][4];
  float dv[1][kWidth / 8][4];
  float p[kTileParts][4];
  float ds[kTileParts][4];
  std::uint32_t weights[kTileSlices][4];
  std::uint32_t gradients[kTileSlices][4];
  clear(dk);
  clear(dv);
  wait_for_phase(Here::all_here(), 0);
  for (int i = 0; i < work.tiles; ++i) {
    const int stage = buffer_of(i);
    wait_for_phase(Here::full(stage), phase_of(i));
    pin(p);
    pin(ds);
    fence_products();
    begin_scores<kBf16, kWidth>(p, Here::staying(0, group), Here::passing(0, stage));
    begin_scores<kBf16, kWidth>(ds, Here::staying(1, group), Here::passing(1, stage));
    wait_for_products<1>();
    pin(p);
    float all = probabilities_of_keys(p, Here::statistics(stage), work.step(f, i).row - key, f.g.scale * kLog2E);
    wait_for_products_after<0>(all);
    pin(ds);
    pack_weights<kBf16>(weights, p);
    score_gradients_of_keys(ds, p, Here::statistics(stage));
    pack_weights<kBf16>(gradients, ds);
    pin(weights);
    pin(gradients);
    pin(dk[0]);
    pin(dv[0]);
    fence_products();
    begin_weighted_rows<kBf16, kWidth>(dv[0], weights, Here::passing(1, stage));
    begin_weighted_rows<kBf16, kWidth>(dk[0], gradients, Here::passing(0, stage));
    wait_for_products<0>();
    pin(dk[0]);
    pin(dv[0]);
    release(Here::empty(stage));
  }
#pragma unroll
  for (auto& part : dk[0]) scale_sums(part, f.g.scale);
  wait_for_threads<kGroupThreads>(1 + group);
  const HeadRows to = f.g.places.key(f.g.dqkv, work.b, work.kv_head);
  store_sums<kBf16, kWidth>(dk, Here::staying(0, group), to, key, f.g.places.seq, f.g.adds);
  store_sums<kBf16, kWidth>(dv, Here::staying(1, group), f.g.places.value(to), key, f.g.places.seq, f.g.adds);
}

// dQ: queries and dout stay, keys and values pass.

template <int kWidth>
struct QueryWork {
  int b, head, kv_head, first, tiles;

  __device__ explicit QueryWork(const Backward& f) {
    const BlockOrder::Place place = f.order.of_block();
    b = place.head / f.g.places.heads;
    head = place.head % f.g.places.heads;
    kv_head = head / f.g.places.group();
    first = ((f.g.places.seq - 1) / kRows - place.tile) * kRows;
    const int end = first + kRows < f.g.places.seq ? first + kRows : f.g.places.seq;
    tiles = (end + kTileRows - 1) / kTileRows;
  }
};

template <int kWidth>
__device__ void produce_keys(const Backward& f, const QueryWork<kWidth>& work) {
  using Here = Held<kWidth>;
  const int keys = (f.g.places.heads + work.kv_head) * kWidth;
  const int values = keys + f.g.places.kv_heads * kWidth;
  Here::load_staying(f.qkv, work.head * kWidth, f.dout, work.head * kWidth, work.first, work.b);
  for (int i = 0; i < work.tiles; ++i) {
    Here::load_passing(i, f.qkv, keys, f.qkv, values, i * kTileRows, work.b, 0, [](int /*stage*/) {});
  }
}

/// L and D of this thread's two queries, and what is computed with them from the scores.
struct QueryRows {
  float2 rows[2];
  float scale_log2;

  // Computes P from S. `diagonal` is the last column that the first row attends to. Returns the sum of all.
  __device__ float probabilities(float (&p)[kTileParts][4], int diagonal) const {
    float all = 0.0F;
#pragma unroll
    for (int n = 0; n < kTileParts; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool meets = 8 * n + e % 2 - e / 2 * 8 <= diagonal;
        const float weight = exp2_fast(fmaf(p[n][e], scale_log2, -rows[e / 2].x));
        p[n][e] = meets ? weight : 0.0F;
        all += p[n][e];
      }
    }
    return all;
  }
  // Computes dS from dO V^T.
  __device__ void score_gradients(float (&ds)[kTileParts][4], const float (&p)[kTileParts][4]) const {
#pragma unroll
    for (int n = 0; n < kTileParts; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) ds[n][e] = p[n][e] * (ds[n][e] - rows[e / 2].y);
    }
  }
};

template <bool kBf16, int kWidth>
__device__ void consume_keys(const Backward& f, const QueryWork<kWidth>& work, int group) {
  using Here = Held<kWidth>;
  const int query = work.first + group * kGroupRows + row_of_warp();
  const float2* statistics = f.g.of_head(work.b, work.head) + query + lane_of_warp() / 4;
  const QueryRows rows{{statistics[0], statistics[8]}, f.g.scale * kLog2E};
  const int diagonal = query + lane_of_warp() / 4 - lane_of_warp() % 4 * 2;
  float dq[1][kWidth / 8][4];
  float p[kTileParts][4];
  float ds[kTileParts][4];
  std::uint32_t gradients[kTileSlices][4];
  clear(dq);
  wait_for_phase(Here::all_here(), 0);
  wait_for_phase(Here::full(0), 0);
  pin(p);
  pin(ds);
  fence_products();
  begin_scores<kBf16, kWidth>(p, Here::staying(0, group), Here::passing(0, 0));
  begin_scores<kBf16, kWidth>(ds, Here::staying(1, group), Here::passing(1, 0));
  wait_for_products<1>();
  pin(p);
  wait_for_products_after<0>(rows.probabilities(p, diagonal));
  pin(ds);
  rows.score_gradients(ds, p);
  pack_weights<kBf16>(gradients, ds);
  for (int i = 1; i < work.tiles; ++i) {
    const int stage = buffer_of(i);
    wait_for_phase(Here::full(stage), phase_of(i));
    pin(p);
    pin(ds);
    pin(gradients);
    pin(dq[0]);
    fence_products();
    begin_scores<kBf16, kWidth>(p, Here::staying(0, group), Here::passing(0, stage));
    begin_scores<kBf16, kWidth>(ds, Here::staying(1, group), Here::passing(1, stage));
    begin_weighted_rows<kBf16, kWidth>(dq[0], gradients, Here::passing(0, buffer_of(i - 1)));
    wait_for_products<2>();
    pin(p);
    wait_for_products_after<1>(rows.probabilities(p, diagonal - i * kTileRows));
    pin(ds);
    rows.score_gradients(ds, p);
    wait_for_products<0>();
    pin(dq[0]);
    pin(gradients);
    release(Here::empty(buffer_of(i - 1)));
    pack_weights<kBf16>(gradients, ds);
  }
  pin(gradients);
  pin(dq[0]);
  fence_products();
  begin_weighted_rows<kBf16, kWidth>(dq[0], gradients, Here::passing(0, buffer_of(work.tiles - 1)));
  wait_for_products<0>();
  pin(dq[0]);
#pragma unroll
  for (auto& part : dq[0]) scale_sums(part, f.g.scale);
  wait_for_threads<kGroupThreads>(1 + group);
  store_sums<kBf16, kWidth>(dq, Here::staying(0, group), f.g.places.query(f.g.dqkv, work.b, work.head), query,
                            f.g.places.seq, f.g.adds);
}

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) key_gradients_on_hopper(const __grid_constant__ Backward f) {
  if constexpr (kHasHopper) {
    const KeyWork<kWidth> work(f);
    Held<kWidth>::init();
    if (group_of_thread() < 0) {
      give_registers<kProducerRegisters>();
      if (threadIdx.x == 0) produce_queries(f, work);
    } else {
      take_registers<kConsumerRegisters>();
      consume_queries<kBf16>(f, work, group_of_thread());
    }
  }
}

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) query_gradients_on_hopper(const __grid_constant__ Backward f) {
  if constexpr (kHasHopper) {
    const QueryWork<kWidth> work(f);
    Held<kWidth>::init();
    if (group_of_thread() < 0) {
      give_registers<kProducerRegisters>();
      if (threadIdx.x == 0) produce_keys(f, work);
    } else {
      take_registers<kConsumerRegisters>();
      consume_keys<kBf16>(f, work, group_of_thread());
    }
  }
}

template <bool kBf16, int kWidth>
void start(Queue queue, const AttentionSizes& z, const FlashBackward& g) {
  const std::int64_t tiles = (z.seq + kRows - 1) / kRows;
  const BlockOrder of_keys(z.batch * z.kv_heads, tiles, head_bytes(z) * z.queries_per_key);
  const BlockOrder of_queries(z.batch * z.heads, tiles, head_bytes(z) / z.queries_per_key);
  Backward f{box_map({g.qkv, z.qkv_width, z.seq, z.batch, kBf16}, kBoxRows),
             box_map({g.dout, z.out_width, z.seq, z.batch, kBf16}, kBoxRows), of_keys, g};
  launch(queue, of_keys.blocks(), kThreads, Held<kWidth>::kBytes, key_gradients_on_hopper<kBf16, kWidth>, f);
  f.order = of_queries;
  launch(queue, of_queries.blocks(), kThreads, Held<kWidth>::kBytes, query_gradients_on_hopper<kBf16, kWidth>, f);
}

}  // namespace hopper

void start_hopper_gradients(Queue queue, schedule::DType type, const AttentionSizes& z, const FlashBackward& g) {
  if (type == schedule::DType::kBf16) {
    return z.d == 64 ? hopper::start<true, 64>(queue, z, g) : hopper::start<true, 128>(queue, z, g);
  }
  z.d == 64 ? hopper::start<false, 64>(queue, z, g) : hopper::start<false, 128>(queue, z, g);
}

}  // namespace krigtune::cuda

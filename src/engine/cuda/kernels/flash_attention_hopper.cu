// Attention's forward pass on what Hopper has: products of warp groups that read shared memory by themselves (wgmma),
// copies of boxes by one thread (TMA), and warps with roles of their own (Shah et al. 2024, "FlashAttention-3", section
// 3.1 and algorithm 2; flash_attention.cu has the equations). A block has 128 queries and three warp groups:
//
//   producer    one thread asks for the queries, then for tiles of 128 keys and of 128 values, two of each in flight
//   consumers   two groups with 64 queries each, with the registers that the producer has given away. While the tensor
//               cores compute the scores of a tile, they multiply the weights of the one before with its values; while
//               they do that, exp runs
//
// Each buffer has two barriers: `full`, on which the copies report, and `empty`, on which the eight consumer warps do.
// Tiles are taken from the last one down, so that only the first one needs a mask; what lies behind the diagonal is
// never loaded. Rows beyond the sequence come as zeros.
//
// A consumer warp group and tile of d = 128: 16 wgmma of 128 cycles on its quarter of the multiprocessor's tensor
// cores, shared with the other group, 64 ex2 a thread: wgmma limits it.
#include "engine/cuda/kernels/flash_attention_hopper.h"
#include "engine/cuda/kernels/flash_attention_tiles.h"
#include "engine/cuda/kernels/hopper_operands.h"
#include "engine/cuda/runtime/tensor_map.h"

namespace krigtune::cuda {
namespace hopper {  // named, for where it is compiled for another GPU nothing of it is used, which nvcc reports else

inline constexpr int kGroupThreads = 128;
inline constexpr int kGroupWarps = kGroupThreads / kWarpThreads;
inline constexpr int kConsumers = 2;
inline constexpr int kHopperThreads = (1 + kConsumers) * kGroupThreads;
inline constexpr int kGroupQueries = 64;
inline constexpr int kHopperQueries = kConsumers * kGroupQueries;
inline constexpr int kHopperKeys = 128;
inline constexpr int kKeyParts = kHopperKeys / 8;
inline constexpr int kStages = 2;
inline constexpr int kSliceElems = 16;  // of the inner size of a product
inline constexpr int kSlicesOfBox = kBoxElems / kSliceElems;
inline constexpr int kSlicesOfKeys = kHopperKeys / kSliceElems;
inline constexpr int kBoxRows = 64;
inline constexpr int kRowBytes = kBoxElems * 2;
inline constexpr int kBoxBytes = kBoxRows * kRowBytes;
inline constexpr int kEightRowsBytes = 8 * kRowBytes;

// A multiprocessor has 512 registers for each thread of a warp group; without asking, all get the same.
inline constexpr int kProducerRegisters = 24;
inline constexpr int kConsumerRegisters = 240;
static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <= 65536 / kGroupThreads);

struct Forward {
  CUtensorMap qkv;  ///< columns: those of all heads' queries, keys, values; rows: a sequence's; planes: sequences
  BlockOrder order;
  HeadPlaces places;
  float scale_log2;
  uint4* out;
  float* logsumexp;
  bool adds;
  bool causal;
};

/// What a block has in shared memory; offsets in bytes. A tile is parts of 64 columns, each with all rows of 128 bytes;
/// a part is boxes.
template <int kWidth>
struct Shared {
  static constexpr int kParts = kWidth / kBoxElems;
  static constexpr int kGroupQueryBytes = kParts * kBoxBytes;
  static constexpr int kPartBytes = kHopperKeys * kRowBytes;
  static constexpr int kTileBytes = kParts * kPartBytes;
  static constexpr int kKeysAt = kConsumers * kGroupQueryBytes;
  static constexpr int kValuesAt = kKeysAt + kStages * kTileBytes;
  static constexpr int kBarriersAt = kValuesAt + kStages * kTileBytes;
  static constexpr int kBarriers = kConsumers + 4 * kStages;
  static constexpr int kBytes = kBarriersAt + kBarriers * static_cast<int>(sizeof(PhaseBarrier));

  __device__ static std::byte* queries(int group) { return dynamic_shared<std::byte>() + group * kGroupQueryBytes; }
  __device__ static std::byte* keys(int stage) { return dynamic_shared<std::byte>() + kKeysAt + stage * kTileBytes; }
  __device__ static std::byte* values(int stage) {
    return dynamic_shared<std::byte>() + kValuesAt + stage * kTileBytes;
  }
  __device__ static PhaseBarrier* barrier(int i) {
    return reinterpret_cast<PhaseBarrier*>(dynamic_shared<std::byte>() + kBarriersAt) + i;
  }
  __device__ static PhaseBarrier* queries_full(int group) { return barrier(group); }
  __device__ static PhaseBarrier* keys_full(int stage) { return barrier(kConsumers + stage); }
  __device__ static PhaseBarrier* values_full(int stage) { return barrier(kConsumers + kStages + stage); }
  __device__ static PhaseBarrier* keys_empty(int stage) { return barrier(kConsumers + 2 * kStages + stage); }
  __device__ static PhaseBarrier* values_empty(int stage) { return barrier(kConsumers + 3 * kStages + stage); }
};

/// The block's part of the work. Tile number i is the i-th that is taken: from the last one down.
struct Work {
  int b, head, kv_head;
  int first;  ///< query
  int tiles;  ///< of keys

  __device__ explicit Work(const Forward& f) {
    const BlockOrder::Place place = f.order.of_block();
    b = place.head / f.places.heads;
    head = place.head % f.places.heads;
    kv_head = head / f.places.group();
    first = ((f.places.seq - 1) / kHopperQueries - place.tile) * kHopperQueries;
    static_assert(kHopperKeys == kHopperQueries, "the tile on the diagonal is the last one");
    tiles = f.causal ? first / kHopperKeys + 1 : (f.places.seq - 1) / kHopperKeys + 1;
  }
  __device__ int first_key(int i) const { return (tiles - 1 - i) * kHopperKeys; }
};

/// Buffer of tile i, and the parity of its phase: tiles i, i + 2, ... are phases 0, 1, ... of a buffer's barriers.
__device__ inline int stage_of(int i) { return i % kStages; }
__device__ inline unsigned parity_of(int i) { return static_cast<unsigned>(i / kStages % 2); }

template <int kWidth>
__device__ void load_queries(const Forward& f, const Work& work) {
  using Here = Shared<kWidth>;
  for (int group = 0; group < kConsumers; ++group) {
    PhaseBarrier* full = Here::queries_full(group);
    arrive_and_expect(full, Here::kGroupQueryBytes);
    for (int part = 0; part < Here::kParts; ++part) {
      load_box(Here::queries(group) + part * kBoxBytes, f.qkv, full, work.head * kWidth + part * kBoxElems,
               work.first + group * kGroupQueries, work.b);
    }
  }
}

/// column: the first one of the head's keys or values.
template <int kWidth>
__device__ void load_tile(const Forward& f, const Work& work, std::byte* tile, PhaseBarrier* full, PhaseBarrier* empty,
                          int column, int i) {
  using Here = Shared<kWidth>;
  if (i >= kStages) wait_for_phase(empty, parity_of(i - kStages));
  arrive_and_expect(full, Here::kTileBytes);
  for (int part = 0; part < Here::kParts; ++part) {
    for (int row = 0; row < kHopperKeys; row += kBoxRows) {
      load_box(tile + part * Here::kPartBytes + row * kRowBytes, f.qkv, full, column + part * kBoxElems,
               work.first_key(i) + row, work.b);
    }
  }
}

// In the order in which buffers become free: keys of tile i + 1 before values of tile i.
template <int kWidth>
__device__ void produce(const Forward& f, const Work& work) {
  using Here = Shared<kWidth>;
  const int keys = (f.places.heads + work.kv_head) * kWidth;
  const int values = keys + f.places.kv_heads * kWidth;
  load_queries<kWidth>(f, work);
  for (int i = -1; i < work.tiles; ++i) {
    const int next = stage_of(i + 1);
    if (i + 1 < work.tiles) {
      load_tile<kWidth>(f, work, Here::keys(next), Here::keys_full(next), Here::keys_empty(next), keys, i + 1);
    }
    if (i < 0) continue;
    const int stage = stage_of(i);
    load_tile<kWidth>(f, work, Here::values(stage), Here::values_full(stage), Here::values_empty(stage), values, i);
  }
}

/// Says that this warp is done with a buffer.
__device__ inline void release(PhaseBarrier* empty) {
  if (lane_of_warp() == 0) arrive(empty);
}

// S = Q K^T of tile i, begun.
template <bool kBf16, int kWidth>
__device__ void begin_scores(float (&s)[kKeyParts][4], int group, int i) {
  using Here = Shared<kWidth>;
#pragma unroll
  for (int part = 0; part < Here::kParts; ++part) {
#pragma unroll
    for (int slice = 0; slice < kSlicesOfBox; ++slice) {
      const int within = slice * kSliceElems * 2;
      multiply_rows_128<kBf16>(s, shared_rows(Here::queries(group) + part * kBoxBytes + within, kEightRowsBytes),
                               shared_rows(Here::keys(stage_of(i)) + part * Here::kPartBytes + within, kEightRowsBytes),
                               part + slice > 0);
    }
  }
  commit_products();
}

// O += P V of tile i, begun.
template <bool kBf16, int kWidth>
__device__ void begin_values(float (&sums)[kWidth / 8][4], const std::uint32_t (&p)[kSlicesOfKeys][4], int i) {
  using Here = Shared<kWidth>;
#pragma unroll
  for (int slice = 0; slice < kSlicesOfKeys; ++slice) {
    multiply_weights_by_rows<kBf16>(
        sums, p[slice],
        shared_columns(Here::values(stage_of(i)) + slice * kSliceElems * kRowBytes, Here::kPartBytes, kEightRowsBytes));
  }
  commit_products();
}

// Scores that this query does not meet become -infinity. query, key: the first of this warp and of the tile; last: the
// last key of the sequence.
__device__ inline void hide(float (&s)[kKeyParts][4], int query, int key, int last, bool causal) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + lane_of_warp() / 4 + 8 * half;
    const int end = (causal && row < last ? row : last) - key - lane_of_warp() % 4 * 2;
#pragma unroll
    for (int n = 0; n < kKeyParts; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (8 * n + e > end) s[n][2 * half + e] = -INFINITY;
      }
    }
  }
}

/// The top m and the sum l of this thread's two rows, as in flash_attention.cu.
struct RowSoftmax {
  float top[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};

  // Scores become weights; `correction` is what the sums so far have to be multiplied with.
  __device__ void weigh(float (&s)[kKeyParts][4], float (&correction)[2], float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeyParts; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      largest = fmaxf(top[half], largest * scale_log2);
      correction[half] = exp2_fast(top[half] - largest);
      top[half] = largest;
      float total = 0.0F;
#pragma unroll
      for (int n = 0; n < kKeyParts; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[n][e] = exp2_fast(fmaf(s[n][e], scale_log2, -largest));
          total += s[n][e];
        }
      }
      sum[half] = sum[half] * correction[half] + total;
    }
  }
};

template <bool kBf16>
__device__ void pack_weights(std::uint32_t (&p)[kSlicesOfKeys][4], const float (&s)[kKeyParts][4]) {
#pragma unroll
  for (int slice = 0; slice < kSlicesOfKeys; ++slice) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&part)[4] = s[2 * slice + i / 2];
      p[slice][i] = pack<kBf16>(part[i % 2 * 2], part[i % 2 * 2 + 1]);
    }
  }
}

// Sums become O, which is written, and L. query: the first of this warp.
template <bool kBf16, int kWidth>
__device__ void finish(float (&sums)[1][kWidth / 8][4], const RowSoftmax& softmax, const Forward& f, const Work& work,
                       int group, int query) {
  constexpr float kLn2OfTop = 0.6931471805599453F;
  const int lane = lane_of_warp();
  float* logsumexp = f.logsumexp + (static_cast<std::int64_t>(work.b) * f.places.heads + work.head) * f.places.seq;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = softmax.sum[half];
    total += __shfl_xor_sync(kAllLanes, total, 1);
    total += __shfl_xor_sync(kAllLanes, total, 2);
    const float inverse = 1.0F / total;
#pragma unroll
    for (int c = 0; c < kWidth / 8; ++c) {
      sums[0][c][2 * half] *= inverse;
      sums[0][c][2 * half + 1] *= inverse;
    }
    const int i = query + 8 * half + lane / 4;
    if (lane % 4 == 0 && i < f.places.seq) logsumexp[i] = softmax.top[half] * kLn2OfTop + logf(total);
  }
  // The group's queries are read no more, once all of its warps have come here.
  wait_for_threads<kGroupThreads>(1 + group);
  const Tile<kWidth> mine{group * Shared<kWidth>::kGroupQueryBytes / static_cast<int>(sizeof(uint4))};
  store_rows<kBf16>(sums, mine.from(warp_of_block() % kGroupWarps * kSliceElems),
                    f.places.output(f.out, work.b, work.head), query, f.places.seq, f.adds);
}

template <bool kBf16, int kWidth>
__device__ void consume(const Forward& f, const Work& work, int group) {
  using Here = Shared<kWidth>;
  const int query = work.first + group * kGroupQueries + warp_of_block() % kGroupWarps * kSliceElems;
  float s[kKeyParts][4];
  float sums[1][kWidth / 8][4];
  float correction[2];
  std::uint32_t p[kSlicesOfKeys][4];
  RowSoftmax softmax;
  clear(sums);

  wait_for_phase(Here::queries_full(group), 0);
  wait_for_phase(Here::keys_full(0), 0);
  pin(s);
  fence_products();
  begin_scores<kBf16, kWidth>(s, group, 0);
  wait_for_products<0>();
  pin(s);
  release(Here::keys_empty(0));
  hide(s, query, work.first_key(0), f.places.seq - 1, f.causal);
  softmax.weigh(s, correction, f.scale_log2);
  pack_weights<kBf16>(p, s);

  for (int i = 1; i < work.tiles; ++i) {
    wait_for_phase(Here::keys_full(stage_of(i)), parity_of(i));
    wait_for_phase(Here::values_full(stage_of(i - 1)), parity_of(i - 1));
    pin(s);
    pin(p);
    pin(sums[0]);
    fence_products();
    begin_scores<kBf16, kWidth>(s, group, i);
    begin_values<kBf16, kWidth>(sums[0], p, i - 1);
    wait_for_products<1>();
    pin(s);
    release(Here::keys_empty(stage_of(i)));
    softmax.weigh(s, correction, f.scale_log2);
    wait_for_products_after<0>(softmax.sum[0] + softmax.sum[1]);
    pin(sums[0]);
    pin(p);
    release(Here::values_empty(stage_of(i - 1)));
#pragma unroll
    for (auto& part : sums[0]) {
#pragma unroll
      for (int e = 0; e < 4; ++e) part[e] *= correction[e / 2];
    }
    pack_weights<kBf16>(p, s);
  }

  const int last = work.tiles - 1;
  wait_for_phase(Here::values_full(stage_of(last)), parity_of(last));
  pin(p);
  pin(sums[0]);
  fence_products();
  begin_values<kBf16, kWidth>(sums[0], p, last);
  wait_for_products<0>();
  pin(sums[0]);
  finish<kBf16, kWidth>(sums, softmax, f, work, group, query);
}

template <bool kBf16, int kWidth>
__device__ void attend_as_role(const Forward& f) {
  using Here = Shared<kWidth>;
  const Work work(f);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kConsumers + 2 * kStages; ++i) init_barrier(Here::barrier(i), 1);
    for (int i = 0; i < 2 * kStages; ++i) init_barrier(Here::keys_empty(0) + i, kConsumers * kGroupWarps);
    publish_barriers();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
  if (group == 0) {
    give_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce<kWidth>(f, work);
  } else {
    take_registers<kConsumerRegisters>();
    consume<kBf16, kWidth>(f, work, group - 1);
  }
}

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kHopperThreads, 1) attend_on_hopper(const __grid_constant__ Forward f) {
  if constexpr (kHasHopper) attend_as_role<kBf16, kWidth>(f);
}

template <bool kBf16>
void start(const DeviceCall& call, const AttentionSizes& z, const Forward& f) {
  if (z.d == 64) {
    return launch(call.queue, f.order.blocks(), kHopperThreads, Shared<64>::kBytes, attend_on_hopper<kBf16, 64>, f);
  }
  launch(call.queue, f.order.blocks(), kHopperThreads, Shared<128>::kBytes, attend_on_hopper<kBf16, 128>, f);
}

}  // namespace hopper

void hopper_attention_forward(const DeviceCall& call, Meets meets) {
  const AttentionSizes z(call.shape());
  const std::int64_t tiles = (z.seq + hopper::kHopperQueries - 1) / hopper::kHopperQueries;
  const std::int64_t read_bytes = 2 * 2 * z.seq * z.d / z.queries_per_key;  // keys and values
  const schedule::DType type = call.operands[0].type;
  const hopper::Forward f{box_map({call.data<uint4>(0), z.qkv_width, z.seq, z.batch}, hopper::kBoxRows, type),
                          BlockOrder(z.batch * z.heads, tiles, read_bytes),
                          HeadPlaces(z),
                          z.scale * kLog2E,
                          call.data<uint4>(1),
                          call.data<float>(2),
                          call.adds(1),
                          meets == Meets::kEarlierKeys};
  if (type == schedule::DType::kBf16) return hopper::start<true>(call, z, f);
  hopper::start<false>(call, z, f);
}

}  // namespace krigtune::cuda

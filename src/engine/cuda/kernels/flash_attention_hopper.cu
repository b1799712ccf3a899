// The forward pass of attention with the features of Hopper: products of warp groups that read shared memory by
// themselves (wgmma), copies of boxes that one thread starts (TMA), and warps with different roles (Shah et al. 2024,
// "FlashAttention-3", section 3.1 and algorithm 2; flash_attention.cu has the equations). A block has 128 queries and
// three warp groups:
//
//   producer    one thread requests the queries, then tiles of 128 keys and of 128 values, two of each in flight
//   consumers   two groups with 64 queries each, with the registers that the producer has released. The tensor cores
//               compute the scores of a tile, then the product of the previous tile's weights with its values; during
//               the second, the group computes exp
//
// Each buffer has two barriers: the copies report on `full`, the eight consumer warps on `empty`. Tiles are taken from
// the last one down, so that only the first one needs a mask; tiles beyond the diagonal are never loaded. Rows beyond
// the end of the sequence are zeros.
//
// For d = 128, a consumer warp group needs 16 wgmma of 64 cycles for a tile, and 8192 ex2, of which a multiprocessor
// computes 16 in a cycle: wgmma is the limit by two to one if both run at the same time. With d = 64 they take equally
// long.
#include "engine/cuda/kernels/flash_attention_hopper.h"
#include "engine/cuda/kernels/hopper_tiles.h"

namespace krigtune::cuda {
namespace hopper {

inline constexpr int kKeys = 128;
inline constexpr int kKeyParts = kKeys / 8;
inline constexpr int kKeySlices = kKeys / kSliceElems;

struct Forward {
  CUtensorMap qkv;  ///< columns: all heads' queries, keys, values; rows: of a sequence; planes: sequences
  BlockOrder order;
  HeadPlaces places;
  float scale_log2;
  uint4* out;
  float* logsumexp;
  bool adds;
  bool causal;
};

/// The shared memory of a block. Offsets are in bytes.
template <int kWidth>
struct Shared {
  using Queries = HeadTile<kWidth, kGroupRows>;
  using Keys = HeadTile<kWidth, kKeys>;  ///< also of values
  static constexpr int kKeysAt = kConsumers * Queries::kBytes;
  static constexpr int kValuesAt = kKeysAt + kStages * Keys::kBytes;
  static constexpr int kBarriersAt = kValuesAt + kStages * Keys::kBytes;
  static constexpr int kBarriers = kConsumers + 4 * kStages;
  static constexpr int kBytes = kBarriersAt + kBarriers * static_cast<int>(sizeof(PhaseBarrier));

  __device__ static std::byte* queries(int group) { return dynamic_shared<std::byte>() + group * Queries::kBytes; }
  __device__ static std::byte* keys(int stage) { return dynamic_shared<std::byte>() + kKeysAt + stage * Keys::kBytes; }
  __device__ static std::byte* values(int stage) {
    return dynamic_shared<std::byte>() + kValuesAt + stage * Keys::kBytes;
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

/// The block's part of the work. Tiles are taken from the last one down: tile number i is the i-th that is taken.
struct Work {
  int b, head, kv_head;
  int first;  ///< first query
  int tiles;  ///< number of tiles of keys

  __device__ explicit Work(const Forward& f) {
    const BlockOrder::Place place = f.order.of_block();
    b = place.head / f.places.heads;
    head = place.head % f.places.heads;
    kv_head = head / f.places.group();
    first = ((f.places.seq - 1) / kRows - place.tile) * kRows;
    static_assert(kKeys == kRows, "the tile on the diagonal is the last one");
    tiles = f.causal ? first / kKeys + 1 : (f.places.seq - 1) / kKeys + 1;
  }
  __device__ int first_key(int i) const { return (tiles - 1 - i) * kKeys; }
};

template <int kWidth>
__device__ void load_queries(const Forward& f, const Work& work) {
  using Here = Shared<kWidth>;
  for (int group = 0; group < kConsumers; ++group) {
    PhaseBarrier* full = Here::queries_full(group);
    arrive_and_expect(full, Here::Queries::kBytes);
    Here::Queries::load(Here::queries(group), f.qkv, full, work.head * kWidth, work.first + group * kGroupRows, work.b);
  }
}

/// Loads a tile once its buffer is empty. `column` is the first one of the head's keys or values.
template <int kWidth>
__device__ void load_tile(const Forward& f, const Work& work, std::byte* tile, PhaseBarrier* full, PhaseBarrier* empty,
                          int column, int i) {
  using Keys = typename Shared<kWidth>::Keys;
  if (i >= kStages) wait_for_phase(empty, parity_of(i - kStages));
  arrive_and_expect(full, Keys::kBytes);
  Keys::load(tile, f.qkv, full, column, work.first_key(i), work.b);
}

// Loads in the order in which buffers become free: the keys of tile i + 1 before the values of tile i.
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

// Sets the scores of keys that a query does not attend to to -infinity. `query` and `key` are the first ones of this
// warp and of the tile, `last` is the last key of the sequence.
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

/// The maximum m and the sum l of this thread's two rows, as in flash_attention.cu.
struct RowSoftmax {
  float top[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};

  // Turns scores into weights. The sums so far must be multiplied by `correction`.
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

// Turns the sums into O, and writes it and L. `query` is the first one of this warp.
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
  // Once all of the group's warps have come here, its queries are not read any more, so their memory is free.
  wait_for_threads<kGroupThreads>(1 + group);
  store_sums<kBf16, kWidth>(sums, Shared<kWidth>::queries(group), f.places.output(f.out, work.b, work.head), query,
                            f.places.seq, f.adds);
}

template <bool kBf16, int kWidth>
__device__ void consume(const Forward& f, const Work& work, int group) {
  using Here = Shared<kWidth>;
  const int query = work.first + group * kGroupRows + row_of_warp();
  float s[kKeyParts][4];
  float sums[1][kWidth / 8][4];
  float correction[2];
  std::uint32_t p[kKeySlices][4];
  RowSoftmax softmax;
  clear(sums);

  wait_for_phase(Here::queries_full(group), 0);
  wait_for_phase(Here::keys_full(0), 0);
  pin(s);
  fence_products();
  begin_scores<kBf16, kWidth>(s, Here::queries(group), Here::keys(0));
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
    begin_scores<kBf16, kWidth>(s, Here::queries(group), Here::keys(stage_of(i)));
    begin_weighted_rows<kBf16, kWidth>(sums[0], p, Here::values(stage_of(i - 1)));
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
  begin_weighted_rows<kBf16, kWidth>(sums[0], p, Here::values(stage_of(last)));
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
    for (int i = 0; i < 2 * kStages; ++i) init_barrier(Here::keys_empty(0) + i, kReleases);
    publish_barriers();
  }
  __syncthreads();
  const int group = group_of_thread();
  if (group < 0) {
    give_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce<kWidth>(f, work);
  } else {
    take_registers<kConsumerRegisters>();
    consume<kBf16, kWidth>(f, work, group);
  }
}

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) attend_on_hopper(const __grid_constant__ Forward f) {
  if constexpr (kHasHopper) attend_as_role<kBf16, kWidth>(f);
}

template <bool kBf16>
void start(const DeviceCall& call, const AttentionSizes& z, const Forward& f) {
  if (z.d == 64) {
    return launch(call.queue, f.order.blocks(), kThreads, Shared<64>::kBytes, attend_on_hopper<kBf16, 64>, f);
  }
  launch(call.queue, f.order.blocks(), kThreads, Shared<128>::kBytes, attend_on_hopper<kBf16, 128>, f);
}

}  // namespace hopper

void hopper_attention_forward(const DeviceCall& call, Meets meets) {
  const AttentionSizes z(call.shape());
  const std::int64_t tiles = (z.seq + hopper::kRows - 1) / hopper::kRows;
  const std::int64_t read_bytes = 2 * 2 * z.seq * z.d / z.queries_per_key;  // keys and values
  const bool bf16 = call.operands[0].type == schedule::DType::kBf16;
  const hopper::Forward f{box_map({call.data<uint4>(0), z.qkv_width, z.seq, z.batch, bf16}, hopper::kBoxRows),
                          BlockOrder(z.batch * z.heads, tiles, read_bytes),
                          HeadPlaces(z),
                          z.scale * kLog2E,
                          call.data<uint4>(1),
                          call.data<float>(2),
                          call.adds(1),
                          meets == Meets::kEarlierKeys};
  if (bf16) return hopper::start<true>(call, z, f);
  hopper::start<false>(call, z, f);
}

}  // namespace krigtune::cuda

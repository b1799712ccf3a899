// Causal attention on tensor cores (Dao 2023, "FlashAttention-2", algorithm 1; attention.cu has the equations). A block
// has 128 queries, a warp 32 of them. Keys and values come in tiles of 64; the next tile is copied in the background
// while the warp computes with this one. S stays in the registers where mma leaves it, becomes
//
//   P = exp2(c S - c m),  c = log2(e) / sqrt(d),  m: the largest S of the row so far,
//
// is rounded to 16 bits in place and multiplied by V. Whenever m grows, the earlier sums are multiplied by a
// correction. With l the sum of the row's P:
//
//   correction = exp2(c (m_before - m));  at the end O = sums / l,  L = m / sqrt(d) + ln l
//
// Only tiles on the diagonal are masked.
//
// For d = 128, a warp needs 256 mma, 80 ldmatrix (each 4 cycles of shared memory) and 64 ex2 a lane for each tile: mma
// is the limit.
#include "engine/cuda/kernels/flash_attention.h"
#include "engine/cuda/kernels/flash_attention_backward.h"
#include "engine/cuda/kernels/flash_attention_tiles.h"

namespace krigtune::cuda {
namespace {

constexpr int kM = 2;  // parts of 16 queries of a warp
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpThreads;
constexpr int kQueries = kWarps * kM * 16;
constexpr int kKeys = 64;
constexpr int kN = kKeys / 8;
constexpr float kLn2 = 0.6931471805599453F;

struct Forward {
  HeadPlaces places;
  BlockOrder order;
  float scale;
  uint4* qkv;
  uint4* out;
  float* logsumexp;
  bool adds;
};

/// The maximum m and the sum l of each row of a warp; l is that of this lane's columns only.
struct Softmax {
  float top[kM][2];
  float sum[kM][2];

  __device__ Softmax() {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      top[m][0] = top[m][1] = -INFINITY;
      sum[m][0] = sum[m][1] = 0.0F;
    }
  }

  // Updates the maxima with the scores of a tile. Returns whether the sums so far must be multiplied by `correction`.
  __device__ bool rise(float (&correction)[kM][2], const float (&s)[kM][kN][4], float scale_log2) {
    float lowest = 1.0F;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float largest = -INFINITY;
#pragma unroll
        for (int n = 0; n < kN; ++n) largest = fmaxf(largest, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
        largest = fmaxf(top[m][half], largest * scale_log2);
        correction[m][half] = exp2_fast(top[m][half] - largest);
        top[m][half] = largest;
        sum[m][half] *= correction[m][half];
        lowest = fminf(lowest, correction[m][half]);
      }
    }
    return __ballot_sync(kAllLanes, lowest < 1.0F) != 0;
  }

  // Computes P of the 16 keys of parts n and n + 1.
  template <bool kBf16>
  __device__ void weigh(std::uint32_t (&p)[kM][4], const float (&s)[kM][kN][4], int n, float scale_log2) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int half = i % 2;
        const float low = exp2_fast(fmaf(s[m][n + i / 2][2 * half], scale_log2, -top[m][half]));
        const float high = exp2_fast(fmaf(s[m][n + i / 2][2 * half + 1], scale_log2, -top[m][half]));
        sum[m][half] += low + high;
        p[m][i] = pack<kBf16>(low, high);
      }
    }
  }
};

template <int kC>
__device__ void correct(float (&sums)[kM][kC][4], const float (&correction)[kM][2]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int c = 0; c < kC; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][c][e] *= correction[m][e / 2];
    }
  }
}

/// The left side of S = Q K^T. It is kept in registers if they suffice; otherwise it is read from shared memory again
/// for every tile.
template <int kWidth>
struct Queries {
  static constexpr bool kInRegisters = kWidth == 64;
  static constexpr int kSlices = kWidth / 16;
  Tile<kWidth> rows;
  std::uint32_t kept[kInRegisters ? kSlices : 1][kM][4];

  __device__ void keep() {
    if constexpr (kInRegisters) {
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) load_left(kept[slice], rows, slice);
    }
  }
  template <bool kBf16>
  __device__ void multiply(float (&s)[kM][kN][4], const Tile<kWidth>& keys) const {
    if constexpr (kInRegisters) {
      clear(s);
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) multiply_slice<kBf16>(s, kept[slice], keys, slice);
    } else {
      multiply_rows<kBf16>(s, rows, keys);
    }
  }
};

// Turns the sums into O and writes L.
template <int kC>
__device__ void finish(float (&sums)[kM][kC][4], const Softmax& softmax, float* logsumexp, int first, int seq) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = softmax.sum[m][half];
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      const float inverse = 1.0F / total;
#pragma unroll
      for (int c = 0; c < kC; ++c) {
        sums[m][c][2 * half] *= inverse;
        sums[m][c][2 * half + 1] *= inverse;
      }
      const int i = first + 16 * m + 8 * half + lane / 4;
      if (lane % 4 == 0 && i < seq) logsumexp[i] = softmax.top[m][half] * kLn2 + logf(total);
    }
  }
}

template <int kWidth>
constexpr int kSharedBytes = Tile<kWidth>::bytes(kQueries + 4 * kKeys);  // two tiles of keys, two of values

template <bool kBf16, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) attend(Forward f) {
  const BlockOrder::Place place = f.order.of_block();
  const int seq = f.places.seq;
  const int b = place.head / f.places.heads;
  const int head = place.head % f.places.heads;
  const int first = ((seq - 1) / kQueries - place.tile) * kQueries;
  const int mine = first + warp_of_block() * kM * 16;  // this warp's first query
  const int end = first + kQueries < seq ? first + kQueries : seq;
  const HeadRows keys = f.places.key(f.qkv, b, head / f.places.group());
  const Tile<kWidth> shared;
  const KeyTiles<kKeys, kThreads, kWidth> tiles{shared.from(kQueries), keys, f.places.value(keys)};
  copy_rows<kQueries, kThreads>(shared, f.places.query(f.qkv, b, head), first, seq);
  tiles.copy(0, seq);

  Queries<kWidth> queries{shared.from(mine - first), {}};
  Softmax softmax;
  float sums[kM][kWidth / 8][4];
  clear(sums);
  for (int j = 0; j < end; j += kKeys) {
    wait_for_copies<0>();
    __syncthreads();
    if (j == 0) queries.keep();
    if (j + kKeys < end) tiles.copy(j + kKeys, seq);
    if (j >= mine + kM * 16) continue;  // beyond the diagonal of this warp's queries
    float s[kM][kN][4];
    queries.template multiply<kBf16>(s, tiles.key(j));
    if (j + kKeys > mine) mask<true>(s, j - mine);
    float correction[kM][2];
    if (softmax.rise(correction, s, f.scale * kLog2E)) correct(sums, correction);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t p[kM][4];
      softmax.weigh<kBf16>(p, s, n, f.scale * kLog2E);
      multiply_weights<kBf16>(sums, p, tiles.value(j), 8 * n);
    }
  }
  finish(sums, softmax, f.logsumexp + static_cast<std::int64_t>(place.head) * seq, mine, seq);
  store_rows<kBf16>(sums, queries.rows, f.places.output(f.out, b, head), mine, seq, f.adds);
}

template <bool kBf16>
void start(const DeviceCall& call, const AttentionSizes& z, const Forward& f) {
  if (z.d == 64) return launch(call.queue, f.order.blocks(), kThreads, kSharedBytes<64>, attend<kBf16, 64>, f);
  launch(call.queue, f.order.blocks(), kThreads, kSharedBytes<128>, attend<kBf16, 128>, f);
}

}  // namespace

namespace {

// Returns the limit of the current device. It is queried each time, because a process may change its device, and the
// query is cheap.
int most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDevice(&device));
  KRIGTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

}  // namespace

bool flash_fits(const DeviceCall& call) {
  const bool forward = call.operation.kind == schedule::OpKind::kAttentionForward;
  const std::size_t plain_operands = forward ? 3 : 5;
  const std::size_t logsumexp = forward ? 2 : 3;
  if (call.has(plain_operands) || call.shape().dropout > 0.0) return false;
  const std::int64_t d = call.shape().inner / call.shape().heads;
  const schedule::DType type = call.operands[0].type;
  if ((d != 64 && d != 128) || (type != schedule::DType::kBf16 && type != schedule::DType::kFp16)) return false;
  if (!forward && most_shared_bytes() < key_gradient_shared_bytes(d)) return false;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (i == logsumexp) continue;
    const engine::OperandView& operand = call.operands[i];
    if (operand.type != type || reinterpret_cast<std::uintptr_t>(operand.data) % sizeof(uint4) != 0) return false;
  }
  return true;
}

void flash_attention_forward(const DeviceCall& call) {
  const AttentionSizes z(call.shape());
  const std::int64_t tiles = (z.seq + kQueries - 1) / kQueries;
  const std::int64_t read_bytes = 2 * 2 * z.seq * z.d / z.queries_per_key;  // keys and values
  const Forward f{HeadPlaces(z),
                  BlockOrder(z.batch * z.heads, tiles, read_bytes),
                  z.scale,
                  call.data<uint4>(0),
                  call.data<uint4>(1),
                  call.data<float>(2),
                  call.adds(1)};
  if (call.operands[0].type == schedule::DType::kBf16) return start<true>(call, z, f);
  start<false>(call, z, f);
}

}  // namespace krigtune::cuda

// Look-ups: x[t] = table[token[t]], 0 if another rank has the token; x[t] += positions[t mod seq], and its gradient. If
// the table is split over tensor ranks, a rank has the tokens [rank * outer, (rank + 1) * outer).
#include <limits>

#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

std::int64_t first_token(const DeviceCall& call) {
  const std::int64_t rows_of_batch = call.shape().batch * call.shape().seq;
  return call.shape().rows < rows_of_batch ? call.context.tensor_rank * call.shape().rows : 0;
}

}  // namespace

void embedding_forward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t held = call.shape().outer;
  const std::int64_t first = call.context.tensor_rank * held;
  const auto* tokens = call.data<const std::int32_t>(0);
  const Elements table(call, 1);
  const Elements x(call, 2);
  launch_row_packs(call.queue, call.shape().rows, h, {table, x}, [=] __device__(std::int64_t t, auto at) {
    const std::int64_t row = tokens[t] - first;
    x.put(at + t * h, row >= 0 && row < held ? table(at + row * h) : decltype(x(at)){});
  });
}

void positions_forward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t first = first_token(call);
  const Elements x(call, 0);
  const Elements positions(call, 1);
  launch_row_packs(call.queue, call.shape().rows, h, {x, positions}, [=] __device__(std::int64_t row, auto at) {
    x.add(at + row * h, positions(at + (first + row) % seq * h));
  });
}

void positions_backward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t rows = call.shape().rows;
  const std::int64_t first = first_token(call);
  const Elements dx(call, 0);
  const Elements dpositions(call, 1);
  launch_row_packs(call.queue, seq, h, {dx, dpositions}, [=] __device__(std::int64_t t, auto at) {
    decltype(dx(at)) sum{};
    // The loop starts with the first row at this position.
    for (std::int64_t row = (t - first % seq + seq) % seq; row < rows; row += seq) sum = plus(sum, dx(at + row * h));
    dpositions.put(at + t * h, sum);
  });
}

// The gradient of a table row is the sum of dx over the tokens that name it. All tokens may be different, or a few may
// occur again and again, so the tokens are sorted, and warps share the sum over equal ones:
//
//   place of token p = #{q: token[q] < token[p]} + #{q < p: token[q] = token[p]}
//
// Counting needs only integers: rows^2 comparisons (2.7e8 for 16384 rows, about 30 us of an H100's integer units), no
// atomics, and no memory of the size of the vocabulary. Then there is a block for each first one of equal tokens and
// each 32 packs of columns. Each of its warps adds every fourth row of the list, and the warps' sums are added in
// order, so the bits are always the same.
namespace {

constexpr std::int32_t kBehindAll = std::numeric_limits<std::int32_t>::max();
constexpr int kTileTokens = 2048;
constexpr int kSortWarps = 8;
constexpr int kSumWarps = 4;
constexpr int kRowsAtOnce = 4;  // loads of one warp that are in flight together

/// Tokens in ascending order, equal ones in the order of the sequence, and the places that they had.
struct Sorted {
  std::int32_t* tokens;
  std::int32_t* places;
};

/// Returns how many tokens in this warp's share of the tile, a contiguous part, come before token `mine` at place p.
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

/// Each lane has a token, and the warps of the block share the tokens with which it is compared.
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
  std::int64_t first, held;  ///< the tokens of this rank
};

/// Returns this warp's share of the sum over the tokens that equal the one at `begin`.
template <int kWidth, schedule::DType kType>
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

std::int64_t embedding_backward_scratch(const plan::Operation& operation) { return 2 * operation.shape.rows; }

void embedding_backward(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const std::int64_t held = call.shape().outer;
  const engine::OperandView& whole = call.operands[2];
  if (!call.adds(2)) clear_bytes(call.queue, whole.data, whole.elems * schedule::size_bytes(whole.type));
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

// Rotary positions (Su et al. 2021) in Llama's arrangement: within a head of d elements, (x_i, x_{i + d/2}) is rotated
// by the angle t theta^(-2 i / d), theta = 10000, where t is the position in the sequence. Backward rotates the other
// way. The angle is computed in fp64, because at t = 4096 an fp32 angle is off by 1e-4. To compute it only once for
// each (t, i), a kernel makes a table of cosines and sines for all batches and heads.
namespace {

constexpr double kTheta = 10000.0;

/// Writes the cosines, seq x half, into scratch memory, followed by the sines.
void make_table(const DeviceCall& call, std::int64_t half) {
  const std::int64_t count = call.shape().seq * half;
  float* cosines = call.scratch;
  launch_elements(call.queue, count, [=] __device__(std::int64_t e) {
    const double power = -static_cast<double>(e % half) / static_cast<double>(half);
    const double angle = static_cast<double>(e / half) * pow(kTheta, power);
    cosines[e] = static_cast<float>(cos(angle));
    cosines[count + e] = static_cast<float>(sin(angle));
  });
}

void turn_all(const DeviceCall& call, float direction) {
  const plan::Shape& s = call.shape();
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t half = d / 2;
  const std::int64_t kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
  const std::int64_t turned = s.heads + kv_heads;
  const std::int64_t width = (s.heads + 2 * kv_heads) * d;
  const std::int64_t seq = s.seq;
  const Elements qkv(call, 0);
  const Elements cosines(call.scratch, schedule::DType::kFp32, false);
  make_table(call, half);
  launch_row_packs(call.queue, s.batch * seq * turned, half, {qkv}, [=] __device__(std::int64_t row, auto at) {
    const std::int64_t token = row / turned;
    const auto low_at = at + token * width + row % turned * d;
    const Place<decltype(at)::width> angle_at{at.first + token % seq * half};  // the table is fp32
    const auto low = qkv(low_at);
    const auto high = qkv(low_at + half);
    const auto cosine = cosines(angle_at);
    const auto sine = map([=](float v) { return direction * v; }, cosines(angle_at + seq * half));
    qkv.set(low_at, map([](float x, float y, float c, float v) { return x * c - y * v; }, low, high, cosine, sine));
    qkv.set(low_at + half,
            map([](float x, float y, float c, float v) { return y * c + x * v; }, low, high, cosine, sine));
  });
}

}  // namespace

std::int64_t rotary_scratch(const plan::Operation& operation) {
  const plan::Shape& s = operation.shape;
  return s.seq * (s.inner / s.heads / 2) * 2;
}

void rotary_forward(const DeviceCall& call) { turn_all(call, 1.0F); }
void rotary_backward(const DeviceCall& call) { turn_all(call, -1.0F); }

}  // namespace krigtune::cuda

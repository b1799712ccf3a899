// Causal attention with grouped queries (Ainslie et al. 2023): query head a reads key and value head a / (heads /
// kv_heads). With d = inner / heads:
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = (P m) V
//
// m is the dropout mask divided by the keep probability, or all 1 without dropout. A block computes one query and reads
// the keys in tiles; the maximum and the sum of the softmax are carried from tile to tile (Milakov and Gimelshein
// 2018). Eager attention then keeps P, m and P m.
#include "engine/cuda/kernels/attention_views.h"
#include "engine/cuda/kernels/flash_attention.h"
#include "engine/cuda/kernels/flash_attention_hopper.h"

namespace krigtune::cuda {
namespace {

constexpr int kTile = 1024;
static_assert(kTile + kMostHeadSize <= kSharedFloats);

/// Attention of one query to the keys up to its own position.
struct QueryForward {
  AttentionSizes z;
  QkvRows qkv;
  Elements out;
  float* logsumexp;
  KeptProbabilities kept;

  __device__ Elements key(const AttentionRow& at, std::int64_t j) const {
    return qkv.key(at.b, at.head / z.queries_per_key, j);
  }
  __device__ float score(const AttentionRow& at, std::int64_t j) const {
    return z.scale * dot(qkv.query(at.b, at.head, at.i), key(at, j), z.d);
  }

  // Computes sums <- correction sums + sum_j tile_j m_j v_j.
  __device__ void add_values(const Block& block, const AttentionRow& at, float* sums, float* tile, std::int64_t begin,
                             std::int64_t count, float correction) const {
    const QueryForward& self = *this;
    if (kept.drops()) block.for_each(count, [&](std::int64_t j) { tile[j] *= self.kept.factor(at, begin + j); });
    block.for_each(z.d, [&](std::int64_t c) {
      float sum = sums[c] * correction;
      for (std::int64_t j = 0; j < count; ++j) {
        sum += tile[j] * self.qkv.value(at.b, at.head / self.z.queries_per_key, begin + j)(c);
      }
      sums[c] = sum;
    });
  }

  // Returns L.
  __device__ float attend(const Block& block, const AttentionRow& at) const {
    const QueryForward& self = *this;
    float* sums = block.shared();
    float* tile = sums + kMostHeadSize;
    float top = -INFINITY;
    float total = 0.0F;
    block.for_each(z.d, [=](std::int64_t c) { sums[c] = 0.0F; });
    for (std::int64_t begin = 0; begin <= at.i; begin += kTile) {
      const std::int64_t count = at.i + 1 - begin < kTile ? at.i + 1 - begin : kTile;
      block.for_each(count, [&](std::int64_t j) { tile[j] = self.score(at, begin + j); });
      const float new_top = fmaxf(top, block.largest(count, [=](std::int64_t j) { return tile[j]; }));
      const float correction = expf(top - new_top);
      block.for_each(count, [=](std::int64_t j) { tile[j] = expf(tile[j] - new_top); });
      total = total * correction + block.sum(count, [=](std::int64_t j) { return tile[j]; });
      add_values(block, at, sums, tile, begin, count, correction);
      top = new_top;
    }
    block.for_each(z.d, [&](std::int64_t c) { self.out.put(at.output(self.z) + c, sums[c] / total); });
    return top + logf(total);
  }

  __device__ void operator()(const Block& block, std::int64_t row) const {
    const QueryForward& self = *this;
    const AttentionRow at(row, z.heads, z.seq);
    const float l = attend(block, at);
    block.for_each(1, [&](std::int64_t) { self.logsumexp[row] = l; });
    if (!kept.there()) return;
    block.for_each(z.seq, [&](std::int64_t j) {
      const bool seen = j <= at.i;
      self.kept.keep(row, j, seen ? expf(self.score(at, j) - l) : 0.0F, seen ? self.kept.factor(at, j) : 0.0F);
    });
  }
};

}  // namespace

void attention_forward(const DeviceCall& call) {
  if (flash_fits(call)) return call.hopper_attention ? hopper_attention_forward(call) : flash_attention_forward(call);
  const AttentionSizes z(call.shape());
  launch_rows(call.queue, z.batch * z.heads * z.seq,
              QueryForward{z, {{call, 0}, z}, {call, 1}, call.data<float>(2), {call, 3, z}});
}

// The gradients of causal attention, with D_i = sum_c dO_ic O_ic:
//
//   dA_ij = dO_i . V_j;  dS = P (dA m - D) / sqrt(d);  dQ = dS K;  dK = dS^T Q;  dV = (P m)^T dO
//
// Flash attention (Dao et al. 2022, algorithm 4) computes P = exp(S - L) again; eager attention reads the P that it has
// kept. A block of one query computes dQ. A block of one key computes dK and dV: it adds up the queries of all heads
// that share the key, in order. There are no atomics, so the bits are always the same.
namespace {

constexpr int kBackwardTile = 512;
static_assert(2 * kBackwardTile + 2 * kMostHeadSize <= kSharedFloats);

struct AttentionGradient {
  AttentionSizes z;
  Elements dout;
  QkvRows qkv;
  Elements out;
  const float* logsumexp;
  QkvRows dqkv;
  KeptProbabilities kept;

  __device__ std::int64_t row_of(const AttentionRow& at) const { return (at.b * z.heads + at.head) * z.seq + at.i; }

  __device__ float probability(const AttentionRow& at, std::int64_t j) const {
    if (kept.there()) return kept.probability(row_of(at), j);
    const Elements key = qkv.key(at.b, at.head / z.queries_per_key, j);
    return expf(z.scale * dot(qkv.query(at.b, at.head, at.i), key, z.d) - logsumexp[row_of(at)]);
  }
  // Returns dS_ij from P_ij and m_ij.
  __device__ float score_gradient(const AttentionRow& at, std::int64_t j, float p, float m) const {
    const Elements g = dout.from(at.output(z));
    const float da = dot(g, qkv.value(at.b, at.head / z.queries_per_key, j), z.d);
    return p * (da * m - dot(g, out.from(at.output(z)), z.d)) * z.scale;
  }
};

struct QueryGradient : AttentionGradient {
  __device__ void operator()(const Block& block, std::int64_t row) const {
    const QueryGradient& self = *this;
    const AttentionRow at(row, z.heads, z.seq);
    float* sums = block.shared();
    float* tile = sums + kMostHeadSize;
    block.for_each(z.d, [=](std::int64_t c) { sums[c] = 0.0F; });
    for (std::int64_t begin = 0; begin <= at.i; begin += kBackwardTile) {
      const std::int64_t count = at.i + 1 - begin < kBackwardTile ? at.i + 1 - begin : kBackwardTile;
      block.for_each(count, [&](std::int64_t j) {
        const float p = self.probability(at, begin + j);
        tile[j] = self.score_gradient(at, begin + j, p, self.kept.kept_factor(at, row, begin + j));
      });
      block.for_each(z.d, [&](std::int64_t c) {
        for (std::int64_t j = 0; j < count; ++j) {
          sums[c] += tile[j] * self.qkv.key(at.b, at.head / self.z.queries_per_key, begin + j)(c);
        }
      });
    }
    block.for_each(z.d, [&](std::int64_t c) { self.dqkv.query(at.b, at.head, at.i).put(c, sums[c]); });
  }
};

struct KeyGradient : AttentionGradient {
  __device__ void add_head(const Block& block, const AttentionRow& key, std::int64_t head) const {
    const KeyGradient& self = *this;
    float* dk = block.shared();
    float* dv = dk + kMostHeadSize;
    float* ds = dv + kMostHeadSize;
    float* weights = ds + kBackwardTile;
    for (std::int64_t begin = key.i; begin < z.seq; begin += kBackwardTile) {
      const std::int64_t count = z.seq - begin < kBackwardTile ? z.seq - begin : kBackwardTile;
      const AttentionRow first((key.b * z.heads + head) * z.seq + begin, z.heads, z.seq);
      const std::int64_t output = first.output(z);
      block.for_each(count, [&](std::int64_t i) {
        AttentionRow query = first;
        query.i += i;
        const float p = self.probability(query, key.i);
        const float m = self.kept.kept_factor(query, self.row_of(query), key.i);
        ds[i] = self.score_gradient(query, key.i, p, m);
        weights[i] = p * m;
      });
      block.for_each(z.d, [&](std::int64_t c) {
        for (std::int64_t i = 0; i < count; ++i) {
          dk[c] += ds[i] * self.qkv.query(key.b, head, begin + i)(c);
        }
      });
      block.for_each(z.d, [&](std::int64_t c) {
        for (std::int64_t i = 0; i < count; ++i) dv[c] += weights[i] * self.dout(output + i * self.z.out_width + c);
      });
    }
  }

  __device__ void operator()(const Block& block, std::int64_t row) const {
    const KeyGradient& self = *this;
    const AttentionRow key(row, z.kv_heads, z.seq);
    float* sums = block.shared();
    block.for_each(2 * kMostHeadSize, [=](std::int64_t c) { sums[c] = 0.0F; });
    for (std::int64_t q = 0; q < z.queries_per_key; ++q) add_head(block, key, key.head * z.queries_per_key + q);
    block.for_each(z.d, [&](std::int64_t c) {
      self.dqkv.key(key.b, key.head, key.i).put(c, sums[c]);
      self.dqkv.value(key.b, key.head, key.i).put(c, sums[kMostHeadSize + c]);
    });
  }
};

}  // namespace

void attention_backward(const DeviceCall& call) {
  if (flash_fits(call)) return flash_attention_backward(call);
  const AttentionSizes z(call.shape());
  const AttentionGradient gradient{
      z, {call, 0}, {{call, 1}, z}, {call, 2}, call.data<const float>(3), {{call, 4}, z}, {call, 5, z}};
  launch_rows(call.queue, z.batch * z.heads * z.seq, QueryGradient{gradient});
  launch_rows(call.queue, z.batch * z.kv_heads * z.seq, KeyGradient{gradient});
}

}  // namespace krigtune::cuda

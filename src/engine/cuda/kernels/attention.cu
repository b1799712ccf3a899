// Causal attention with grouped queries (Ainslie et al. 2023): query head a reads key and value head a / (heads /
// kv_heads); d = inner / heads:
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = (P m) V
//
// m: dropout's mask over the keep probability, all 1 without. One block a query, keys in tiles; the softmax's top and
// sum are carried from tile to tile (Milakov and Gimelshein 2018). Eager attention then keeps P, m and P m.
#include "cuda/kernels/attention_views.h"
#include "cuda/kernels/flash_attention.h"

namespace krigtune::cuda {
namespace {

constexpr int kTile = 1024;
static_assert(kTile + kMostHeadSize <= kSharedFloats);

/// One query against the keys up to its own place.
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

  // sums <- correction sums + sum_j tile_j m_j v_j
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
  if (flash_fits(call)) return flash_attention_forward(call);
  const AttentionSizes z(call.shape());
  launch_rows(call.queue, z.batch * z.heads * z.seq,
              QueryForward{z, {{call, 0}, z}, {call, 1}, call.data<float>(2), {call, 3, z}});
}

}  // namespace krigtune::cuda

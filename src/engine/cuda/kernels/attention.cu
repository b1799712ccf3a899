// Causal attention with grouped queries: query head a reads key and value head a / (heads / kv_heads), d = inner / heads.
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = (P m) V
//   dA = dO V^T;  D_i = sum_j dO_ij O_ij;  dS = P (dA m - D) / sqrt(d);  dQ = dS K;  dK = dS^T Q;  dV = (P m)^T dO
//
// m: dropout's mask over keep probability; 1 without. Flash attention (Dao et al. 2022) keeps L alone and computes P
// again; eager attention reads the P it has kept. Forward: one block a query, keys in tiles, the softmax's top and sum
// carried from tile to tile (Milakov and Gimelshein 2018). Backward: one block a query for dQ, one a key for dK and dV,
// which adds up the queries of all its heads in order: no atomics.
#include <stdexcept>

#include "cuda/kernels/attention_views.h"

namespace krigtune::cuda {
namespace {

constexpr int kTile = 512;
static_assert(2 * kTile + 2 * kMostHeadSize <= kSharedFloats);

}  // namespace

void attention_forward(const DeviceCall& call) {
  const AttentionSizes z(call);
  const QkvRows qkv(Elements(call, 0), z);
  const Elements out(call, 1);
  auto* logsumexp = call.data<float>(2);
  const KeptProbabilities kept(call, 3, z);
  launch_rows(call.queue, z.batch * z.heads * z.seq, KRIGTUNE_BODY(const Block& block, std::int64_t row) {
    const AttentionRow at(row, z, z.heads);
    float* sums = block.shared();          // of the output, d
    float* tile = sums + kMostHeadSize;    // probabilities
    const Elements q = qkv.query(at.b, at.head, at.i);
    float top = -INFINITY;
    float total = 0.0F;
    block.for_each(z.d, [=](std::int64_t c) { sums[c] = 0.0F; });
    for (std::int64_t begin = 0; begin <= at.i; begin += kTile) {
      const std::int64_t count = at.i + 1 - begin < kTile ? at.i + 1 - begin : kTile;
      block.for_each(count, [=](std::int64_t j) {
        tile[j] = z.scale * dot(q, qkv.key(at.b, at.head / z.queries_per_key, begin + j), z.d);
      });
      const float tile_top = block.largest(count, [=](std::int64_t j) { return tile[j]; });
      const float new_top = fmaxf(top, tile_top);
      const float correction = expf(top - new_top);
      block.for_each(count, [=](std::int64_t j) { tile[j] = expf(tile[j] - new_top); });
      total = total * correction + block.sum(count, [=](std::int64_t j) { return tile[j]; });
      top = new_top;
      block.for_each(z.d, [=](std::int64_t c) {
        float sum = sums[c] * correction;
        for (std::int64_t j = 0; j < count; ++j) {
          const float m = kept.factor(row, begin + j);
          sum += tile[j] * m * qkv.value(at.b, at.head / z.queries_per_key, begin + j)(c);
        }
        sums[c] = sum;
      });
    }
    const float l = top + logf(total);
    block.for_each(z.d, [=](std::int64_t c) { out.put(at.output(z) + c, sums[c] / total); });
    block.for_each(1, [=](std::int64_t) { logsumexp[row] = l; });
    if (!kept.there()) return;
    block.for_each(z.seq, [=](std::int64_t j) {
      const bool seen = j <= at.i;
      const float s = seen ? z.scale * dot(q, qkv.key(at.b, at.head / z.queries_per_key, j), z.d) : 0.0F;
      kept.keep(row, j, seen ? expf(s - l) : 0.0F);
    });
  });
}

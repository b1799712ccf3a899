// RMS norms of queries and of keys (host/kernels/norms.cpp), which are the first columns of the rows of qkv: of each
// head by itself, with a gain that all heads share, or of all heads together. A block normalises the columns of one
// norm in one row. The gradient of a gain is summed over rows and heads first, because that of the columns takes the
// place of what it reads.
#include <algorithm>

#include "engine/cuda/kernels/column_sums.h"
#include "engine/cuda/kernels/norm_rows.h"

namespace krigtune::cuda {
namespace {

constexpr std::int64_t kWarpColumns = 512;  // a warp is enough for norms of up to so many columns

/// The queries, or the keys, of all rows. Norms are counted row by row.
struct QkNorms {
  Elements qkv, gain, before;
  float* stats;
  std::int64_t rows, qkv_width, before_width, stats_width;
  std::int64_t begin;             ///< the first column, in qkv and in `before`
  std::int64_t norms, width;      ///< of a row, beside each other
  std::int64_t stat, stats_each;  ///< the first number in a row of stats, and how many a norm has

  std::int64_t count() const { return rows * norms; }
  __device__ std::int64_t in_qkv(std::int64_t norm) const {
    return norm / norms * qkv_width + begin + norm % norms * width;
  }
  __device__ std::int64_t in_before(std::int64_t norm) const {
    return norm / norms * before_width + begin + norm % norms * width;
  }
  __device__ float* stats_of(std::int64_t norm) const {
    return stats + norm / norms * stats_width + stat + norm % norms * stats_each;
  }
};

struct QueriesAndKeys {
  QkNorms queries, keys;
};

QueriesAndKeys norms_of(const DeviceCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t d = s.inner / s.heads;
  const bool of_each_head = s.outer == d;
  QkNorms both{.qkv = {call, 0},
               .gain = {call, 1},
               .before = {call, 3},
               .stats = call.data<float>(4),
               .rows = s.batch * s.seq,
               .qkv_width = d * (s.heads + 2 * s.kv_heads),
               .before_width = d * (s.heads + s.kv_heads),
               .stats_width = s.heads + s.kv_heads,
               .begin = 0,
               .norms = of_each_head ? s.heads : 1,
               .width = s.outer,
               .stat = 0,
               .stats_each = of_each_head ? 1 : s.heads};
  QkNorms keys = both;
  keys.gain = {call, 2};
  keys.begin = s.inner;
  keys.norms = of_each_head ? s.kv_heads : 1;
  keys.width = of_each_head ? d : s.kv_heads * d;
  keys.stat = s.heads;
  keys.stats_each = of_each_head ? 1 : s.kv_heads;
  return {both, keys};
}

template <class Body>
void launch_norms(Queue queue, const QkNorms& n, Body body) {
  if (n.width <= kWarpColumns) return launch_rows<kWarpThreads>(queue, n.count(), body);
  launch_rows(queue, n.count(), body);
}

void normalise_columns(Queue queue, const QkNorms& n) {
  launch_norms(queue, n, [=] __device__(const Block& block, std::int64_t norm) {
    const Elements x = n.qkv.from(n.in_qkv(norm));
    const Elements before = n.before.from(n.in_before(norm));
    const float square = block.sum(n.width, [=](std::int64_t i) { return x(i) * x(i); }) / static_cast<float>(n.width);
    const float inverse = 1.0F / sqrtf(square + kNormEpsilon);
    const Elements gain = n.gain;
    block.for_each(n.width, [=](std::int64_t i) {
      const float value = x(i);
      before.set(i, value);
      x.set(i, value * inverse * gain(i));
    });
    block.for_each(n.stats_each, [stats = n.stats_of(norm), inverse](std::int64_t i) { stats[i] = inverse; });
  });
}

void sum_gain(const DeviceCall& call, const QkNorms& n, const Elements& dgain) {
  const std::int64_t d = call.shape().inner / call.shape().heads;  // divides the places of all columns
  const auto term = [=] __device__(std::int64_t norm, auto at) {
    const float inverse = *n.stats_of(norm);
    return map([=](float dy, float x) { return dy * (x * inverse); }, n.qkv(at + n.in_qkv(norm)),
               n.before(at + n.in_before(norm)));
  };
  sum_rows(call, n.count(), n.width, walk_of({n.qkv, n.before}, d), term, dgain);
}

void differentiate_columns(Queue queue, const QkNorms& n) {
  launch_norms(queue, n, [=] __device__(const Block& block, std::int64_t norm) {
    const Elements dy = n.qkv.from(n.in_qkv(norm));
    const Elements x = n.before.from(n.in_before(norm));
    const Elements gain = n.gain;
    const float inverse = *n.stats_of(norm);
    const float sum = block.sum(n.width, [=](std::int64_t i) { return dy(i) * gain(i) * x(i); });
    const float gx = sum * inverse / static_cast<float>(n.width);
    block.for_each(n.width, [=](std::int64_t i) { dy.set(i, inverse * (dy(i) * gain(i) - x(i) * inverse * gx)); });
  });
}

}  // namespace

std::int64_t qk_norm_backward_scratch(const plan::Operation& operation) {
  const plan::Shape& s = operation.shape;
  const std::int64_t rows = s.batch * s.seq;
  const std::int64_t d = s.inner / s.heads;
  if (s.outer == d) return column_sums_scratch(rows * s.heads, d);
  return column_sums_scratch(rows, s.inner);
}

void qk_norm_forward(const DeviceCall& call) {
  const QueriesAndKeys norms = norms_of(call);
  for (const QkNorms& each : {norms.queries, norms.keys}) normalise_columns(call.queue, each);
}

void qk_norm_backward(const DeviceCall& call) {
  const QueriesAndKeys norms = norms_of(call);
  if (call.has(5)) sum_gain(call, norms.queries, {call, 5});
  if (call.has(6)) sum_gain(call, norms.keys, {call, 6});
  for (const QkNorms& each : {norms.queries, norms.keys}) differentiate_columns(call.queue, each);
}

}  // namespace krigtune::cuda

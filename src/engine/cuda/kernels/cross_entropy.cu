// Softmax cross-entropy of rows of logits, in place. There is one version for whole rows, and one in three parts for a
// vocabulary that is split over tensor ranks:
//
//   loss = mean over rows of (logsumexp(l) - l_target);   l_j <- scale (softmax(l)_j - [j = target])
//
// The parts: top = max_j l_j (then the largest over the ranks); e_j = exp(l_j - top), sums = sum_j e_j, at_target =
// l_target - top, 0 if another rank has it (then both are summed over the ranks); loss = mean of log(sums) - at_target
// and l_j <- scale (e_j / sums - [j = target]). Columns beyond the end of the vocabulary become 0 and are ignored. A
// target outside the vocabulary makes the loss NaN.
//
// The largest logit and the sum of exponentials come from one pass over a row (Milakov and Gimelshein 2018, "Online
// normalizer calculation for softmax"): (top, sum) of two parts together are (t, s_a exp(top_a - t) + s_b exp(top_b -
// t)) with t = max(top_a, top_b). A second pass, from the end of the row, writes the gradients. With 1024 threads for
// each row and two rows on a multiprocessor, 26 MB of rows of 50000 logits are in flight, so the second pass reads from
// the L2 cache of an H100 (50 MB). The fast exponential has an error of |x| / 2 units in the last place. Where that is
// much, exp(x) is nearly 0.
#include <limits>

#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

/// The factor of the gradients: `scale`, times the loss scale if there is a control buffer.
class Scale {
 public:
  Scale(const DeviceCall& call, std::size_t control)
      : scale_(static_cast<float>(call.operation.scale)),
        control_(call.has(control) ? call.data<const float>(control) : nullptr) {}
  __device__ float operator()() const {
    return control_ == nullptr ? scale_ : scale_ * control_[schedule::kLossScaleElement];
  }

 private:
  float scale_;
  const float* control_;
};

// The columns that this rank holds, and how many of them are in the vocabulary.
struct Columns {
  std::int64_t first, held, real;

  explicit Columns(const DeviceCall& call) {
    held = call.shape().outer;
    first = call.context.tensor_rank * held;
    const std::int64_t left = call.shape().inner - first;
    real = left < 0 ? 0 : left < held ? left : held;
  }
  __device__ bool has(std::int64_t column) const { return column >= 0 && column < real; }
};

constexpr int kRowThreads = 1024;
constexpr float kLowest = std::numeric_limits<float>::lowest();

/// (top, sum) of a part of a row; (lowest, 0) if it has no logits.
using TopAndSum = Pack<2>;

__device__ inline void join(TopAndSum& a, const TopAndSum& b) {
  const float top = fmaxf(a.at[0], b.at[0]);
  a = {{top, a.at[1] * __expf(a.at[0] - top) + b.at[1] * __expf(b.at[0] - top)}};
}

template <int kWidth>
__device__ inline float largest_of(const Pack<kWidth>& pack) {
  float top = pack.at[0];
  for (int k = 1; k < kWidth; ++k) top = fmaxf(top, pack.at[k]);
  return top;
}
template <int kWidth>
__device__ inline Pack<kWidth> exponentials(const Pack<kWidth>& pack, float top) {
  return map([=](float l) { return __expf(l - top); }, pack);
}

template <class Each>
__device__ void for_row(const Elements& row, std::int64_t count, Each each) {
  for_packs(row, count, threadIdx.x, blockDim.x, each);
}

/// Computes l_j <- factor e_j - [j = target] scale for each column of the pack, given e.
template <int kWidth, schedule::DType kType>
__device__ inline void set_gradient(const Elements& row, Place<kWidth, kType> at, Pack<kWidth> e, float factor,
                                    std::int64_t target, float scale) {
#pragma unroll
  for (int k = 0; k < kWidth; ++k) e.at[k] = e.at[k] * factor - (at.first + k == target ? scale : 0.0F);
  row.set(at, e);
}

// Turns the row into its gradient and returns its loss.
__device__ inline float row_loss(const Block& block, const Elements& row, std::int64_t count, std::int64_t target,
                                 float scale) {
  const bool known = target >= 0 && target < count;
  const float at_target = known ? row(target) : NAN;  // all threads read it before the barriers of `combined`
  TopAndSum mine{{kLowest, 0.0F}};
  for_row(row, count, [&](auto at) {
    const auto logits = row(at);
    const float top = largest_of(logits);
    join(mine, {{top, total(exponentials(logits, top))}});
  });
  const TopAndSum all = block.combined(mine, join);
  const float top = all.at[0];
  const float factor = scale / all.at[1];
  for_packs<true>(row, count, threadIdx.x, blockDim.x,
                  [&](auto at) { set_gradient(row, at, exponentials(row(at), top), factor, target, scale); });
  return logf(all.at[1]) + (top - at_target);
}

}  // namespace

std::int64_t cross_entropy_scratch(const plan::Operation& operation) { return operation.shape.rows; }

void cross_entropy(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t count = call.shape().outer;
  const Elements logits(call, 0);
  const auto* targets = call.data<const std::int32_t>(1);
  const Elements loss(call, 2);
  const Scale scale(call, 3);
  float* losses = call.scratch;
  launch_rows<kRowThreads>(call.queue, rows, [=] __device__(const Block& block, std::int64_t row) {
    const float mine = row_loss(block, logits.from(row * count), count, targets[row], scale());
    if (threadIdx.x == 0) losses[row] = mine;
  });
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float sum = block.sum(rows, [=](std::int64_t row) { return losses[row]; });
    if (threadIdx.x == 0) loss.put(0, sum / static_cast<float>(rows));
  });
}

void vocab_max(const DeviceCall& call) {
  const Columns columns(call);
  const Elements logits(call, 0);
  const Elements tops(call, 1);
  launch_rows<kRowThreads>(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    Pack<1> top{{kLowest}};
    for_row(mine, columns.real, [&](auto at) { top.at[0] = fmaxf(top.at[0], largest_of(mine(at))); });
    top = block.combined(top, [](auto& a, const auto& b) { a.at[0] = fmaxf(a.at[0], b.at[0]); });
    if (threadIdx.x == 0) tops.set(row, top.at[0]);
  });
}

void vocab_sum_exp(const DeviceCall& call) {
  const Columns columns(call);
  const Elements logits(call, 0);
  const auto* targets = call.data<const std::int32_t>(1);
  const Elements tops(call, 2);
  const Elements sums(call, 3);
  const Elements at_target(call, 4);
  launch_rows<kRowThreads>(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    const float top = tops(row);
    const std::int64_t target = targets[row] - columns.first;
    if (threadIdx.x == 0) at_target.set(row, columns.has(target) ? mine(target) - top : 0.0F);
    __syncthreads();  // before the target's logit is overwritten
    Pack<1> sum{};
    for_row(mine, columns.held, [&](auto at) {
      auto e = exponentials(mine(at), top);
#pragma unroll
      for (int k = 0; k < at.width; ++k) e.at[k] = at.first + k < columns.real ? e.at[k] : 0.0F;
      sum.at[0] += total(e);
      mine.set(at, e);
    });
    sum = block.sum(sum);
    if (threadIdx.x == 0) sums.set(row, sum.at[0]);
  });
}

void vocab_cross_entropy(const DeviceCall& call) {
  const Columns columns(call);
  const std::int64_t rows = call.shape().rows;
  const std::int64_t vocabulary = call.shape().inner;
  const Elements logits(call, 0);
  const auto* targets = call.data<const std::int32_t>(1);
  const Elements sums(call, 2);
  const Elements at_target(call, 3);
  const Elements loss(call, 4);
  const Scale scale(call, 5);
  launch_rows<kRowThreads>(call.queue, rows, [=] __device__(const Block& /*block*/, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    const float factor = scale() / sums(row);
    const std::int64_t target = targets[row] - columns.first;
    for_row(mine, columns.real, [&](auto at) { set_gradient(mine, at, mine(at), factor, target, scale()); });
  });
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float sum = block.sum(rows, [=](std::int64_t row) {
      const bool known = targets[row] >= 0 && targets[row] < vocabulary;
      return known ? logf(sums(row)) - at_target(row) : NAN;
    });
    if (threadIdx.x == 0) loss.put(0, sum / static_cast<float>(rows));
  });
}

}  // namespace krigtune::cuda

// Softmax cross-entropy of rows of logits, in place; whole, and in three parts for a vocabulary split over tensor
// ranks:
//
//   loss = mean over rows of (logsumexp(l) - l_target);   l_j <- scale (softmax(l)_j - [j = target])
//
// The parts: top = max_j l_j (then largest over the ranks); e_j = exp(l_j - top), sums = sum_j e_j, at_target =
// l_target - top, 0 where another rank has it (then both summed); loss = mean of log(sums) - at_target and
// l_j <- scale (e_j / sums - [j = target]). Columns behind the vocabulary's end become 0 and count for nothing.
// A target outside the vocabulary makes the loss no number.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

/// What the gradients are multiplied with: `scale`, and the loss scale where there is a control buffer.
class Scale {
 public:
  Scale(const DeviceCall& call, std::size_t control)
      : scale_(static_cast<float>(call.operation.scale)),
        control_(call.has(control) ? call.data<const float>(control) : nullptr) {}
  __device__ float operator()() const { return control_ == nullptr ? scale_ : scale_ * control_[kLossScaleElement]; }

 private:
  float scale_;
  const float* control_;
};

// The columns of this rank that are in the vocabulary, and the target's place among them.
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

// Becomes the gradient; returns the loss of the row.
__device__ inline float row_loss(const Block& block, const Elements& logits, std::int64_t count, std::int64_t target,
                                 float scale) {
  const float top = block.largest(count, [=](std::int64_t j) { return logits(j); });
  const float sum = block.sum(count, [=](std::int64_t j) { return expf(logits(j) - top); });
  const bool known = target >= 0 && target < count;
  const float loss = known ? logf(sum) + (top - logits(target)) : NAN;
  const float factor = scale / sum;
  // Every thread must have read the target's logit before one overwrites it: for_each ends with a barrier.
  block.for_each(0, [](std::int64_t) {});
  block.for_each(count,
                 [=](std::int64_t j) { logits.set(j, expf(logits(j) - top) * factor - (j == target ? scale : 0.0F)); });
  return loss;
}

}  // namespace

std::int64_t cross_entropy_scratch(const Operation& operation) { return operation.shape.rows; }

void cross_entropy(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t count = call.shape().outer;
  const Elements logits(call, 0);
  const auto* targets = call.data<const std::int32_t>(1);
  const Elements loss(call, 2);
  const Scale scale(call, 3);
  float* partial = call.scratch;
  const std::int64_t parts = rows;
  launch_rows(call.queue, parts, [=] __device__(const Block& block, std::int64_t part) {
    float sum = 0.0F;
    for (std::int64_t row = part; row < rows; row += parts) {
      sum += row_loss(block, logits.from(row * count), count, targets[row], scale());
    }
    partial[part] = sum;
  });
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float sum = block.sum(parts, [=](std::int64_t part) { return partial[part]; });
    block.for_each(1, [=](std::int64_t) { loss.put(0, sum / static_cast<float>(rows)); });
  });
}

void vocab_max(const DeviceCall& call) {
  const Columns columns(call);
  const Elements logits(call, 0);
  const Elements top(call, 1);
  launch_rows(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    const float largest = block.largest(columns.real, [=](std::int64_t j) { return mine(j); });
    block.for_each(1, [=](std::int64_t) { top.set(row, largest); });
  });
}

void vocab_sum_exp(const DeviceCall& call) {
  const Columns columns(call);
  const Elements logits(call, 0);
  const auto* targets = call.data<const std::int32_t>(1);
  const Elements tops(call, 2);
  const Elements sums(call, 3);
  const Elements at_target(call, 4);
  launch_rows(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    const float top = tops(row);
    const std::int64_t target = targets[row] - columns.first;
    block.for_each(1, [=](std::int64_t) { at_target.set(row, columns.has(target) ? mine(target) - top : 0.0F); });
    block.for_each(columns.held, [=](std::int64_t j) { mine.set(j, j < columns.real ? expf(mine(j) - top) : 0.0F); });
    const float sum = block.sum(columns.real, [=](std::int64_t j) { return mine(j); });
    block.for_each(1, [=](std::int64_t) { sums.set(row, sum); });
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
  launch_rows(call.queue, rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements mine = logits.from(row * columns.held);
    const float factor = scale() / sums(row);
    const std::int64_t target = targets[row] - columns.first;
    block.for_each(columns.real,
                   [=](std::int64_t j) { mine.set(j, mine(j) * factor - (j == target ? scale() : 0.0F)); });
  });
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float sum = block.sum(rows, [=](std::int64_t row) {
      const bool known = targets[row] >= 0 && targets[row] < vocabulary;
      return known ? logf(sums(row)) - at_target(row) : NAN;
    });
    block.for_each(1, [=](std::int64_t) { loss.put(0, sum / static_cast<float>(rows)); });
  });
}

}  // namespace krigtune::cuda

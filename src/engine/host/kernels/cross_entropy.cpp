// Softmax cross-entropy of rows of logits, in place:
//
//   loss = mean over rows of (logsumexp(l) - l_target);   l_j <- scale (softmax(l)_j - [j = target])
//
// `scale` contains all factors by which the loss is averaged (rows, micro-steps, ranks), multiplied by a control's loss
// scale.
#include <cmath>
#include <limits>

#include "engine/host/kernels/control.h"
#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {
namespace {

// Returns the loss of one row.
template <class T>
double row_loss(T* logits, std::int64_t count, std::int32_t target, T scale) {
  const T top = largest(logits, count, logits[0]);
  const T at_target = logits[target];
  for (std::int64_t j = 0; j < count; ++j) logits[j] = exponential(logits[j] - top);
  const T sum = ordered_sum<T>(count, [&](std::int64_t j) { return logits[j]; });
  const T factor = scale / sum;
  for (std::int64_t j = 0; j < count; ++j) logits[j] *= factor;
  logits[target] -= scale;
  return static_cast<double>(std::log(sum) + (top - at_target));
}

}  // namespace

template <class T>
void cross_entropy(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const std::int32_t* targets = call.integers(1);
  const T scale = static_cast<T>(call.operation.scale * loss_scale<T>(call, 3));
  double loss = 0.0;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    if (targets[row] < 0 || targets[row] >= s.outer) {
      throw_not_in("target", targets[row], "the vocabulary");
    }
    loss += row_loss(call.data<T>(0) + row * s.outer, s.outer, targets[row], scale);
  }
  put(call.data<T>(2), 1, call.adds(2),
      [&](std::int64_t) { return static_cast<T>(loss / static_cast<double>(s.rows)); });
}

template void cross_entropy<float>(const KernelCall&);
template void cross_entropy<double>(const KernelCall&);

// Softmax cross-entropy if each tensor-parallel rank has some columns of the logits (Shoeybi et al. 2019,
// "Megatron-LM", section 3). There are three parts, between which the ranks exchange one number for each row:
//
//   top = max_j l_j                                 (all-reduced: maximum)
//   l_j <- exp(l_j - top);  sums = sum_j l_j;  at_target = l_target - top, 0 if another rank has it   (sum)
//   loss = mean over rows of (log sums - at_target);  l_j <- scale (l_j / sums - [j = target])
//
// Columns beyond the end of the vocabulary are not tokens: they are ignored and become 0.
namespace {

std::int64_t first_token(const KernelCall& call) { return call.context.tensor_rank * call.shape().outer; }

// Returns how many columns of this rank are tokens.
std::int64_t columns(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t left = s.inner - first_token(call);
  return left < 0 ? 0 : (left < s.outer ? left : s.outer);
}

// Returns the column of a row's target, or -1 if another rank has it.
std::int64_t target_column(const KernelCall& call, std::int64_t row) {
  const std::int32_t target = call.integers(1)[row];
  if (target < 0 || target >= call.shape().inner) {
    throw_not_in("target", target, "the vocabulary");
  }
  const std::int64_t column = target - first_token(call);
  return column >= 0 && column < call.shape().outer ? column : -1;
}

}  // namespace

template <class T>
void vocab_max(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t count = columns(call);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const T* logits = call.data<const T>(0) + row * s.outer;
    call.data<T>(1)[row] = largest(logits, count, std::numeric_limits<T>::lowest());
  }
}

template <class T>
void vocab_sum_exp(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t count = columns(call);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    T* logits = call.data<T>(0) + row * s.outer;
    const T top = call.data<const T>(2)[row];
    const std::int64_t column = target_column(call, row);
    call.data<T>(4)[row] = column < 0 ? T(0) : logits[column] - top;
    for (std::int64_t j = 0; j < count; ++j) logits[j] = exponential(logits[j] - top);
    clear(logits + count, s.outer - count);
    call.data<T>(3)[row] = ordered_sum<T>(count, [&](std::int64_t j) { return logits[j]; });
  }
}

template <class T>
void vocab_cross_entropy(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T scale = static_cast<T>(call.operation.scale * loss_scale<T>(call, 5));
  double loss = 0.0;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    T* logits = call.data<T>(0) + row * s.outer;
    const T sum = call.data<const T>(2)[row];
    loss += static_cast<double>(std::log(sum) - call.data<const T>(3)[row]);
    const T factor = scale / sum;
    for (std::int64_t j = 0; j < s.outer; ++j) logits[j] *= factor;
    const std::int64_t column = target_column(call, row);
    if (column >= 0) logits[column] -= scale;
  }
  put(call.data<T>(4), 1, call.adds(4),
      [&](std::int64_t) { return static_cast<T>(loss / static_cast<double>(s.rows)); });
}

template void vocab_max<float>(const KernelCall&);
template void vocab_max<double>(const KernelCall&);
template void vocab_sum_exp<float>(const KernelCall&);
template void vocab_sum_exp<double>(const KernelCall&);
template void vocab_cross_entropy<float>(const KernelCall&);
template void vocab_cross_entropy<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

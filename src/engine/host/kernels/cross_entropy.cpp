// Softmax cross-entropy of rows of logits, in place:
//
//   loss = mean over rows of (logsumexp(l) - l_target);   l_j <- scale (softmax(l)_j - [j = target])
//
// `scale` carries whatever the loss is averaged over (rows, micro-steps, ranks); a control's loss scale multiplies it.
#include <cmath>

#include "host/kernels/control.h"
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

// Returns the row's loss.
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
  const Shape& s = call.shape();
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

}  // namespace krigtune::KRIGTUNE_KERNELS

// Inverted dropout (Srivastava et al. 2014): x <- x m / (1 - p), where m = 0 with probability p, else 1. A rank has
// either all rows of a batch, or the r-th part of them if its tensor group splits the sequence (sequence parallelism),
// or the r-th part of the columns (the inputs of an adapter).
#include "engine/host/kernels/dropout_mask.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {
namespace {

template <class T>
void apply(const std::uint8_t* mask, std::int64_t count, double dropout, T* x) {
  const T kept = static_cast<T>(1.0 / (1.0 - dropout));
  for (std::int64_t i = 0; i < count; ++i) x[i] *= mask[i] != 0 ? kept : T(0);
}

}  // namespace

template <class T>
void dropout_forward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t first = s.rows < s.batch * s.seq ? call.context.tensor_rank * s.rows : 0;
  const std::int64_t width = s.width > 0 ? s.width : s.inner;
  const std::int64_t column = s.width > 0 ? call.context.tensor_rank * s.inner : 0;
  auto* mask = call.data<std::uint8_t>(1);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    DropoutMask draws(call, DropoutMask::Of::kHidden, (first + row) / s.seq);
    draws.fill((first + row) % s.seq * width + column, s.inner, mask + row * s.inner);
  }
  apply(mask, s.rows * s.inner, s.dropout, call.data<T>(0));
}

template <class T>
void dropout_backward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  apply(call.data<const std::uint8_t>(1), s.rows * s.inner, s.dropout, call.data<T>(0));
}

template void dropout_forward<float>(const KernelCall&);
template void dropout_forward<double>(const KernelCall&);
template void dropout_backward<float>(const KernelCall&);
template void dropout_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

// Inverted dropout (Srivastava et al. 2014): x <- x m / (1 - p), m = 0 with probability p, else 1; which elements, says
// the host's counter-based generator. Under sequence parallelism this rank holds a part of the rows.
#include "cuda/kernels/dropout_draws.h"

namespace krigtune::cuda {

void dropout_forward(const DeviceCall& call) {
  const Shape& s = call.shape();
  const std::int64_t first = s.rows < s.batch * s.seq ? call.context.tensor_rank * s.rows : 0;
  const std::int64_t sequence_elems = s.seq * s.inner;
  const std::int64_t begin = first * s.inner;
  const DropoutDraws draws(call, DropoutDraws::kHidden);
  const Elements x(call, 0);
  auto* mask = call.data<std::uint8_t>(1);
  launch_elements(call.queue, s.rows * s.inner, [=] __device__(std::int64_t e) {
    const bool kept = draws.keeps((begin + e) / sequence_elems, (begin + e) % sequence_elems);
    mask[e] = kept ? 1 : 0;
    x.set(e, kept ? x(e) * draws.scale() : 0.0F);
  });
}

void dropout_backward(const DeviceCall& call) {
  const auto scale = static_cast<float>(1.0 / (1.0 - call.shape().dropout));
  const Elements dx(call, 0);
  const auto* mask = call.data<const std::uint8_t>(1);
  launch_elements(call.queue, call.shape().rows * call.shape().inner,
                  [=] __device__(std::int64_t e) { dx.set(e, mask[e] != 0 ? dx(e) * scale : 0.0F); });
}

}  // namespace krigtune::cuda

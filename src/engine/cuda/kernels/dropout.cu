// Inverted dropout (Srivastava et al. 2014): x <- x m / (1 - p), where m = 0 with probability p, else 1. The host's
// counter-based generator determines which elements are dropped. With sequence parallelism, this rank has a part of the
// rows; of the inputs of an adapter it may have a part of the columns.
#include "engine/cuda/kernels/elements.h"
#include "engine/cuda/kernels/philox.h"

namespace krigtune::cuda {
namespace {

/// The bytes of a mask for one pack, which are accessed together.
template <int kWidth>
struct alignas(kWidth) MaskPack {
  std::uint8_t at[kWidth];
};
template <int kWidth, schedule::DType kType>
__device__ inline MaskPack<kWidth>& pack_of(std::uint8_t* mask, Place<kWidth, kType> place) {
  return *reinterpret_cast<MaskPack<kWidth>*>(mask + place.first);
}

/// Computes x <- x m scale.
template <int kWidth, schedule::DType kType>
__device__ inline void apply(const Elements& x, Place<kWidth, kType> place, const MaskPack<kWidth>& mask, float scale) {
  Pack<kWidth> values = x(place);
  for (int k = 0; k < kWidth; ++k) values.at[k] = mask.at[k] != 0 ? values.at[k] * scale : 0.0F;
  x.set(place, values);
}

}  // namespace

void dropout_forward(const DeviceCall& call) {
  const plan::Shape& s = call.shape();
  const std::int64_t first = s.rows < s.batch * s.seq ? call.context.tensor_rank * s.rows : 0;
  const std::int64_t seq = s.seq;
  const std::int64_t h = s.inner;
  const std::int64_t width = s.width > 0 ? s.width : h;
  const std::int64_t column = s.width > 0 ? call.context.tensor_rank * h : 0;
  const DropoutDraws draws(call, DropoutDraws::kHidden);
  const Elements x(call, 0);
  auto* mask = call.data<std::uint8_t>(1);
  launch_row_packs(call.queue, s.rows, h, {x, {call, 1}}, [=] __device__(std::int64_t row, auto at) {
    constexpr int kWidth = decltype(at)::width;
    bool kept[kWidth];
    draws.keeps((first + row) / seq, at + ((first + row) % seq * width + column), kept);
    MaskPack<kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.at[k] = kept[k] ? 1 : 0;
    apply(x, at + row * h, pack, draws.scale());
    pack_of(mask, at + row * h) = pack;
  });
}

void dropout_backward(const DeviceCall& call) {
  const auto scale = static_cast<float>(1.0 / (1.0 - call.shape().dropout));
  const Elements dx(call, 0);
  auto* mask = call.data<std::uint8_t>(1);
  launch_packs(call.queue, call.shape().rows * call.shape().inner, {dx, {call, 1}},
               [=] __device__(auto at) { apply(dx, at, pack_of(mask, at), scale); });
}

}  // namespace krigtune::cuda

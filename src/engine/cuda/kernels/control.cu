// The norm of the gradients, and what follows from it: clipping and the dynamic loss scale, in the equations of
// host/kernels/control.cpp, without the host ever reading a number. S: the loss scale, gradients are S times too large:
//
//   norm = sqrt(sum) / S;  factor = min(1, clipping / norm) / S
//   not finite: factor = 0, S <- max(1, S / 2), no update;  after 2000 finite steps in a row: S <- 2 S
//
// Squares are added in parts of fixed borders, then the parts in order: the same bits always.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr float kStepsToGrow = 2000.0F;
constexpr std::int64_t kLeastPartElems = 4096;
constexpr std::int64_t kParts = 1024;

}  // namespace

std::int64_t gradient_norm_scratch(const Operation& /*operation*/) { return kParts; }

void gradient_norm(const DeviceCall& call) {
  float* partial = call.scratch;
  const Elements sum(call, 0);
  const auto scale = static_cast<float>(call.operation.scale);
  clear_bytes(call.queue, partial, kParts * static_cast<std::int64_t>(sizeof(float)));
  for (std::size_t range = 1; range < call.operands.size(); ++range) {
    const Elements g(call, range);
    const std::int64_t elems = call.operands[range].elems;
    const std::int64_t even = (elems + kParts - 1) / kParts;
    const std::int64_t part_elems = even < kLeastPartElems ? kLeastPartElems : even;
    launch_rows(call.queue, (elems + part_elems - 1) / part_elems, [=] __device__(const Block& block, std::int64_t p) {
      const std::int64_t begin = p * part_elems;
      const std::int64_t count = elems - begin < part_elems ? elems - begin : part_elems;
      const float squares = block.sum(count, [=](std::int64_t i) { return g(begin + i) * g(begin + i); });
      block.for_each(1, [=](std::int64_t) { partial[p] += squares; });
    });
  }
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float squares = block.sum(kParts, [=](std::int64_t p) { return partial[p]; });
    block.for_each(1, [=](std::int64_t) { sum.put(0, scale * squares); });
  });
}

void loss_scale(const DeviceCall& call) {
  const auto* sum = call.data<const float>(0);
  auto* control = call.data<float>(1);
  const auto clipping = static_cast<float>(call.context.gradient_clipping);
  const bool grows = call.context.first_loss_scale > 1.0;
  launch_elements(call.queue, 1, [=] __device__(std::int64_t) {
    const float scale = control[kLossScaleElement];
    const float norm = sqrtf(sum[0]) / scale;
    control[kNormElement] = norm;
    if (!(norm <= 3.0e38F)) {
      control[kFactorElement] = 0.0F;
      control[kLossScaleElement] = scale > 2.0F ? scale / 2.0F : 1.0F;
      control[kGoodStepsElement] = 0.0F;
      return;
    }
    control[kFactorElement] = (clipping > 0.0F && norm > clipping ? clipping / norm : 1.0F) / scale;
    control[kUpdatesElement] += 1.0F;
    control[kGoodStepsElement] += 1.0F;
    if (grows && control[kGoodStepsElement] >= kStepsToGrow) {
      control[kLossScaleElement] = 2.0F * scale;
      control[kGoodStepsElement] = 0.0F;
    }
  });
}

}  // namespace krigtune::cuda

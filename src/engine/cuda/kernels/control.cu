// The norm of the gradients, and what follows from it: clipping and the dynamic loss scale. The equations are those of
// host/kernels/control.cpp, but the host never reads a number. S is the loss scale: the gradients are S times too
// large.
//
//   norm = sqrt(sum) / S;  factor = min(1, clipping / norm) / S
//   not finite: factor = 0, S <- max(1, S / 2), no update;  after 2000 finite steps in a row: S <- 2 S
//
// Squares are summed in parts with fixed borders: a block sums its part of all ranges, then the parts are added in
// order, so the bits are always the same. One kernel takes up to 64 ranges.
#include <algorithm>

#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr float kStepsToGrow = 2000.0F;
constexpr std::int64_t kMostParts = 132 * 8;  // blocks of 256 threads that an H100 runs at once
constexpr std::int64_t kLeastPartElems = 4096;
constexpr std::size_t kMostRanges = 64;

/// The argument of a kernel, which takes 1.5 KiB.
struct Ranges {
  Elements of[kMostRanges];
  std::int64_t elems[kMostRanges];
  std::size_t count = 0;

  void add(const Elements& range, std::int64_t range_elems) {
    of[count] = range;
    elems[count++] = range_elems;
  }
};

std::int64_t parts_of(const DeviceCall& call) {
  std::int64_t most = 1;
  for (std::size_t i = 1; i < call.operands.size(); ++i) most = std::max(most, call.operands[i].elems);
  return std::min(kMostParts, (most + kLeastPartElems - 1) / kLeastPartElems);
}

void add_squares(const DeviceCall& call, const Ranges& ranges, std::int64_t parts, bool first) {
  float* partial = call.scratch;
  launch_rows(call.queue, parts, [=] __device__(const Block& block, std::int64_t part) {
    Pack<1> squares{};
    for (std::size_t i = 0; i < ranges.count; ++i) {
      const Elements g = ranges.of[i];
      const std::int64_t thread = part * kBlockThreads + threadIdx.x;
      for_packs(g, ranges.elems[i], thread, parts * kBlockThreads,
                [&](auto at) { squares.at[0] += total(map([](float v) { return v * v; }, g(at))); });
    }
    const float sum = block.sum(squares).at[0];
    if (threadIdx.x == 0) partial[part] = first ? sum : partial[part] + sum;
  });
}

}  // namespace

std::int64_t gradient_norm_scratch(const plan::Operation& /*operation*/) { return kMostParts; }

void gradient_norm(const DeviceCall& call) {
  const std::int64_t parts = parts_of(call);
  for (std::size_t begin = 1; begin < call.operands.size(); begin += kMostRanges) {
    Ranges ranges;
    for (std::size_t i = begin; i < std::min(begin + kMostRanges, call.operands.size()); ++i) {
      ranges.add({call, i}, call.operands[i].elems);
    }
    add_squares(call, ranges, parts, begin == 1);
  }
  const float* partial = call.scratch;
  const Elements sum(call, 0);
  const auto scale = static_cast<float>(call.operation.scale);
  launch_rows(call.queue, 1, [=] __device__(const Block& block, std::int64_t) {
    const float squares = block.sum(parts, [=](std::int64_t part) { return partial[part]; });
    if (threadIdx.x == 0) sum.put(0, scale * squares);
  });
}

void loss_scale(const DeviceCall& call) {
  const auto* sum = call.data<const float>(0);
  auto* control = call.data<float>(1);
  const auto clipping = static_cast<float>(call.context.gradient_clipping);
  const bool grows = call.context.first_loss_scale > 1.0;
  launch_elements(call.queue, 1, [=] __device__(std::int64_t) {
    const float scale = control[schedule::kLossScaleElement];
    const float norm = sqrtf(sum[0]) / scale;
    control[schedule::kNormElement] = norm;
    if (!(norm <= 3.0e38F)) {
      control[schedule::kFactorElement] = 0.0F;
      control[schedule::kLossScaleElement] = scale > 2.0F ? scale / 2.0F : 1.0F;
      control[schedule::kGoodStepsElement] = 0.0F;
      return;
    }
    control[schedule::kFactorElement] = (clipping > 0.0F && norm > clipping ? clipping / norm : 1.0F) / scale;
    control[schedule::kUpdatesElement] += 1.0F;
    control[schedule::kGoodStepsElement] += 1.0F;
    if (grows && control[schedule::kGoodStepsElement] >= kStepsToGrow) {
      control[schedule::kLossScaleElement] = 2.0F * scale;
      control[schedule::kGoodStepsElement] = 0.0F;
    }
  });
}

}  // namespace krigtune::cuda

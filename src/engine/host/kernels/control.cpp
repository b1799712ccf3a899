// The norm of the gradients and the loss scale (Micikevicius et al. 2018, "Mixed precision training"; Pascanu et al.
// 2013 for clipping). S is the loss scale: the gradients are S times too large.
//
//   norm = sqrt(sum) / S;  factor = min(1, clipping / norm) / S
//   not finite: factor = 0, S <- max(1, S / 2), no update;  after 2000 finite steps in a row: S <- 2 S
//
// S grows only if it started above 1 (fp16).
#include "engine/host/kernels/control.h"

#include <cmath>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {
namespace {

constexpr double kStepsToGrow = 2000.0;

}  // namespace

template <class T>
void gradient_norm(const KernelCall& call) {
  double sum = 0.0;
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    const T* g = call.data<const T>(i);
    const auto square = [&](std::int64_t j) { return static_cast<double>(g[j]) * static_cast<double>(g[j]); };
    sum += ordered_sum<double>(call.operands[i].elems, square);
  }
  put(call.data<T>(0), 1, call.adds(0), [&](std::int64_t) { return static_cast<T>(call.operation.scale * sum); });
}

template <class T>
void update_loss_scale(const KernelCall& call) {
  T* control = call.data<T>(1);
  const double scale = static_cast<double>(control[schedule::kLossScaleElement]);
  const double norm = std::sqrt(static_cast<double>(call.data<const T>(0)[0])) / scale;
  control[schedule::kNormElement] = static_cast<T>(norm);
  if (!std::isfinite(norm)) {
    control[schedule::kFactorElement] = T(0);
    control[schedule::kLossScaleElement] = static_cast<T>(scale > 2.0 ? scale / 2.0 : 1.0);
    control[schedule::kGoodStepsElement] = T(0);
    return;
  }
  const double clipping = call.context.gradient_clipping;
  control[schedule::kFactorElement] =
      static_cast<T>((clipping > 0.0 && norm > clipping ? clipping / norm : 1.0) / scale);
  control[schedule::kUpdatesElement] += T(1);
  control[schedule::kGoodStepsElement] += T(1);
  if (call.context.first_loss_scale > 1.0 &&
      static_cast<double>(control[schedule::kGoodStepsElement]) >= kStepsToGrow) {
    control[schedule::kLossScaleElement] *= T(2);
    control[schedule::kGoodStepsElement] = T(0);
  }
}

template void gradient_norm<float>(const KernelCall&);
template void gradient_norm<double>(const KernelCall&);
template void update_loss_scale<float>(const KernelCall&);
template void update_loss_scale<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

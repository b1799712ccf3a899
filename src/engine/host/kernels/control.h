#pragma once
#include "engine/host/kernels/kernel.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

/// Returns the loss scale of the control in operand i, or 1 if there is no such operand.
template <class T>
double loss_scale(const KernelCall& call, std::size_t i) {
  return call.has(i) ? static_cast<double>(call.data<const T>(i)[schedule::kLossScaleElement]) : 1.0;
}

/// How the optimizer treats this step's gradients.
struct UpdateControl {
  double factor = 1.0;   ///< multiplies the gradients; 0: nothing is updated
  double updates = 1.0;  ///< number of updates, including this one
};

/// Lists of operands come in groups; if one operand remains, it is the control.
template <class T>
UpdateControl update_control(const KernelCall& call, std::size_t group) {
  if (call.operands.size() % group == 0) return {1.0, static_cast<double>(call.context.step + 1)};
  const T* control = call.data<const T>(call.operands.size() - 1);
  return {static_cast<double>(control[schedule::kFactorElement]),
          static_cast<double>(control[schedule::kUpdatesElement])};
}

}  // namespace krigtune::engine::KRIGTUNE_KERNELS

#include "cost/weight_gradients.h"

#include <cstddef>

namespace krigtune::cost {

bool only_makes_weight_gradients(const plan::StepPlan& plan, const plan::Operation& operation) {
  bool writes = false;
  for (const plan::Operand& operand : operation.operands) {
    if (operand.access == plan::Access::kRead) continue;
    const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(operand.range.buffer)];
    if (!buffer.persistent || buffer.term != schedule::Term::kGradients) return false;
    writes = true;
  }
  return writes && operation.phase == schedule::Phase::kBackward;
}

}  // namespace krigtune::cost

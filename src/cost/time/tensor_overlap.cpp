#include "cost/time/tensor_overlap.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

using plan::Operation;
using plan::OpId;

bool is_tensor_collective(const Operation& operation) {
  return plan::is_collective(operation.kind) && operation.group == schedule::Group::kTensor;
}

bool is_product_of_gradients(const Operation& operation) {
  return operation.kind == schedule::OpKind::kLinearBackwardInput ||
         operation.kind == schedule::OpKind::kLinearBackwardWeight;
}

std::set<std::int32_t> buffers_of(const Operation& operation, bool written) {
  std::set<std::int32_t> buffers;
  for (const plan::Operand& operand : operation.operands)
    if ((operand.access != plan::Access::kRead) == written) buffers.insert(operand.range.buffer);
  return buffers;
}

// Finds the products between a collective and the next one, after it or before it.
class Window {
 public:
  Window(const plan::StepPlan& plan, std::size_t collective, int direction)
      : plan_(plan), collective_(collective), direction_(direction) {}

  // The first of them that does not touch what the collective writes.
  OpId independent(const std::set<OpId>& taken) const {
    const std::set<std::int32_t> made = buffers_of(plan_.operations[collective_], true);
    for (auto at = static_cast<std::ptrdiff_t>(collective_) + direction_; in_window(at); at += direction_) {
      const Operation& operation = plan_.operations[static_cast<std::size_t>(at)];
      const auto touches = [&](const plan::Operand& operand) { return made.contains(operand.range.buffer); };
      if (is_product_of_gradients(operation) && !taken.contains(static_cast<OpId>(at)) &&
          std::ranges::none_of(operation.operands, touches))
        return static_cast<OpId>(at);
    }
    return -1;
  }

 private:
  bool in_window(std::ptrdiff_t at) const {
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(plan_.operations.size())) return false;
    const Operation& operation = plan_.operations[static_cast<std::size_t>(at)];
    return !is_tensor_collective(operation) && operation.phase == schedule::Phase::kBackward;
  }

  const plan::StepPlan& plan_;
  std::size_t collective_;
  int direction_;
};

}  // namespace

std::vector<OpId> products_beside_collectives(const plan::StepPlan& plan) {
  std::vector<OpId> beside(plan.operations.size(), -1);
  std::set<OpId> taken;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    if (!is_tensor_collective(operation) || operation.phase != schedule::Phase::kBackward) continue;
    const int direction = operation.kind == schedule::OpKind::kAllGather ? 1 : -1;
    beside[i] = Window(plan, i, direction).independent(taken);
    if (beside[i] >= 0) taken.insert(beside[i]);
  }
  return beside;
}

double exposed_beside_s(double collective_s, double product_s, double slowdown) {
  if (product_s * slowdown <= collective_s) return collective_s - product_s;
  return collective_s * (1.0 - 1.0 / slowdown);
}

}  // namespace krigtune::cost

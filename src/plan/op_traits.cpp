#include "plan/op_traits.h"

#include <algorithm>

#include "plan/op_operands.h"

namespace krigtune::plan {

bool allows(Role role, Access access) {
  switch (role) {
    case Role::kInput:
    case Role::kHeld:
      return access == Access::kRead;
    case Role::kOutput:
      return access != Access::kRead;
    case Role::kSet:
      return access == Access::kWrite;
    case Role::kAddedTo:
    case Role::kInPlace:
      return access == Access::kReadWrite;
  }
  return false;
}

bool OpTraits::takes(std::size_t count) const {
  if (!is_list()) {
    const auto least = std::ranges::count_if(operands, [](const OperandTraits& operand) { return !operand.optional; });
    return count >= static_cast<std::size_t>(least) && count <= operands.size() + (control ? 1 : 0);
  }
  if (count < operands.size() + group.size()) return false;
  const std::size_t listed = count - operands.size();
  if (one_group && listed >= 2 * group.size()) return false;
  return listed % group.size() == 0 || (control && listed % group.size() == 1);
}

const OperandTraits& OpTraits::operand(std::size_t i, std::size_t count) const {
  static constexpr OperandTraits kControl{"control", Role::kInput, operands::control_elems};
  if (i < operands.size()) return operands[i];
  const bool is_last = i + 1 == count;
  if (!is_list() || (control && is_last && (count - operands.size()) % group.size() == 1)) return kControl;
  return group[(i - operands.size()) % group.size()];
}

bool OpTraits::looks_up() const { return std::ranges::any_of(operands, &OperandTraits::looked_up); }

}  // namespace krigtune::plan

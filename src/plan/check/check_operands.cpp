// What each kind takes, operand by operand: access, size and place.
#include <fmt/format.h>

#include "check/checks.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

class Operands {
 public:
  Operands(const StepPlan& plan, PlanFindings& lines) : plan_(plan), findings_(plan, "operands", lines) {}

  void run() {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      const OpTraits& traits = traits_of(operation.kind);
      const std::size_t count = operation.operands.size();
      for (std::size_t k = 0; k < count; ++k) {
        const Operand& operand = operation.operands[k];
        const OperandTraits& expected = traits.operand(k, count);
        if (!allows(expected.role, operand.access)) {
          findings_.add(i, operand.range.buffer, fmt::format("does not access operand {} like this", k));
        }
        if (expected.elems != nullptr && expected.elems(operation.shape) != operand.range.elems) {
          findings_.add(i, operand.range.buffer, fmt::format("has another shape than operand {}", k));
        }
        check_place(i, operand.range.buffer);
      }
      check_pairs(i);
    }
  }

 private:
  // Sums and copies element by element.
  void check_pairs(std::size_t i) {
    const Operation& operation = plan_.operations[i];
    const OpTraits& traits = traits_of(operation.kind);
    if (!traits.is_list() || is_collective(operation.kind)) return;
    const auto elems = [&](std::size_t k) { return operation.operands[k].range.elems; };
    const std::size_t stride = traits.group.size();
    for (std::size_t k = traits.operands.size(); k + stride <= operation.operands.size(); k += stride) {
      for (std::size_t other = k + 1; other < k + stride; ++other) {
        if (elems(other) != elems(k)) {
          findings_.add(i, operation.operands[other].range.buffer, "pairs ranges of different length");
        }
      }
    }
  }

  // Only copies see both memories.
  void check_place(std::size_t i, BufferId buffer) {
    const Operation& operation = plan_.operations[i];
    if (operation.kind == OpKind::kCopy && operation.stream == Stream::kCopy) return;
    const Place own = operation.stream == Stream::kHost ? Place::kHost : Place::kDevice;
    if (plan_.buffers[static_cast<std::size_t>(buffer)].place != own) {
      findings_.add(i, buffer, "works on the other memory's");
    }
  }

  const StepPlan& plan_;
  Findings findings_;
};

}  // namespace

void check_operands(const StepPlan& plan, PlanFindings& lines) { Operands(plan, lines).run(); }

}  // namespace krigtune

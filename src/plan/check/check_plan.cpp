#include "krigtune/plan/check_plan.h"

#include <fmt/format.h>

#include "check/checks.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {

void Findings::add(const std::string& what) {
  constexpr int kMost = 10;
  if (count_++ < kMost) lines_.push_back(fmt::format("{}: {}", check_, what));
}

void Findings::add(std::size_t operation, const std::string& what) {
  const Operation& at = plan_.operations[operation];
  const std::string block = at.layer >= 0 ? fmt::format(" of block {}", at.layer) : "";
  add(fmt::format("operation {} ({}, {}{}, micro-step {}) {}", operation, to_string(at.kind), to_string(at.phase),
                  block, at.micro_step, what));
}

void Findings::add(std::size_t operation, BufferId buffer, const std::string& what) {
  const auto id = static_cast<std::size_t>(buffer);
  add(operation, fmt::format("{}: buffer {} '{}'", what, buffer, plan_.buffers[id].name));
}

PlanFindings check_plan(const StepPlan& plan) {
  PlanFindings lines = check_structure(plan);
  for (const auto check : {check_operands, check_order, check_collectives, check_memory, check_data_flow}) {
    if (lines.empty()) check(plan, lines);
  }
  return lines;
}

}  // namespace krigtune

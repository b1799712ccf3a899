#pragma once
#include <string>

#include "plan/check/check_plan.h"

namespace krigtune::plan {

/// Collects the findings of one check, but only the first few, because one mistake shows in many places.
class Findings {
 public:
  Findings(const StepPlan& plan, const char* check, PlanFindings& lines) : plan_(plan), check_(check), lines_(lines) {}

  void add(const std::string& what);
  void add(std::size_t operation, const std::string& what);
  void add(std::size_t operation, BufferId buffer, const std::string& what);

 private:
  const StepPlan& plan_;
  const char* check_;
  PlanFindings& lines_;
  int count_ = 0;
};

void check_operands(const StepPlan& plan, PlanFindings& lines);
void check_order(const StepPlan& plan, PlanFindings& lines);
void check_collectives(const StepPlan& plan, PlanFindings& lines);
void check_memory(const StepPlan& plan, PlanFindings& lines);
void check_data_flow(const StepPlan& plan, PlanFindings& lines);

/// Returns the padded elements of the tensors that are trained.
inline std::int64_t trained_elems(const StepPlan& plan) {
  std::int64_t elems = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.trained ? tensor.padded_elems : 0;
  return elems;
}

inline const Buffer& buffer_of(const StepPlan& plan, const Range& range) {
  return plan.buffers[static_cast<std::size_t>(range.buffer)];
}

}  // namespace krigtune::plan

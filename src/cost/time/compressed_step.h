#pragma once
#include "cost/time/step_template.h"

namespace krigtune::cost {

/// One rank's optimizer step of a pipeline stage (or of the whole model) in few operations.
struct CompressedTimes {
  ClockTotals totals;
  PassCost cost;
  double optimizer_s = 0.0;
  double data_comm_s = 0.0;
  double data_wire_bytes = 0.0;
  double micro_step_s = 0.0;  ///< one more micro-step takes
  double backward_s = 0.0;    ///< of it
};

/// Whose program: what it reduces, and when.
struct StepSetting {
  const Machine& machine;
  const StepTemplate& model;
  schedule::Knobs knobs;
  schedule::ZeroPolicy policy;
  plan::GroupSpan data_span, tensor_span;
  double reduced_bytes = 0.0;
};
/// `scratch`: memory to be used again.
CompressedTimes time_step(const StepSetting& setting, const schedule::StageTensors& tensors,
                          std::vector<TimedOperation>& scratch);

}  // namespace krigtune::cost

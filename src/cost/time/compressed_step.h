#pragma once
#include "cost/time/step_template.h"

namespace krigtune::cost {

/// The times of one rank's optimizer step in a pipeline stage (or in the whole model), from a compressed plan.
struct CompressedTimes {
  ClockTotals totals;
  PassCost cost;
  double optimizer_s = 0.0;
  double data_comm_s = 0.0;
  double data_wire_bytes = 0.0;
  double micro_step_s = 0.0;  ///< seconds of one additional micro-step
  double backward_s = 0.0;    ///< part of it in backward
  double weights_s = 0.0;     ///< part of that in operations that only make gradients of weights
};

/// The machine and the program: what it reduces, and when.
struct StepSetting {
  const Machine& machine;
  const StepTemplate& model;
  schedule::Knobs knobs;
  schedule::ZeroPolicy policy;
  GroupSpans spans;
  double reduced_bytes = 0.0;
};
/// `scratch` is a buffer that is reused between calls.
CompressedTimes time_step(const StepSetting& setting, const schedule::StageTensors& tensors,
                          std::vector<TimedOperation>& scratch);

}  // namespace krigtune::cost

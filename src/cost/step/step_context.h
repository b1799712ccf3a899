#pragma once
#include <array>

#include "krigtune/cost/machine.h"
#include "krigtune/schedule/setting.h"
#include "step/recorder.h"
#include "step/step_template.h"

namespace krigtune {

/// What all parts of one step's time share.
struct CostContext {
  const Machine& machine;
  const schedule::Setting& setting;
  GroupSpan data_span, tensor_span;
  double reduced_bytes = 0.0;  ///< of an element of the gradients that travel
  Recorder& recorder;
  // Sums of what was recorded.
  PassCost cost{};  ///< of the compute stream's micro-steps
  double optimizer_s = 0.0;
  double data_comm_s = 0.0;
  double data_wire_bytes = 0.0;

  /// A collective of the data group over `bytes` in whole; it is counted.
  Recorder::Collective data_collective(OpKind kind, std::int64_t bytes);
  Recorder::Collective tensor_collective(OpKind kind, std::int64_t bytes);
  /// Of the issuing thread, for a collective of the tensor group.
  double more_issue_s() const;
};

}  // namespace krigtune

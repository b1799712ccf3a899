#pragma once
#include <vector>

#include "zero/zero_gathering.h"
#include "zero/zero_gradients.h"
#include "zero/zero_optimizer.h"
#include "zero/zero_state.h"

namespace krigtune {

/// Where parameters, gradients and the optimizer's state live and when they travel: ZeRO stages 0 to 3 (Rajbhandari et
/// al. 2020), the only part of the schedule that knows of them. The model asks where a tensor is; this answers and
/// issues the collectives.
///
/// stage 0: gradients are summed in the last micro-step.  1: likewise; updated parameters are gathered.
/// stage 2: gradients are summed in every micro-step.     3: likewise; parameters are gathered for every use.
class ZeroSchedule {
 public:
  /// `uses`: the units' tensors in the order in which a micro-step uses them (forward, then backward).
  /// `ready_order`: the tensors in the order in which backward finishes their gradients.
  ZeroSchedule(PlanBuilder& builder, const ParameterTable& table, const Workload& workload, const Knobs& knobs,
               std::vector<std::vector<int>> uses, const std::vector<int>& ready_order);
  ZeroSchedule(const ZeroSchedule&) = delete;
  ZeroSchedule& operator=(const ZeroSchedule&) = delete;

  /// The next use in order begins: its parameters are gathered where they are sharded.
  void begin_use() { parameters_.begin_use(); }
  /// Where tensor `t` is to be read, within the current use.
  Operand parameter(int t) const { return parameters_.parameter(t); }
  /// Where the gradient of `t` is to be written (kWrite), or added to if it was written before (kReadWrite).
  Operand gradient(int t) { return gradients_.gradient(t); }
  /// The gradient of `t` is complete in this micro-step: its bucket travels once it is full.
  void gradient_done(int t) { gradients_.gradient_done(t); }
  void end_micro_step() { gradients_.end_micro_step(); }
  /// Updates the parameters (and gathers them again where every rank holds them).
  void optimizer_step() { optimizer_.add(); }

  /// The buffer of ControlElements, -1 where neither clipping nor loss scaling needs one.
  BufferId control() const { return state_.control; }
  /// Where the parameters live from step to step, and further ranges that start with their values.
  std::vector<TensorHome> homes() const { return state_.homes(); }
  std::vector<TensorHome> copies() const { return state_.copies(); }
  /// What may be under way at once.
  Windows windows() const;
  bool sharded_parameters() const { return !state_.parameter_shards.empty(); }

 private:
  ZeroSetting setting_;
  ZeroState state_;
  ParameterGathering parameters_;
  GradientReduction gradients_;
  OptimizerStep optimizer_;
};

}  // namespace krigtune

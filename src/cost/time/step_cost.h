#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cost/framework.h"
#include "cost/machine.h"
#include "cost/time/pipeline.h"
#include "space/configuration.h"

namespace krigtune::cost {

/// What holds a step up most.
enum class Bottleneck { kCompute, kCommunication, kMemory };
const char* to_string(Bottleneck bottleneck);  ///< compute, communication, memory (its bandwidth)

/// Where the time of one predicted optimizer step goes, of one rank (with pipeline stages: the slowest one). Seconds of
/// the compute stream, then what is exposed beside them; all but the sub-items (recompute_s, *_comm_s) add up to
/// step_time_s.
struct StepCost {
  double step_time_s = 0.0;
  double products_s = 0.0;      ///< matrix products and attention
  double memory_bound_s = 0.0;  ///< elementwise kernels, norms, losses
  double optimizer_s = 0.0;
  double exposed_comm_s = 0.0;  ///< collectives and point-to-point while no kernel runs
  double offload_s = 0.0;       ///< copies and host work while no kernel runs
  double bubble_s = 0.0;        ///< pipeline stages without work
  double idle_s = 0.0;          ///< kernels that were not issued yet, and what is once a step
  // Sub-items, hidden or not.
  double recompute_s = 0.0;
  double tensor_comm_s = 0.0;
  double data_comm_s = 0.0;
  double pipeline_comm_s = 0.0;
  double tensor_wire_bytes = 0.0;  ///< sent by one rank
  double data_wire_bytes = 0.0;

  Bottleneck bottleneck() const;
};

/// One optimizer step of all pipeline stages, as the predicted time sees it.
struct PipelineStep {
  std::vector<std::int64_t> layers;  ///< by stage
  std::vector<StageTime> stages;
  std::vector<StageTask> tasks;  ///< in the order of each stage
  double tie_s = 0.0;            ///< behind all: the gradient of a tied token table is summed over its two stages
  double step_time_s = 0.0;      ///< as StepCost says it, with what is once a step
};

/// Predicts step times by a compressed plan: whole blocks in place of operations, first, middle and last micro-steps in
/// place of all. Equal to predict_step on the full plan within the bounds that tests/cost/step_cost_test.cpp states.
/// Thread-safe: what configurations share is computed once.
class StepCostModel {
 public:
  StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                const TimeCalibration& calibration = {});
  /// With rates of the caller's.
  StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Machine& machine);
  ~StepCostModel();
  /// Throws UserError as read_knobs does.
  StepCost operator()(const space::Configuration& configuration) const;
  /// Empty for a configuration that is not modelled (knobs_of).
  std::optional<StepCost> if_modelled(const space::Configuration& configuration) const;
  /// Stage by stage and micro-step by micro-step. Empty with a single pipeline stage. Throws as operator() does.
  std::optional<PipelineStep> pipeline_step(const space::Configuration& configuration) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::cost

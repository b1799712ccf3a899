#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cost/framework.h"
#include "cost/machine.h"
#include "cost/pipeline.h"
#include "cost/time/block_plans.h"
#include "space/configuration.h"

namespace krigtune::cost {

/// What limits the speed of a step most.
enum class Bottleneck { kCompute, kCommunication, kMemory };
const char* to_string(Bottleneck bottleneck);  ///< compute, communication, memory (its bandwidth)

/// Where the time of one predicted optimizer step goes, on one rank (with pipeline stages, in the slowest one). The
/// fields are seconds of the compute stream, then the exposed time of other streams. All of them except the sub-items
/// (recompute_s, *_comm_s) add up to step_time_s.
struct StepCost {
  double step_time_s = 0.0;
  double products_s = 0.0;      ///< matrix products and attention
  double memory_bound_s = 0.0;  ///< elementwise kernels, norms, losses
  double optimizer_s = 0.0;
  double exposed_comm_s = 0.0;  ///< collectives and point-to-point while no kernel runs
  double offload_s = 0.0;       ///< copies and host work while no kernel runs
  double bubble_s = 0.0;        ///< time in which pipeline stages have no work
  double idle_s = 0.0;          ///< waiting for kernels to be issued, and overhead once per step
  // Sub-items, whether hidden or not:
  double recompute_s = 0.0;
  double tensor_comm_s = 0.0;
  double expert_comm_s = 0.0;   ///< of the tokens that are sent to the ranks of their experts and back
  double context_comm_s = 0.0;  ///< only the exposed part: of the exchange of keys and values
  double data_comm_s = 0.0;
  double pipeline_comm_s = 0.0;
  double tensor_wire_bytes = 0.0;  ///< sent by one rank
  double data_wire_bytes = 0.0;

  Bottleneck bottleneck() const;
};

/// One optimizer step of all pipeline stages, as predicted.
struct PipelineStep {
  PipelineShape shape;
  std::vector<std::int64_t> layers;  ///< for each stage
  std::vector<StageTime> stages;
  std::vector<StageTask> tasks;  ///< in the order of each rank
  double tie_s = 0.0;            ///< at the end: the sum of a tied token table's gradient over its two stages
  /// As in StepCost, including the overhead once per step. If the ranks do not wait for each other between steps, less
  /// than the tasks of one step take from the first to the last.
  double step_time_s = 0.0;
};

/// Predicts step times with a compressed plan: whole blocks instead of operations, and only the first, a middle and the
/// last micro-step. The result equals predict_step on the full plan within the bounds that
/// tests/cost/step_cost_test.cpp states. Thread-safe; results that configurations share are computed once.
class StepCostModel {
 public:
  StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                const TimeCalibration& calibration = {}, std::shared_ptr<BlockPlans> plans = nullptr);
  /// Uses the caller's rates.
  StepCostModel(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Machine& machine,
                std::shared_ptr<BlockPlans> plans = nullptr);
  ~StepCostModel();
  /// Throws UserError like read_knobs.
  StepCost operator()(const space::Configuration& configuration) const;
  /// Empty for a configuration that is not modelled (knobs_of).
  std::optional<StepCost> if_modelled(const space::Configuration& configuration) const;
  /// Returns the step stage by stage and micro-step by micro-step. Empty if there is only one pipeline stage. Throws
  /// like operator().
  std::optional<PipelineStep> pipeline_step(const space::Configuration& configuration) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::cost

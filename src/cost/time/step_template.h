#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "cost/machine.h"
#include "cost/time/recorder.h"
#include "schedule/setting.h"
#include "schedule/tensors.h"

namespace krigtune::cost {

/// An operation of the compute stream.
struct TemplateOperation {
  StepSegment segment;
  bool collective = false;  ///< a collective of the tensor group, or an exchange of context parallelism
  double link_s = 0.0;      ///< its time on the link
  double core_s = 0.0;      ///< its time on cores
  std::vector<int> reads;   ///< parameters, numbered as in UnitTensors
  std::vector<int> begins;  ///< gradients that it writes first
  std::vector<int> ends;    ///< gradients that it completes, in order
};

/// Seconds of the operations of a pass.
struct PassCost {
  double products_s = 0.0;
  double memory_bound_s = 0.0;
  double recompute_s = 0.0;
  double tensor_comm_s = 0.0;
  double expert_comm_s = 0.0;   ///< of expert parallelism
  double context_comm_s = 0.0;  ///< of context parallelism, as far as attention does not hide it
  double tensor_wire_bytes = 0.0;

  void add(const PassCost& other, double times);
};

/// The forward, the recomputation or the backward of one unit.
struct Pass {
  std::vector<TemplateOperation> operations;
  StepSegment all;
  PassCost cost;
  double weights_s = 0.0;  ///< of `all`, in operations that only make gradients of weights
};
enum class PassKind : std::uint8_t { kForward, kRecompute, kBackward, kBackwardAgain };
/// kBackwardAgain: backward of a later micro-step, which adds to the gradients.
inline constexpr int kPassKindCount = 4;

/// What the blocks of a model have in common, by kind, for one way to split and to checkpoint it. It is derived from
/// the plan of one block of each kind on one data rank, so that build_plan is the only source.
struct StepTemplate {
  std::array<std::array<Pass, kPassKindCount>, schedule::kUnitCount> passes;

  const Pass& pass(schedule::Unit unit, PassKind kind) const {
    return passes[static_cast<std::size_t>(unit)][static_cast<std::size_t>(kind)];
  }
};
/// Returns the template of a plan of one block of each kind; `plan`: from BlockPlans.
StepTemplate make_template(const workload::Workload& workload, const Machine& machine, const schedule::Knobs& knobs,
                           const plan::StepPlan& plan);

/// How the nodes share the groups of ranks.
struct GroupSpans {
  plan::GroupSpan data, tensor;
  plan::GroupSpan experts;                    ///< the data ranks with the same experts
  plan::GroupSpan shards, shards_of_experts;  ///< of these, those that share what the stage shards
  plan::GroupSpan copies, copies_of_experts;  ///< those with the same part of it
  plan::GroupSpan secondary;                  ///< those that share a second copy of the parameters

  static GroupSpans of(const schedule::Knobs& knobs, std::int64_t ranks_per_node);
};

/// Bytes that the data ranks share: those of experts, and all others.
struct SharedBytes {
  std::int64_t of_all = 0;
  std::int64_t of_experts = 0;
};

/// What all parts of one step's time share.
struct CostContext {
  const Machine& machine;
  const schedule::Setting& setting;
  GroupSpans spans;
  double reduced_bytes = 0.0;  ///< of one element of the gradients that are sent
  Recorder& recorder;
  // Sums over the recorded operations:
  PassCost cost{};  ///< of the compute stream's micro-steps
  double optimizer_s = 0.0;
  double data_comm_s = 0.0;
  double data_wire_bytes = 0.0;

  /// Returns a collective of the data group over `shared` in total, and adds it to the sums. What belongs to experts is
  /// shared by those of its ranks that have the same experts. An all-gather or a reduce-scatter is one of the ranks
  /// that share what the stage shards.
  Recorder::Collective data_collective(schedule::OpKind kind, const SharedBytes& shared);
  /// Returns the same of an all-gather of the second copy of parameters.
  Recorder::Collective gather_again(const SharedBytes& shared);
  /// Returns the sum of reduced gradients, `shared` in total before they were reduced, over the copies of what the
  /// stage shards.
  Recorder::Collective sum_of_copies(const SharedBytes& shared);
  Recorder::Collective tensor_collective(schedule::OpKind kind, std::int64_t bytes);
  /// Returns the additional issue time of a collective of the tensor group.
  double more_issue_s() const;

 private:
  Recorder::Collective collective(schedule::OpKind kind, const plan::GroupSpan& span, std::int64_t bytes);
  Recorder::Collective collective(schedule::OpKind kind, const plan::GroupSpan& of_all,
                                  const plan::GroupSpan& of_experts, const SharedBytes& shared);
};

}  // namespace krigtune::cost

#pragma once
#include <cstddef>
#include <vector>

#include "krigtune/plan/zero_policy.h"
#include "step/recorder.h"
#include "step/stage_tensors.h"

namespace krigtune {

/// What all parts of one compressed step share.
struct CostContext {
  const Machine& machine;
  const StepTemplate& model;
  const StageTensors& tensors;
  Knobs knobs;
  ZeroPolicy policy;
  GroupSpan data_span, tensor_span;
  double reduced_bytes = 0.0;  ///< of an element of the gradients that travel
  Recorder& recorder;
  // Sums of what was recorded.
  PassCost cost{};  ///< of the compute stream's micro-steps
  double optimizer_s = 0.0;
  double data_comm_s = 0.0;
  double data_wire_bytes = 0.0;

  std::int64_t type_bytes() const { return size_bytes(policy.type); }
  std::int64_t updated_elems(std::int64_t padded) const {
    return policy.shards_optimizer ? padded / knobs.data_ranks : padded;
  }
  /// A collective of the data group over `bytes` in whole; it is counted.
  Recorder::Collective data_collective(OpKind kind, std::int64_t bytes);
  Recorder::Collective tensor_collective(OpKind kind, std::int64_t bytes);
  /// Of the issuing thread, for a collective of the tensor group.
  double more_issue_s() const;
};

/// Lets at most so many operations be under way: one more makes the compute stream wait for the oldest.
class UnderWay {
 public:
  UnderWay(Recorder& recorder, std::size_t width) : recorder_(recorder), width_(width) {}
  void enter(Recorder::Behind operation);

 private:
  Recorder& recorder_;
  std::size_t width_;
  std::vector<Recorder::Behind> entered_;
};

}  // namespace krigtune

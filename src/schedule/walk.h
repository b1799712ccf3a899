#pragma once
#include <cstdint>
#include <vector>

#include "schedule/gathering.h"
#include "schedule/reduction.h"

namespace krigtune::schedule {

/// Receives the computing parts of a micro-step.
class PartSink {
 public:
  virtual ~PartSink() = default;
  /// Called before the part's parameters are gathered. The embedding's forward loads the batch here.
  virtual void begin(const Part& part) = 0;
  /// Adds the operations of the part. They report to the walk's reduction which gradients they begin and complete.
  virtual void add(const Part& part) = 0;
};

/// The schedule of ZeRO stages 0 to 3 (Rajbhandari et al. 2020), written once and used to plan a step, to predict its
/// time and to count its bytes:
///
///   stage 0: gradients are summed in the last micro-step.
///   stage 1: as 0, and the updated parameters are gathered.
///   stage 2: gradients are summed in every micro-step.
///   stage 3: as 2, and parameters are gathered for every use.
///
///   Walk walk(setting, micro_steps, gathered, reduced);
///   for (std::int64_t m = 0; m < micro_steps; ++m) walk.micro_step(computed);
///   walk_update(setting, updated);
class Walk {
 public:
  /// `micro_steps` may be fewer than the knobs say if the remaining ones are equal. References must outlive this
  /// object.
  Walk(const Setting& setting, std::int64_t micro_steps, GatheringSink& gathered, ReductionSink& reduced);

  void micro_step(PartSink& sink);

  const std::vector<Part>& parts() const { return parts_; }
  Gathering& gathering() { return gathering_; }
  const Gathering& gathering() const { return gathering_; }
  Reduction& reduction() { return reduction_; }
  const Reduction& reduction() const { return reduction_; }

 private:
  std::vector<Part> parts_;
  Gathering gathering_;
  Reduction reduction_;
};

}  // namespace krigtune::schedule

#pragma once
#include <cstdint>
#include <vector>

#include "schedule/gathering.h"
#include "schedule/reduction.h"

namespace krigtune::schedule {

/// What computes.
class PartSink {
 public:
  virtual ~PartSink() = default;
  /// Before the part's parameters are gathered. The embedding's forward loads the batch here.
  virtual void begin(const Part& part) = 0;
  /// The operations of the part. They tell the walk's reduction which gradients they begin and complete.
  virtual void add(const Part& part) = 0;
};

/// The schedule of ZeRO stages 0 to 3 (Rajbhandari et al. 2020), walked once and told to whoever plans it, times it or
/// counts its bytes:
///
///   stage 0: gradients are summed in the last micro-step.  1: that, and updated parameters are gathered.
///   stage 2: gradients are summed in every micro-step.     3: that, and parameters are gathered for every use.
///
///   Walk walk(setting, micro_steps, gathered, reduced);
///   for (std::int64_t m = 0; m < micro_steps; ++m) walk.micro_step(computed);
///   walk_update(setting, updated);
class Walk {
 public:
  /// Of `micro_steps`, which may be fewer than the knobs say where the rest are alike. References must outlive it.
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

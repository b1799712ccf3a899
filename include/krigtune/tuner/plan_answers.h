#pragma once
#include <string>
#include <vector>

#include "krigtune/tuner/plan_study.h"

namespace krigtune {

/// What a configuration would gain from another machine.
struct WhatIf {
  std::string change;  ///< "network between nodes twice as fast"
  double gain = 1.0;   ///< in speed: 1.3 is 30 % faster
};
/// Everything twice as fast in turn, the largest gain first.
std::vector<WhatIf> what_ifs(const Session& session, const Forecaster& forecaster, const Candidate& candidate);

/// A configuration with one parameter changed.
struct Variant {
  Value value;
  Candidate candidate;
};
/// All values of the parameter that the session's space holds, the others as they are; those that the batch or the
/// models do not allow are left out. Empty where the space has no such parameter.
std::vector<Variant> variants(const Session& session, const Forecaster& forecaster, const Configuration& configuration,
                              const std::string& parameter);

/// One step of growth of the batch.
struct BatchRow {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  std::int64_t sequences = 1;  ///< of an optimizer step
  Forecast forecast;
  bool plateau = false;  ///< from here on less than 5 % is gained, as far as memory allows
};
struct BatchAnswer {
  std::vector<BatchRow> by_micro_batch;   ///< micro-batch grows
  std::vector<BatchRow> by_accumulation;  ///< accumulation grows; empty where the batch is kept
};
/// The others as in `configuration`. What the space does not hold is tried as well: accumulation by powers of two.
BatchAnswer batch_answer(const Session& session, const Forecaster& forecaster, const Configuration& configuration);

}  // namespace krigtune

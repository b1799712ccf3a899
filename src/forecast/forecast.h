#pragma once
#include <memory>
#include <optional>
#include <string>

#include "cost/time/step_cost.h"
#include "cost/utilization.h"
#include "session/memory_filter.h"

namespace krigtune::forecast {

/// Predictions for one configuration; unknown ones are empty.
struct Forecast {
  std::optional<plan::MemoryVerdict> memory;
  std::optional<cost::StepCost> cost;
  double samples_per_s = 0.0;   ///< of the whole job, if the cost is known
  std::optional<double> value;  ///< in the objective's unit; empty for the user's own metrics and replayed tables
  std::optional<cost::Utilization> utilization;  ///< for GPUs whose peak is known
};

/// Predicts time, memory and the objective. Safe from several threads. The constructor's arguments must outlive it.
class Forecaster {
 public:
  /// `memory_by_plan`: with krigtune-bench, memory is exact to the byte but takes milliseconds per configuration.
  Forecaster(const session::Session& session, const session::MemoryFilter& filter, bool memory_by_plan = false);
  ~Forecaster();

  bool knows_time() const;
  /// Returns one line for people if times are not predicted.
  const std::string& why_no_time() const;
  Forecast operator()(const space::Configuration& configuration) const;
  /// Returns the cost on a machine other than the session's.
  std::optional<cost::StepCost> cost_on(const workload::ClusterSpec& cluster,
                                        const space::Configuration& configuration) const;
  /// Larger is better: the objective if it follows from the step time, otherwise samples per second.
  double score(const Forecast& forecast) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the sequences of one optimizer step. Throws UserError like read_knobs.
std::int64_t sequences_per_step(const session::Session& session, const space::Configuration& configuration);

}  // namespace krigtune::forecast

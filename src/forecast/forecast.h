#pragma once
#include <memory>
#include <optional>
#include <string>

#include "cost/time/step_cost.h"
#include "cost/utilization.h"
#include "session/memory_filter.h"

namespace krigtune::forecast {

/// One configuration before it runs. What is not known is empty.
struct Forecast {
  std::optional<plan::MemoryVerdict> memory;
  std::optional<cost::StepCost> cost;
  double samples_per_s = 0.0;   ///< of the whole job, where the cost is known
  std::optional<double> value;  ///< in the objective's unit; empty for metrics of the user's own and replayed tables
  std::optional<cost::Utilization> utilization;  ///< of GPUs whose peak is known
};

/// Predicts time, memory and the objective. Safe from several threads. The arguments must outlive it.
class Forecaster {
 public:
  /// `memory_by_plan`: to the byte with krigtune-bench, in milliseconds each.
  Forecaster(const session::Session& session, const session::MemoryFilter& filter, bool memory_by_plan = false);
  ~Forecaster();

  bool knows_time() const;
  /// One line for people, where it does not.
  const std::string& why_no_time() const;
  Forecast operator()(const space::Configuration& configuration) const;
  /// On another machine than the session's.
  std::optional<cost::StepCost> cost_on(const workload::ClusterSpec& cluster,
                                        const space::Configuration& configuration) const;
  /// Larger is better: the objective where it follows from the step time, else samples a second.
  double score(const Forecast& forecast) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sequences of one optimizer step. Throws UserError as read_knobs does.
std::int64_t sequences_per_step(const session::Session& session, const space::Configuration& configuration);

}  // namespace krigtune::forecast

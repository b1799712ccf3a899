#include "forecast/trial_utilization.h"

#include "schedule/knobs.h"
#include "session/memory_filter.h"

namespace krigtune::forecast {
namespace {

std::optional<schedule::Knobs> knobs_if_modelled(const session::Session& session,
                                                 const space::Configuration& configuration) {
  const bool has_our_units = runner::traits_of(session.runner).has_our_units;
  if (!session.workload || !session.cluster.device || !has_our_units) return std::nullopt;
  const auto known = schedule::knobs_of(*session.workload, session.cluster, session::modelled_part(configuration));
  const auto* knobs = std::get_if<schedule::Knobs>(&known);
  return knobs == nullptr ? std::nullopt : std::optional(*knobs);
}

// Returns the step time that follows from the objective's value.
std::optional<double> step_time_of_objective(const session::Session& session, const trial::Measured& measured,
                                             double sequences) {
  const trial::Metric* metric = trial::find_metric(session.objective.metric);
  const auto found = measured.metrics.find(session.objective.reported_field());
  if (metric == nullptr || found == measured.metrics.end() || !(found->second > 0.0)) return std::nullopt;
  const double value = found->second;
  switch (metric->kind) {
    case trial::MetricKind::kThroughput:
    case trial::MetricKind::kGoodput:  // what is reported is its throughput
      return sequences / value;
    case trial::MetricKind::kTokensPerSecond:
      return sequences * static_cast<double>(session.workload->model.seq_len) / value;
    case trial::MetricKind::kLatency:
      return value;
    case trial::MetricKind::kFlops:
      return workload::model_flops(session.workload->model, static_cast<std::int64_t>(sequences)) / value /
             static_cast<double>(session.cluster.ranks());
  }
  return std::nullopt;
}

}  // namespace

std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration,
                                                const trial::Measured& measured) {
  const std::optional<schedule::Knobs> knobs = knobs_if_modelled(session, configuration);
  if (!knobs) return std::nullopt;
  const auto stated = measured.metrics.find("step_time_s");
  const std::optional<double> step_time_s =
      stated != measured.metrics.end()
          ? std::optional(stated->second)
          : step_time_of_objective(session, measured, static_cast<double>(knobs->sequences()));
  if (!step_time_s) return std::nullopt;
  return cost::utilization_of(*session.workload, session.cluster, knobs->checkpointing, knobs->sequences(),
                              *step_time_s);
}

std::optional<cost::Utilization> utilization_of(const session::Session& session,
                                                const space::Configuration& configuration, double step_time_s) {
  const std::optional<schedule::Knobs> knobs = knobs_if_modelled(session, configuration);
  if (!knobs) return std::nullopt;
  return cost::utilization_of(*session.workload, session.cluster, knobs->checkpointing, knobs->sequences(),
                              step_time_s);
}

}  // namespace krigtune::forecast

#include "diagnose/observations.h"

#include "forecast/forecast.h"
#include "schedule/knobs.h"
#include "trial/measure_spec.h"

namespace krigtune::diagnose {
namespace {

std::optional<double> number(const trial::Measured& measured, const std::string& name) {
  const auto found = measured.metrics.find(name);
  if (found == measured.metrics.end() || !(found->second >= 0.0)) return std::nullopt;
  return found->second;
}

// A rate becomes a time if the models know how many sequences a step has.
std::optional<double> step_time_of(const session::Session& session, const space::Configuration& configuration,
                                   const trial::Measured& measured) {
  if (const auto seconds = number(measured, trial::kStepTime)) return seconds;
  const space::Configuration modelled = session::modelled_part(configuration);
  const auto knobs = schedule::knobs_of(*session.workload, session.cluster, modelled);
  if (std::holds_alternative<schedule::NotModelled>(knobs)) return std::nullopt;
  const auto sequences = static_cast<double>(forecast::sequences_per_step(session, modelled));
  if (const auto rate = number(measured, trial::kSamplesRate)) return sequences / *rate;
  const auto tokens = static_cast<double>(session.workload->model.seq_len) * sequences;
  if (const auto rate = number(measured, trial::kTokensRate)) return tokens / *rate;
  return std::nullopt;
}

}  // namespace

std::optional<Observation> observation_of(const session::Session& session, const space::Configuration& configuration,
                                          const trial::Measured& measured) {
  const std::optional<double> step_s = step_time_of(session, configuration, measured);
  if (!step_s || !(*step_s > 0.0)) return std::nullopt;
  Observation seen;
  seen.configuration = configuration;
  seen.step_time_s = *step_s;
  seen.exposed_comm_s = number(measured, "exposed_comm_s");
  seen.median_rank_kernels_s = number(measured, "median_rank_kernels_s");
  seen.slowest_rank_kernels_s = number(measured, "slowest_rank_kernels_s");
  seen.waiting_s = number(measured, "breakdown_waiting_s");
  seen.data_loading_s = number(measured, "data_loading_s");
  seen.peak_memory = measured.peak_memory;
  return seen;
}

}  // namespace krigtune::diagnose

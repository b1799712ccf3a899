#include "forecast/forecast.h"

#include <utility>

#include "core/error.h"
#include "forecast/trial_utilization.h"
#include "schedule/knobs.h"
#include "session/goodput.h"
#include "session/session_blocks.h"
#include "trial/outcome.h"

namespace krigtune::forecast {
namespace {

// Returns why the speed of the session's machine is unknown, or "".
std::string unknown_speed(const session::Session& session) {
  if (!session.workload) return "no workload is given";
  const workload::ClusterSpec& cluster = session.cluster;
  if (cluster.measured || (cluster.device && cluster.network)) return "";
  return runner::traits_of(session.runner).trains_our_step
             ? "this machine was not measured; a named \"gpu\" needs no measurement"
             : "name the cluster's \"gpu\"";
}

}  // namespace

struct Forecaster::Impl {
  Impl(const session::Session& of, const session::MemoryFilter& memory, bool by_plan)
      : session(of), filter(memory), memory_by_plan(by_plan), why_no_time(unknown_speed(of)) {}

  const session::Session& session;
  const session::MemoryFilter& filter;
  bool memory_by_plan;
  std::optional<cost::StepCostModel> model;
  std::string why_no_time;

  std::optional<double> value(const cost::StepCost& cost, std::int64_t sequences) const {
    if (!runner::traits_of(session.runner).has_our_units) return std::nullopt;
    const workload::ModelSpec& sizes = session.workload->model;
    const trial::Metric* metric = trial::find_metric(session.objective.metric);
    if (metric == nullptr) return std::nullopt;
    const double samples_per_s = static_cast<double>(sequences) / cost.step_time_s;
    switch (metric->kind) {
      case trial::MetricKind::kThroughput:
        return samples_per_s;
      case trial::MetricKind::kTokensPerSecond:
        return samples_per_s * static_cast<double>(sizes.seq_len);
      case trial::MetricKind::kLatency:
        return cost.step_time_s;
      case trial::MetricKind::kFlops:
        return (workload::model_flops(sizes, sequences) - workload::spared_flops(*session.workload, sequences)) /
               cost.step_time_s / static_cast<double>(session.cluster.ranks());
      case trial::MetricKind::kGoodput:
        return samples_per_s *
               session::statistical_efficiency(*session.objective.gradient_noise, static_cast<double>(sequences));
    }
    return std::nullopt;
  }
};

Forecaster::Forecaster(const session::Session& session, const session::MemoryFilter& filter, bool memory_by_plan)
    : impl_(std::make_unique<Impl>(session, filter, memory_by_plan)) {
  if (!impl_->why_no_time.empty()) return;
  try {
    impl_->model.emplace(*session.workload, session.cluster);
  } catch (const UserError& error) {
    impl_->why_no_time = error.what();
  }
}

Forecaster::~Forecaster() = default;

bool Forecaster::knows_time() const { return impl_->model.has_value(); }

const std::string& Forecaster::why_no_time() const { return impl_->why_no_time; }

Forecast Forecaster::operator()(const space::Configuration& configuration) const {
  Forecast forecast;
  forecast.memory = impl_->memory_by_plan ? impl_->filter.planned(configuration) : impl_->filter.check(configuration);
  if (!impl_->model) return forecast;
  const space::Configuration modelled = session::modelled_part(configuration);
  forecast.cost = impl_->model->if_modelled(modelled);
  if (!forecast.cost) return forecast;  // for example, offload to NVMe
  const std::int64_t sequences = sequences_per_step(impl_->session, modelled);
  forecast.samples_per_s = static_cast<double>(sequences) / forecast.cost->step_time_s;
  forecast.value = impl_->value(*forecast.cost, sequences);
  forecast.utilization = utilization_of(impl_->session, modelled, forecast.cost->step_time_s);
  return forecast;
}

std::optional<cost::StepCost> Forecaster::cost_on(const workload::ClusterSpec& cluster,
                                                  const space::Configuration& configuration) const {
  return cost::StepCostModel(*impl_->session.workload, cluster).if_modelled(session::modelled_part(configuration));
}

double Forecaster::score(const Forecast& forecast) const {
  if (!forecast.value) return forecast.samples_per_s;
  return impl_->session.objective.maximize ? *forecast.value : -*forecast.value;
}

std::int64_t sequences_per_step(const session::Session& session, const space::Configuration& configuration) {
  return schedule::read_knobs(*session.workload, session.cluster, session::modelled_part(configuration)).sequences();
}

}  // namespace krigtune::forecast

#include "forecast/forecast.h"

#include <utility>

#include "core/error.h"
#include "schedule/knobs.h"
#include "session/goodput.h"
#include "session/session_blocks.h"
#include "trial/outcome.h"

namespace krigtune {
namespace {

// Why nobody can say how fast the session's machine is, or "".
std::string unknown_speed(const Session& session) {
  if (!session.workload) return "no workload is given";
  if (is<ReplaySpec>(session.runner) && !unplanned_parameters(session.space).empty()) {
    return "the table has parameters that the plan does not know";
  }
  const ClusterSpec& cluster = session.cluster;
  if (cluster.measured || (cluster.device && cluster.network)) return "";
  return is<BenchSpec>(session.runner) ? "this machine was not measured; a named \"gpu\" needs no measurement"
                                       : "name the cluster's \"gpu\"";
}

}  // namespace

struct Forecaster::Impl {
  Impl(const Session& of, const MemoryFilter& memory, bool by_plan)
      : session(of), filter(memory), memory_by_plan(by_plan), why_no_time(unknown_speed(of)) {}

  const Session& session;
  const MemoryFilter& filter;
  bool memory_by_plan;
  std::optional<StepCostModel> model;
  std::string why_no_time;

  std::optional<double> value(const StepCost& cost, std::int64_t sequences) const {
    if (!traits_of(session.runner).has_our_units) return std::nullopt;
    const ModelSpec& sizes = session.workload->model;
    const Metric* metric = find_metric(session.objective.metric);
    if (metric == nullptr) return std::nullopt;
    const double samples_per_s = static_cast<double>(sequences) / cost.step_time_s;
    switch (metric->kind) {
      case MetricKind::kThroughput:
        return samples_per_s;
      case MetricKind::kTokensPerSecond:
        return samples_per_s * static_cast<double>(sizes.seq_len);
      case MetricKind::kLatency:
        return cost.step_time_s;
      case MetricKind::kFlops:
        return model_flops(sizes, sequences) / cost.step_time_s / static_cast<double>(session.cluster.ranks());
      case MetricKind::kGoodput:
        return samples_per_s *
               statistical_efficiency(*session.objective.gradient_noise, static_cast<double>(sequences));
    }
    return std::nullopt;
  }
};

Forecaster::Forecaster(const Session& session, const MemoryFilter& filter, bool memory_by_plan)
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

Forecast Forecaster::operator()(const Configuration& configuration) const {
  Forecast forecast;
  forecast.memory = impl_->memory_by_plan ? impl_->filter.planned(configuration) : impl_->filter.check(configuration);
  if (!impl_->model) return forecast;
  const Configuration modelled = modelled_part(configuration);
  forecast.cost = impl_->model->if_modelled(modelled);
  if (!forecast.cost) return forecast;  // offload to NVMe, say
  const std::int64_t sequences = sequences_per_step(impl_->session, modelled);
  forecast.samples_per_s = static_cast<double>(sequences) / forecast.cost->step_time_s;
  forecast.value = impl_->value(*forecast.cost, sequences);
  return forecast;
}

std::optional<StepCost> Forecaster::cost_on(const ClusterSpec& cluster, const Configuration& configuration) const {
  return StepCostModel(*impl_->session.workload, cluster).if_modelled(modelled_part(configuration));
}

double Forecaster::score(const Forecast& forecast) const {
  if (!forecast.value) return forecast.samples_per_s;
  return impl_->session.objective.maximize ? *forecast.value : -*forecast.value;
}

std::int64_t sequences_per_step(const Session& session, const Configuration& configuration) {
  const Knobs knobs = read_knobs(*session.workload, session.cluster, configuration);
  return knobs.micro_batch * knobs.micro_steps * knobs.data_ranks;
}

}  // namespace krigtune

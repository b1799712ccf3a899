// Each cluster has the predictions of `krigtune plan`; what is added is arithmetic:
//
//   tokens/s = sequences a step * tokens a sequence / step time
//   days     = tokens / (tokens/s) / 86400, times what checkpoints, failures and the like add (whole_run.h)
//   price    = days * 24 * GPUs * price of a GPU-hour
#include "fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "fleet/fastest.h"
#include "session/memory_filter.h"

namespace krigtune::fleet {
namespace {

constexpr double kHoursPerDay = 24.0;

// Says why nothing fits, from a plan of the whole space.
std::string too_large_text(const session::Session& session, const forecast::Forecaster& forecaster, unsigned threads) {
  forecast::StudyOptions options;
  options.threads = threads;
  const forecast::PlanStudy study = forecast::study_plan(session, forecaster, options);
  if (study.stages.empty()) return "no step of its configurations is predicted";
  Bytes smallest = study.stages.begin()->second.smallest;
  for (const auto& [number, stage] : study.stages) smallest = std::min(smallest, stage.smallest);
  const std::string usable = to_string(*session.usable_per_rank);
  if (study.best.empty() || smallest > *session.usable_per_rank) {
    return fmt::format("no configuration fits: the smallest peak of a rank is {}, and {} are usable",
                       to_string(smallest), usable);
  }
  return fmt::format("no configuration is likely to fit into {}: the likeliest does with {:.0f} %", usable,
                     100.0 * study.best.front().forecast.memory->probability_fits);
}

// Returns the factor on the speed of the slowest links that the ranks use being twice as fast.
std::optional<double> network_gain(const workload::ClusterSpec& cluster, const forecast::Forecaster& forecaster,
                                   const forecast::Candidate& candidate) {
  if (cluster.ranks() == 1 || !cluster.network) return std::nullopt;
  workload::ClusterSpec faster = cluster;
  workload::NetworkLevel& links = cluster.ranks() > cluster.domain() ? faster.network->inter : faster.network->intra;
  links.bytes_per_s *= 2.0;
  const std::optional<cost::StepCost> cost = forecaster.cost_on(faster, candidate.configuration);
  if (!cost) return std::nullopt;
  return candidate.forecast.cost->step_time_s / cost->step_time_s;
}

BestOfCluster best_of(const Fastest& found, const session::Session& session, const forecast::Forecaster& forecaster,
                      const StepTimeRange& range) {
  const auto candidate = [&](const space::Configuration& one) { return forecast::Candidate{one, forecaster(one)}; };
  BestOfCluster best;
  best.candidate = candidate(found.sure ? *found.sure : *found.likely);
  const forecast::Forecast& forecast = best.candidate.forecast;
  if (found.sure && found.likely->text() != found.sure->text()) best.faster = candidate(*found.likely);
  best.sequences = forecast::sequences_per_step(session, best.candidate.configuration);
  best.tokens_per_s = range.rate(forecast.samples_per_s * static_cast<double>(session.workload->model.seq_len));
  if (forecast.utilization) best.mfu = range.rate(forecast.utilization->mfu);
  if (forecast.memory) {
    const double log_stddev = forecast.memory->spread ? forecast.memory->spread->log_stddev : 0.0;
    best.memory_bytes = memory_estimate(static_cast<double>(forecast.memory->predicted.count), log_stddev);
  }
  return best;
}

void add_days_and_price(const Fleet& fleet, const session::Session& session, ClusterPlan& plan) {
  BestOfCluster& best = *plan.best;
  session::RunSpec run = session.run;
  if (plan.power_w) run.power_w = plan.power_w;
  const std::optional<WholeRun> whole = whole_run(fleet.tokens / best.tokens_per_s.value, plan.cluster.ranks(), run);
  if (!whole) {
    plan.why_not = hopeless_text(run, plan.cluster.ranks());
    plan.never_ends = true;
    plan.best.reset();
    return;
  }
  best.whole = *whole;
  best.days = fleet.range.time(whole->wall_s / kDayInSeconds);  // every part is proportional to the steps
  best.gpu_hours = best.days.value * kHoursPerDay * static_cast<double>(plan.cluster.ranks());
  if (!plan.price_per_gpu_hour) return;
  best.price = fleet.range.time(best.gpu_hours * *plan.price_per_gpu_hour);
}

void study(const session::Session& session, unsigned threads, opinion::KnownJobs& known, Fleet& fleet,
           ClusterPlan& plan) {
  const session::MemoryFilter filter(session);
  const forecast::Forecaster forecaster(session, filter);
  if (!forecaster.knows_time()) {
    plan.why_not = forecaster.why_no_time();
    return;
  }
  plan.usable = session.usable_per_rank;
  const Fastest found = find_fastest(session, filter, threads);
  plan.configurations = found.looked_at;
  if (!found.likely) {
    plan.why_not = too_large_text(session, forecaster, threads);
    return;
  }
  plan.best = best_of(found, session, forecaster, fleet.range);
  plan.best->network_gain = network_gain(session.cluster, forecaster, plan.best->candidate);
  plan.best->near = known.near(opinion::subject_of(*session.workload, session.cluster));
  add_days_and_price(fleet, session, plan);
}

void add_efficiencies(Fleet& fleet) {
  const auto per_gpu = [](const ClusterPlan& plan) {
    return plan.best->tokens_per_s.value / static_cast<double>(plan.cluster.ranks());
  };
  const ClusterPlan* smallest = nullptr;
  for (ClusterPlan& plan : fleet.plans) {
    if (!plan.best) continue;
    if (smallest == nullptr || smallest->entry != plan.entry) smallest = &plan;
    plan.best->efficiency = per_gpu(plan) / per_gpu(*smallest);
  }
}

/// Reads the session on each cluster.
class Study {
 public:
  Study(const SessionText& text, const session::ClustersFile& file) : text_(text), file_(file) {}

  Fleet of_all(const FleetOptions& options) {
    fleet_.currency = file_.currency;
    for (std::size_t entry = 0; entry < file_.entries.size(); ++entry) add_plans(entry);
    for (std::size_t i = 0; i < fleet_.plans.size(); ++i) {
      if (options.progress) options.progress(i, fleet_.plans.size());
      look_at(fleet_.plans[i], options.threads);
    }
    if (!is_read_) throw UserError(*first_error_);
    add_efficiencies(fleet_);
    return std::move(fleet_);
  }

 private:
  void add_plans(std::size_t entry) {
    const session::ClusterEntry& of = file_.entries[entry];
    for (const workload::ClusterSpec& size : of.sizes) {
      ClusterPlan& plan = fleet_.plans.emplace_back();
      plan.entry = entry;
      plan.name = of.name;
      plan.cluster = size;
      plan.price_per_gpu_hour = of.price_per_gpu_hour;
      plan.power_w = of.power_w;
    }
  }

  void look_at(ClusterPlan& plan, unsigned threads) {
    try {
      const session::Session session = session_on(text_, plan.cluster);
      know(session);
      study(session, threads, known_, fleet_, plan);
    } catch (const UserError& error) {
      plan.why_not = error.what();
      if (!first_error_) first_error_ = error;
    }
  }

  // Takes what all clusters have in common from the first session that can be read.
  void know(const session::Session& session) {
    for (const std::string& warning : session.warnings) {
      if (std::ranges::find(fleet_.warnings, warning) == fleet_.warnings.end()) fleet_.warnings.push_back(warning);
    }
    if (is_read_) return;
    is_read_ = true;
    fleet_.range = step_time_range(*session.workload);
    fleet_.tokens = file_.amount.all_tokens(session.workload->model.seq_len);
    fleet_.session = session;
  }

  const SessionText& text_;
  const session::ClustersFile& file_;
  opinion::KnownJobs known_;
  Fleet fleet_;
  bool is_read_ = false;
  std::optional<UserError> first_error_;
};

}  // namespace

session::Session session_on(const SessionText& text, const workload::ClusterSpec& cluster) {
  Json json = text.json;
  const bool has_runner = json.contains("runner") && json["runner"].is_object();
  const trial::RunnerTraits traits =
      has_runner ? runner::traits_of_block(json["runner"]) : runner::traits_of(runner::default_runner(true));
  if (traits.trains_our_step && json.contains("workload") && json["workload"].is_object() &&
      !json["workload"].contains("framework"))
    json["workload"]["framework"] = "krigtune";
  for (const char* key : {"executor", "objective", "objectives", "prefer", "limits", "budget", "grid", "stagewise",
                          "clusters", "currency", "tokens", "samples", "epochs"})
    json.erase(key);
  if (json.contains("memory") && json["memory"].is_object()) json["memory"].erase("limit_gib");
  json["cluster"] = workload::to_json(cluster);
  json["baseline"] = nullptr;
  json["runner"] = {{"kind", "none"}};
  return session::read_session(json, text.source, text.base_dir);
}

bool Fleet::has_prices() const {
  return std::ranges::any_of(plans, [](const ClusterPlan& plan) { return plan.best && plan.best->price; });
}

Fleet study_fleet(const SessionText& text, const session::ClustersFile& file, const FleetOptions& options) {
  if (!text.json.is_object() || !text.json.contains("workload")) {
    throw UserError(
        fmt::format("{}: /workload: is missing: clusters can only be compared for a job that is known", text.source),
        "describe the model (docs/planning.md)");
  }
  return Study(text, file).of_all(options);
}

}  // namespace krigtune::fleet

#include "session/memory_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/statistics.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "session/session_blocks.h"
#include "space/usual_names.h"

namespace krigtune::session {
struct MemoryFilter::Impl {
  std::optional<cost::MemoryModel> model;
  Bytes usable;
  Bytes host_usable{std::numeric_limits<std::int64_t>::max()};
  bool exact = false;
  bool strict = false;            // configurations that are not modelled were refused when the session was read
  bool has_own_names = false;     // there are parameters that the models do not know
  bool may_be_otherwise = false;  // some of them may change the memory need
  workload::Workload workload;
  workload::ClusterSpec cluster;
  std::mutex mutex;  // protects the members below
  std::unordered_map<std::string, plan::MemoryVerdict> checked;
  std::unordered_map<std::string, plan::MemoryVerdict> planned;

  template <class Compute>
  plan::MemoryVerdict remembered(const space::Configuration& configuration,
                                 std::unordered_map<std::string, plan::MemoryVerdict>& known, Compute compute) {
    const std::string key = configuration.text();
    {
      const std::lock_guard lock(mutex);
      if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    plan::MemoryVerdict computed = compute(configuration);
    const std::lock_guard lock(mutex);
    return known.emplace(key, std::move(computed)).first->second;
  }

  // A parameter that the models do not know may change the need by a factor of two, seldom by more: it is further
  // spread of the peak. What needs three times the memory does not fit whatever the parameter is.
  static void widen(plan::MemoryVerdict& known) {
    constexpr double kOfUnknownParameters = 0.5;  // nats
    constexpr double kMostTimes = 3.0;
    plan::MemoryVerdict::Spread& spread = *known.spread;
    const double log_margin = spread.margin * spread.log_stddev;
    spread.log_stddev = std::hypot(spread.log_stddev, kOfUnknownParameters);
    spread.margin = log_margin / spread.log_stddev;
    if (known.verdict == plan::Verdict::kTooLarge && log_margin < -std::log(kMostTimes)) return;
    known.verdict =
        known.verdict == plan::Verdict::kFits && spread.margin > 1.64 ? known.verdict : plan::Verdict::kUncertain;
    known.probability_fits = normal_cdf(spread.margin);
  }

  // Returns the part of a configuration that the models know.
  space::Configuration part_of(const space::Configuration& configuration) const {
    return has_own_names && !strict ? modelled_part(configuration) : configuration;
  }

  // Every configuration of our own runners is modelled, so one that is not is a mistake.
  std::optional<plan::MemoryVerdict> verdict(const space::Configuration& configuration) const {
    if (!model) return std::nullopt;
    std::optional<plan::MemoryVerdict> known =
        strict ? model->verdict(configuration, usable, host_usable)
               : model->verdict_if_modelled(part_of(configuration), usable, host_usable);
    if (known && may_be_otherwise && known->spread) widen(*known);
    return known;
  }
};

MemoryFilter::MemoryFilter(const Session& session) : impl_(std::make_unique<Impl>()) {
  if (!session.workload || !session.usable_per_rank) return;
  impl_->model.emplace(*session.workload, session.cluster, session.memory);
  impl_->workload = *session.workload;
  impl_->cluster = session.cluster;
  impl_->usable = *session.usable_per_rank;
  if (session.memory.host_limit_gib) impl_->host_usable = from_gib(*session.memory.host_limit_gib);
  impl_->exact = cost::traits_of(session.workload->framework).exact_memory &&
                 session.memory.model == workload::MemoryModelKind::kKrigtune &&
                 runner::traits_of(session.runner).trains_our_step;
  impl_->strict = runner::traits_of(session.runner).only_what_is_modelled;
  const std::vector<std::string>& planned = schedule::planned_parameters();
  for (const auto& [name, value] : session.space.facts().fixed) {
    if (std::find(planned.begin(), planned.end(), name) == planned.end()) impl_->has_own_names = true;
  }
  impl_->has_own_names = impl_->has_own_names || !unplanned_parameters(session.space).empty();
  impl_->may_be_otherwise = !unknown_parameters(session.space).empty();
}

MemoryFilter::~MemoryFilter() = default;

bool MemoryFilter::knows_memory() const { return impl_->model.has_value(); }

bool MemoryFilter::is_exact() const { return impl_->exact; }

std::optional<plan::MemoryVerdict> MemoryFilter::check(const space::Configuration& configuration) const {
  // Remembering results only pays if plans may be made.
  if (!impl_->exact) return impl_->verdict(configuration);
  return impl_->remembered(configuration, impl_->checked,
                           [this](const space::Configuration& of) { return *impl_->verdict(of); });
}

std::optional<plan::MemoryVerdict> MemoryFilter::planned(const space::Configuration& configuration) const {
  if (!impl_->exact) return check(configuration);
  return impl_->remembered(configuration, impl_->planned, [this](const space::Configuration& modelled) {
    return plan::exact_verdict({plan::build_plan(impl_->workload, impl_->cluster, modelled).arena_bytes},
                               impl_->usable);
  });
}

std::optional<cost::MemoryEstimate> MemoryFilter::estimate(const space::Configuration& configuration) const {
  if (!impl_->model) return std::nullopt;
  if (impl_->strict) return impl_->model->estimate(configuration);
  return impl_->model->estimate_if_modelled(impl_->part_of(configuration));
}

bool MemoryFilter::may_fit(const space::Configuration& configuration) const {
  const std::optional<plan::MemoryVerdict> known = check(configuration);
  return !known || known->verdict != plan::Verdict::kTooLarge;
}

space::Configuration modelled_part(const space::Configuration& configuration) {
  const std::vector<std::string>& planned = schedule::planned_parameters();
  const std::optional<space::Configuration> renamed = space::with_usual_names(configuration);
  space::Configuration part;
  for (const auto& [name, value] : renamed ? *renamed : configuration) {
    if (std::find(planned.begin(), planned.end(), name) != planned.end()) part.set(name, value);
  }
  return part;
}

}  // namespace krigtune::session

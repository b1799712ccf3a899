#include "page/report/run_facts.h"

#include <fmt/format.h>

#include "report/labels.h"
#include "runner/runner.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostFitted = 2000;  // trials, because a fit takes time cubic in their number
constexpr std::size_t kMostListed = 2000;  // a larger page is too slow for its readers
constexpr std::size_t kMostDetailed = 400;

// Returns nullptr for a user's own metric.
const trial::Metric* metric_of(const session::Session& session) {
  return runner::traits_of(session.runner).has_our_units ? trial::find_metric(session.objective.metric) : nullptr;
}

}  // namespace

RunFacts::RunFacts(const ReportSource& source)
    : source_(source),
      effects_(source.run.session.objective, source.run.history),
      forecaster_(source.run.session, source.filter) {
  for (const journal::Trial& trial : run().history) {
    if (trial.outcome) closed_.push_back(&trial);
  }
  if (best() != nullptr) {
    job_ = best()->job;
  } else if (!closed_.empty()) {
    job_ = search::job_summary(objective(), source.candidates, run().history);
  }
  if (best() == nullptr) return;
  reference_ = search::find_trial(run().history, best()->reference_trial);
  if (closed_.size() > kMostFitted) return;
  model_ = search::fitted_model(objective(), source.candidates, run().history, run().options.seed);
  predictor_ =
      std::make_unique<insight::Predictor>(session(), source.filter, source.candidates, run().history, *model_);
  importance_ = insight::importance(session(), source.candidates, run().history, {{}, run().options.seed}, *model_);
}

std::string RunFacts::value_text(double value) const { return report::value_text(session(), value); }

std::string RunFacts::value_title() const {
  const trial::Metric* metric = metric_of(session());
  if (metric == nullptr) return objective().metric;
  return fmt::format("{} ({})", metric->name, metric->unit.empty() ? "s" : metric->unit);
}

double RunFacts::shown(double value) const {
  const trial::Metric* metric = metric_of(session());
  return metric == nullptr ? value : value * metric->units_a_value;
}

bool RunFacts::is_among_last(const journal::Trial& trial, std::size_t most) const {
  if (closed_.size() <= most || trial.number >= closed_[closed_.size() - most]->number) return true;
  return best() != nullptr && (trial.number == best()->trial || trial.number == best()->reference_trial);
}

bool RunFacts::is_listed(const journal::Trial& trial) const { return is_among_last(trial, kMostListed); }

bool RunFacts::is_detailed(const journal::Trial& trial) const { return is_among_last(trial, kMostDetailed); }

std::string RunFacts::link_of(const journal::Trial& trial) const {
  return is_listed(trial) ? fmt::format("#trial-{}", trial.number) : "";
}

std::string RunFacts::tip_of(const journal::Trial& trial) const {
  return fmt::format("trial {}: {}, {}", trial.number, report::outcome_text(session(), trial),
                     report::short_text(session(), trial.proposal.configuration));
}

}  // namespace krigtune::page

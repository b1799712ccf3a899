#include "page/report/run_facts.h"

#include <fmt/format.h>

#include "report/labels.h"
#include "runner/runner.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostFitted = 2000;  // trials: a fit takes time as their cube
constexpr std::size_t kMostListed = 2000;  // a page that is larger than its reader's patience helps nobody

const journal::Trial* find_trial(const search::History& history, int number) {
  for (const journal::Trial& trial : history) {
    if (trial.number == number) return &trial;
  }
  return nullptr;
}

// nullptr: a metric of the user's own.
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
  if (best() == nullptr) return;
  reference_ = find_trial(run().history, best()->reference_trial);
  if (closed_.size() > kMostFitted) return;
  predictor_ = std::make_unique<insight::Predictor>(session(), source.filter, source.candidates, run().history,
                                                    run().options.seed);
  importance_ = insight::importance(session(), source.candidates, run().history, {{}, run().options.seed});
}

std::optional<space::Configuration> RunFacts::own() const {
  if (session().baseline) return session().baseline;
  if (reference_ != nullptr) return reference_->proposal.configuration;
  return std::nullopt;
}

double RunFacts::gain_of(double value) const {
  return search::gain_over(objective(), value, value_of(*reference_).value_or(value));
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

bool RunFacts::is_listed(const journal::Trial& trial) const {
  if (closed_.size() <= kMostListed || trial.number >= closed_[closed_.size() - kMostListed]->number) return true;
  return best() != nullptr && (trial.number == best()->trial || trial.number == best()->reference_trial);
}

std::string RunFacts::link_of(const journal::Trial& trial) const {
  return is_listed(trial) ? fmt::format("#trial-{}", trial.number) : "";
}

std::string RunFacts::tip_of(const journal::Trial& trial) const {
  return fmt::format("trial {}: {}, {}", trial.number, report::outcome_text(session(), trial),
                     report::short_text(session(), trial.proposal.configuration));
}

}  // namespace krigtune::page

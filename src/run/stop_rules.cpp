// The session ends before the budget is spent if the strategy expects too little of the trial that it proposes
// (Outlook):
//
//   sure            the bound of what was not tried is within the session's `regret`: at its confidence, nothing
//                   remaining is better by more; and measuring something again is not expected to gain more than a
//                   new trial
//   little to gain  no trial is expected to gain more than `least_gain`, which a trial of typical length must promise
//   not worth it    no trial is expected to save more than it costs. With R the GPU-hours to be trained and g the
//                   expected gain, as the saved fraction of the time per step, a trial saves R g. It costs the median
//                   time of the trials so far times the ranks. (Cost-aware stopping: Xie et al. 2025, "Cost-aware
//                   stopping for Bayesian optimization": improvement and cost in one currency.)
//
// With several objectives, gains are shares of the hypervolume of the front, no smaller than what the last trials have
// added (search/strategies/pareto_strategy.cpp), the first two rules apply, and patience counts trials without a new
// member of the front.
//
// One such proposal is enough, because the expectation is unbiased (search/model/outlook.cpp,
// search/model/trial_model.cpp). When it had to be true for four consecutive trials, after eight, sessions took three
// trials more and ended no better. Nothing is decided before six trials have run, because these show how accurate
// predictions are (experiments/stopping); a trial that was ended early counts, because its bound shows it as well.
#include "run/stop_rules.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/statistics.h"
#include "core/text.h"
#include "search/model/front.h"
#include "trial/failure_text.h"
#include "trial/python_exception.h"

namespace krigtune::run {
namespace {

constexpr double kSecondsPerHour = 3600.0;
constexpr int kEnvironmentFailures = 3;  // consecutive ones: then nothing can run here
constexpr int kLeastEvidence = 6;        // trials that ran before anything is decided

double ranks(const session::Session& session) { return static_cast<double>(session.cluster.ranks()); }

// Returns the usual duration of a trial with its suggestion. Empty if no tuner has closed a trial yet.
std::optional<double> typical_hours(const search::History& history) {
  std::vector<double> seconds;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !search::counts(trial) || trial.proposal.asker != journal::Asker::kTune) continue;
    seconds.push_back(trial.wall_s + trial.proposal.suggest_s);
  }
  if (seconds.empty()) return std::nullopt;
  return median(std::move(seconds)) / kSecondsPerHour;
}

// Converts a gain, as a fraction of the best value, to the fraction of the time per step that it saves.
double time_saved(const session::Objective& objective, double gain) {
  return objective.maximize ? gain / (1.0 + gain) : gain;
}

// Trials that ran: with a value, or ended early, which says that the value is no better than a bound.
int informative_trials(const session::Session& session, const search::History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), [&](const journal::Trial& trial) {
    const bool is_bounded = search::is_closed(trial) && std::holds_alternative<trial::Bounded>(*trial.outcome);
    return is_bounded || search::value_of(trial, session.objective).has_value();
  }));
}

}  // namespace

double seconds_spent(const search::History& history) {
  double seconds = 0.0;
  for (const journal::Trial& trial : history) {
    seconds += trial.proposal.suggest_s;
    if (trial.proposal.asker == journal::Asker::kTune) seconds += trial.wall_s;
  }
  return seconds;
}

// Each trial is an interval that ends with it and lasts as long as its run and its suggestion, without time in a queue.
double seconds_elapsed(const search::History& history) {
  constexpr double kMicrosecond = 1e-6;
  double seconds = 0.0;
  std::vector<std::pair<double, double>> intervals;
  for (const journal::Trial& trial : history) {
    const bool is_ours = trial.proposal.asker == journal::Asker::kTune;
    const double length_s = trial.proposal.suggest_s + (is_ours ? trial.wall_s : 0.0);
    const std::optional<std::int64_t> ended_us = is_ours ? unix_us_of(trial.ended_at) : std::nullopt;
    if (!ended_us) {
      seconds += length_s;
      continue;
    }
    const double end_s = static_cast<double>(*ended_us) * kMicrosecond;
    intervals.emplace_back(end_s - length_s, end_s);
  }
  std::sort(intervals.begin(), intervals.end());
  double covered_until_s = intervals.empty() ? 0.0 : intervals.front().first;
  for (const auto& [begin_s, end_s] : intervals) {
    seconds += std::max(end_s - std::max(begin_s, covered_until_s), 0.0);
    covered_until_s = std::max(covered_until_s, end_s);
  }
  return seconds;
}

std::optional<TrialWorth> worth_of(const session::Session& session, const search::History& history,
                                   const journal::Outlook& outlook) {
  const std::optional<double> hours = typical_hours(history);
  if (!hours || !session.budget.run_gpu_hours || !session.others.empty()) return std::nullopt;
  return TrialWorth{*hours * ranks(session),
                    *session.budget.run_gpu_hours * time_saved(session.objective, outlook.expected_gain)};
}

std::optional<EndReason> not_worth_running(const session::Session& session, const search::History& history,
                                           const journal::Proposal& proposal) {
  if (!proposal.outlook) return std::nullopt;
  const session::Budget& budget = session.budget;
  if (informative_trials(session, history) < kLeastEvidence) return std::nullopt;
  const double bound = proposal.outlook->bound_of_new.value_or(proposal.outlook->regret_bound);
  if (budget.regret > 0.0 && !proposal.repeat_of && bound <= budget.regret) return EndReason::kSure;
  if (proposal.outlook->expected_gain < budget.least_gain) return EndReason::kLittleToGain;
  const std::optional<TrialWorth> worth = worth_of(session, history, *proposal.outlook);
  if (worth && worth->saving_gpu_hours < worth->cost_gpu_hours) return EndReason::kNotWorthIt;
  return std::nullopt;
}

std::optional<EndReason> budget_is_spent(const session::Session& session, const search::History& history) {
  const session::Budget& budget = session.budget;
  if (search::closed_trials(history) >= budget.trials) return EndReason::kTrials;
  if (budget.hours && seconds_elapsed(history) >= *budget.hours * kSecondsPerHour) return EndReason::kHours;
  if (budget.gpu_hours && seconds_spent(history) * ranks(session) >= *budget.gpu_hours * kSecondsPerHour) {
    return EndReason::kHours;
  }
  if (budget.patience && search::trials_without_progress(session, history) >= *budget.patience) {
    return EndReason::kPatience;
  }
  return std::nullopt;
}

std::optional<std::string> environment_failure(const search::History& history) {
  int in_a_row = 0;
  std::optional<std::string> last;
  for (auto trial = history.rbegin(); trial != history.rend(); ++trial) {
    if (!trial->outcome || trial->proposal.asker != journal::Asker::kTune) continue;
    const auto* failed = std::get_if<trial::Failed>(&*trial->outcome);
    if (failed == nullptr || failed->reason != trial::FailureReason::kEnvironment) break;
    if (!last) last = failed->last_lines;
    if (++in_a_row == kEnvironmentFailures) return last;
  }
  return std::nullopt;
}

namespace {

// Returns the line that says why a trial failed.
std::string cause_line(const trial::Failed& failed) {
  if (const auto exception = trial::cause_of_failure(failed.last_lines)) return exception->line();
  std::string last;
  for (const std::string& line : trial::lines_of(failed.last_lines)) {
    const std::string text = trimmed(line);
    if (!text.empty()) last = text;
  }
  return last;
}

bool needs_a_third(trial::FailureReason reason) {
  return reason == trial::FailureReason::kTimeout || reason == trial::FailureReason::kHang;
}

}  // namespace

std::optional<std::string> common_failure(const search::History& history) {
  std::vector<const trial::Failed*> failures;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || trial.proposal.asker != journal::Asker::kTune || !search::counts(trial)) continue;
    if (trial::ran(*trial.outcome)) return std::nullopt;
    failures.push_back(std::get_if<trial::Failed>(&*trial.outcome));
  }
  const std::size_t needed = failures.size() == 2 ? 2 : 3;
  if (failures.size() < needed || failures.back() == nullptr) return std::nullopt;
  const trial::Failed& last = *failures.back();
  if (last.reason == trial::FailureReason::kEnvironment) return std::nullopt;  // environment_failure reports it
  if (needed == 2 && needs_a_third(last.reason)) return std::nullopt;
  const std::string line = cause_line(last);
  const bool alike = std::all_of(failures.end() - static_cast<std::ptrdiff_t>(needed), failures.end(),
                                 [&](const trial::Failed* failed) {
                                   return failed != nullptr && failed->reason == last.reason &&
                                          trial::without_numbers(cause_line(*failed)) == trial::without_numbers(line);
                                 });
  if (!alike) return std::nullopt;
  return line.empty() ? trial::to_string(last.reason) : line;
}

}  // namespace krigtune::run

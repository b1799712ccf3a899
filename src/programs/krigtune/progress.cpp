#include "programs/krigtune/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/tune_summary.h"
#include "report/labels.h"
#include "report/outlook_text.h"
#include "report/trial_classes.h"

namespace krigtune::cli {
namespace {

// What a trial risks, and for what: "#9 is 58 % likely to run, and 20 % better than the best so far if it does".
std::string risk_text(const session::Session& session, const journal::Trial& trial, const search::History& history) {
  constexpr double kWorthALine = 0.8;
  const journal::Proposal& proposal = trial.proposal;
  const std::optional<double> best = search::best_value(session.objective, history);
  if (!proposal.success_probability || *proposal.success_probability >= kWorthALine) return "";
  if (!best || !proposal.predicted_value || !(*best > 0.0) || !(*proposal.predicted_value > 0.0)) return "";
  const double ratio =
      session.objective.maximize ? *proposal.predicted_value / *best : *best / *proposal.predicted_value;
  if (ratio <= 1.0) return "";
  return fmt::format("#{} is {:.0f} % likely to run, and {} better than the best so far if it does", trial.number,
                     100.0 * *proposal.success_probability, report::percent_text(ratio - 1.0));
}

}  // namespace

void Progress::resumed(const search::History& history) {
  number_ = search::counted_trials(history);
  const int closed = search::closed_trials(history);
  if (closed > 0) log_.progress(fmt::format("{} {} done already", closed, closed == 1 ? "trial is" : "trials are"));
  if (number_ > closed) log_.progress(fmt::format("{} asked by hand and not told yet", number_ - closed));
  remember_summary(history);
}

void Progress::trial_begins(const journal::Trial& trial, const search::History& history) {
  number_ = search::counted_trials(history);
  {
    const std::lock_guard lock(mutex_);
    running_.push_back({trial.number, clock_.now_s(), report::short_text(session_, trial.proposal.configuration)});
  }
  if (const std::string risk = risk_text(session_, trial, history); !risk.empty() && !log_.is_live()) {
    log_.progress(risk);
  }
  const std::optional<journal::Outlook>& outlook = trial.proposal.outlook;
  log_.detail(fmt::format("trial {}/{} begins: #{} {} ({}){}", number_, session_.budget.trials, trial.number,
                          trial.proposal.configuration.text(), trial.proposal.strategy,
                          outlook ? "; " + report::bound_text(session_.objective, *outlook) : ""));
  waiting(trial);
}

void Progress::waiting(const journal::Trial& /*trial*/) {
  if (log_.is_live()) {
    log_.status(fmt::format("trial {}/{}  {}", number_, session_.budget.trials, running_text()));
  }
}

void Progress::trial_ended(const journal::Trial& trial, const search::History& history) {
  {
    const std::lock_guard lock(mutex_);
    const auto ended = [&](const Running& one) { return one.trial == trial.number; };
    running_.erase(std::remove_if(running_.begin(), running_.end(), ended), running_.end());
  }
  const std::string line = closed_trial_text(session_, trial, history);
  // On a terminal the live line says it all, but for why a trial failed: that may be all that ever happens.
  if (log_.is_live() && report::last_line_of(trial).empty()) {
    log_.detail(line);
  } else {
    log_.progress(line);
  }
  remember_summary(history);
}

std::string Progress::running() const {
  const std::lock_guard lock(mutex_);
  if (running_.empty()) return "";
  std::string text = fmt::format("trial{} {}", running_.size() == 1 ? "" : "s", running_.front().trial);
  for (std::size_t i = 1; i < running_.size(); ++i) {
    text += fmt::format("{}{}", i + 1 == running_.size() ? " and " : ", ", running_[i].trial);
  }
  return text;
}

// One trial: its time, the summary, its configuration. Several: the times of each, the summary.
std::string Progress::running_text() const {
  const std::lock_guard lock(mutex_);
  const double now_s = clock_.now_s();
  if (running_.size() == 1) {
    return fmt::format("{:.0f} s  {}  {}", now_s - running_[0].began_s, summary_, running_[0].configuration);
  }
  std::vector<std::string> parts;
  for (const Running& one : running_) parts.push_back(fmt::format("#{} {:.0f} s", one.trial, now_s - one.began_s));
  return fmt::format("{}  {}", join(parts, ", "), summary_);
}

void Progress::remember_summary(const search::History& history) {
  summary_.clear();
  if (const auto left_s = seconds_left(session_, history, jobs_)) summary_ = "ETA " + seconds_text(*left_s);
  if (const std::optional<double> best = search::best_value(session_.objective, history)) {
    summary_ += fmt::format("  best {} {}{}", report::value_text(session_, *best),
                            gain_text_of(session_.objective, *best, history), short_emulated_note(session_));
  }
}

void Both::resumed(const search::History& history) {
  first_.resumed(history);
  second_.resumed(history);
}

void Both::trial_begins(const journal::Trial& trial, const search::History& history) {
  first_.trial_begins(trial, history);
  second_.trial_begins(trial, history);
}

void Both::waiting(const journal::Trial& trial) {
  first_.waiting(trial);
  second_.waiting(trial);
}

void Both::trial_ended(const journal::Trial& trial, const search::History& history) {
  first_.trial_ended(trial, history);
  second_.trial_ended(trial, history);
}

void Both::session_ended(const search::History& history) {
  first_.session_ended(history);
  second_.session_ended(history);
}

}  // namespace krigtune::cli

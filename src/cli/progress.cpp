#include "progress.h"

#include <fmt/format.h>

#include "krigtune/report/labels.h"
#include "krigtune/tuner/best.h"

namespace krigtune {
namespace {

constexpr double kSecondsPerHour = 3600.0;

// Of closed trials, suggestions included.
double spent_s(const History& history) {
  double seconds = 0.0;
  for (const Trial& trial : history) {
    if (trial.outcome) seconds += trial.wall_s + trial.proposal.suggest_s;
  }
  return seconds;
}

// What a failed trial said at last. Empty: it did not fail, said nothing, or was ended by the user.
std::string last_line(const Trial& trial) {
  const auto* failed = std::get_if<Failed>(&*trial.outcome);
  if (failed == nullptr || is_interrupted(trial)) return "";
  const std::string& text = failed->last_lines;
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

void Progress::resumed(const History& history) {
  number_ = counted_trials(history);
  if (number_ > 0) log_.progress(fmt::format("{} trials are done already", number_));
  remember_summary(history);
}

void Progress::trial_begins(const Trial& trial, const History& history) {
  number_ = counted_trials(history);
  began_s_ = clock_.now_s();
  log_.detail(fmt::format("{} begins: #{} {} ({})", counted(number_), trial.number, trial.proposal.configuration.text(),
                          trial.proposal.strategy));
  waiting(trial);
}

void Progress::waiting(const Trial& trial) {
  if (!log_.is_live()) return;
  std::string text = fmt::format("{}  {:.0f} s  {}", counted(number_), clock_.now_s() - began_s_, summary_);
  text += "  " + short_text(session_, trial.proposal.configuration);
  log_.status(text);
}

void Progress::trial_ended(const Trial& trial, const History& history) {
  const std::optional<double> value = value_of(trial, session_.objective);
  std::string line = fmt::format("{} {:<6}  #{} {}  {}", counted(number_), status_text(*trial.outcome), trial.number,
                                 short_text(session_, trial.proposal.configuration), outcome_text(session_, trial));
  if (value) line += "  " + gain_of(*value, history);
  if (best_value(session_.objective, history)) line += "  " + best_text(history);
  line += emulated_note(session_);
  const std::string trouble = last_line(trial);
  if (!trouble.empty()) line += ": " + trouble;
  // On a terminal the live line says it all, but for why a trial failed: that may be all that ever happens.
  if (log_.is_live() && trouble.empty()) {
    log_.detail(line);
  } else {
    log_.progress(line);
  }
  remember_summary(history);
}

std::string Progress::counted(int trial) const { return fmt::format("trial {}/{}", trial, session_.budget.trials); }

std::string Progress::gain_of(double value, const History& history) const {
  const std::optional<Trial> reference = reference_trial(session_.objective, history);
  if (!reference) return "";
  return gain_text(gain_over(session_.objective, value, *value_of(*reference, session_.objective)));
}

std::string Progress::best_text(const History& history) const {
  const std::optional<double> best = best_value(session_.objective, history);
  return best ? "best " + gain_of(*best, history) : "";
}

std::string Progress::rest_text(const History& history) const {
  const int done = counted_trials(history);
  if (done == 0) return "";
  double rest_s = spent_s(history) / done * std::max(session_.budget.trials - done, 0);
  if (session_.budget.hours) rest_s = std::min(rest_s, *session_.budget.hours * kSecondsPerHour - spent_s(history));
  return "ETA " + duration_text(std::max(rest_s, 0.0));
}

void Progress::remember_summary(const History& history) {
  const std::optional<double> best = best_value(session_.objective, history);
  summary_ = "";
  if (best) {
    summary_ =
        fmt::format("best {} {}{}  ", value_text(session_, *best), gain_of(*best, history), emulated_note(session_));
  }
  summary_ += rest_text(history);
}

void Both::resumed(const History& history) {
  first_.resumed(history);
  second_.resumed(history);
}

void Both::trial_begins(const Trial& trial, const History& history) {
  first_.trial_begins(trial, history);
  second_.trial_begins(trial, history);
}

void Both::waiting(const Trial& trial) {
  first_.waiting(trial);
  second_.waiting(trial);
}

void Both::trial_ended(const Trial& trial, const History& history) {
  first_.trial_ended(trial, history);
  second_.trial_ended(trial, history);
}

}  // namespace krigtune

#include "programs/krigtune/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answer/answer.h"
#include "core/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/tune_summary.h"
#include "report/labels.h"
#include "report/outlook_text.h"
#include "report/trial_classes.h"
#include "search/model/job_words.h"
#include "trial/failure_text.h"
#include "trial/trial_files.h"

namespace krigtune::cli {
namespace {

// Returns the risk and the chance of a trial: "trial 9 is 58 % likely to run, and 20 % better than the best so far if
// it does".
std::string risk_text(const session::Session& session, const journal::Trial& trial,
                      const std::optional<search::Recommendation>& best) {
  constexpr double kWorthALine = 0.8;
  const journal::Proposal& proposal = trial.proposal;
  if (!proposal.success_probability || *proposal.success_probability >= kWorthALine) return "";
  if (!best || !proposal.predicted_value || !(best->value > 0.0) || !(*proposal.predicted_value > 0.0)) return "";
  const double ratio = search::gain_over(session.objective, *proposal.predicted_value, best->value);
  if (ratio <= 1.0) return "";
  return fmt::format("trial {} is {:.0f} % likely to run{}, and {} better than the best so far if it does",
                     trial.number, 100.0 * *proposal.success_probability,
                     session.limits.empty() ? "" : " within the limits", report::percent_text(ratio - 1.0));
}

}  // namespace

std::string elapsed_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  const std::int64_t minutes = whole / 60;
  return minutes < 60 ? fmt::format("{}:{:02}", minutes, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string status_line(const std::vector<std::string>& parts, int columns) {
  constexpr const char* kBetween = " | ";
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string longer = line.empty() ? part : fmt::format("{}{}{}", line, kBetween, part);
    if (!line.empty() && columns_of(longer) > columns) continue;
    line = longer;
  }
  return clipped(line, columns);
}

void Progress::resumed(const search::History& history) {
  const int closed = search::closed_trials(history);
  const int asked = search::counted_trials(history) - closed;
  if (closed > 0) log_.progress(fmt::format("{} done already", counted(closed, "trial")));
  if (asked > 0) log_.progress(fmt::format("{} proposed by krigtune ask, and without a result yet", asked));
  if (session_.baseline && closed == 0) {
    log_.progress(wrapped_lines(
        fmt::format("trial 0, the baseline: {}", visible(report::short_text(session_, *session_.baseline))),
        log_.width(), 2));
  }
  remember(history);
  last_job_ = guessed_job_ = job_guess();
}

void Progress::trial_begins(const journal::Trial& trial, const search::History& history) {
  const space::Configuration& own = trial.proposal.configuration;
  {
    const std::lock_guard lock(mutex_);
    running_.push_back({trial.number, clock_.now_s(),
                        best_ ? report::differences(session_, own, best_->configuration) : std::vector<std::string>()});
  }
  if (const std::string risk = risk_text(session_, trial, best_); !risk.empty() && !log_.is_live()) {
    log_.progress(wrapped_lines(risk, log_.width(), 2));
  }
  const std::optional<journal::Outlook>& outlook = trial.proposal.outlook;
  log_.detail(fmt::format("trial {} begins ({} of {} are done): {} ({}){}", trial.number,
                          search::closed_trials(history), session_.budget.trials, own.text(), trial.proposal.strategy,
                          outlook ? "; " + report::bound_text(*outlook) : ""));
  show_status();
}

void Progress::waiting(const journal::Trial& /*trial*/) { show_status(); }

void Progress::trial_lost(const journal::Trial& trial, const std::string& why) {
  log_.progress(fmt::format("trial {} is run again: {}", trial.number, why));
}

void Progress::interference(const run::Interference& interference) {
  log_.progress(run::interference_sentence(interference));
  const std::string advice = run::interference_advice(interference);
  if (!advice.empty()) log_.warning(advice);
}

void Progress::trial_ended(const journal::Trial& trial, const search::History& history) {
  {
    const std::lock_guard lock(mutex_);
    const auto ended = [&](const Running& one) { return one.trial == trial.number; };
    running_.erase(std::remove_if(running_.begin(), running_.end(), ended), running_.end());
  }
  const std::optional<search::Recommendation> before = best_;
  remember(history);
  say_header();
  const std::string line = report::TrialLines(session_, log_.width()).line(trial, history, best_, before);
  log_.progress(line);
  explain_marks(trial, line);
  // This line may be all that the user ever sees of a failure. It is not repeated if the next trial fails with the same
  // line.
  const std::string trouble = visible(report::last_line_of(trial));
  if (!trouble.empty() && trouble != last_trouble_) {
    log_.progress(clipped(fmt::format("{:7}{}", "", trouble), log_.width()));
  }
  if (!trouble.empty()) last_trouble_ = trouble;
  warn_of_measurement(trial);
  say_job();
  show_status();
}

std::string Progress::job_guess() const { return best_ && best_->job ? search::job_guess(*best_->job) : ""; }

// What the trials say about the job. The first few change it nearly every time, so a guess is said as soon as two
// trials in a row lead to it.
void Progress::say_job() {
  const std::string job = job_guess();
  const bool is_settled = job == guessed_job_;
  guessed_job_ = job;
  if (!is_settled || job == last_job_) return;
  last_job_ = job;
  const std::string text = job.empty() ? "the trials no longer contradict the session" : job;
  log_.progress(wrapped_lines(fmt::format("{:7}the job: {}", "", text), log_.width(), 7));
}

// What measured.json doubts is true of most trials of a session, so each doubt is said once.
void Progress::warn_of_measurement(const journal::Trial& trial) {
  const std::filesystem::path file = directory_ / "trials" / run::trial_folder(trial) / "measured.json";
  std::error_code error;
  if (directory_.empty() || !std::filesystem::is_regular_file(file, error)) return;
  const Json measured = json_or_discarded(trial::read_tail(file, trial::kMostJobFileBytes));
  if (!measured.is_object() || !measured.contains("doubts")) return;
  for (const Json& doubt : measured["doubts"]) {
    if (!doubt.is_string()) continue;
    const std::string text = visible(doubt.get<std::string>());
    if (warned_.insert(trial::without_numbers(text)).second)
      log_.warning(fmt::format("trial {}: {}", trial.number, text));
  }
}

// A mark is explained below the first line that has it.
void Progress::explain_marks(const journal::Trial& trial, const std::string& line) {
  const auto explain = [&](bool& was_said, const std::string& text) {
    if (!std::exchange(was_said, true)) log_.progress(wrapped_lines(fmt::format("{:7}{}", "", text), log_.width(), 7));
  };
  const std::size_t more = line.find_last_of(' ') + 1;
  if (line.compare(more, 1, "+") == 0)
    explain(more_was_said_,
            line.substr(more) + ": so many more parameters differ; krigtune results DIR --wide shows all");
  if (trial.outcome && std::holds_alternative<trial::Bounded>(*trial.outcome)) {
    explain(bound_was_said_, fmt::format("{} a value: ended early, because it was clearly worse than the best",
                                         session_.objective.maximize ? "<=" : ">="));
  }
}

void Progress::session_ended(const search::History& /*history*/) { log_.end_status(); }

std::string Progress::running() const {
  const std::lock_guard lock(mutex_);
  if (running_.empty()) return "";
  std::string text = fmt::format("trial{} {}", running_.size() == 1 ? "" : "s", running_.front().trial);
  for (std::size_t i = 1; i < running_.size(); ++i) {
    text += fmt::format("{}{}", i + 1 == running_.size() ? " and " : ", ", running_[i].trial);
  }
  return text;
}

void Progress::say_header() {
  if (header_said_) return;
  header_said_ = true;
  for (const std::string& line : report::TrialLines(session_, log_.width()).header()) log_.progress(line);
}

// The terminal's last column stays free, because some terminals begin a new line once it is filled.
void Progress::show_status() {
  if (log_.is_live()) log_.status(status_line(status_parts(), log_.width() - 1));
}

// The remaining time was computed when the last trial ended. It decreases with the clock, and is omitted once it is
// over.
std::vector<std::string> Progress::status_parts() const {
  const double now_s = clock_.now_s();
  std::vector<std::string> parts = {running_text(), fmt::format("{}/{} done", closed_, session_.budget.trials)};
  if (best_) {
    parts.push_back(fmt::format("best {}: {} {}", best_->trial, report::value_text(session_, best_->value),
                                report::gain_text(best_->gain)));
  }
  parts.push_back(failures_);
  parts.push_back(elapsed_text(now_s - began_s_));
  parts.emplace_back(session_.cluster.emulated_network ? "emulated" : "");
  const double left_s = left_s_.value_or(0.0) - (now_s - left_at_s_);
  if (left_s_ && left_s >= 1.0) parts.push_back(fmt::format("about {} left", seconds_text(left_s)));
  {
    const std::lock_guard lock(mutex_);
    constexpr int kLongest = 60;
    if (running_.size() == 1) parts.push_back(report::fitted(running_.front().differs, kLongest));
  }
  return parts;
}

std::string Progress::running_text() const {
  constexpr std::size_t kMostShown = 3;
  const std::lock_guard lock(mutex_);
  if (running_.empty()) return "choosing the next trial";
  std::vector<std::string> parts;
  for (const Running& one : running_) {
    if (parts.size() == kMostShown) break;
    parts.push_back(fmt::format("{} ({})", one.trial, seconds_text(clock_.now_s() - one.began_s)));
  }
  const std::size_t more = running_.size() - parts.size();
  return fmt::format("trial{} {}{}", running_.size() == 1 ? "" : "s", join(parts, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

void Progress::remember(const search::History& history) {
  best_ = ask_best_();
  const answer::TrialCounts trials = answer::count_trials(history);
  closed_ = trials.of_budget;
  std::vector<answer::ClassCount> failed = trials.by_class;
  std::erase_if(failed, [](const answer::ClassCount& one) { return one.name == "ok" || one.name == "bounded"; });
  failures_ = failed.empty() ? "" : report::text_of(failed);
  left_s_ = seconds_left(session_, history, jobs_);
  left_at_s_ = clock_.now_s();
}

}  // namespace krigtune::cli

// Rebuilds a journal that lost lines, or was lost itself, from the remaining data: first its own readable lines,
// because they have the most information, then the rows of trials.csv.
#include "run/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "journal/lock.h"

namespace krigtune::run {
namespace {

/// Reads trials.csv by the names of its columns.
class TrialRows {
 public:
  TrialRows(const std::filesystem::path& file, const session::Session& session)
      : session_(session), table_(parse_csv(read_text(file, kMostTableBytes), file.string())) {}

  std::size_t size() const { return table_.rows.size(); }

  /// Empty if the row does not have enough information for a trial.
  std::optional<journal::Trial> trial(std::size_t row) const {
    const std::optional<double> number = number_in(row, "trial");
    std::optional<trial::Outcome> outcome = outcome_of(row);
    if (!number || *number < 0 || !outcome) return std::nullopt;
    journal::Trial trial;
    trial.number = static_cast<int>(*number);
    for (const std::string& name : session_.space.columns()) {
      const std::string text = field(row, name);
      if (!text.empty()) trial.proposal.configuration.set(name, space::value_from_text(text));
    }
    trial.proposal.strategy = field(row, "strategy");
    trial.proposal.predicted_value = number_in(row, "predicted_value");
    trial.proposal.suggest_s = number_in(row, "suggest_s").value_or(0.0);
    trial.outcome = *std::move(outcome);
    trial.wall_s = number_in(row, "wall_s").value_or(0.0);
    trial.started_at = field(row, "started_at");
    return trial;
  }

 private:
  std::string field(std::size_t row, const std::string& column) const {
    const int index = table_.column(column);
    return index < 0 ? "" : table_.rows[row][static_cast<std::size_t>(index)];
  }

  std::optional<double> number_in(std::size_t row, const std::string& column) const {
    const std::string text = field(row, column);
    if (text.empty()) return std::nullopt;
    const space::Value value = space::value_from_text(text);
    return space::is_number(value) ? std::optional(space::as_number(value)) : std::nullopt;
  }

  std::optional<Bytes> bytes_in(std::size_t row, const std::string& column) const {
    const std::optional<double> number = number_in(row, column);
    return number ? std::optional(Bytes{std::llround(*number)}) : std::nullopt;
  }

  std::optional<trial::Outcome> outcome_of(std::size_t row) const {
    const std::string status = field(row, "status");
    const std::string reason = field(row, "reason");
    const std::optional<double> value = number_in(row, "value");
    if (status == "ok" && value) return measured(row, *value);
    if (status == "bounded" && value) return trial::Bounded{*value};
    if (status == "oom") return trial::OutOfMemory{bytes_in(row, "peak_memory_bytes"), reason == "predicted"};
    if (status == "failed") return trial::Failed{trial::failure_reason_from(reason), 0, "see its files in trials/"};
    return std::nullopt;
  }

  trial::Measured measured(std::size_t row, double value) const {
    constexpr const char* kPrefix = "metric_";
    trial::Measured outcome;
    for (const std::string& column : table_.header) {
      if (column.rfind(kPrefix, 0) != 0) continue;
      if (const auto number = number_in(row, column))
        outcome.metrics[column.substr(std::string(kPrefix).size())] = *number;
    }
    outcome.metrics[session_.objective.field] = value;
    outcome.value_sem = number_in(row, "value_sem").value_or(0.0);
    outcome.peak_memory = bytes_in(row, "peak_memory_bytes");
    return outcome;
  }

  const session::Session& session_;
  CsvTable table_;
};

bool is_ours_and_open(const journal::Trial& trial) {
  return !trial.outcome && !trial.waiting && trial.proposal.asker == journal::Asker::kTune;
}

/// Returns the rows of trials.csv by number; empty if there is no such file.
std::map<int, journal::Trial> recorded_trials(const session::Session& session, const std::filesystem::path& directory) {
  std::map<int, journal::Trial> trials;
  std::error_code error;
  if (!std::filesystem::is_regular_file(trials_path(directory), error)) return trials;
  const TrialRows rows(trials_path(directory), session);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (std::optional<journal::Trial> trial = rows.trial(row)) trials[trial->number] = *std::move(trial);
  }
  return trials;
}

/// Returns the trials that the journal itself still has, and adds what is missing to `findings`.
search::History readable_trials(const std::filesystem::path& file, std::vector<std::string>& findings) {
  std::error_code error;
  if (!std::filesystem::exists(file, error) || std::filesystem::file_size(file, error) == 0) {
    findings.push_back(
        fmt::format("{} is {}", file.string(), std::filesystem::exists(file, error) ? "empty" : "missing"));
    return {};
  }
  try {
    return journal::read_journal(file, &findings);
  } catch (const UserError& unreadable) {
    findings.emplace_back(unreadable.what());
    return {};
  }
}

}  // namespace

Repair examine(const RunRecord& record, const std::filesystem::path& directory) {
  const std::filesystem::path file = journal_path(directory);
  if (journal::TunerClaim::is_held(file)) {
    throw UserError(fmt::format("{}: krigtune tune is running there", directory.string()), "wait for its end");
  }
  Repair repair;
  repair.trials = readable_trials(file, repair.findings);
  const bool is_damaged = !repair.findings.empty();
  for (auto& [number, recorded] :
       is_damaged ? recorded_trials(record.session, directory) : std::map<int, journal::Trial>()) {
    const auto index = static_cast<std::size_t>(number);
    while (repair.trials.size() <= index) {
      journal::Trial lost;
      lost.number = static_cast<int>(repair.trials.size());
      lost.passed_over = "lost";
      repair.trials.push_back(std::move(lost));
    }
    journal::Trial& trial = repair.trials[index];
    if (trial.passed_over.empty() && trial.outcome) continue;
    trial = recorded;
    ++repair.recovered;
  }
  // A scheduler's trials continue without a tuner, and the next tune collects them.
  const bool may_go_on = !executor::traits_of(record.session.executor).is_this_machine;
  for (journal::Trial& trial : repair.trials) {
    if (is_ours_and_open(trial) && may_go_on && trial.passed_over.empty()) continue;
    if (is_ours_and_open(trial)) {
      repair.findings.push_back(fmt::format("trial {} was begun by a tune that is gone", trial.number));
    } else if (trial.passed_over.empty()) {
      continue;
    }
    if (!trial.passed_over.empty()) {
      trial.proposal = journal::Proposal();
      trial.proposal.strategy = "lost";
    }
    trial.passed_over.clear();
    trial.waiting = false;
    trial.outcome = trial::Failed{trial::FailureReason::kInterrupted, 0, ""};
  }
  return repair;
}

std::filesystem::path apply(const Repair& repair, const RunRecord& record, const std::filesystem::path& directory,
                            const Clock& clock) {
  const std::filesystem::path file = journal_path(directory);
  const std::filesystem::path anew = file.string() + ".anew";
  std::filesystem::remove(anew);
  const session::Objective& objective = record.session.objective;
  {
    journal::Journal journal(anew, record.session.space, objective.field, objective.maximize);
    for (const journal::Trial& trial : repair.trials) {
      const std::int64_t started_us = unix_us_of(trial.started_at).value_or(clock.unix_us());
      const int number = journal.begin(trial.proposal, started_us, journal.trials().size()).value();
      const auto lasted_us = static_cast<std::int64_t>(1e6 * trial.wall_s);
      if (trial.outcome) journal.end(number, *trial.outcome, trial.wall_s, started_us + lasted_us);
    }
  }
  std::error_code error;
  std::filesystem::path kept;
  if (std::filesystem::exists(file, error)) {
    int number = 1;
    while (std::filesystem::exists(fmt::format("{}.damaged{}", file.string(), number))) ++number;
    kept = fmt::format("{}.damaged{}", file.string(), number);
    std::filesystem::rename(file, kept);
  }
  std::filesystem::rename(anew, file);
  return kept;
}

}  // namespace krigtune::run

#include "run/by_hand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "journal/lock.h"
#include "run/run_directory.h"

namespace krigtune::run {
namespace {

journal::Journal open_journal(const session::Session& session, const std::filesystem::path& directory) {
  return {journal_path(directory), session.space, session.objective.field, session.objective.maximize};
}

std::optional<journal::Trial> ask_one(const Proposer& proposer, journal::Journal& journal, const Clock& clock) {
  while (true) {
    std::optional<journal::Proposal> proposal = proposer.next(journal.trials());
    if (!proposal) return std::nullopt;
    proposal->asker = journal::Asker::kHand;
    // Empty if another process proposed a trial in the meantime; then the strategy is asked again, with the new
    // history.
    const std::optional<int> number = journal.begin(*proposal, clock.unix_us(), journal.trials().size());
    if (number) return journal.trials()[static_cast<std::size_t>(*number)];
  }
}

void check_value(const session::Session& session, const trial::Outcome& outcome) {
  const auto* measured = std::get_if<trial::Measured>(&outcome);
  if (measured == nullptr) return;
  const auto value = measured->metrics.find(session.objective.field);
  if (value == measured->metrics.end()) {
    throw UserError(fmt::format("an ok trial without a value of '{}'", session.objective.metric), "give --value");
  }
  if (!std::isfinite(value->second)) {
    throw UserError(fmt::format("{} is not a value of '{}'", value->second, session.objective.metric),
                    "give a finite number, or --status failed");
  }
}

[[noreturn]] void refuse_closed(const journal::Trial& trial) {
  const std::string reason = trial::reason_text(*trial.outcome);
  throw UserError(fmt::format("trial {} is closed already: {}{}{}", trial.number, trial::status_text(*trial.outcome),
                              reason.empty() ? "" : ", ", reason),
                  "what is recorded is never changed; ask for another trial");
}

void check_open(const std::vector<journal::Trial>& trials, int number, const std::filesystem::path& directory) {
  if (number < 0 || static_cast<std::size_t>(number) >= trials.size()) {
    throw UserError(fmt::format("{}: there is no trial {}", directory.string(), number),
                    trials.empty() ? "krigtune ask makes the first one"
                                   : fmt::format("the last one is trial {}", trials.back().number));
  }
  const journal::Trial& trial = trials[static_cast<std::size_t>(number)];
  if (trial.outcome) refuse_closed(trial);
  if (trial.proposal.asker == journal::Asker::kTune && journal::TunerClaim::is_held(journal_path(directory))) {
    throw UserError(fmt::format("trial {} is being run by a krigtune tune", number),
                    "wait for its end; tell is for the trials of krigtune ask");
  }
}

}  // namespace

std::vector<journal::Trial> ask_by_hand(const session::Session& session, const search::Candidates& candidates,
                                        const std::filesystem::path& directory, const LoopOptions& options,
                                        const Clock& clock, int count,
                                        const std::function<void(const journal::Trial&)>& asked) {
  const std::string change = settle(directory, session, options, journal::Asker::kHand);
  std::vector<journal::Trial> trials;
  if (candidates.empty()) return trials;
  const std::unique_ptr<search::Strategy> strategy =
      search::make_strategy(options.strategy, session, candidates, {options.seed, session.budget.trials});
  const Proposer proposer(session, candidates, *strategy, clock);
  make_writable_directory(directory);
  journal::Journal journal = open_journal(session, directory);
  if (!change.empty() || !std::filesystem::exists(session_path(directory))) {
    write_run_record(directory, session, options);
  }
  while (static_cast<int>(trials.size()) < count) {
    const std::optional<journal::Trial> trial = ask_one(proposer, journal, clock);
    if (!trial) break;
    trials.push_back(*trial);
    if (asked) asked(*trial);
  }
  return trials;
}

journal::Trial tell_by_hand(const session::Session& session, const std::filesystem::path& directory, int trial,
                            const trial::Outcome& outcome, const Clock& clock) {
  check_value(session, outcome);
  if (!std::filesystem::exists(journal_path(directory))) {
    throw UserError(fmt::format("{}: is not a run directory", directory.string()),
                    "name a directory that krigtune ask made");
  }
  journal::Journal journal = open_journal(session, directory);
  check_open(journal.trials(), trial, directory);
  const auto index = static_cast<std::size_t>(trial);
  const std::int64_t now_us = clock.unix_us();
  const std::int64_t asked_us = unix_us_of(journal.trials()[index].started_at).value_or(now_us);
  const double wall_s = static_cast<double>(std::max(now_us - asked_us, std::int64_t{0})) / 1e6;
  if (!journal.end(trial, outcome, wall_s, now_us)) refuse_closed(journal.trials()[index]);
  return journal.trials()[index];
}

}  // namespace krigtune::run

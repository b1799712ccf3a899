#include "run/by_hand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "journal/lock.h"
#include "run/run_directory.h"
#include "session/objectives.h"

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
  const std::vector<std::string> missing = session::missing_metrics(session, outcome);
  if (missing.empty()) return;
  throw UserError(fmt::format("an ok trial without a value of '{}', which the session needs", missing.front()),
                  "give a number for each objective and limit");
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

namespace {

void check_directory(const std::filesystem::path& directory) {
  if (std::filesystem::exists(journal_path(directory))) return;
  throw UserError(fmt::format("{}: is not a run directory", directory.string()),
                  "name a directory that krigtune ask made");
}

journal::Trial close_trial(journal::Journal& journal, const std::filesystem::path& directory, int trial,
                           const trial::Outcome& outcome, const Clock& clock) {
  check_open(journal.trials(), trial, directory);
  const auto index = static_cast<std::size_t>(trial);
  const std::int64_t now_us = clock.unix_us();
  const std::int64_t asked_us = unix_us_of(journal.trials()[index].started_at).value_or(now_us);
  const double wall_s = static_cast<double>(std::max(now_us - asked_us, std::int64_t{0})) / 1e6;
  if (!journal.end(trial, outcome, wall_s, now_us)) refuse_closed(journal.trials()[index]);
  return journal.trials()[index];
}

}  // namespace

struct HandRun::Impl {
  const session::Session& session;
  std::filesystem::path directory;
  const Clock& clock;
  std::unique_ptr<search::Strategy> strategy;  ///< nullptr: there are no candidates
  std::optional<Proposer> proposer;
  std::unique_ptr<journal::Journal> journal;

  void begin(const search::Candidates& candidates, const LoopOptions& options) {
    const std::string change = settle(directory, session, options, journal::Asker::kHand);
    if (!candidates.empty()) {
      strategy = search::make_strategy(options.strategy, session, candidates, {options.seed, session.budget.trials});
      proposer.emplace(session, candidates, *strategy, clock);
    }
    make_writable_directory(directory);
    journal = std::make_unique<journal::Journal>(journal_path(directory), session.space, session.objective.field,
                                                 session.objective.maximize);
    if (!change.empty() || !std::filesystem::exists(session_path(directory)))
      write_run_record(directory, session, options);
  }
};

HandRun::HandRun(const session::Session& session, const search::Candidates& candidates, std::filesystem::path directory,
                 const LoopOptions& options, const Clock& clock)
    : impl_(std::make_unique<Impl>(Impl{session, std::move(directory), clock, nullptr, {}, nullptr})) {
  impl_->begin(candidates, options);
}

HandRun::~HandRun() = default;

std::optional<journal::Trial> HandRun::ask() {
  if (!impl_->proposer) return std::nullopt;
  impl_->journal->refresh();
  return ask_one(*impl_->proposer, *impl_->journal, impl_->clock);
}

journal::Trial HandRun::tell(int trial, const trial::Outcome& outcome) {
  check_value(impl_->session, outcome);
  impl_->journal->refresh();
  return close_trial(*impl_->journal, impl_->directory, trial, outcome, impl_->clock);
}

journal::Trial HandRun::add(const space::Configuration& configuration, const trial::Outcome& outcome, double wall_s) {
  check_value(impl_->session, outcome);
  journal::Journal& journal = *impl_->journal;
  const std::int64_t now_us = impl_->clock.unix_us();
  journal::Proposal proposal;
  proposal.configuration = configuration;
  proposal.strategy = search::kTryStrategy;
  proposal.asker = journal::Asker::kHand;
  std::optional<int> number;
  while (!number) {  // empty if another process began a trial in the meantime
    journal.refresh();
    number = journal.begin(proposal, now_us - static_cast<std::int64_t>(wall_s * 1e6), journal.trials().size());
  }
  journal.end(*number, outcome, wall_s, now_us);
  return journal.trials()[static_cast<std::size_t>(*number)];
}

std::vector<journal::Trial> ask_by_hand(const session::Session& session, const search::Candidates& candidates,
                                        const std::filesystem::path& directory, const LoopOptions& options,
                                        const Clock& clock, int count,
                                        const std::function<void(const journal::Trial&)>& asked) {
  std::vector<journal::Trial> trials;
  if (candidates.empty()) {
    settle(directory, session, options, journal::Asker::kHand);
    return trials;
  }
  HandRun run(session, candidates, directory, options, clock);
  while (static_cast<int>(trials.size()) < count) {
    const std::optional<journal::Trial> trial = run.ask();
    if (!trial) break;
    trials.push_back(*trial);
    if (asked) asked(*trial);
  }
  return trials;
}

journal::Trial tell_by_hand(const session::Session& session, const std::filesystem::path& directory, int trial,
                            const trial::Outcome& outcome, const Clock& clock) {
  check_value(session, outcome);
  check_directory(directory);
  journal::Journal journal = open_journal(session, directory);
  return close_trial(journal, directory, trial, outcome, clock);
}

}  // namespace krigtune::run

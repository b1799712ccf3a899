#include "run/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "journal/lock.h"
#include "run/current_run.h"
#include "run/rival.h"
#include "run/run_directory.h"
#include "run/runner_pool.h"
#include "run/stop_rules.h"
#include "space/well_known.h"
#include "trial/output_limit.h"
#include "trial/trial_files.h"

namespace krigtune::run {
namespace {

/// One call of run_session, starting when it claims the journal.
class Run {
 public:
  Run(const session::Session& session, const search::Candidates& candidates, const std::filesystem::path& directory,
      const RunOptions& options, const Clock& clock, Observer& observer, const std::atomic<bool>& stop,
      trial::Executor& executor, std::unique_ptr<RunnerPool> runners)
      : session_(session),
        candidates_(candidates),
        directory_(directory),
        clock_(clock),
        observer_(observer),
        stop_(stop),
        sizes_(options.sizes),
        executor_(executor),
        side_by_side_(session, candidates, executor.capacity(), options.interference_check),
        rival_noise_(options.rival_noise),
        may_end_early_(options.may_end_early),
        repeats_(options.repeats),
        keep_going_(options.keep_going || !runner::traits_of(session.runner).runs_programs),
        claim_(journal_path(directory)),
        journal_(journal_path(directory), session.space, session.objective.field, session.objective.maximize),
        strategy_(search::make_strategy(options.loop.strategy, session, candidates,
                                        {options.loop.seed, session.budget.trials})),
        proposer_(session, candidates, *strategy_, clock, options.tries,
                  current_run(session, journal_.trials(), options, clock)),
        runners_(std::move(runners)) {
    if (!executor_.survives()) close_trials_of_the_dead();
  }

  /// Whatever ends the session, the results of running trials reach the journal.
  RunResult until_it_ends() {
    try {
      return go_on();
    } catch (...) {
      record_what_runs();
      throw;
    }
  }

 private:
  RunResult go_on() {
    observer_.resumed(journal_.trials());
    if (executor_.survives()) adopt_trials_of_the_dead();
    std::optional<EndReason> reason;
    while (true) {
      journal_.refresh();
      if (const auto trouble = trouble_that_ends()) reason = trouble;
      if (!reason) reason = budget_is_spent(session_, journal_.trials());
      while (!reason && may_begin()) {
        const Begun begun = begin_one();
        if (begun.trial) continue;
        // Running trials may change that.
        if (runners_->running().empty()) reason = begun.nothing_left;
        break;
      }
      if (runners_->running().empty() && reason && !begin_alone(*reason)) break;
      wait_for_one();
    }
    RunResult result;
    result.reason = *reason;
    result.history = journal_.trials();
    observer_.session_ended(result.history);
    result.trials_now = trials_now_;
    if (result.reason == EndReason::kEnvironment) result.detail = environment_failure(result.history).value_or("");
    if (result.reason == EndReason::kFailsAlike) result.detail = common_failure(result.history).value_or("");
    if (result.reason == EndReason::kNoProposal) result.detail = strategy_->left_out(result.history);
    look_ahead(result);
    return result;
  }

  // A full disk, or a results file that cannot be written, ends the session. The other running trials are awaited in
  // any case and their results were paid for, so they are recorded. Jobs that outlive this process are adopted by the
  // next tune instead.
  void record_what_runs() {
    if (executor_.survives()) return;
    try {
      while (!runners_->running().empty()) {
        const std::optional<FinishedTrial> finished = runners_->wait();
        if (finished && finished->runs_again) return;
        if (finished) {
          journal_.end(finished->number, finished->outcome, finished->wall_s, clock_.unix_us(), finished->where);
        }
      }
    } catch (const std::exception&) {
      return;  // the first error is the one that is reported
    }
  }

  /// The result of trying to begin a trial. If both are unset, the trial waits for room.
  struct Begun {
    bool trial = false;
    std::optional<EndReason> nothing_left = std::nullopt;
  };

  // Trials of a tuner that died.
  std::vector<journal::Trial> open_trials() const {
    std::vector<journal::Trial> open;
    for (const journal::Trial& trial : journal_.trials()) {
      if (!trial.outcome && !trial.waiting && trial.proposal.asker == journal::Asker::kTune) open.push_back(trial);
    }
    return open;
  }

  void close_trials_of_the_dead() {
    for (const journal::Trial& trial : open_trials())
      journal_.end(trial.number, trial::Failed{trial::FailureReason::kInterrupted, 0, ""}, 0.0, clock_.unix_us());
  }

  // Their programs wait, run or have ended without this process.
  void adopt_trials_of_the_dead() {
    for (const journal::Trial& trial : open_trials()) {
      observer_.trial_begins(trial, journal_.trials());
      start({trial, make_trial_directory(trial), rival_for(trial), sizes_.of(trial.proposal.configuration), true,
             trial.times_lost});
    }
  }

  std::optional<EndReason> trouble_that_ends() const {
    if (stop_ || was_interrupted_) return EndReason::kInterrupted;
    if (trials_now_ > 0 && environment_failure(journal_.trials())) return EndReason::kEnvironment;
    if (trials_now_ > 0 && !keep_going_ && common_failure(journal_.trials())) return EndReason::kFailsAlike;
    return std::nullopt;
  }

  EndReason reason_of_silence() const {
    switch (strategy_->why_idle(journal_.trials())) {
      case search::Idle::kAllTried:
        return EndReason::kExhausted;
      case search::Idle::kNoProposal:
        return EndReason::kNoProposal;
      case search::Idle::kWaits:
        return EndReason::kWaits;
    }
    return EndReason::kExhausted;
  }

  // A running trial counts only when it is closed, so no more are begun than the budget has left.
  bool may_begin() const {
    const int running = static_cast<int>(runners_->running().size());
    return !stop_ && running < executor_.capacity() && runners_->has_room(sizes_.least()) &&
           search::closed_trials(journal_.trials()) + running < session_.budget.trials;
  }

  // Describes the trial that would come next, to help users decide whether to continue. Skipped if no trial ever had an
  // outlook.
  void look_ahead(RunResult& result) const {
    if (stop_ || result.reason == EndReason::kInterrupted || result.reason == EndReason::kEnvironment) return;
    if (std::none_of(result.history.begin(), result.history.end(),
                     [](const journal::Trial& trial) { return trial.proposal.outlook.has_value(); })) {
      return;
    }
    const std::optional<journal::Proposal> next = proposer_.next(result.history);
    if (!next || !next->outlook) return;
    result.outlook = next->outlook;
    result.worth = worth_of(session_, result.history, *next->outlook);
  }

  std::optional<trial::Rival> rival_for(const journal::Trial& trial) const {
    if (!may_end_early_ || !session_.others.empty()) return std::nullopt;  // a slow trial may be the best otherwise
    std::optional<trial::Rival> rival = rival_of(session_, candidates_, journal_.trials(), trial);
    if (rival) rival->value_sem = std::hypot(rival->value_sem, rival_noise_ * rival->value);
    return rival;
  }

  void start(PooledTrial trial) {
    const int number = trial.trial.number;
    trial.in_full = !may_end_early_;
    const std::string where = runners_->start(std::move(trial));
    if (!where.empty()) journal_.set_where(number, where);
  }

  // A trial without room is kept until there is room, whatever ends in the meantime; if the strategy were asked again,
  // smaller trials could overtake it forever. If no place can ever provide what a trial needs, it fails with that
  // reason.
  Begun begin_one() {
    if (held_ && held_->strategy == search::kTogetherStrategy) held_.reset();  // proposed again while it is wanted
    const SideBySide::Turn turn = side_by_side_.turn(journal_.trials());
    if (turn.waits) return {};
    if (turn.proposal) held_ = turn.proposal;
    if (!held_) held_ = proposer_.next(journal_.trials());
    if (!held_) return {false, reason_of_silence()};
    if (const auto reason = not_worth_running(session_, journal_.trials(), *held_)) {
      held_.reset();
      return {false, reason};
    }
    std::string impossible;
    trial::TrialNeeds needs;
    try {
      needs = sizes_.of(held_->configuration);
      if (!runners_->has_room(needs)) return {};
    } catch (const UserError& error) {
      impossible = error.what();
    }
    journal::Proposal proposal = *std::exchange(held_, std::nullopt);
    proposal.run = side_by_side_.run_of(proposal, journal_.trials());
    begin(proposal, needs, impossible);
    return {true};
  }

  // `impossible`: why it cannot run; "" if it can.
  void begin(const journal::Proposal& proposal, const trial::TrialNeeds& needs, const std::string& impossible) {
    // Empty if another process proposed a trial in the meantime; then the strategy is asked again, with the new
    // history.
    const std::optional<int> number = journal_.begin(proposal, clock_.unix_us(), journal_.trials().size());
    if (!number) return;
    const journal::Trial trial = journal_.trials()[static_cast<std::size_t>(*number)];
    observer_.trial_begins(trial, journal_.trials());
    if (!impossible.empty()) return close({trial.number, trial::Failed{trial::FailureReason::kInvalid, 0, impossible}});
    start({trial, make_trial_directory(trial), rival_for(trial), needs});
  }

  // The session is over, except that its best configurations, and the baseline if the user wants it, are measured once
  // more with nothing beside them.
  bool begin_alone(EndReason reason) {
    constexpr std::array kNotThen = {EndReason::kInterrupted, EndReason::kEnvironment, EndReason::kFailsAlike,
                                     EndReason::kWaits};
    if (stop_ || std::find(kNotThen.begin(), kNotThen.end(), reason) != kNotThen.end()) return false;
    std::optional<journal::Proposal> proposal = side_by_side_.next_alone(journal_.trials());
    if (!proposal) proposal = proposer_.next_repeat(journal_.trials(), repeats_);
    if (!proposal) return false;
    const trial::TrialNeeds needs = sizes_.of(proposal->configuration);
    if (!runners_->has_room(needs)) return false;
    begin(*proposal, needs, "");
    return true;
  }

  void wait_for_one() {
    const std::optional<FinishedTrial> finished = runners_->wait();
    if (!finished) {
      for (const journal::Trial& trial : runners_->running()) observer_.waiting(trial);
      return;
    }
    if (!finished->runs_again) return close(*finished);
    journal_.set_times_lost(finished->number, finished->times_lost);  // for the next tuner, if this one dies
    observer_.trial_lost(journal_.trials()[static_cast<std::size_t>(finished->number)],
                         std::get<trial::Failed>(finished->outcome).last_lines);
  }

  void close(const FinishedTrial& finished) {
    // If somebody closed the trial by hand, that result counts.
    journal_.end(finished.number, finished.outcome, finished.wall_s, clock_.unix_us(), finished.where);
    shorten_logs(journal_.trials()[static_cast<std::size_t>(finished.number)]);
    ++trials_now_;
    const journal::Trial closed = journal_.trials()[static_cast<std::size_t>(finished.number)];
    was_interrupted_ = was_interrupted_ || search::is_interrupted(closed);
    observer_.trial_ended(closed, journal_.trials());
    if (closed.proposal.strategy == search::kTogetherStrategy) tell_interference();
  }

  // Reports it once the baseline has ended in all slots.
  void tell_interference() {
    const search::History& history = journal_.trials();
    const bool runs = std::any_of(history.begin(), history.end(), [](const journal::Trial& trial) {
      return trial.proposal.strategy == search::kTogetherStrategy && !trial.outcome;
    });
    const auto found = runs ? std::nullopt : interference_of(session_.objective, history);
    if (found) observer_.interference(*found);
  }

  std::filesystem::path trial_directory(const journal::Trial& trial) const {
    return directory_ / "trials" / trial_folder(trial);
  }

  // A tuner that adopts a trial reads its whole output, so this waits until the result is recorded.
  void shorten_logs(const journal::Trial& trial) const {
    if (!runner::traits_of(session_.runner).runs_programs) return;
    const trial::TrialFiles files(trial_directory(trial));
    trial::shorten_output(files.standard_output());
    trial::shorten_output(files.standard_error());
  }

  std::filesystem::path make_trial_directory(const journal::Trial& trial) const {
    if (!runner::traits_of(session_.runner).runs_programs) return directory_;
    std::filesystem::path path = trial_directory(trial);
    if (std::filesystem::is_symlink(path)) {
      throw EnvironmentError(fmt::format("'{}' is a symbolic link: no trial is run through one", path.string()),
                             "remove it, and run the same command again");
    }
    make_writable_directory(path);
    return path;
  }

  const session::Session& session_;
  const search::Candidates& candidates_;
  const std::filesystem::path& directory_;
  const Clock& clock_;
  Observer& observer_;
  const std::atomic<bool>& stop_;
  const executor::TrialSizes sizes_;
  trial::Executor& executor_;
  const SideBySide side_by_side_;
  const double rival_noise_;
  const bool may_end_early_;
  const int repeats_;
  const bool keep_going_;
  journal::TunerClaim claim_;
  journal::Journal journal_;
  std::unique_ptr<search::Strategy> strategy_;
  Proposer proposer_;
  std::unique_ptr<RunnerPool> runners_;    ///< destroyed first, so that the journal stays claimed while anything runs
  std::optional<journal::Proposal> held_;  ///< proposed and waiting for room
  int trials_now_ = 0;
  bool was_interrupted_ = false;
};

}  // namespace

const EndWords& words_of(EndReason reason) {
  // In the order of the enumerators.
  static constexpr std::array<EndWords, kEndReasons> kWords{
      {{"trials", "the budget of trials is spent"},
       {"hours", "the budget of hours is spent"},
       {"patience", "no improvement of more than 1 % for as long as the session's patience lasts"},
       {"sure", "no configuration left is likely to be clearly better", true},
       {"little_to_gain", "little is left to gain", true},
       {"not_worth_it", "one more trial costs more than it is expected to save", true},
       {"exhausted", "every configuration was tried"},
       {"no_proposal", "the strategy has nothing left to propose"},
       {"waits", "what comes next depends on trials that wait for krigtune tell"},
       {"nothing_fits", "no configuration fits in memory"},
       {"interrupted", "interrupted"},
       {"environment", "nothing can run here"},
       {"fails_alike", "every trial failed in the same way"}}};
  return kWords.at(static_cast<std::size_t>(reason));
}

std::string trial_folder(const journal::Trial& trial) {
  const space::Configuration& configuration = trial.proposal.configuration;
  std::string name = fmt::format("{:04}", trial.number);
  const std::pair<const char*, const char*> kParts[] = {
      {space::kZeroStage, "z"}, {space::kMicroBatch, "mb"}, {space::kAccumulation, "gas"}};
  for (const auto& [parameter, prefix] : kParts) {
    if (const space::Value* value = configuration.find(parameter))
      name += fmt::format("_{}{}", prefix, space::to_string(*value));
  }
  return name;
}

RunResult run_session(const session::Session& session, const search::Candidates& candidates,
                      const trial::RunnerFactory& make_runner, const std::filesystem::path& directory,
                      const RunOptions& options, const Clock& clock, Observer& observer,
                      const std::atomic<bool>& stop) {
  if (runner::traits_of(session.runner).by_hand) {
    const std::string source = session.file.empty() ? "the session" : session.file.string();
    throw UserError(source + ": /runner: nobody runs the trials",
                    "add for example {\"kind\": \"command\", \"argv\": [...]}, or use krigtune ask and krigtune tell");
  }
  settle(directory, session, options.loop);
  if (candidates.empty()) {
    RunResult result;
    result.reason = EndReason::kNothingFits;
    return result;
  }
  // Missing requirements of the runners must be reported before anything is written.
  const std::unique_ptr<trial::Executor> undivided = executor::make_undivided_executor(options.jobs);
  trial::Executor& executor = options.executor != nullptr ? *options.executor : *undivided;
  auto runners = std::make_unique<RunnerPool>(make_runner, executor, candidates.filter(), clock, stop);
  executor.has_room(options.sizes.least());
  make_writable_directory(directory);
  // The journal is claimed first, which refuses a directory where another tune is active.
  Run run(session, candidates, directory, options, clock, observer, stop, executor, std::move(runners));
  write_run_record(directory, session, options.loop);
  return run.until_it_ends();
}

}  // namespace krigtune::run

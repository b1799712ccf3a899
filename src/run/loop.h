#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/clock.h"
#include "executor/executor.h"
#include "forecast/warm_start.h"
#include "run/side_by_side.h"
#include "run/tuner.h"
#include "runner/runner.h"

namespace krigtune::run {

/// Receives events for a progress display and the writers of result files. All calls come from the thread of
/// run_session.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void resumed(const search::History& /*history*/) {
  }  ///< once, before the first trial; empty for a new directory
  virtual void trial_begins(const journal::Trial& /*trial*/, const search::History& /*history*/) {}
  virtual void waiting(const journal::Trial& /*trial*/) {}  ///< a few times a second while it runs
  /// Its place was lost, for the reason `why`, and it will run again.
  virtual void trial_lost(const journal::Trial& /*trial*/, const std::string& /*why*/) {}
  /// Called once, when the baseline has been measured both alone and together.
  virtual void interference(const Interference& /*interference*/) {}
  /// Called when the trial is in the journal. Exceptions end the session.
  virtual void trial_ended(const journal::Trial& /*trial*/, const search::History& /*history*/) {}
  /// Called once after the last trial, whatever ended the session, unless an exception did.
  virtual void session_ended(const search::History& /*history*/) {}
};

struct LoopOptions {
  search::StrategyKind strategy = search::StrategyKind::kBayes;
  std::uint64_t seed = 1;
  forecast::EarlierRuns earlier = {};  ///< the runs that the candidates' priors use
};

struct RunOptions {
  LoopOptions loop;
  int jobs = 1;  ///< number of concurrent trials on this machine if there is no executor
  /// Where trials run, and what each needs there; nullptr: see `jobs`. Must outlive the call.
  trial::Executor* executor = nullptr;
  executor::TrialSizes sizes = {};
  /// Measure at the beginning whether concurrent trials disturb each other (side_by_side.h).
  bool interference_check = false;
  std::vector<space::Configuration> tries;  ///< completed guesses of the user, each run once after the baseline
  std::string machine = {};                 ///< identifies the machine, because each has its own speed; "": unknown
  /// Relative noise from run to run in addition to what repetitions show, where trials are compared to end them early.
  double rival_noise = 0.0;
  bool may_end_early = true;  ///< a trial that is clearly worse than the best is ended before it was measured in full
  /// At the end the best and the reference are measured, alternately, until each has so many measurements (repeats.h).
  int repeats = 0;
  bool keep_going = false;  ///< continue even if trials fail alike from the beginning (kFailsAlike)
};

enum class EndReason {
  kTrials,
  kHours,
  kPatience,
  kSure,          ///< nothing remaining is likely to be better by more than the session's "regret"
  kLittleToGain,  ///< no further trial is expected to gain the session's "least_gain"
  kNotWorthIt,    ///< ... or to save as much as it costs
  kExhausted,
  kNoProposal,  ///< the strategy does not want any of the remaining configurations
  kWaits,       ///< the strategy waits for trials that others will close
  kNothingFits,
  kInterrupted,
  kEnvironment,
  kFailsAlike,  ///< no trial succeeded and the last ones failed alike, so the job cannot work
};
inline constexpr std::size_t kEndReasons = static_cast<std::size_t>(EndReason::kFailsAlike) + 1;

/// How an end is called.
struct EndWords {
  const char* word;       ///< for programs: "trials"
  const char* sentence;   ///< for people, without a full stop: "the budget of trials is spent"
  bool is_early = false;  ///< because of the expected gain, before the budget was spent
};
const EndWords& words_of(EndReason reason);

/// The value of one more trial, in hours times ranks.
struct TrialWorth {
  double cost_gpu_hours = 0.0;
  double saving_gpu_hours = 0.0;  ///< expected saving in the training that the session announces
};

struct RunResult {
  EndReason reason = EndReason::kTrials;
  search::History history;  ///< all trials of the directory
  int trials_now = 0;       ///< closed by this call
  std::string detail;  ///< kEnvironment, kFailsAlike: what the last trials said; kNoProposal: what is left out, if that
                       ///< is known
  std::optional<journal::Outlook> outlook;  ///< of the trial that would come next; empty if the strategy has none
  std::optional<TrialWorth> worth;          ///< of that trial, if known
};

/// Checks everything that can be checked before anything is written, and then runs trials until something ends the
/// session. Calling it again continues the session: trials of a process that died are adopted if the executor kept them
/// alive, and otherwise closed as interrupted; closed trials are not repeated. `directory`: the run directory, created
/// if absent; it contains session.json, journal.log and, with a runner that leaves files, trials/. `make_runner` is
/// called once for each concurrent trial. With one trial at a time, the same journal gives the same next proposal.
/// `stop`: set it (from a signal handler), and the loop closes the trials and returns kInterrupted. Other processes may
/// ask and tell in the same directory meanwhile. Three consecutive trials that fail because of the environment end the
/// session (kEnvironment).
///
/// Throws UserError if results in the directory are of another session (settle in run_directory.h), and if another
/// run_session is active in the directory.
RunResult run_session(const session::Session& session, const search::Candidates& candidates,
                      const trial::RunnerFactory& make_runner, const std::filesystem::path& directory,
                      const RunOptions& options, const Clock& clock, Observer& observer, const std::atomic<bool>& stop);

/// Returns the seconds of suggestions and of run_session's trials, each counted in full. Times the ranks, they count
/// against the budget `gpu_hours`. A trial between `ask` and `tell` uses the user's time and no budget, and neither
/// does a job's time in a queue.
double seconds_spent(const search::History& history);
/// Returns the wall-clock time of the same, which counts against the budget `hours`: concurrent trials count once.
double seconds_elapsed(const search::History& history);

/// Returns "0007_z3_mb4_gas2", the trial's folder below trials/.
std::string trial_folder(const journal::Trial& trial);

}  // namespace krigtune::run

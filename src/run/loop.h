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

/// What a progress display and the writers of result files hear of. All calls come from the thread of run_session.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void resumed(const search::History& /*history*/) {
  }  ///< once, before the first trial; empty for a new directory
  virtual void trial_begins(const journal::Trial& /*trial*/, const search::History& /*history*/) {}
  virtual void waiting(const journal::Trial& /*trial*/) {}  ///< a few times a second while it runs
  /// Its place was lost, for the reason `why`; it is run again.
  virtual void trial_lost(const journal::Trial& /*trial*/, const std::string& /*why*/) {}
  /// Once, when the baseline has been measured alone and among others.
  virtual void interference(const Interference& /*interference*/) {}
  /// The trial is in the journal. Exceptions end the session.
  virtual void trial_ended(const journal::Trial& /*trial*/, const search::History& /*history*/) {}
  /// Once, after the last trial, whatever ended the session; not where an exception did.
  virtual void session_ended(const search::History& /*history*/) {}
};

struct LoopOptions {
  search::StrategyKind strategy = search::StrategyKind::kBayes;
  std::uint64_t seed = 1;
  forecast::EarlierRuns earlier = {};  ///< that the candidates' priors know of
};

struct RunOptions {
  LoopOptions loop;
  int jobs = 1;  ///< trials at a time on this machine, undivided: where there is no executor
  /// Where trials run, and what each needs there; nullptr: see `jobs`. It must outlive the call.
  trial::Executor* executor = nullptr;
  executor::TrialSizes sizes = {};
  /// Whether trials at the same time disturb each other is measured at the beginning (side_by_side.h).
  bool interference_check = false;
  std::vector<space::Configuration> tries;  ///< completed guesses of the user's, run after the baseline; each once
  std::string machine = {};  ///< that the trials are run on: another one has another clock; "": not known
  bool keep_going = false;   ///< also where trials fail alike from the beginning (kFailsAlike)
};

enum class EndReason {
  kTrials,
  kHours,
  kPatience,
  kSure,          ///< nothing left is likely to be better by more than the session's "regret"
  kLittleToGain,  ///< no further trial is expected to gain the session's "least_gain"
  kNotWorthIt,    ///< ... or to save as much as it costs
  kExhausted,
  kThrough,  ///< what is left the strategy does not want
  kWaits,    ///< the strategy waits for trials that others are to tell
  kNothingFits,
  kInterrupted,
  kEnvironment,
  kFailsAlike,  ///< no trial is ok, and the last ones failed alike: the job cannot work
};
const char* to_string(EndReason reason);  ///< "the budget of trials is spent", ...

/// Of one more trial, in hours times ranks.
struct TrialWorth {
  double cost_gpu_hours = 0.0;
  double saving_gpu_hours = 0.0;  ///< expected, of what the session says will be trained
};

struct RunResult {
  EndReason reason = EndReason::kTrials;
  search::History history;  ///< all trials of the directory
  int trials_now = 0;       ///< closed by this call
  std::string
      detail;  ///< kEnvironment, kFailsAlike: what the last trials said; kThrough: what is left out, if that is known
  std::optional<journal::Outlook> outlook;  ///< of the trial that would come next; empty: the strategy does not say
  std::optional<TrialWorth> worth;          ///< of that trial, where it is known
};

/// Checks everything that can be checked before anything is written, then runs trials until something ends them. The
/// same call again goes on: trials of a process that died are adopted where the executor kept them alive, and else
/// closed as interrupted; nothing closed is repeated. `directory`: the run directory, made when absent; holds
/// session.json, journal.log and, with a runner that leaves files, trials/. A session that differs from the directory's
/// other than in budget, executor and timeouts is a UserError that shows the difference. Three trials in a row that
/// fail by the environment end it (kEnvironment). `make_runner` is called once for each trial at the same time. With
/// one trial at a time the same journal asks the same next question. `stop`: set it (from a signal handler) and the
/// loop returns kInterrupted after closing the trials. Meanwhile other processes may ask and tell on the same
/// directory; a second run_session is a UserError.
RunResult run_session(const session::Session& session, const search::Candidates& candidates,
                      const trial::RunnerFactory& make_runner, const std::filesystem::path& directory,
                      const RunOptions& options, const Clock& clock, Observer& observer, const std::atomic<bool>& stop);

/// Suggestions and the trials of run_session, each counted in full: what the budget `gpu_hours` is spent by, times the
/// ranks. A trial asked by hand lasts from `ask` to `tell`: that is the user's time, and no budget's. A job's time in
/// the queue is none of it.
double seconds_spent(const search::History& history);
/// The same by the clock on the wall, which the budget `hours` is spent by: what runs at the same time counts once.
double seconds_elapsed(const search::History& history);

/// "0007_z3_mb4_gas2": the trial's folder below trials/.
std::string trial_folder(const journal::Trial& trial);

}  // namespace krigtune::run

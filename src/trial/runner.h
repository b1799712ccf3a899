#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "space/space.h"
#include "trial/executor.h"
#include "trial/outcome.h"
#include "workload/workload.h"

namespace krigtune {
template <class Spec>
class Block;
class JsonObject;
}  // namespace krigtune

namespace krigtune::runner {
class ReplayTable;
}  // namespace krigtune::runner

namespace krigtune::trial {

/// The surroundings of one trial.
struct RunContext {
  std::filesystem::path dir;   ///< directory of the trial; it exists, and a runner without files leaves it empty
  std::optional<Rival> rival;  ///< if set, the trial may be ended as Bounded once it is certainly worse
  Place& place;                ///< where its programs run
  /// An earlier process started the trial's program, which may already have left results: nothing in `dir` is removed
  /// or rewritten, and `place` waits for the running program (TrialTask::adopted).
  bool adopted = false;
  /// The user wants it to run to its end: it is not ended because what it should print does not come.
  bool in_full = false;
};

/// Runs one configuration to its end. Thread-compatible; one call at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  /// A failed trial is an Outcome and not an exception. If its place was lost (ProcessResult::lost), it is Failed with
  /// the reason kLost and the place's words; it is run again and does not count against the configuration.
  virtual Outcome run(const space::Configuration& configuration, const RunContext& context) = 0;
  /// The same on this machine.
  Outcome run(const space::Configuration& configuration, const std::filesystem::path& dir,
              const std::optional<Rival>& rival = std::nullopt) {
    ThisMachine here;
    return run(configuration, RunContext{dir, rival, here});
  }
};

/// Makes one runner for each concurrent user. May be called from several threads.
using RunnerFactory = std::function<std::unique_ptr<Runner>()>;

/// What a runner has others say about it. "": nothing of its own.
struct RunnerWords {
  const char* trainer = "";       ///< who takes the steps, as a refused parameter names it: "krigtune-bench"
  const char* trials_are = "";    ///< how outcomes come about if nothing runs: "simulated"
  const char* about_trials = "";  ///< the sentence beside results of trials that did not run
  /// How a session lets it measure {}; "": the session can only name what it measures anyway.
  const char* how_to_measure = "";
  const char* after_failure = "";  ///< advice after any failure; "": the advice depends on the reason
  /// Advice after a bad result; {} is replaced by the required field.
  const char* after_bad_result = "the result needs a number named '{}'";
};

/// The properties of a runner for the rest of krigtune, which never asks which runner it is. What depends on the
/// settings is asked in runner/runner.h.
struct RunnerTraits {
  const char* name = "";  ///< "kind" in the session
  /// A trial is a program on this machine: it takes time, obeys a limit, writes files, and is as fast as the machine.
  bool runs_programs = false;
  /// It trains with krigtune's own step, so settings that the models do not know are refused; a user's program may
  /// support more than the models.
  bool only_what_is_modelled = false;
  /// A trial trains that step on the machine (krigtune-bench), which the plan describes operation by operation and to
  /// the byte; a framework cannot be chosen.
  bool trains_our_step = false;
  bool by_hand = false;  ///< the user runs the trials
  /// A trial starts the command under the key "argv", whose words say how the job is divided among the ranks.
  bool starts_a_command = false;
  bool reads_config = true;          ///< a trial reads its configuration from a JSON file of krigtune
  bool result_has_sentence = false;  ///< a trial's result.json says in a "sentence" how it ended
  bool has_our_fields = false;       ///< its results name metrics like krigtune-bench; otherwise like the session
  bool has_our_units = true;         ///< false: only the source knows the unit of a value
  bool takes_all_ranks = false;  ///< each trial starts all ranks of the cluster, whatever part of the machine it has
  RunnerWords words = {};
};

/// The time that a trial takes by its settings, without starting and ending.
struct TrialTime {
  double warmup_s = 0.0;
  double measure_s = 0.0;
  double total_s() const { return warmup_s + measure_s; }
};

/// What runners need in addition to their settings. Everything that it points to must outlive the runner.
struct RunnerJob {
  const std::optional<workload::Workload>& workload;
  const workload::ClusterSpec& cluster;
  const workload::MemorySpec& memory;
  const space::Space& space;
  std::shared_ptr<const runner::ReplayTable> table;  ///< for the runner replay
  std::string field;                                 ///< the required number of the result, with its standard error
  std::filesystem::path program;            ///< krigtune itself; krigtune-bench is looked for beside it and on PATH
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted
  const Clock& clock;
};
/// A runner from the session's point of view: one for each alternative of RunnerSpec, defined beside its code.
template <class Spec>
struct RunnerEntry {
  RunnerTraits traits;
  /// Its keys in the session's block "runner", except "kind"; relative paths are relative to `base_dir`.
  Block<Spec> (*block)(const std::filesystem::path& base_dir);
  std::unique_ptr<Runner> (*make)(const Spec& spec, const RunnerJob& job);
  /// Throws UserError at a key of `block` if the settings do not fit the session's space; nullptr: they always do.
  void (*check)(const Spec& spec, const space::Space& space, const std::optional<space::Configuration>& baseline,
                const JsonObject& block) = nullptr;
};

}  // namespace krigtune::trial

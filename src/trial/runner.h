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

/// What surrounds one trial.
struct RunContext {
  std::filesystem::path dir;   ///< of the trial; it exists, and a runner without files leaves it empty
  std::optional<Rival> rival;  ///< then it may be ended, as Bounded, once it is surely worse
  Place& place;                ///< where its programs run
  /// The trial's program was started by an earlier process and may have left its results already: nothing in `dir` is
  /// removed or written anew, and `place` waits for the program that runs (TrialTask::adopted).
  bool adopted = false;
};

/// Runs one configuration to its end. Thread-compatible; one call at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  /// A trial that fails is an Outcome, no exception. One whose place was lost (ProcessResult::lost) is Failed with the
  /// reason kLost and the place's words: it is run again and not held against the configuration.
  virtual Outcome run(const space::Configuration& configuration, const RunContext& context) = 0;
  /// The same on this machine.
  Outcome run(const space::Configuration& configuration, const std::filesystem::path& dir,
              const std::optional<Rival>& rival = std::nullopt) {
    ThisMachine here;
    return run(configuration, RunContext{dir, rival, here});
  }
};

/// Makes a runner of its own for each who runs trials at the same time. May be called from several threads.
using RunnerFactory = std::function<std::unique_ptr<Runner>()>;

/// What a runner means for the rest of krigtune. Who must know more of one asks for its settings.
struct RunnerTraits {
  const char* name = "";  ///< "kind" in the session
  /// A trial is a program on this machine: it takes time, keeps to a limit, leaves files, and is as fast as the
  /// machine.
  bool runs_programs = false;
  /// It trains by krigtune's own step, so that what the models do not know is refused; a program of the user's may know
  /// more than they do.
  bool only_what_is_modelled = false;
  bool has_our_fields = false;   ///< its results name metrics as krigtune-bench's do; else as the session does
  bool has_our_units = true;     ///< false: the unit of a value is known to its source alone
  bool takes_all_ranks = false;  ///< each trial launches all ranks of the cluster, whatever part of the machine it has
  /// What to do about a trial whose result was bad; {} is the field that was wanted.
  const char* after_bad_result = "the result needs a number named '{}'";
};

/// What runners need besides their settings. What it points to must outlive the runner.
struct RunnerJob {
  const std::optional<workload::Workload>& workload;
  const workload::ClusterSpec& cluster;
  const workload::MemorySpec& memory;
  const space::Space& space;
  std::shared_ptr<const runner::ReplayTable> table;  ///< of the runner replay
  std::string field;                        ///< of the result: the number that is wanted, with its standard error
  std::filesystem::path program;            ///< krigtune itself; krigtune-bench is looked for beside it and on PATH
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted
  const Clock& clock;
};
/// A runner as sessions know it: one for each alternative of RunnerSpec, written beside its code.
template <class Spec>
struct RunnerEntry {
  RunnerTraits traits;
  /// Its keys in the session's block "runner", but for "kind"; relative paths are relative to `base_dir`.
  Block<Spec> (*block)(const std::filesystem::path& base_dir);
  std::unique_ptr<Runner> (*make)(const Spec& spec, const RunnerJob& job);
  /// Throws UserError at a key of `block` where the settings do not fit the session's space; nullptr: they always do.
  void (*check)(const Spec& spec, const space::Space& space, const std::optional<space::Configuration>& baseline,
                const JsonObject& block) = nullptr;
};

}  // namespace krigtune::trial

#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>

#include "krigtune/core/clock.h"
#include "krigtune/runner/outcome.h"
#include "krigtune/runner/program_spec.h"
#include "krigtune/space/space.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// Runs one configuration to its end. Thread-compatible; one call at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  /// `trial_dir` exists; a runner without files leaves it empty. A trial that fails is an Outcome, no exception; with a
  /// rival it may be ended, as Bounded, once it is surely worse.
  virtual Outcome run(const Configuration& configuration, const std::filesystem::path& trial_dir,
                      const std::optional<Rival>& rival) = 0;
  Outcome run(const Configuration& c, const std::filesystem::path& dir) { return run(c, dir, std::nullopt); }
};

/// What the registry knows of a runner with these settings (src/runner/registry.h): each is written beside its code.
template <class Spec>
struct RunnerEntry;

/// How a trial's ranks are started: as threads of one krigtune-bench, or as processes by mpirun.
enum class Launcher { kThreads, kMpirun };

/// krigtune-bench.
struct BenchSpec {
  static RunnerEntry<BenchSpec> entry();

  double warmup_s = 2.0;
  double measure_s = 10.0;
  double timeout_s = 300.0;
  std::optional<double> memory_limit_gib;  ///< passed to krigtune-bench; empty: the session's own limit
  Launcher launcher = Launcher::kThreads;
  bool early_end = true;  ///< a trial that is surely worse than the best so far is ended
  double hang_s = 60.0;   ///< without a step for so long: a hang; long timeouts allow for long steps
};

/// A column of a measured table: its name, and what turns its numbers into ours.
struct TableColumn {
  std::string name;
  double times = 1.0;  ///< "bucket_mb" holds reduce_bucket_size / 1e6: times 1e6
};

/// A measured table that answers trials.
struct ReplaySpec {
  static RunnerEntry<ReplaySpec> entry();

  std::filesystem::path table;                               ///< absolute
  std::vector<std::pair<std::string, std::string>> where;    ///< column, value as text
  std::vector<std::pair<std::string, TableColumn>> columns;  ///< parameter, column
  TableColumn value;
  std::vector<std::pair<std::string, TableColumn>> metrics;  ///< further results: metric, column
  std::string status_column;                                 ///< empty: every row is ok
  std::string reason_column;                                 ///< of failures; empty: none
  enum class Repeats { kBest, kMedian, kCycle } repeats = Repeats::kBest;
};

/// Trials on the virtual clock, which takes no time (runner/simulate.h).
struct SimulateSpec {
  static RunnerEntry<SimulateSpec> entry();

  // Standard deviations of logarithms.
  double noise = 0.02;             ///< of a step time, trial by trial
  double systematic_error = 0.15;  ///< of the hidden factor of each class of operations, drawn once
  double memory_error = 0.05;      ///< of the hidden factor on activations
  double straggler_probability = 0.05;
  double straggler_slowdown = 1.3;    ///< so many times as long takes a step with a straggler among its ranks
  double unforeseen_fraction = 0.05;  ///< of the space: the part beyond a hidden plane, which always fails
  double crash_probability = 0.01;    ///< of a trial, anywhere
  std::int64_t seed = 1;
  bool early_end = false;  ///< a trial that is surely worse than the best so far is ended
  /// The machine as it is while a command runs; the next one may find it otherwise.
  struct Today {
    double slowdown = 1.0;                            ///< so many times as long takes every step
    std::optional<std::int64_t> seed = std::nullopt;  ///< of noise, stragglers and crashes; empty: the seed of all
    bool operator==(const Today&) const = default;
  } today;
};

/// Nobody runs trials but the user, with `krigtune ask` and `krigtune tell`.
struct NoRunner {
  static RunnerEntry<NoRunner> entry();
};

/// The session's block "runner", resolved: the settings of the runner that it names. A new runner is one more of these
/// (docs/adding.md).
using RunnerSpec = std::variant<BenchSpec, SimulateSpec, ReplaySpec, CommandSpec, DeepSpeedSpec, NoRunner>;

template <class Spec>
bool is(const RunnerSpec& spec) {
  return std::holds_alternative<Spec>(spec);
}

/// What a runner means for the rest of krigtune. Who must know more of one asks for its settings.
struct RunnerTraits {
  const char* name = "";  ///< "kind" in the session
  /// A trial is a program on this machine: it takes time, keeps to a limit, leaves files, and is as fast as the
  /// machine.
  bool runs_programs = false;
  /// It trains by krigtune's own step, so that what the models do not know is refused; a program of the user's may know
  /// more than they do.
  bool only_what_is_modelled = false;
  bool has_our_fields = false;  ///< its results name metrics as krigtune-bench's do; else as the session does
  bool has_our_units = true;    ///< false: the unit of a value is known to its source alone
  bool one_at_a_time = false;   ///< two trials side by side would be in each other's way
  /// What to do about a trial whose result was bad; {} is the field that was wanted.
  const char* after_bad_result = "the result needs a number named '{}'";
};
RunnerTraits traits_of(const RunnerSpec& spec);

/// Seconds after which a trial is ended; 0: nothing runs that could be.
double timeout_s(const RunnerSpec& spec);

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
RunnerSpec read_runner(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const RunnerSpec& spec);
/// The block as a JSON Schema: one object for each kind.
nlohmann::ordered_json runner_schema();

class ReplayTable;

/// What runners need besides their settings. What it points to must outlive the runner.
struct RunnerJob {
  const std::optional<Workload>& workload;
  const ClusterSpec& cluster;
  const MemorySpec& memory;
  const Space& space;
  std::shared_ptr<const ReplayTable> table;  ///< of the runner replay
  std::string field;                         ///< of the result: the number that is wanted, with its standard error
  std::filesystem::path program;             ///< krigtune itself; krigtune-bench is looked for beside it and on PATH
  const std::atomic<bool>* stop = nullptr;   ///< once true, the running trial is ended as interrupted
  const Clock& clock;
};
/// Throws UserError or EnvironmentError where no trial could run.
std::unique_ptr<Runner> make_runner(const RunnerSpec& spec, const RunnerJob& job);

}  // namespace krigtune

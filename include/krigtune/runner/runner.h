#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

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

/// kNone: nobody runs trials but the user, with `krigtune ask` and `krigtune tell`.
enum class RunnerKind { kBench, kSimulate, kReplay, kCommand, kDeepSpeed, kNone };
bool leaves_files(RunnerKind kind);  ///< whether a trial leaves files in its directory

/// How a trial's ranks are started: as threads of one krigtune-bench, or as processes by mpirun.
enum class Launcher { kThreads, kMpirun };

/// krigtune-bench.
struct BenchSpec {
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
  double noise = 0.02;             ///< standard deviation of the logarithm of a step time, trial by trial
  double systematic_error = 0.15;  ///< likewise of the hidden factor of each class of operations, drawn once
  double memory_error = 0.05;      ///< likewise of the hidden factor on activations
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

/// The session's block "runner", resolved: the kind, and the part that it names.
struct RunnerSpec {
  RunnerKind kind = RunnerKind::kBench;
  BenchSpec bench;
  SimulateSpec simulate;
  ReplaySpec replay;
  CommandSpec command;
  DeepSpeedSpec deepspeed;
};

/// Seconds after which a trial is ended; 0: nothing runs that could be.
double timeout_s(const RunnerSpec& spec);

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
RunnerSpec read_runner(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const RunnerSpec& spec);

}  // namespace krigtune

#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "trial/outcome.h"
#include "trial/process.h"
#include "trial/race.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// What a run of krigtune-bench left behind.
struct BenchEnd {
  trial::ProcessResult process;
  std::optional<Json> document;        ///< empty: its stdout was not a JSON object
  std::string last_lines;              ///< of its stderr
  std::string last_heartbeat;          ///< as krigtune-bench wrote it; empty if none
  std::optional<double> bound;         ///< set if it was ended early: the objective can be no better
  bool limit_is_the_sessions = false;  ///< the session's memory limit was the only one
};

/// Returns the JSON document if stdout contains nothing else.
std::optional<Json> bench_document(const std::string& text);

/// Returns every number of the document by name; numbers of nested objects are named outer_inner. Repeated inputs (the
/// configuration, the seed, schema_version) are left out.
std::map<std::string, double> bench_metrics(const Json& document);

/// Returns the current objective from the numbers of a heartbeat, which have the names of the result. Empty if it does
/// not follow from them.
std::optional<trial::Provisional> provisional_objective(const std::map<std::string, double>& metrics,
                                                        const std::string& metric_field);

/// `metric_field`: the objective's field in the result.
trial::Outcome bench_outcome(const BenchEnd& end, const std::string& metric_field);

/// How a trial's ranks are started: as threads of one krigtune-bench, or as processes by mpirun.
enum class Launcher { kThreads, kMpirun };

/// krigtune-bench.
struct BenchSpec {
  static trial::RunnerEntry<BenchSpec> entry();
  trial::TrialTime trial_time() const { return {warmup_s, measure_s}; }
  std::optional<std::vector<std::string>> measured_names() const;  ///< beside those of krigtune (trial/outcome.h)
  /// Returns the command that measures the configuration in the file `config`; `more`: its options for a trial.
  std::vector<std::string> words(const std::filesystem::path& program, const std::filesystem::path& config,
                                 std::int64_t ranks, const std::vector<std::string>& more = {}) const;

  double warmup_s = 2.0;
  double measure_s = 10.0;
  double timeout_s = 300.0;
  std::optional<double> memory_limit_gib;  ///< passed to krigtune-bench; empty: the session's own limit
  Launcher launcher = Launcher::kThreads;
  bool early_end = true;  ///< a trial that is certainly worse than the best so far is ended early
  double hang_s = 60.0;   ///< a trial without a step for this long has hung; long timeouts allow for long steps
};

/// Returns what krigtune-bench reads with --config.
Json bench_config(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                  const workload::MemorySpec& memory, const space::Configuration& configuration);

/// What a bench trial needs in addition to the configuration. Copied.
struct BenchJob {
  std::filesystem::path program;  ///< krigtune-bench
  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  BenchSpec spec;
  std::string metric_field;  ///< the result's field whose standard error is needed: step_time_s, samples_per_s, ...
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
};
/// Returns the path of krigtune-bench, beside `krigtune` or on PATH; empty if it is in neither.
std::filesystem::path find_bench(const std::filesystem::path& krigtune);

/// Starts krigtune-bench once per trial in its own process group and reads its JSON. `clock` must outlive it.
std::unique_ptr<trial::Runner> make_bench_runner(BenchJob job, const Clock& clock);

}  // namespace krigtune::runner

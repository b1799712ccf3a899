#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "trial/outcome.h"
#include "trial/process.h"
#include "trial/race.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// What krigtune-bench left behind.
struct BenchEnd {
  trial::ProcessResult process;
  std::optional<Json> document;        ///< empty: its stdout was no JSON object
  std::string last_lines;              ///< of its stderr
  std::string last_heartbeat;          ///< as krigtune-bench wrote it; empty: none
  std::optional<double> bound;         ///< ended early: the objective can be no better
  bool limit_is_the_sessions = false;  ///< krigtune-bench was given no memory limit but the session's
};

/// The document that stands alone on stdout, or nothing.
std::optional<Json> bench_document(const std::string& text);

/// Every number of the document by its name; those of nested objects as outer_inner. What it
/// merely repeats (the configuration, the seed, schema_version) is none.
std::map<std::string, double> bench_metrics(const Json& document);

/// The objective so far, from the numbers of a line of signs of life, which have the names of the result's. Empty where
/// it does not follow from them.
std::optional<trial::Provisional> provisional_objective(const std::map<std::string, double>& metrics,
                                                        const std::string& metric_field);

/// `metric_field`: the result's field that is the objective.
trial::Outcome bench_outcome(const BenchEnd& end, const std::string& metric_field);

/// How a trial's ranks are started: as threads of one krigtune-bench, or as processes by mpirun.
enum class Launcher { kThreads, kMpirun };

/// krigtune-bench.
struct BenchSpec {
  static trial::RunnerEntry<BenchSpec> entry();

  double warmup_s = 2.0;
  double measure_s = 10.0;
  double timeout_s = 300.0;
  std::optional<double> memory_limit_gib;  ///< passed to krigtune-bench; empty: the session's own limit
  Launcher launcher = Launcher::kThreads;
  bool early_end = true;  ///< a trial that is surely worse than the best so far is ended
  double hang_s = 60.0;   ///< without a step for so long: a hang; long timeouts allow for long steps
};

/// What a bench trial needs besides the configuration. Copied.
struct BenchJob {
  std::filesystem::path program;  ///< krigtune-bench
  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  BenchSpec spec;
  std::string metric_field;  ///< of the result, whose standard error is wanted: step_time_s, samples_per_s, ...
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
};
/// krigtune-bench beside `krigtune`, or on PATH; empty: neither.
std::filesystem::path find_bench(const std::filesystem::path& krigtune);

/// Starts krigtune-bench in a process group of its own per trial and reads its JSON. `clock` must outlive it.
std::unique_ptr<trial::Runner> make_bench_runner(BenchJob job, const Clock& clock);

}  // namespace krigtune::runner

#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/runner/runner.h"

namespace krigtune {

/// A measured table that answers trials: one configuration, one outcome (or several, in turn).
class ReplayTable {
 public:
  /// Reads the rows that `spec.where` picks. Only `parameters` are matched, compared as numbers where both are.
  /// `metric`: the name under which the value is reported. `maximize`: which repeat is the best. Throws UserError.
  ReplayTable(const ReplaySpec& spec, const std::vector<std::string>& parameters, const std::string& metric,
              bool maximize);
  ~ReplayTable();

  bool contains(const Configuration& configuration) const;
  /// The `measurement`-th (from 0) measurement of the configuration, which must be contained.
  Outcome look_up(const Configuration& configuration, int measurement) const;
  /// How many measurements of it differ: its ok rows with cycle, else 1; 0 when not contained.
  int measurements(const Configuration& configuration) const;
  /// What the configuration achieves, repeats merged (cycle: their median). Empty when none is ok, or not contained.
  std::optional<double> value_of(const Configuration& configuration) const;
  /// The best value over the configurations of the space, repeats merged (cycle: their median). Empty when none is ok.
  /// `worth`: what a value is worth there; empty: itself.
  using Worth = std::function<double(const Configuration& configuration, double value)>;
  std::optional<double> optimum(const Space& space, const Worth& worth = {}) const;
  std::size_t size() const;  ///< configurations

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Looks trials up. `table` must outlive it.
std::unique_ptr<Runner> make_replay_runner(const ReplayTable& table);

/// What a bench trial needs besides the configuration. Copied.
struct BenchJob {
  std::filesystem::path program;  ///< krigtune-bench
  Workload workload;
  ClusterSpec cluster;
  MemorySpec memory;
  BenchSpec spec;
  std::string metric_field;  ///< of the result, whose standard error is wanted: step_time_s, samples_per_s, ...
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
};
/// krigtune-bench beside `krigtune`, or on PATH; empty: neither.
std::filesystem::path find_bench(const std::filesystem::path& krigtune);

/// Starts krigtune-bench in a process group of its own per trial and reads its JSON. `clock` must outlive it.
std::unique_ptr<Runner> make_bench_runner(BenchJob job, const Clock& clock);

}  // namespace krigtune

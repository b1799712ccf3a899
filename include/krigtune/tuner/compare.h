#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/clock.h"
#include "krigtune/runner/runner.h"
#include "krigtune/tuner/strategy.h"

namespace krigtune {

struct CompareOptions {
  std::vector<StrategyKind> strategies = all_strategies();
  int seeds = 20;
  std::uint64_t seed = 1;  ///< seeds seed ... seed + seeds - 1
  int trials = 40;
  int jobs = 1;  ///< runs at a time, each in a thread of its own
};

/// A row of comparison.csv.
struct ComparedTrial {
  StrategyKind strategy{};
  std::uint64_t seed = 0;
  int trial = 0;       ///< from 0
  std::string status;  ///< ok, oom, failed, bounded
  std::optional<double> value;
  std::optional<double> best_so_far;
  double regret = 1.0;  ///< 1 - best / optimum (minimised: 1 - optimum / best); 1 before the first ok trial
  double wall_s = 0.0;
};

struct SeedStatistics {
  double median = 0.0, mean = 0.0, q25 = 0.0, q75 = 0.0;  ///< quartiles interpolated linearly
};

inline constexpr std::array<int, 4> kComparedAt{5, 10, 20, 40};

/// A row of comparison_summary.csv. Trials are counted from 1; never within the budget: budget + 1.
struct StrategySummary {
  StrategyKind strategy{};
  int seeds = 0;
  SeedStatistics trials_to_5pct;
  SeedStatistics trials_to_1pct;
  double failed_first_20_mean = 0.0;
  /// Mean over seeds of 1 - regret after kComparedAt trials (a run that ended earlier keeps its last); empty beyond the
  /// budget.
  std::array<std::optional<double>, kComparedAt.size()> best_over_optimum_at;
};

struct Comparison {
  std::vector<ComparedTrial> trials;  ///< by strategy, seed, trial
  std::vector<StrategySummary> summary;
  std::optional<double> optimum;  ///< empty: no trial of any run was ok
  bool optimum_is_known = false;  ///< of the table; else the best of all runs here
};

/// Called after each run, one call at a time: runs done, runs in all.
using CompareProgress = std::function<void(int, int)>;

/// The same budget for each strategy and seed; no stop rule but the budget and an exhausted space. The baseline, if
/// any, is trial 0 of every run. Nothing is written.
Comparison compare(const Session& session, const Candidates& candidates, const CompareOptions& options,
                   const RunnerFactory& make_runner, const Clock& clock, const CompareProgress& progress = {});

/// The statistics alone, from rows whose status and value are set: fills best_so_far, regret and the summary.
void summarise(Comparison& comparison, const Objective& objective, int budget);

}  // namespace krigtune

#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/paired_test.h"
#include "core/clock.h"
#include "run/loop.h"
#include "runner/runner.h"
#include "search/strategies/strategy.h"

namespace krigtune::compare {

struct CompareOptions {
  std::vector<search::StrategyKind> strategies = search::all_strategies();
  int seeds = 20;
  std::uint64_t seed = 1;  ///< the seeds are seed ... seed + seeds - 1
  int trials = 40;
  int jobs = 1;  ///< number of concurrent runs, each in its own thread
  /// If trials write files, each run is a run directory below this one, and repeating the comparison continues there.
  std::filesystem::path directory = {};
};

/// A row of comparison.csv.
struct ComparedTrial {
  search::StrategyKind strategy{};
  std::uint64_t seed = 0;
  int trial = 0;       ///< from 0; interrupted trials are not counted
  std::string status;  ///< ok, oom, failed, bounded
  std::optional<double> value;
  std::optional<double> best_so_far;  ///< worth of the configuration that the run considers best so far
  /// 1 - best / optimum (minimised: 1 - optimum / best); 1 before the first successful trial.
  double regret = 1.0;
  double wall_s = 0.0;             ///< from the proposal to the result, including the time of the suggestion
  std::string configuration = {};  ///< its key; if empty, the configuration occurs only once
  std::optional<double> worth = std::nullopt;  ///< the configuration's value without the noise of a single measurement
};

struct SeedStatistics {
  double median = 0.0, mean = 0.0, q25 = 0.0, q75 = 0.0;  ///< quartiles interpolated linearly
};
inline constexpr std::array<int, 4> kComparedAt{5, 10, 20, 40};
inline constexpr std::array<double, 2> kComparedWithin{0.05, 0.01};  ///< the regrets whose first trial is recorded

/// Summary of one run. Trials are counted from 1; if a regret was not reached: budget + 1, and the time of the whole
/// run.
struct ComparedRun {
  search::StrategyKind strategy{};
  std::uint64_t seed = 0;
  std::array<double, kComparedWithin.size()> trials_to{};
  std::array<double, kComparedWithin.size()> seconds_to{};
  double seconds = 0.0;  ///< of the whole run
  double failed_first_20 = 0.0;
  std::array<double, kComparedAt.size()> best_over_optimum{};
};

/// A row of comparison_summary.csv, over the complete runs.
struct StrategySummary {
  search::StrategyKind strategy{};
  int seeds = 0;
  SeedStatistics trials_to_5pct;
  SeedStatistics trials_to_1pct;
  double failed_first_20_mean = 0.0;
  /// Mean of 1 - regret after kComparedAt trials (a run that ended earlier keeps its last value); empty beyond the
  /// budget.
  std::array<std::optional<double>, kComparedAt.size()> best_over_optimum_at;
  SeedStatistics seconds_to_5pct;
  SeedStatistics seconds;
};

struct Comparison {
  std::vector<ComparedTrial> trials;  ///< by strategy, seed, trial
  std::vector<ComparedRun> runs;      ///< the complete runs, by strategy and seed
  std::vector<StrategySummary> summary;
  std::vector<PairedComparison> pairs;  ///< the first strategy against each other one, for each of kComparedWithin
  std::optional<double> optimum;        ///< empty: no trial of any run succeeded
  bool optimum_is_known = false;        ///< from the table; otherwise it is the best of all these runs
  std::vector<std::pair<search::StrategyKind, std::uint64_t>> cut_short = {};  ///< runs that did not finish
};

/// Reported after every trial, one call at a time.
struct CompareState {
  int runs_done = 0, runs = 0, trials_done = 0;
};
using CompareProgress = std::function<void(const CompareState&)>;

/// Runs every strategy with every seed and the same budget. A run stops only at the budget or when the space is
/// exhausted. The baseline, if any, is trial 0 of every run. Once `stop` is true, no trial begins, and the results so
/// far are returned. Throws EnvironmentError if no trial can run. Apart from times, the result does not depend on the
/// number of jobs.
Comparison compare(const session::Session& session, const search::Candidates& candidates, const CompareOptions& options,
                   const trial::RunnerFactory& make_runner, const Clock& clock, const CompareProgress& progress = {},
                   const std::atomic<bool>* stop = nullptr);

/// Computes only the statistics, from rows with status, value and configuration: fills best_so_far, regret and the
/// rest.
void summarise(Comparison& comparison, const session::Objective& objective, int budget);

/// Returns median and quartiles of the regret over a strategy's complete runs, after each of `trials` trials. A run
/// that ended earlier keeps its last value.
std::vector<SeedStatistics> regret_curve(const Comparison& comparison, search::StrategyKind strategy, int trials);

// One run of a comparison: a strategy, a seed, the budget.

/// The inputs of a run; all of them must outlive it.
struct ComparedJob {
  const session::Session& session;
  const search::Candidates& candidates;
  const CompareOptions& options;
  run::LoopOptions key;
  const trial::RunnerFactory& make_runner;
  const Clock& clock;
};

struct RunHooks {
  const std::atomic<bool>& stop;  ///< once true, no trial begins
  std::function<void()> look;     ///< called a few times a second
  std::function<void()> trial_ended;
};

struct RunRows {
  std::vector<ComparedTrial> rows;
  bool whole = false;  ///< it ended at the budget or with the space
};

/// Returns a table's value in the objective's unit.
double in_objective(const session::Session& session, const space::Configuration& configuration, double value);

/// For trials that take no time and write no files.
RunRows run_in_memory(const ComparedJob& job, const RunHooks& hooks);

/// Runs in its own run directory, `bayes-1` for strategy bayes and seed 1, and continues there if it was interrupted.
/// Throws EnvironmentError if no trial can run.
RunRows run_on_disk(const ComparedJob& job, const RunHooks& hooks);

}  // namespace krigtune::compare

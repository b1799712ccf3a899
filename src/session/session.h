#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "runner/runner.h"
#include "space/space.h"
#include "workload/workload.h"

namespace krigtune::session {

// What a session says of the strategies that are compared with bayes.

/// How the strategy `grid` walks.
enum class GridOrder {
  kSeed,     ///< the largest even sub-grid that fits the budget, in an order drawn from the seed
  kSession,  ///< the full factorial, in the order of the session's parameters
};

/// The session's block "grid".
struct GridOptions {
  GridOrder order = GridOrder::kSeed;
  bool prune = true;  ///< leave out what is sure to run out of memory, and ZeRO stages that cannot win
};

/// How `stagewise` searches the other parameters within a ZeRO stage.
enum class SpaceTuner { kGridSearch, kRandom, kModelBased };

/// The session's block "stagewise": DeepSpeed's settings, with its defaults but for the plateau (there 0.05) and fast
/// (there true).
struct StagewiseOptions {
  double plateau = 0.01;                       ///< a larger micro-batch that gains less than this is the last
  bool fast = false;                           ///< stages and micro-batches only
  SpaceTuner tuner = SpaceTuner::kGridSearch;  ///< tuner_type
  int tuner_trials = 50;                       ///< tuner_num_trials, of each ZeRO stage
  int early_stopping = 5;                      ///< tuner_early_stopping: trials from the best one on
  int micro_batches = 3;                       ///< num_tuning_micro_batch_sizes
};

/// What a larger batch costs in progress a sample (goodput.h).
struct GradientNoise {
  double noise_scale = 0.0;  ///< sequences
  double base_batch = 0.0;   ///< sequences a step: statistical efficiency is 1 there
};

/// What is to be made large or small: the session's block "objective", resolved.
struct Objective {
  std::string metric = "throughput";    ///< as the user calls it
  bool maximize = true;                 ///< the direction
  std::string field = "samples_per_s";  ///< its key in Measured::metrics, and the journal's metric
  std::optional<GradientNoise> gradient_noise = std::nullopt;  ///< of goodput
  /// Of goodput: what runners report in its place, and it is worked out from; else empty.
  std::string throughput_field = {};

  /// The number that runners must report.
  const std::string& reported_field() const { return throughput_field.empty() ? field : throughput_field; }

  /// True when `a` is better than `b`.
  bool better(double a, double b) const { return maximize ? a > b : a < b; }
};

/// When to stop: the session's block "budget".
struct Budget {
  int trials = 30;  ///< closed trials of the run directory, interrupted ones not counted
  /// Spent in trials and suggestions, over all commands that worked on the directory; not from `ask` to `tell`.
  std::optional<double> hours;
  std::optional<double> gpu_hours;  ///< hours times the cluster's ranks
  std::optional<int> patience;      ///< trials without an improvement of more than 1 %

  // Ends before all that, by what a strategy expects (Outlook).
  double regret = 0.01;       ///< nothing left is better by more than this fraction, at `confidence`; 0: no such rule
  double confidence = 0.95;   ///< of regret bounds
  double least_gain = 0.003;  ///< no trial is expected to gain as much; a fraction; 0: no such rule
  /// What will be trained with the result, in hours times ranks: no trial is expected to save as much of it as it
  /// costs. Empty: no such rule.
  std::optional<double> run_gpu_hours;
};

/// A setting that the session does not state, as its framework usually has it.
struct Assumption {
  std::string name;
  space::Value value;
  std::string where;  ///< for people: "where tensor_parallel > 1"; "": everywhere
};

/// A session file, read, checked and with every default filled in.
struct Session {
  std::filesystem::path file;  ///< for messages; empty: made in memory
  std::optional<workload::Workload> workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  space::Space space{{}, {}};
  std::optional<space::Configuration> baseline;  ///< completed: every column that exists there has a value
  std::vector<std::string> warnings;             ///< one line each, to be shown once
  std::vector<Assumption> assumptions;           ///< of predictions
  Objective objective;
  runner::RunnerSpec runner;
  executor::ExecutorSpec executor;
  Budget budget;
  GridOptions grid;
  StagewiseOptions stagewise;
  std::shared_ptr<const runner::ReplayTable> table;  ///< of the runner `replay`
  std::optional<Bytes> usable_per_rank;              ///< set where memory is predicted: the limit without its reserve
};

/// Throws UserError: what is wrong, file and JSON pointer, the fix.
Session load_session(const std::filesystem::path& file);
/// The same from JSON. `source` names it in errors, relative paths in it are relative to `base_dir`.
Session read_session(const nlohmann::ordered_json& json, const std::string& source,
                     const std::filesystem::path& base_dir);

/// A guess of the user's ("--try"): a configuration as JSON text; what it leaves out is as in the baseline, or else at
/// its default, the accumulation as the batch asks. It may lie outside the space. Throws UserError that begins with
/// `where`.
space::Configuration read_try(const Session& session, const std::string& text, const std::string& where);

/// The session with every default written out; read_session reads it back.
nlohmann::ordered_json resolved(const Session& session);

/// The same session, its trials looked up in a table with the columns of trials.csv instead of run: only what was
/// measured remains in the space. No baseline.
Session with_recorded_trials(const Session& session, const std::filesystem::path& trials_csv);

}  // namespace krigtune::session

#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "runner/runner.h"
#include "session/clusters.h"
#include "session/whole_run.h"
#include "space/space.h"
#include "workload/workload.h"

namespace krigtune::session {

// What a session says about the strategies that are compared with bayes.

/// The order in which the strategy `grid` tries configurations.
enum class GridOrder {
  kSeed,     ///< the largest even sub-grid that fits the budget, in an order drawn from the seed
  kSession,  ///< the full factorial, in the order of the session's parameters
};

/// The session's block "grid".
struct GridOptions {
  GridOrder order = GridOrder::kSeed;
  /// Leave out configurations that are certain to run out of memory, and ZeRO stages that cannot win.
  bool prune = true;
};

/// How `stagewise` searches the other parameters within a ZeRO stage.
enum class SpaceTuner { kGridSearch, kRandom, kModelBased };

/// The session's block "stagewise": DeepSpeed's settings and defaults, except for the plateau (DeepSpeed: 0.05) and
/// fast (DeepSpeed: true).
struct StagewiseOptions {
  /// Stop at the micro-batch after which a larger one gains less than this fraction.
  double plateau = 0.01;
  bool fast = false;                           ///< stages and micro-batches only
  SpaceTuner tuner = SpaceTuner::kGridSearch;  ///< tuner_type
  int tuner_trials = 50;                       ///< tuner_num_trials, for each ZeRO stage
  int early_stopping = 5;                      ///< tuner_early_stopping: trials after the best one
  int micro_batches = 3;                       ///< num_tuning_micro_batch_sizes
};

/// How the progress per sample decreases with a larger batch (goodput.h).
struct GradientNoise {
  double noise_scale = 0.0;  ///< sequences
  double base_batch = 0.0;   ///< sequences per step at which the statistical efficiency is 1
};

/// What to optimise: the session's block "objective", resolved.
/// From run to run on a machine that does nothing else: a constant of the search (search/trials/objective_scale.cpp).
inline constexpr double kUsualRunNoise = 0.03;
struct Objective {
  std::string metric = "throughput";    ///< the user's name for it
  bool maximize = true;                 ///< the direction
  std::string field = "samples_per_s";  ///< its key in Measured::metrics, and the journal's metric
  std::optional<GradientNoise> gradient_noise = std::nullopt;  ///< set for goodput
  /// Relative standard deviation from run to run of one configuration, assumed until repeated trials show another.
  double run_noise = kUsualRunNoise;
  std::string unit = {};  ///< shown after values of a metric that krigtune does not know, such as "tok/s"; "": none
  /// For goodput: the metric that runners report instead, and from which goodput is computed. Otherwise empty.
  std::string throughput_field = {};
  /// Of one of several objectives: worse values are of no use. Empty: all values are.
  std::optional<double> limit = std::nullopt;
  /// Its values are compared by their ratios, and their logarithms are modelled, as long as all are positive. False for
  /// a metric of the user's own that is one of several objectives.
  bool by_ratio = true;

  /// Returns the metric that runners must report.
  const std::string& reported_field() const { return throughput_field.empty() ? field : throughput_field; }

  /// Returns whether `a` is better than `b`.
  bool better(double a, double b) const { return maximize ? a > b : a < b; }
};

/// The user's choice among the members of a front: "throughput >= 0.95 best".
struct Preference {
  std::size_t objective = 0;  ///< index in the order of the session
  double bound = 0.0;         ///< in its unit, or as a fraction of the front's best value
  bool is_of_best = false;
  std::string text = {};  ///< as the user wrote it
};

/// Returns the known metric that the objective is: by its name, or by the unit of a metric of the user's own, as
/// "tokens/s" to be maximized or "s/step" to be minimized. nullptr if neither says it.
const trial::Metric* metric_of(const Objective& objective);
/// Returns whether values have the known metric's unit, and not a multiple such as "ms/step".
bool has_unit_of_metric(const Objective& objective);

/// When to stop: the session's block "budget".
struct Budget {
  int trials = 30;  ///< closed trials of the run directory, without interrupted ones
  /// Time spent on trials and suggestions, over all commands that worked on the directory, but not between `ask` and
  /// `tell`.
  std::optional<double> hours;
  std::optional<double> gpu_hours;  ///< hours times the cluster's ranks
  std::optional<int> patience;      ///< trials without an improvement of more than 1 %

  // The session ends earlier by what a strategy expects (Outlook):
  double regret = 0.01;       ///< nothing remaining is better by more than this fraction, at `confidence`; 0: rule off
  double confidence = 0.95;   ///< confidence of regret bounds
  double least_gain = 0.003;  ///< no trial is expected to gain this fraction; 0: rule off
  /// Length of the training for which the result is used, in hours times ranks: no trial is expected to save as much of
  /// it as the trial costs. Empty: rule off.
  std::optional<double> run_gpu_hours;
};

/// The usual value in the job's framework of a setting that the session does not state.
struct Assumption {
  std::string name;
  space::Value value;
  std::string where;  ///< for people: "where tensor_parallel > 1"; "" means always
};

/// Values of a parameter that the session lists and that its model or cluster cannot use. They are no part of the
/// space.
struct LeftOut {
  std::string parameter;
  std::vector<space::Value> values;
};

/// A session file that has been read and checked, with every default filled in.
struct Session {
  std::filesystem::path file;  ///< for messages; empty if made in memory
  std::optional<workload::Workload> workload;
  std::optional<workload::Framework> framework;  ///< that trains, if it is known although there is no workload
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  space::Space space{{}, {}};
  std::vector<LeftOut> left_out = {};            ///< in the order of the space
  std::optional<space::Configuration> baseline;  ///< completed: every column that exists has a value
  std::vector<std::string> warnings;             ///< one line each, to be shown once
  std::vector<Assumption> assumptions;           ///< assumptions of the predictions
  Objective objective;
  std::vector<Objective> others = {};  ///< further ones; if there are any, the front of all is searched
  /// Measured metrics that are no objectives and must be at least (maximize) or at most as large as their
  /// Objective::limit
  std::vector<Objective> limits = {};
  /// Which member of the front is recommended. Empty: the best by the first objective.
  std::optional<Preference> preference = {};
  runner::RunnerSpec runner;
  executor::ExecutorSpec executor;
  Budget budget;
  GridOptions grid;
  StagewiseOptions stagewise;
  std::shared_ptr<const runner::ReplayTable> table;  ///< for the runner `replay`
  RunSpec run;                                       ///< what the whole training takes beside its steps
  ClustersFile clusters;                             ///< machines to compare, and the amount of data
  std::optional<Bytes> usable_per_rank;              ///< set if memory is predicted: the limit minus its reserve
};

/// Reads a session. Throws UserError that says what is wrong, with file, JSON pointer and fix.
Session load_session(const std::filesystem::path& file);
/// Reads a session from JSON. `source` names it in errors, and relative paths are relative to `base_dir`.
Session read_session(const nlohmann::ordered_json& json, const std::string& source,
                     const std::filesystem::path& base_dir);

/// Reads a configuration that the user guessed ("--try"), as JSON text. Missing parameters have the baseline's value or
/// else their default, and the accumulation follows from the batch. The configuration may lie outside the space. Throws
/// UserError that begins with `where`.
space::Configuration read_try(const Session& session, const std::string& text, const std::string& where);

/// Writes the session with every default; read_session reads it back.
nlohmann::ordered_json resolved(const Session& session);

/// Returns the same session, but with trials looked up in a table with the columns of trials.csv instead of run. Its
/// space contains only measured configurations, and it has no baseline.
Session with_recorded_trials(const Session& session, const std::filesystem::path& trials_csv);

}  // namespace krigtune::session

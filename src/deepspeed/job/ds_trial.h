#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/units.h"
#include "deepspeed/job/deepspeed_runner.h"
#include "deepspeed/job/deepspeed_spec.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_versions.h"

namespace krigtune::deepspeed {

// The user's ds_config.json as it was when the session began. People keep editing the file, but a trial must mean the
// same at the end of a session as at its beginning.

/// Reads spec.ds_config_text like load_ds_config (ds_config.h); if it is empty, reads the file in its present state.
nlohmann::ordered_json begun_ds_config(const DeepSpeedSpec& spec);

/// Returns the path of the run directory's copy: ds_config_begun.json.
std::filesystem::path begun_ds_config_path(const std::filesystem::path& run_directory);

/// Returns whether the file has changed or no longer exists. False if its original text is unknown.
bool has_changed_since(const DeepSpeedSpec& spec);

// Input and output of one trial of a DeepSpeed job. The engine measures itself: with a section "autotuning" it times
// its steps and ends after end_profile_step + 1 of them, and with "csv_monitor" it writes each time to a file. Its own
// summary (metrics.json) covers a single, wrongly trimmed step and cannot serve as the objective (ds_trial.cpp).

/// A trial's files; absolute.
struct DsTrialFiles {
  explicit DsTrialFiles(const std::filesystem::path& trial_dir) : dir(std::filesystem::absolute(trial_dir)) {}

  std::filesystem::path dir;
  std::filesystem::path ds_config() const { return dir / "ds_config.json"; }
  std::filesystem::path metrics() const { return dir / "metrics.json"; }
  std::filesystem::path monitor() const { return dir / "monitor"; }
  /// One row per step: samples so far, milliseconds. `part`: forward, backward, step.
  std::filesystem::path times(const std::string& part) const;
  /// Samples so far and rank 0's loss, if the engine's version writes it.
  std::filesystem::path engine_losses() const;
};

/// Adds the settings that make the engine measure: "autotuning", "csv_monitor", "steps_per_print" and, unless the user
/// chose one or the version is known to lack it, "log_level" (for lines about memory; read since 0.19.3, ignored
/// before: seen on 0.14.4, 0.16.9 and 0.17.6). Other monitors are switched off, because a trial does not belong on the
/// user's tracking server.
nlohmann::ordered_json with_measurement(const nlohmann::ordered_json& config, const DsTrialFiles& files,
                                        const DsSteps& steps, const std::optional<DsVersion>& version = std::nullopt);

/// The time of one optimizer step by rank 0's engine, with all micro-steps.
struct DsStepTime {
  double samples = 0.0;  ///< so far, as the engine counts them; 0: unknown
  double forward_s = 0.0;
  double backward_s = 0.0;
  double optimizer_s = 0.0;
  double total_s() const { return forward_s + backward_s + optimizer_s; }
};

/// Reads the csv files: complete rows that all three have, in order, up to the first truncated, invalid or non-positive
/// one.
std::vector<DsStepTime> read_step_times(const DsTrialFiles& files);

/// Reads the engine's lines "time (ms) | fwd: 1.0 | bwd: 2.0 | ... | step: 3.0", in case the csv files are not visible
/// here.
std::vector<DsStepTime> step_times_in(const std::string& output);

/// Statistics of the steps after the warm-up.
struct DsEstimate {
  double step_time_s = 0.0;  ///< median of fwd + bwd + step
  double mean_step_time_s = 0.0;
  double step_time_sem_s = 0.0;                                 ///< its standard error within the trial
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;  ///< medians of the parts
  std::int64_t steps = 0;
  std::optional<double> samples_per_step;  ///< over all ranks; a tensor-parallel group counts once
};
/// Empty if there is no step after the warm-up. `tensor_parallel`: of the trial's own configuration
/// (tensor_parallel_of).
std::optional<DsEstimate> estimate(const std::vector<DsStepTime>& times, std::int64_t warmup,
                                   std::int64_t tensor_parallel);

/// Returns tensor_parallel.autotp_size of a configuration, or 1 if absent.
std::int64_t tensor_parallel_of(const nlohmann::ordered_json& config);

/// Computes the wall time per step by looking at the number of rows and the time when the last one was written. Looks
/// may be late or miss rows. Empty without two different looks after the warm-up.
class DsArrivals {
 public:
  explicit DsArrivals(std::int64_t warmup) : warmup_(warmup) {}
  void look(std::int64_t rows, double written_s);
  std::optional<double> wall_step_time_s() const;

 private:
  std::int64_t warmup_;
  std::int64_t first_rows_ = 0, last_rows_ = 0;
  double first_s_ = 0.0, last_s_ = 0.0;
};

/// Returns the largest "MaxMemAllocated=1.5GB" or "Max_MA 1.5 GB" of the output (both in GiB).
std::optional<Bytes> peak_memory_in(const std::string& output);

/// Returns the floating-point operations of a step on one rank from metrics.json, as counted by the engine's profiler.
std::optional<double> step_flops_in(const std::string& metrics_json);

/// Reads the steps of a running trial as they appear. The constructor's arguments must outlive it.
class TrialSteps {
 public:
  /// `ds_config`: the trial's own.
  TrialSteps(const DsTrialFiles& files, const Json& ds_config, const DeepSpeedJob& job);

  /// Returns false if there is nothing new.
  bool look();
  /// Call when the trial has ended. `output` is used if the files are not visible here.
  void finish(const std::string& output);

  std::int64_t count() const { return static_cast<std::int64_t>(times_.size()); }
  std::optional<DsEstimate> estimate_now() const;
  /// Returns the metrics of the result.
  std::map<std::string, double> metrics(const DsEstimate& found) const;

 private:
  const DsTrialFiles& files_;
  const Json& ds_config_;
  DsSteps steps_;
  DsRanks ranks_;
  std::int64_t tokens_per_sample_;
  DsArrivals arrivals_;
  std::vector<DsStepTime> times_;
  std::uintmax_t size_ = 0;
};

}  // namespace krigtune::deepspeed

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
#include "deepspeed/job/ds_versions.h"

namespace krigtune::deepspeed {

// The user's ds_config.json as the session began with it: people go on editing the file, and a trial must mean the same
// at the end of a session as at its beginning.

/// As load_ds_config (ds_config.h), of spec.ds_config_text, or where that is empty of the file as it is now.
nlohmann::ordered_json begun_ds_config(const DeepSpeedSpec& spec);

/// The run directory's copy of the file: ds_config_begun.json.
std::filesystem::path begun_ds_config_path(const std::filesystem::path& run_directory);

/// Whether the file is another one by now, or gone. False where the text of the beginning is not known.
bool has_changed_since(const DeepSpeedSpec& spec);

// What one trial of a DeepSpeed job is given, and what it leaves behind. The engine measures itself: with a section
// "autotuning" it times its steps and ends after end_profile_step + 1 of them, with "csv_monitor" it writes each time
// to a file. What it makes of them itself (metrics.json) is one step, trimmed wrongly: no objective (ds_trial.cpp).

/// A trial's files; absolute.
struct DsTrialFiles {
  explicit DsTrialFiles(const std::filesystem::path& trial_dir) : dir(std::filesystem::absolute(trial_dir)) {}

  std::filesystem::path dir;
  std::filesystem::path ds_config() const { return dir / "ds_config.json"; }
  std::filesystem::path metrics() const { return dir / "metrics.json"; }
  std::filesystem::path monitor() const { return dir / "monitor"; }
  /// One row a step: samples so far, milliseconds. `part`: forward, backward, step.
  std::filesystem::path times(const std::string& part) const;
  /// Samples so far, rank 0's loss: where the engine's version writes it.
  std::filesystem::path engine_losses() const;
};

/// The configuration with what makes the engine measure: "autotuning", "csv_monitor", "steps_per_print" and, unless the
/// user chose one or the version is known to lack it, "log_level" (for lines about memory; 0.19.3 on, before a key that
/// is passed over: seen on 0.14.4, 0.16.9 and 0.17.6). Other monitors are switched off: a trial is no run for the
/// user's tracking server.
nlohmann::ordered_json with_measurement(const nlohmann::ordered_json& config, const DsTrialFiles& files,
                                        const DsSteps& steps, const std::optional<DsVersion>& version = std::nullopt);

/// One optimizer step as rank 0's engine timed it, all micro-steps together.
struct DsStepTime {
  double samples = 0.0;  ///< so far, as the engine counts them; 0: not known
  double forward_s = 0.0;
  double backward_s = 0.0;
  double optimizer_s = 0.0;
  double total_s() const { return forward_s + backward_s + optimizer_s; }
};

/// From the csv files: whole rows that all three have, in their order. What is torn, no number or not positive ends it.
std::vector<DsStepTime> read_step_times(const DsTrialFiles& files);

/// From the engine's lines "time (ms) | fwd: 1.0 | bwd: 2.0 | ... | step: 3.0", where the csv files are not seen.
std::vector<DsStepTime> step_times_in(const std::string& output);

/// What the steps behind the warm-up tell.
struct DsEstimate {
  double step_time_s = 0.0;  ///< median of fwd + bwd + step
  double mean_step_time_s = 0.0;
  double step_time_sem_s = 0.0;                                 ///< its standard error within the trial
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;  ///< medians of the parts
  std::int64_t steps = 0;
  std::optional<double> samples_per_step;  ///< over all ranks, those of a tensor-parallel group once
};
/// Empty: no step behind the warm-up. `tensor_parallel`: of the trial's own configuration (tensor_parallel_of).
std::optional<DsEstimate> estimate(const std::vector<DsStepTime>& times, std::int64_t warmup,
                                   std::int64_t tensor_parallel);

/// tensor_parallel.autotp_size of a configuration, 1 where there is none.
std::int64_t tensor_parallel_of(const nlohmann::ordered_json& config);

/// Wall time a step, from looks at how many rows there are and when the last one was written. Looks may be late or
/// miss rows. Empty: no two looks behind the warm-up that differ.
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

/// The largest "MaxMemAllocated=1.5GB" or "Max_MA 1.5 GB" (GiB both) of the output.
std::optional<Bytes> peak_memory_in(const std::string& output);

/// Floating-point operations of a step on one rank, as the engine's profiler counts them: from metrics.json.
std::optional<double> step_flops_in(const std::string& metrics_json);

/// The steps of a running trial, read while they come in. The arguments must outlive it.
class TrialSteps {
 public:
  /// `ds_config`: the trial's own.
  TrialSteps(const DsTrialFiles& files, const Json& ds_config, const DeepSpeedJob& job);

  /// False: nothing new.
  bool look();
  /// Once it has ended. `output`: in case that the files are not seen from here.
  void finish(const std::string& output);

  std::int64_t count() const { return static_cast<std::int64_t>(times_.size()); }
  std::optional<DsEstimate> estimate_now() const;
  /// The numbers of the result.
  std::map<std::string, double> metrics(const DsEstimate& found) const;

 private:
  const DsTrialFiles& files_;
  const Json& ds_config_;
  DsSteps steps_;
  std::int64_t ranks_;
  std::int64_t tokens_per_sample_;
  DsArrivals arrivals_;
  std::vector<DsStepTime> times_;
  std::uintmax_t size_ = 0;
};

}  // namespace krigtune::deepspeed

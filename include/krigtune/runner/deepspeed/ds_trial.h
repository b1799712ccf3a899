#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/units.h"
#include "krigtune/runner/deepspeed/deepspeed_spec.h"
#include "krigtune/runner/deepspeed/ds_versions.h"

// What one trial of a DeepSpeed job is given, and what it leaves behind. The engine measures itself: with a section
// "autotuning" it times its steps and ends after end_profile_step + 1 of them, with "csv_monitor" it writes each time
// to a file. What it makes of them itself (metrics.json) is one step, trimmed wrongly: no objective (ds_trial.cpp).
namespace krigtune {

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

}  // namespace krigtune

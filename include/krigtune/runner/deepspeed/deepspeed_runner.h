#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "krigtune/runner/deepspeed/deepspeed_spec.h"
#include "krigtune/runner/deepspeed/ds_versions.h"
#include "krigtune/runner/entry.h"

namespace krigtune {

/// What a trial of a DeepSpeed job needs besides the configuration. Copied.
struct DeepSpeedJob {
  DeepSpeedSpec spec;
  std::string metric;                       ///< the objective's field of the result: samples_per_s, step_time_s, ...
  std::int64_t ranks = 1;                   ///< all of the job, tensor-parallel ones too
  std::int64_t tokens_per_sample = 0;       ///< 0: not known, then there is no tokens_per_s
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
  std::optional<DsVersion> version = {};    ///< of DeepSpeed, as installed; empty: not known
};

/// Launches the user's command per trial, in a process group of its own, with a ds_config.json in the trial's directory
/// that holds the configuration and makes the engine measure (ds_trial.h), and judges what it leaves (ds_outcome.h).
/// The result: step_time_s (median of the engine's steps), samples_per_s, tokens_per_s, forward_s, backward_s,
/// optimizer_s, steps, wall_step_time_s and data_loading_s (what of it the engine does not account for: the script's
/// own time), and where DeepSpeed says so flops_per_s (a rank's) and the device's peak memory. Where it does not say
/// the latter, device_memory_used_bytes is what the GPU of this host that gained most has gained, by nvidia-smi: cache
/// and context included, so it is no peak_memory. A trial that is surely worse than the rival is ended. Throws
/// UserError or EnvironmentError for a command or a file that no trial could use. `clock` must outlive it.
std::unique_ptr<Runner> make_deepspeed_runner(DeepSpeedJob job, const Clock& clock);

}  // namespace krigtune

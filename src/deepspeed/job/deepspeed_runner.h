#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/units.h"
#include "deepspeed/job/deepspeed_spec.h"
#include "deepspeed/job/ds_versions.h"
#include "trial/runner.h"

namespace krigtune::deepspeed {

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
std::unique_ptr<trial::Runner> make_deepspeed_runner(DeepSpeedJob job, const Clock& clock);

/// What `nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits` prints: MiB, a line for each GPU of this
/// host. Empty: none, or one whose number it does not know ("[N/A]", "[Insufficient Permissions]").
std::vector<Bytes> used_memory_in(const std::string& output);

/// How the memory in use on this host's GPUs grows while a trial runs. It is no peak of the tensors: the allocator's
/// cache, the CUDA context and NCCL's buffers are in it, and it is looked at now and then only.
class DeviceMemory {
 public:
  /// Looks for the first time: what is there before. Output of nvidia-smi goes to `directory` for a moment. `clock`
  /// must outlive it.
  DeviceMemory(std::filesystem::path directory, std::vector<std::pair<std::string, std::string>> environment,
               const Clock& clock);

  /// Whether a look is due: after 1, 2, 4, 8, ... steps, because allocators fill in the first ones, and a look costs
  /// some 50 ms of one core. Each is due once.
  bool wants_a_look(std::int64_t steps);
  void look();

  /// The most that any GPU has gained so far. Empty: no GPU, nvidia-smi or growth.
  std::optional<Bytes> growth() const;

 private:
  std::vector<Bytes> now() const;

  std::filesystem::path directory_;
  std::vector<std::pair<std::string, std::string>> environment_;
  const Clock& clock_;
  std::vector<Bytes> before_;
  std::vector<Bytes> most_;
  std::int64_t next_look_ = 1;
};

}  // namespace krigtune::deepspeed

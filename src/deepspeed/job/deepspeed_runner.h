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
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_versions.h"
#include "trial/runner.h"

namespace krigtune::deepspeed {

/// What a trial of a DeepSpeed job needs in addition to the configuration. Copied.
struct DeepSpeedJob {
  DeepSpeedSpec spec;
  std::string metric;                       ///< the objective's field in the result: samples_per_s, step_time_s, ...
  DsRanks ranks = 1;                        ///< all ranks of the job, including tensor-parallel ones
  std::int64_t tokens_per_sample = 0;       ///< 0: unknown, and tokens_per_s is not reported
  const std::atomic<bool>* stop = nullptr;  ///< once true, the running trial is ended as interrupted; must outlive it
  std::optional<DsVersion> version = {};    ///< installed version of DeepSpeed; empty if unknown
};

/// Launches the user's command once per trial, in its own process group. The trial's directory contains a
/// ds_config.json with the configuration and with settings that make the engine measure (ds_trial.h); ds_outcome.h
/// judges the results. The metrics are step_time_s (median of the engine's steps), samples_per_s, tokens_per_s,
/// forward_s, backward_s, optimizer_s, steps, wall_step_time_s and data_loading_s (the part of the wall time that the
/// engine does not account for: the script's own time). If DeepSpeed reports them, flops_per_s (of one rank) and the
/// device's peak memory are added. Otherwise device_memory_used_bytes is the largest increase on any GPU of this host
/// according to nvidia-smi; it includes cache and context, so it is not a peak_memory. A trial that is certainly worse
/// than the rival is ended early. Throws UserError or EnvironmentError for a command or a file that no trial could use.
/// `clock` must outlive it.
std::unique_ptr<trial::Runner> make_deepspeed_runner(DeepSpeedJob job, const Clock& clock);

/// Parses the output of `nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits`: MiB, one line for each GPU
/// of this host. Empty if there is none, or if a number is unknown ("[N/A]", "[Insufficient Permissions]").
std::vector<Bytes> used_memory_in(const std::string& output);

/// Measures how the used memory of this host's GPUs grows during a trial. This is not the peak of the tensors: it
/// includes the allocator's cache, the CUDA context and NCCL's buffers, and it is sampled only occasionally.
class DeviceMemory {
 public:
  /// Takes the first sample, before the trial. Output of nvidia-smi is stored briefly in `directory`. `clock` must
  /// outlive it.
  DeviceMemory(std::filesystem::path directory, std::vector<std::pair<std::string, std::string>> environment,
               const Clock& clock);

  /// Returns whether a sample is due: after 1, 2, 4, 8, ... steps, because allocators grow during the first steps, and
  /// a sample costs about 50 ms of one core. Each is due once.
  bool wants_a_look(std::int64_t steps);
  void look();

  /// Returns the largest increase on any GPU so far. Empty without a GPU, nvidia-smi or growth.
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

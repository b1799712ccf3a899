#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>

// The differences between DeepSpeed's versions that affect a trial, in one table (ds_versions.cpp, with its sources).
namespace krigtune::deepspeed {

struct DsVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const DsVersion&) const = default;
};
std::string to_string(const DsVersion& version);  ///< "0.19.8"

/// Parses the output of `python -c "import deepspeed; print(deepspeed.__version__)"`: the last line that begins with a
/// version ("0.14.4+cu121"); warnings before it are ignored. Empty if there is none.
std::optional<DsVersion> version_of(std::string_view text);

enum class DsFeature {
  kStageListHonoured,       ///< the stock autotuner tries the user's list of stages
  kOnlyStageZeroByDefault,  ///< the stock autotuner tries stage 0 alone unless configured otherwise
  kShortMetricKeys,         ///< metrics.json says fwd, bwd, step, not forward, backward, step
  kLatencyOfWholeStep,      ///< metrics.json: latency times accumulation steps
  kAllgatherBucketDead,     ///< allgather_bucket_size has no effect (with torch 1.13 or newer)
  kFullModeBroken,          ///< the stock autotuner fails with "fast": false
  kTensorParallelTraining,  ///< AutoTP trains
  kQuietTimerLines,         ///< the line "time (ms) | fwd: ..." is below the log level
  kTimerLinesPrinted,       ///< that line is printed at any log level, after "[Rank 0] "
  kTensorParallelPresets,   ///< tensor_parallel.preset_model and partition_config
  kLogLevelKey,             ///< "log_level" in ds_config.json: with "info" memory lines are shown
  kTensorParallelAtStage3,  ///< AutoTP with ZeRO stage 3
  kOffloadPinnedByDefault,  ///< offload blocks pin their memory by default
};

/// Returns whether that version has the feature.
bool has(const DsVersion& version, DsFeature feature);

enum class DsSupport {
  kRun,      ///< krigtune's protocol was tested on it
  kByTable,  ///< known only from its source and the table
  kTooOld,   ///< before 0.9.3
};
DsSupport support_of(const DsVersion& version);

/// Returns one line for the user, or "" if there is nothing to say: the version is known only from its source, or it is
/// too old and what to do.
std::string version_remark(const DsVersion& version);

}  // namespace krigtune::deepspeed

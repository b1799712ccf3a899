#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>

// What differs between DeepSpeed's versions and matters to a trial, in one table (ds_versions.cpp, with its sources).
namespace krigtune::deepspeed {

struct DsVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const DsVersion&) const = default;
};
std::string to_string(const DsVersion& version);  ///< "0.19.8"

/// The version in what `python -c "import deepspeed; print(deepspeed.__version__)"` prints: of the last line that
/// begins with one ("0.14.4+cu121", warnings before it or not). Empty: none.
std::optional<DsVersion> version_of(std::string_view text);

enum class DsFeature {
  kStageListHonoured,       ///< the stock autotuner tries the user's list of stages
  kOnlyStageZeroByDefault,  ///< the stock autotuner tries stage 0 alone unless told otherwise
  kShortMetricKeys,         ///< metrics.json says fwd, bwd, step, not forward, backward, step
  kLatencyOfWholeStep,      ///< metrics.json: latency times accumulation steps
  kAllgatherBucketDead,     ///< allgather_bucket_size changes nothing (with torch 1.13 or newer)
  kFullModeBroken,          ///< the stock autotuner dies with "fast": false
  kTensorParallelTraining,  ///< AutoTP trains
  kQuietTimerLines,         ///< the line "time (ms) | fwd: ..." is below the log level
  kTimerLinesPrinted,       ///< that line is printed whatever the log level, behind "[Rank 0] "
  kTensorParallelPresets,   ///< tensor_parallel.preset_model and partition_config
  kLogLevelKey,             ///< "log_level" in ds_config.json: with "info" memory lines are shown
  kTensorParallelAtStage3,  ///< AutoTP with ZeRO stage 3
  kOffloadPinnedByDefault,  ///< offload blocks pin their memory unless told otherwise
};

/// Whether that version has it.
bool has(const DsVersion& version, DsFeature feature);

enum class DsSupport {
  kRun,      ///< krigtune's protocol was run on it
  kByTable,  ///< known by its source and the table only
  kTooOld,   ///< before 0.9.3
};
DsSupport support_of(const DsVersion& version);

/// One line for the user, or "" where there is nothing to say: known by its source only, or too old and what to do.
std::string version_remark(const DsVersion& version);

}  // namespace krigtune::deepspeed

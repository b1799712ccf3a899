#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The section "autotuning" of the user's ds_config.json, key by key as DeepSpeed 0.19.6 reads it
// (deepspeed/autotuning/constants.py and config.py). The defaults are DeepSpeed's; where its README and code differ,
// the code counts.
namespace krigtune::deepspeed {

/// The metric: throughput; latency, which DeepSpeed maximises and krigtune minimises; FLOPS_per_gpu (also "flops",
/// "FLOPS").
enum class DsMetric { kThroughput, kLatency, kFlops };
enum class DsTunerType { kGridSearch, kRandom, kModelBased };
const char* to_string(DsMetric metric);    ///< throughput, latency, FLOPS_per_gpu
const char* to_string(DsTunerType tuner);  ///< gridsearch, random, model_based

/// How DeepSpeed's tuner would search.
struct DsTunerOptions {
  DsTunerType type = DsTunerType::kGridSearch;  ///< tuner_type
  std::int64_t trials = 50;                     ///< tuner_num_trials
  std::int64_t early_stopping = 5;              ///< tuner_early_stopping
  bool fast = true;                             ///< stages and micro-batches only
  bool says_trials = false;                     ///< the user set tuner_num_trials: a budget
};

struct DsBatchLimits {
  std::optional<std::int64_t> max_train_batch_size;  ///< over all ranks
  std::int64_t min_micro_batch = 1;                  ///< min_train_micro_batch_size_per_gpu
  std::int64_t max_micro_batch = 1024;               ///< max_train_micro_batch_size_per_gpu
  std::int64_t micro_batches = 3;                    ///< num_tuning_micro_batch_sizes
};

/// The user's own information about the model; missing numbers are measured or read elsewhere.
struct DsModelInfo {
  std::optional<std::int64_t> num_params;
  std::optional<std::int64_t> hidden_size;
  std::optional<std::int64_t> num_layers;
  std::optional<double> activation_mem_per_gpu;  ///< bytes, at a micro-batch of 1
};

/// Optimizer steps, counted from 0: a run measures first..last and executes last + 1 of them.
struct DsProfileWindow {
  std::int64_t first = 3;  ///< start_profile_step
  std::int64_t last = 5;   ///< end_profile_step
  bool is_given = false;   ///< the user set one of them
};

struct DsAutotuning {
  DsMetric metric = DsMetric::kThroughput;
  DsTunerOptions tuner;
  DsBatchLimits batch;
  DsProfileWindow window;
  DsModelInfo model;
  std::int64_t mp_size = 1;                                       ///< model-parallel ranks of a replica
  std::vector<std::pair<std::string, std::string>> arg_mappings;  ///< key of ds_config.json, flag; as written, trimmed
  std::string results_dir;                                        ///< "": DeepSpeed's autotuning_results
  /// One line for each key that was set but has no effect, and for each difference from DeepSpeed's behaviour:
  /// exps_dir, overwrite, metric_path, model_info_path, min_train_batch_size, ...
  std::vector<std::string> remarks;
};

/// Reads the section from the whole file `config`; without it, returns the defaults. Throws UserError with the JSON
/// pointer for an unknown key (with the nearest one), a metric that covers only a part of a step, end_profile_step
/// before start_profile_step, contradictory limits, and values of the wrong kind.
DsAutotuning read_ds_autotuning(const nlohmann::ordered_json& config, const std::string& source);

}  // namespace krigtune::deepspeed

#include "deepspeed/job/ds_autotuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/json.h"
#include "core/text.h"

namespace krigtune::deepspeed {
namespace {

struct NamedMetric {
  std::string_view written;
  DsMetric metric;
};

// The first name of each metric is the one that to_string returns. DeepSpeed's README uses the last two, but
// DeepSpeed's code looks them up in metrics.json and fails.
constexpr std::array kDsMetrics = {NamedMetric{"throughput", DsMetric::kThroughput},
                                   NamedMetric{"latency", DsMetric::kLatency},
                                   NamedMetric{"FLOPS_per_gpu", DsMetric::kFlops},
                                   NamedMetric{"flops", DsMetric::kFlops}, NamedMetric{"FLOPS", DsMetric::kFlops}};

// DeepSpeed's metrics for a part of a step: the best part may belong to the worst step.
constexpr std::array<std::string_view, 5> kPartsOfAStep = {"forward", "backward", "fwd", "bwd", "step"};

struct NamedTuner {
  std::string_view written;
  DsTunerType type;
};
constexpr std::array kTuners = {NamedTuner{"gridsearch", DsTunerType::kGridSearch},
                                NamedTuner{"random", DsTunerType::kRandom},
                                NamedTuner{"model_based", DsTunerType::kModelBased}};

// Keys that are accepted but have no effect here, with the reason.
struct Idle {
  const char* key;
  const char* why;
};
constexpr std::array kIdle = {
    Idle{"exps_dir", "the configuration of each trial lies in its own directory below the run's"},
    Idle{"overwrite", "an old run is continued, or moved aside with --fresh; nothing is ever deleted"},
    Idle{"metric_path", "each trial gets its own"},
    Idle{"model_info_path", "each trial gets its own"},
    Idle{"min_train_batch_size", "DeepSpeed reads it and never uses it"},
};

// Names in the README that the code never read.
struct Renamed {
  const char* wrong;
  const char* right;
};
constexpr std::array kRenamed = {Renamed{"start_step", "start_profile_step"}, Renamed{"end_step", "end_profile_step"},
                                 Renamed{"num_trials", "tuner_num_trials"},
                                 Renamed{"early_stopping", "tuner_early_stopping"}};

std::int64_t integer_from(JsonObject& block, const char* key, std::int64_t fallback, std::int64_t least) {
  const std::int64_t value = block.integer(key, fallback);
  if (value < least) block.fail(key, fmt::format("{} is too small", value), fmt::format("give {} or more", least));
  return value;
}

std::optional<std::int64_t> optional_count(JsonObject& block, const char* key) {
  if (block.find(key) == nullptr) return std::nullopt;
  return integer_from(block, key, 1, 1);
}

DsMetric read_metric(JsonObject& block) {
  const std::string word = block.text("metric", to_string(DsMetric::kThroughput));
  for (const NamedMetric& known : kDsMetrics) {
    if (word == known.written) return known.metric;
  }
  if (std::find(kPartsOfAStep.begin(), kPartsOfAStep.end(), word) != kPartsOfAStep.end()) {
    block.fail("metric", fmt::format("'{}' is the time of a part of a step", word), "write \"latency\"");
  }
  block.fail("metric", fmt::format("unknown metric '{}'", word),
             suggestion(word, {"throughput", "latency", "FLOPS_per_gpu"}));
}

DsTunerOptions read_tuner(JsonObject& block) {
  DsTunerOptions tuner;
  const std::string word = block.text("tuner_type", to_string(tuner.type));
  const auto* known = std::find_if(kTuners.begin(), kTuners.end(), [&](const auto& t) { return t.written == word; });
  if (known == kTuners.end()) {
    block.fail("tuner_type", fmt::format("unknown tuner '{}'", word),
               suggestion(word, {"gridsearch", "random", "model_based"}));
  }
  tuner.type = known->type;
  tuner.says_trials = block.has("tuner_num_trials");
  tuner.trials = integer_from(block, "tuner_num_trials", tuner.trials, 1);
  tuner.early_stopping = integer_from(block, "tuner_early_stopping", tuner.early_stopping, 1);
  tuner.fast = block.boolean("fast", tuner.fast);
  return tuner;
}

DsBatchLimits read_batch(JsonObject& block) {
  DsBatchLimits batch;
  batch.max_train_batch_size = optional_count(block, "max_train_batch_size");
  batch.min_micro_batch = integer_from(block, "min_train_micro_batch_size_per_gpu", batch.min_micro_batch, 1);
  batch.max_micro_batch = integer_from(block, "max_train_micro_batch_size_per_gpu", batch.max_micro_batch, 1);
  batch.micro_batches = integer_from(block, "num_tuning_micro_batch_sizes", batch.micro_batches, 1);
  if (batch.max_micro_batch < batch.min_micro_batch) {
    block.fail(
        "max_train_micro_batch_size_per_gpu",
        fmt::format("{} is below min_train_micro_batch_size_per_gpu, {}", batch.max_micro_batch, batch.min_micro_batch),
        "raise one or lower the other");
  }
  return batch;
}

DsProfileWindow read_window(JsonObject& block) {
  DsProfileWindow window;
  window.is_given = block.has("start_profile_step") || block.has("end_profile_step");
  window.first = integer_from(block, "start_profile_step", window.first, 0);
  window.last = integer_from(block, "end_profile_step", std::max(window.last, window.first), 0);
  if (window.last < window.first) {  // DeepSpeed's profiler fails: AttributeError 'flops'
    block.fail("end_profile_step", fmt::format("{} is before start_profile_step, {}", window.last, window.first),
               "profile at least one step");
  }
  return window;
}

DsModelInfo read_model_info(JsonObject& block) {
  DsModelInfo model;
  if (block.find("model_info") == nullptr) return model;
  JsonObject info = block.object("model_info");
  info.find("profile");  // krigtune itself decides whether to measure them in a run
  model.num_params = optional_count(info, "num_params");
  info.find("trainable_num_params");
  model.hidden_size = optional_count(info, "hidden_size");
  model.num_layers = optional_count(info, "num_layers");
  model.activation_mem_per_gpu = info.optional_number("activation_mem_per_gpu");
  if (model.activation_mem_per_gpu && !(*model.activation_mem_per_gpu >= 0.0)) {
    info.fail("activation_mem_per_gpu", "bytes cannot be negative", "give 0 or more");
  }
  info.finish();
  return model;
}

std::vector<std::pair<std::string, std::string>> read_arg_mappings(JsonObject& block) {
  std::vector<std::pair<std::string, std::string>> mappings;
  if (block.find("arg_mappings") == nullptr) return mappings;
  const JsonObject object = block.object("arg_mappings");
  for (const auto& [key, value] : object.value().items()) {
    if (!value.is_string()) object.fail(key, "the name of a flag was expected", "write \"--flag\"");
    // The README's own example has a blank after a key.
    mappings.emplace_back(trimmed(key), trimmed(value.get<std::string>()));
    if (mappings.back().second.rfind('-', 0) != 0) {
      object.fail(key, fmt::format("'{}' is not a flag", mappings.back().second), "begin it with --");
    }
  }
  return mappings;
}

void remark_idle(JsonObject& block, DsAutotuning& autotuning) {
  for (const Idle& idle : kIdle) {
    if (block.find(idle.key) == nullptr) continue;
    autotuning.remarks.push_back(fmt::format("{} has no effect: {}", block.pointer(idle.key), idle.why));
  }
  if (autotuning.metric == DsMetric::kLatency) {
    autotuning.remarks.push_back(fmt::format(
        "{}: the shortest step wins; DeepSpeed's own autotuner would take the longest", block.pointer("metric")));
  }
}

void refuse_renamed(const JsonObject& block) {
  for (const Renamed& name : kRenamed) {
    if (block.has(name.wrong)) block.fail(name.wrong, "unknown key", fmt::format("did you mean '{}'?", name.right));
  }
}

}  // namespace

const char* to_string(DsMetric metric) {
  const auto* known =
      std::find_if(kDsMetrics.begin(), kDsMetrics.end(), [&](const auto& m) { return m.metric == metric; });
  return known->written.data();
}

const char* to_string(DsTunerType tuner) {
  const auto* known = std::find_if(kTuners.begin(), kTuners.end(), [&](const auto& t) { return t.type == tuner; });
  return known->written.data();
}

DsAutotuning read_ds_autotuning(const Json& config, const std::string& source) {
  DsAutotuning autotuning;
  JsonObject file(config, source, "");
  if (file.find("autotuning") == nullptr) return autotuning;
  JsonObject block = file.object("autotuning");
  refuse_renamed(block);
  block.boolean("enabled", false);  // ignored: DeepSpeed's --autotuning sets it in each experiment
  autotuning.metric = read_metric(block);
  autotuning.tuner = read_tuner(block);
  autotuning.batch = read_batch(block);
  autotuning.window = read_window(block);
  autotuning.model = read_model_info(block);
  autotuning.mp_size = integer_from(block, "mp_size", autotuning.mp_size, 1);
  autotuning.arg_mappings = read_arg_mappings(block);
  autotuning.results_dir = block.text("results_dir", "");
  remark_idle(block, autotuning);
  block.finish();
  return autotuning;
}

}  // namespace krigtune::deepspeed

// ds_config_optimal.json: the recommended configuration as DeepSpeed reads it, complete, so that a training started
// with it runs what was measured. Key names and defaults: DeepSpeed 0.19, deepspeed/runtime/zero/config.py and
// runtime/constants.py. A knob that is not in the space is written out with the value that the plan trained with,
// because DeepSpeed's own default may be another one (overlap_comm is on by default at stage 3).
#include <array>

#include "writers.h"

namespace krigtune {
namespace {

constexpr std::int64_t kDefaultBucketElems = 500'000'000;

std::int64_t data_parallel_ranks(const RunView& run) {
  const Configuration& configuration = run.best->configuration;
  return run.session.cluster.ranks() /
         (configuration.integer("tensor_parallel", 1) * configuration.integer("pipeline_parallel", 1));
}

// DeepSpeed asserts that allgather_bucket_size is even at stages 1 and 2 (stage_1_and_2.py).
std::int64_t even(std::int64_t elems) { return elems + elems % 2; }

void add_offload(Json& zero, const Configuration& configuration, const char* key) {
  const Value* device = configuration.find(key);
  if (device == nullptr || to_string(*device) == "none") return;
  zero[key] = {{"device", to_string(*device)}, {"pin_memory", true}};
}

Json zero_optimization(const Configuration& configuration) {
  const std::int64_t stage = configuration.integer("zero_stage", 0);
  Json zero = {{"stage", stage},
               {"reduce_bucket_size", configuration.integer("reduce_bucket_size", kDefaultBucketElems)},
               {"allgather_bucket_size", even(configuration.integer("allgather_bucket_size", kDefaultBucketElems))},
               {"overlap_comm", configuration.boolean("overlap_comm", false)},
               {"contiguous_gradients", configuration.boolean("contiguous_gradients", true)},
               {"reduce_scatter", true}};
  if (configuration.has("round_robin_gradients")) {
    zero["round_robin_gradients"] = configuration.boolean("round_robin_gradients", false);
  }
  constexpr std::array kStage3 = {"stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
                                  "stage3_max_live_parameters", "stage3_max_reuse_distance"};
  for (const char* knob : kStage3) {
    if (stage == 3 && configuration.has(knob)) zero[knob] = configuration.integer(knob, 0);
  }
  add_offload(zero, configuration, "offload_optimizer");
  add_offload(zero, configuration, "offload_param");
  return zero;
}

// The defaults of torch.optim.AdamW and SGD: they change neither time nor memory, and a training needs some.
Json optimizer(const Workload& workload, const Configuration& configuration) {
  const Value* chosen = configuration.find("lr");
  const Json lr = chosen != nullptr ? to_json(*chosen) : Json(1e-3);
  if (workload.optimizer == OptimizerKind::kSgd) return {{"type", "SGD"}, {"params", {{"lr", lr}}}};
  return {{"type", "AdamW"},
          {"params", {{"lr", lr}, {"betas", Json::array({0.9, 0.999})}, {"eps", 1e-8}, {"weight_decay", 0.01}}}};
}

}  // namespace

std::optional<std::string> ds_config_optimal(const RunView& run) {
  if (!run.best || !run.session.workload) return std::nullopt;
  const Workload& workload = *run.session.workload;
  const Configuration& configuration = run.best->configuration;
  const std::int64_t micro_batch = configuration.integer("micro_batch", 1);
  const std::int64_t accumulation = configuration.integer("gradient_accumulation_steps", 1);
  Json json;
  json["train_batch_size"] = micro_batch * accumulation * data_parallel_ranks(run);
  json["train_micro_batch_size_per_gpu"] = micro_batch;
  json["gradient_accumulation_steps"] = accumulation;
  json["zero_optimization"] = zero_optimization(configuration);
  json["optimizer"] = optimizer(workload, configuration);
  // ZeRO knows the optimizers that it shards; others it takes on the user's word.
  if (workload.optimizer == OptimizerKind::kSgd) json["zero_allow_untested_optimizer"] = true;
  json["fp16"] = {{"enabled", workload.precision == Precision::kFp16}};
  json["bf16"] = {{"enabled", workload.precision == Precision::kBf16}};
  return json.dump(2) + "\n";
}

}  // namespace krigtune

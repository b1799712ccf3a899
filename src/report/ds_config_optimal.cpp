// ds_config_optimal.json: the recommended configuration as DeepSpeed reads it, complete, so that a training started
// with it runs what was measured. Names of keys and defaults are those of space/well_known.h; beyond them DeepSpeed
// 0.19, deepspeed/runtime/zero/config.py and offload_config.py.
#include <algorithm>
#include <array>
#include <string_view>

#include "krigtune/space/well_known.h"
#include "writers.h"

namespace krigtune {
namespace {

// Written out also where they are not in the space, with the value that the plan trained with, because DeepSpeed's own
// default may be another one (overlap_comm is on by default at stage 3).
constexpr std::array<std::string_view, 7> kAlways = {
    "zero_stage",   "micro_batch",         "gradient_accumulation_steps", "reduce_bucket_size", "allgather_bucket_size",
    "overlap_comm", "contiguous_gradients"};

std::int64_t data_parallel_ranks(const RunView& run) {
  const Configuration& configuration = run.best->configuration;
  return run.session.cluster.ranks() /
         (configuration.integer("tensor_parallel", 1) * configuration.integer("pipeline_parallel", 1));
}

// DeepSpeed asserts that allgather_bucket_size is even at stages 1 and 2 (stage_1_and_2.py).
Value as_deepspeed_takes_it(const WellKnownParameter& parameter, const Value& value) {
  const auto* elems = std::get_if<std::int64_t>(&value);
  const bool even = elems == nullptr || *elems % 2 == 0 || parameter.name != std::string_view("allgather_bucket_size");
  return even ? value : Value(*elems + 1);
}

// Whether the knob says something there: those of stage 3 only at stage 3, and none means that the block is left out.
bool says_something(const WellKnownParameter& parameter, const Value& value, const Configuration& configuration) {
  const std::string_view name = parameter.name;
  if (name.substr(0, 7) == "stage3_") return configuration.integer("zero_stage", 0) == 3;
  if (name == "tensor_parallel") return !same_value(value, parameter.default_value);
  return to_string(value) != "none";
}

void set_knob(Json& json, const WellKnownParameter& parameter, const Configuration& configuration) {
  const Value* chosen = configuration.find(parameter.name);
  const bool always = std::find(kAlways.begin(), kAlways.end(), parameter.name) != kAlways.end();
  if (chosen == nullptr && !always) return;
  const Value value = as_deepspeed_takes_it(parameter, chosen != nullptr ? *chosen : parameter.default_value);
  if (!says_something(parameter, value, configuration)) return;
  const Json::json_pointer key(parameter.deepspeed_key);
  json[key] = to_json(value);
  if (key.back() == "device") json[key.parent_pointer() / "pin_memory"] = true;
}

// Keys of the file itself before those of its blocks.
void set_knobs(Json& json, const Configuration& configuration) {
  for (const bool in_block : {false, true}) {
    for (const WellKnownParameter& parameter : well_known_parameters()) {
      const std::string_view key = parameter.deepspeed_key;
      if (!key.empty() && (key.rfind('/') > 0) == in_block) set_knob(json, parameter, configuration);
    }
  }
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
  Json json;
  json["train_batch_size"] = configuration.integer("micro_batch", 1) *
                             configuration.integer("gradient_accumulation_steps", 1) * data_parallel_ranks(run);
  set_knobs(json, configuration);
  json["zero_optimization"]["reduce_scatter"] = true;
  json["optimizer"] = optimizer(workload, configuration);
  // ZeRO knows the optimizers that it shards; others it takes on the user's word.
  if (workload.optimizer == OptimizerKind::kSgd) json["zero_allow_untested_optimizer"] = true;
  json["fp16"] = {{"enabled", workload.precision == Precision::kFp16}};
  json["bf16"] = {{"enabled", workload.precision == Precision::kBf16}};
  return json.dump(2) + "\n";
}

}  // namespace krigtune

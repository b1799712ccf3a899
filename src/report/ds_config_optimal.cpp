// ds_config_optimal.json: the recommended configuration as DeepSpeed reads it, complete, so that a training started
// with it runs what was measured: the user's own file where there is one. Names of keys and defaults are those of
// space/well_known.h, how they are written is runner/deepspeed/ds_config.h's to say.
#include <array>

#include "ds_result.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"
#include "writers.h"

namespace krigtune {
namespace {

// Written out also where they are not in the space, with the value that the plan trained with, because DeepSpeed's own
// default may be another one (overlap_comm is on by default at stage 3).
constexpr std::array<const char*, 7> kAlways = {kZeroStage,       kMicroBatch, kAccumulation,       kReduceBucket,
                                                kAllgatherBucket, kOverlap,    kContiguousGradients};

Configuration completed(Configuration configuration) {
  for (const char* name : kAlways) {
    if (!configuration.has(name)) configuration.set(name, find_well_known(name)->default_value);
  }
  return configuration;
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
  if (!run.best) return std::nullopt;
  if (const auto job = ds_user_job(run.session)) return ds_config_text(ds_config_of(*job, run.best->configuration));
  if (!run.session.workload) return std::nullopt;
  const Workload& workload = *run.session.workload;
  const Configuration& configuration = run.best->configuration;
  const Json first_key = {{"train_batch_size", 1}};  // its value is set with the others
  const std::int64_t ranks = run.session.cluster.ranks() / configuration.integer(kPipelineParallel, 1);
  Json json = with_values(first_key, completed(configuration), DsUse::kResult, ranks, "ds_config_optimal.json");
  json["zero_optimization"]["reduce_scatter"] = true;
  json["optimizer"] = optimizer(workload, configuration);
  // ZeRO knows the optimizers that it shards; others it takes on the user's word.
  if (workload.optimizer == OptimizerKind::kSgd) json["zero_allow_untested_optimizer"] = true;
  json["fp16"] = {{"enabled", workload.precision == Precision::kFp16}};
  json["bf16"] = {{"enabled", workload.precision == Precision::kBf16}};
  return ds_config_text(json);
}

}  // namespace krigtune

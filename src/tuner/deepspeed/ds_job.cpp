// What stands where: the file's keys, the command's flags, and what the Hugging Face Trainer puts for "auto"
// (transformers: integrations/deepspeed.py, trainer_config_process and trainer_config_finalize; training_args.py).
#include "ds_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "krigtune/core/error.h"
#include "krigtune/space/batch.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"

namespace krigtune {
namespace {

ClusterSpec cluster_of(const DsSessionInputs& inputs) {
  ClusterSpec cluster = inputs.machine.cluster;
  if (!inputs.command) return cluster;
  if (inputs.command->nodes) cluster.nodes = *inputs.command->nodes;
  if (!inputs.command->ranks) return cluster;
  const std::int64_t ranks = *inputs.command->ranks;
  if (ranks % cluster.nodes != 0) {
    throw UserError(fmt::format("the command starts {} ranks on {} nodes: not as many on each", ranks, cluster.nodes),
                    "choose a multiple of the nodes");
  }
  cluster.gpus_per_node = ranks / cluster.nodes;
  return cluster;
}

std::int64_t tensor_of(const DsJob& job) {
  const std::int64_t tensor = std::max<std::int64_t>(1, job.own_count_or(kTensorParallel, 1));
  const std::int64_t own = job.autotuning.mp_size;
  if (own > 1 && own != tensor) {
    throw UserError(fmt::format("{}: /autotuning/mp_size: {} ranks a replica, but tensor_parallel.autotp_size is {}: "
                                "model parallelism of the script's own is not understood",
                                job.source, own, tensor),
                    "remove it, or set tensor_parallel.autotp_size to the same");
  }
  if (data_parallel_ranks(job.cluster.ranks(), tensor, 1)) return tensor;
  throw UserError(fmt::format("{}: /tensor_parallel/autotp_size: {} ranks cannot be dealt out to replicas of {}",
                              job.source, job.cluster.ranks(), tensor),
                  "choose a divisor of the ranks");
}

// Of the user's own configuration; a list of micro-batches without train_batch_size has no one batch.
std::optional<std::int64_t> batch_of(const DsJob& job) {
  const auto written = train_batch_size_of(job.inputs.config, job.cluster.ranks(), job.source);
  if (written) return written;
  for (const char* name : {kMicroBatch, kAccumulation}) {
    const DsTunable* tunable = job.find(name);
    if (tunable != nullptr && tunable->setting == DsSetting::kList) return std::nullopt;
  }
  const auto micro = job.own_count(kMicroBatch);
  if (!micro) return std::nullopt;
  const bool is_open = job.find(kAccumulation) != nullptr && !job.own_count(kAccumulation);
  if (is_open) return std::nullopt;
  return sequences_of_step(*micro, job.replicas(), job.own_count(kAccumulation).value_or(1));
}

void check_batch(const DsJob& job) {
  if (job.batch && *job.batch % job.replicas() != 0) {
    throw UserError(fmt::format("{}: /train_batch_size: {} sequences a step cannot be dealt out to {} ranks",
                                job.source, *job.batch, job.replicas()),
                    "choose a multiple of the ranks");
  }
  const auto& most = job.autotuning.batch.max_train_batch_size;
  if (job.batch && most && *job.batch > *most) {
    throw UserError(fmt::format("{}: /autotuning/max_train_batch_size: {} is below the {} sequences of a step",
                                job.source, *most, *job.batch),
                    "raise it, or lower the batch: the sequences of a step are kept");
  }
}

// 0.9 h h as an integer, which DeepSpeed asks for and the Trainer makes of it.
std::optional<Value> trainers_auto(std::string_view name, const std::optional<std::int64_t>& hidden) {
  constexpr std::int64_t kPerDeviceTrainBatchSize = 8;  // TrainingArguments' default
  if (name == kMicroBatch) return kPerDeviceTrainBatchSize;
  if (name == kAccumulation) return std::int64_t{1};
  if (!hidden) return std::nullopt;
  if (name == kReduceBucket) return *hidden * *hidden;
  if (name == kPrefetch) return *hidden * *hidden * 9 / 10;
  if (name == kPersistence) return *hidden * 10;
  return std::nullopt;
}

}  // namespace

DsJob::DsJob(const DsSessionInputs& of)
    : inputs(of),
      source(of.ds_config.string()),
      tunables(tunables_of(of.config, source)),
      autotuning(read_ds_autotuning(of.config, source)),
      cluster(cluster_of(of)) {
  remarks = autotuning.remarks;
  if (inputs.command) {
    mappings = flag_mappings(*inputs.command, autotuning.arg_mappings);
    flags = values_of_flags(*inputs.command, mappings);
  }
  opens_nothing = std::all_of(tunables.begin(), tunables.end(),
                              [](const DsTunable& tunable) { return tunable.setting == DsSetting::kFixed; }) &&
                  inputs.config.value("train_batch_size", Json()) != "auto";
  tensor = tensor_of(*this);
  batch = batch_of(*this);
  check_batch(*this);
  read_ds_model(*this);
}

const DsTunable* DsJob::find(std::string_view name) const {
  const auto found = std::find_if(tunables.begin(), tunables.end(), [&](const auto& t) { return t.name == name; });
  return found == tunables.end() ? nullptr : &*found;
}

bool DsJob::is_opened(std::string_view name) const {
  const DsTunable* tunable = find(name);
  return tunable != nullptr && tunable->setting != DsSetting::kFixed;
}

bool DsJob::is_kept(std::string_view name) const { return !opens_nothing && find(name) != nullptr && !is_opened(name); }

bool DsJob::has_flag(std::string_view name) const {
  return std::any_of(mappings.begin(), mappings.end(), [&](const FlagMapping& mapping) {
    if (mapping.name != name) return false;
    const Value* said = flags.find(mapping.name);
    return mapping.appended || (said != nullptr && to_string(*said) != "none");
  });
}

bool DsJob::can_change(std::string_view name) const {
  const DsTunable* tunable = find(name);
  return tunable == nullptr || tunable->setting != DsSetting::kAuto || has_flag(name);
}

std::optional<Value> DsJob::own(std::string_view name) const {
  const DsTunable* tunable = find(name);
  if (tunable != nullptr && tunable->setting != DsSetting::kAuto) return tunable->values.front();
  const Value* said = flags.find(std::string(name));
  if (said != nullptr) return *said;
  const bool is_trainers = inputs.command && inputs.command->takes_trainer_flags;
  return tunable != nullptr && is_trainers ? trainers_auto(name, hidden) : std::nullopt;
}

std::optional<std::int64_t> DsJob::own_count(std::string_view name) const {
  const std::optional<Value> value = own(name);
  if (!value) return std::nullopt;
  const auto* count = std::get_if<std::int64_t>(&*value);
  if (count != nullptr && *count >= 1) return *count;
  throw UserError(fmt::format("{}: {} is no whole number from 1 on: {}", source, name, to_string(*value)),
                  "mend the file or the command's flag");
}

std::int64_t DsJob::own_count_or(std::string_view name, std::int64_t fallback) const {
  const std::optional<Value> value = own(name);
  const auto* count = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  return count != nullptr ? *count : fallback;
}

bool DsJob::has(DsFeature feature) const {
  constexpr DsVersion kCurrent{0, 19, 8};
  return krigtune::has(inputs.machine.version.value_or(kCurrent), feature);
}

}  // namespace krigtune

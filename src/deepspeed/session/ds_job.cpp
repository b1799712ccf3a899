// Combines the file's keys, the command's flags, and the values that the Hugging Face Trainer fills in for "auto"
// (transformers: integrations/deepspeed.py, trainer_config_process and trainer_config_finalize; training_args.py), as
// Accelerate does with sizes that follow from the model (accelerator.py, _prepare_deepspeed).
#include "deepspeed/session/ds_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

workload::ClusterSpec cluster_of(const DsSessionInputs& inputs) {
  workload::ClusterSpec cluster = inputs.machine.cluster;
  if (!inputs.command) return cluster;
  if (inputs.command->nodes) cluster.nodes = *inputs.command->nodes;
  if (!inputs.command->ranks) return cluster;
  const std::int64_t ranks = *inputs.command->ranks;
  if (ranks % cluster.nodes != 0) {
    throw UserError(fmt::format("the command starts {} on {}: not as many on each", counted(ranks, "rank"),
                                counted(cluster.nodes, "node")),
                    "choose a multiple of the nodes");
  }
  cluster.gpus_per_node = ranks / cluster.nodes;
  return cluster;
}

// Megatron-DeepSpeed's flags. The ranks that share a sequence or a model are then not those of the file.
void refuse_model_parallelism_of_script(const DsJob& job) {
  for (const char* flag : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "ds_sequence_parallel_size"}) {
    const std::optional<std::string> ways = flag_text(job, flag);
    if (!ways || *ways == "1") continue;
    std::string name = flag;
    std::replace(name.begin(), name.end(), '_', '-');
    throw UserError(fmt::format("{}: the script splits its model itself (--{} {}), which the file does not say",
                                job.source, name, *ways),
                    "tune the flags together with the file: krigtune tune -- COMMAND, without --deepspeed");
  }
}

std::int64_t tensor_of(const DsJob& job) {
  const std::int64_t ranks = counted_ranks(job.inputs.config, job.ranks(), job.source);
  const std::int64_t tensor = std::max<std::int64_t>(1, job.own_count_or(space::kTensorParallel, 1));
  const std::int64_t own = job.autotuning.mp_size;
  if (own > 1 && own != tensor) {
    throw UserError(fmt::format("{}: /autotuning/mp_size: {} ranks a replica, but tensor_parallel.autotp_size is {}: "
                                "model parallelism of the script's own is not understood",
                                job.source, own, tensor),
                    "remove it, or set tensor_parallel.autotp_size to the same");
  }
  if (job.replicas_at(tensor)) return tensor;
  throw UserError(fmt::format("{}: /tensor_parallel/autotp_size: {} does not divide the {}", job.source, tensor,
                              counted(ranks, "rank")),
                  "choose a divisor of the ranks");
}

// The batch of the user's own configuration. A list of micro-batches without train_batch_size has no single batch.
std::optional<std::int64_t> batch_of(const DsJob& job) {
  const auto written = train_batch_size_of(job.inputs.config, job.ranks(), job.source);
  if (written) return written;
  for (const char* name : {space::kMicroBatch, space::kAccumulation}) {
    const DsTunable* tunable = job.find(name);
    if (tunable != nullptr && tunable->setting == DsSetting::kList) return std::nullopt;
  }
  const auto micro = job.own_count(space::kMicroBatch);
  if (!micro) return std::nullopt;
  const bool is_open = job.find(space::kAccumulation) != nullptr && !job.own_count(space::kAccumulation);
  if (is_open) return std::nullopt;
  return space::sequences_of_step(*micro, job.replicas(), job.own_count(space::kAccumulation).value_or(1));
}

void check_batch(const DsJob& job) {
  if (job.batch && *job.batch % job.replicas() != 0) {
    throw UserError(fmt::format("{}: /train_batch_size: {} is not divisible by the {}", job.source, *job.batch,
                                counted(job.replicas(), "data-parallel rank")),
                    job.sequence > 1 ? "choose a multiple of the ranks / sequence_parallel_size"
                                     : "choose a multiple of the ranks");
  }
  const auto& most = job.autotuning.batch.max_train_batch_size;
  if (job.batch && most && *job.batch > *most) {
    throw UserError(fmt::format("{}: /autotuning/max_train_batch_size: {} is below the {} sequences of a step",
                                job.source, *most, *job.batch),
                    "raise it, or lower the batch: the sequences of a step are kept");
  }
}

// The Trainer's defaults.
std::optional<space::Value> trainers_batch(std::string_view name) {
  constexpr std::int64_t kPerDeviceTrainBatchSize = 8;
  if (name == space::kMicroBatch) return kPerDeviceTrainBatchSize;
  return name == space::kAccumulation ? std::optional(space::Value(std::int64_t{1})) : std::nullopt;
}

// Both fill in 0.9 h h, which DeepSpeed requires as an integer.
std::optional<space::Value> size_for(std::string_view name, const std::optional<std::int64_t>& hidden) {
  if (!hidden) return std::nullopt;
  if (name == space::kReduceBucket) return *hidden * *hidden;
  if (name == space::kPrefetch) return *hidden * *hidden * 9 / 10;
  if (name == space::kPersistence) return *hidden * 10;
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
  sequence = sequence_ranks_of(inputs.config, ranks(), source);
  if (inputs.command) {
    mappings = flag_mappings(*inputs.command, autotuning.arg_mappings);
    flags = values_of_flags(*inputs.command, mappings);
    gaps = gaps_of_command(*this);
  }
  unmodelled = unmodelled_settings(*this);
  opens_nothing = std::all_of(tunables.begin(), tunables.end(),
                              [](const DsTunable& tunable) { return tunable.setting == DsSetting::kFixed; }) &&
                  inputs.config.value("train_batch_size", Json()) != "auto";
  refuse_model_parallelism_of_script(*this);
  tensor = tensor_of(*this);
  batch = batch_of(*this);
  check_batch(*this);
  read_ds_model(*this);
}

DsRanks DsJob::ranks() const { return {cluster.ranks(), inputs.command ? inputs.command->sequence_ranks : 1}; }

std::optional<std::int64_t> DsJob::replicas_at(std::int64_t ways) const {
  return space::data_parallel_ranks(cluster.ranks(),
                                    {{space::kTensorParallel, ways}, {space::kContextParallel, sequence}});
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
    const space::Value* said = flags.find(mapping.name);
    return mapping.appended || (said != nullptr && space::to_string(*said) != "none");
  });
}

bool DsJob::can_change(std::string_view name) const {
  const DsTunable* tunable = find(name);
  return tunable == nullptr || tunable->setting != DsSetting::kAuto || has_flag(name);
}

std::optional<space::Value> DsJob::own(std::string_view name) const {
  const DsTunable* tunable = find(name);
  if (tunable != nullptr && tunable->setting != DsSetting::kAuto) return tunable->values.front();
  const space::Value* said = flags.find(std::string(name));
  if (said != nullptr) return *said;
  if (tunable == nullptr || !inputs.command) return std::nullopt;
  if (auto size = fills_in_sizes() ? size_for(name, hidden) : std::nullopt) return size;
  return inputs.command->is_trainers ? trainers_batch(name) : std::nullopt;
}

bool DsJob::fills_in_sizes() const {
  return inputs.command && (inputs.command->is_trainers || inputs.command->is_accelerates);
}

bool DsJob::depends_on_width(std::string_view name) const {
  const DsTunable* tunable = find(name);
  return tunable != nullptr && tunable->setting == DsSetting::kAuto && fills_in_sizes() && !own(name) &&
         size_for(name, 1).has_value();
}

std::optional<std::int64_t> DsJob::own_count(std::string_view name) const {
  const std::optional<space::Value> value = own(name);
  if (!value) return std::nullopt;
  const auto* count = std::get_if<std::int64_t>(&*value);
  if (count != nullptr && *count >= 1) return *count;
  throw UserError(fmt::format("{}: {} is not a whole number from 1 on: {}", source, name, space::to_string(*value)),
                  "fix the file or the command's flag");
}

std::int64_t DsJob::own_count_or(std::string_view name, std::int64_t fallback) const {
  const std::optional<space::Value> value = own(name);
  const auto* count = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  return count != nullptr ? *count : fallback;
}

bool DsJob::has(DsFeature feature) const {
  constexpr DsVersion kCurrent{0, 19, 8};
  return krigtune::deepspeed::has(inputs.machine.version.value_or(kCurrent), feature);
}

// If only the number of parameters of a model is known, the model is assumed to be a GPT of the usual shape: it has the
// width of the nearest model in Brown et al. 2020 (arXiv:2005.14165, table 2.1) and as many layers as give that number,
//
//   P = 12 layers hidden^2 + vocab hidden,   vocab = 50257 (GPT-2's) unless a flag states it
//
// Does that help? On the 8 replayed spaces of ultrascale_dev (Llama models of 1.3 and 80 billion parameters with a
// vocabulary of 131072) `bayes` needed 2.1 trials to be within 5 % with the exact shape, 2.1 with this one, and 3.3
// without any. The tokens of a sequence matter more: 2.3 trials with half of them, 2.9 with twice, 7.9 with four times
// as many (experiments/search/guessed_shape.py). Measured activations cannot determine them better than that, because
// recomputation and the kind of attention are unknown (a factor of 17 between 34 s h and 2 s h bytes per layer:
// Korthikanti et al. 2022, arXiv:2205.05198, table 2). So nothing is assumed unless a flag states the tokens.
namespace {

struct Published {
  double params;
  std::int64_t hidden;
  std::int64_t head;  ///< width of one head
};
constexpr std::array<Published, 8> kGpt3 = {{{125e6, 768, 64},
                                             {350e6, 1024, 64},
                                             {760e6, 1536, 96},
                                             {1.3e9, 2048, 128},
                                             {2.7e9, 2560, 80},
                                             {6.7e9, 4096, 128},
                                             {13e9, 5120, 128},  // the paper says 5140, but 40 heads of 128 are 5120
                                             {175e9, 12288, 128}}};

const Published& nearest(double params) {
  const auto distance = [&](const Published& one) { return std::abs(std::log(one.params / params)); };
  const Published* best = kGpt3.data();
  for (const Published& one : kGpt3) {
    if (distance(one) < distance(*best)) best = &one;
  }
  return *best;
}

}  // namespace

// In 16-bit numbers a sequence leaves 34 s h bytes in each layer, and 2 s h with recomputation (Korthikanti et al.
// 2022, eq. 1 with flash attention; table 2), and in both cases up to 6 s vocab for the logits. Between the two is s
// (sqrt(34 * 2) h layers + 6 vocab).
Recomputation recomputation_of(const DsJob& job) {
  if (job.has_flag(space::kCheckpointing)) return Recomputation::kByFlag;
  const std::optional<double>& slope = job.inputs.model.activation_slope_bytes;
  if (job.workload.is_null() || !slope) return Recomputation::kUnknown;
  const workload::Workload workload = workload::read_workload(job.workload, job.source, "/workload");
  const workload::ModelSpec& model = workload.model;
  const double scale = workload.precision == workload::Precision::kFp32 ? 2.0 : 1.0;
  const double blocks = std::sqrt(34.0 * 2.0) * static_cast<double>(model.hidden * model.layers);
  const double tokens = static_cast<double>(model.seq_len) / static_cast<double>(job.sequence);
  const double between = (blocks + 6.0 * static_cast<double>(model.vocab)) * tokens * scale;
  return *slope < between ? Recomputation::kFull : Recomputation::kNone;
}

Json usual_shape(std::int64_t num_params, std::int64_t vocab) {
  const Published& gpt = nearest(static_cast<double>(num_params));
  const auto hidden = static_cast<double>(gpt.hidden);
  const double blocks = static_cast<double>(num_params) - static_cast<double>(vocab) * hidden;
  const std::int64_t layers = std::llround(blocks / (12.0 * hidden * hidden));
  if (layers < 1) return {};
  return {{"layers", layers}, {"hidden", gpt.hidden}, {"heads", gpt.hidden / gpt.head}, {"vocab", vocab}};
}

}  // namespace krigtune::deepspeed

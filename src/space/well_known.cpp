// Names and defaults of DeepSpeed 0.19: deepspeed/runtime/zero/config.py, runtime/zero/offload_config.py and
// runtime/constants.py. Where krigtune-bench differs (overlap_comm is off at every stage, the micro-batch is 1 instead
// of missing) the value is the bench's. Where a knob changes nothing is decided in canonical.cpp.
#include "krigtune/space/well_known.h"

#include <algorithm>

namespace krigtune {
namespace {

constexpr std::int64_t kDefaultBucketElems = 500'000'000;

std::vector<WellKnownParameter> batch_parameters() {
  return {
      {"zero_stage", "",
       "ZeRO stage: what is sharded over the data-parallel ranks (1 optimizer states, 2 and gradients, "
       "3 and parameters)",
       "", "/zero_optimization/stage", std::int64_t{0}, "[0, 1, 2, 3]"},
      {"micro_batch", "sequences per rank and micro-step", "how many sequences a rank trains at once", "",
       "/train_micro_batch_size_per_gpu", std::int64_t{1}, R"({"min": 1, "max": 64, "scale": "log2"})"},
      {"gradient_accumulation_steps", "micro-steps per optimizer step",
       "how many micro-steps are added up before the optimizer steps; derived where train_batch_size is given", "",
       "/gradient_accumulation_steps", std::int64_t{1}, R"({"min": 1, "max": 64, "scale": "log2"})"},
      {"activation_checkpointing", "", "which activations are computed again in the backward pass instead of kept", "",
       "", "none", R"(["none", "selective", "full"])"},
      {"tensor_parallel", "ranks", "over how many ranks each layer is split", "", "/tensor_parallel/autotp_size",
       std::int64_t{1}, R"({"min": 1, "max": 8, "scale": "log2"})"},
      {"activation_checkpointing_layers", "layers", "how many layers lie between two activations that are kept",
       "unless activation_checkpointing is full", "", std::int64_t{1}, R"({"min": 1, "max": 16, "scale": "log2"})"},
      {"sequence_parallel", "",
       "whether norms, dropouts and residuals are split over the tensor-parallel ranks by tokens",
       "on one tensor-parallel rank", "", false, "[true, false]"},
      {"pipeline_parallel", "ranks",
       "over how many ranks the layers are dealt out; modelled, not run by krigtune-bench", "", "", std::int64_t{1},
       R"({"min": 1, "max": 8, "scale": "log2"})"},
  };
}

std::vector<WellKnownParameter> communication_parameters() {
  return {
      {"reduce_bucket_size", "elements", "gradients that are reduced in one call; a larger tensor goes alone",
       "on one data-parallel rank; all sizes that hold every parameter are one",
       "/zero_optimization/reduce_bucket_size", kDefaultBucketElems,
       R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})"},
      {"allgather_bucket_size", "elements", "updated parameters that are gathered in one call",
       "at stages 0 and 3; on one data-parallel rank; all sizes that hold every parameter are one",
       "/zero_optimization/allgather_bucket_size", kDefaultBucketElems,
       R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})"},
      {"overlap_comm", "", "whether gradients are reduced while the backward pass goes on", "on one data-parallel rank",
       "/zero_optimization/overlap_comm", false, "[true, false]"},
      {"contiguous_gradients", "", "whether gradients are copied into one buffer as they are made", "",
       "/zero_optimization/contiguous_gradients", true, "[true, false]"},
      {"round_robin_gradients", "", "whether ranks take turns in copying gradients to the host (with offload)", "",
       "/zero_optimization/round_robin_gradients", false, "[true, false]"},
  };
}

std::vector<WellKnownParameter> stage3_parameters() {
  constexpr const char* kBelow = "below stage 3";
  return {
      {"stage3_prefetch_bucket_size", "elements", "parameters that are gathered ahead of their use",
       "below stage 3; on one data-parallel rank", "/zero_optimization/stage3_prefetch_bucket_size",
       std::int64_t{50'000'000}, R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})"},
      {"stage3_param_persistence_threshold", "elements", "tensors up to this size stay whole on every rank", kBelow,
       "/zero_optimization/stage3_param_persistence_threshold", std::int64_t{100'000},
       R"({"min": 1e4, "max": 1e7, "scale": "log", "steps": 7})"},
      {"stage3_max_live_parameters", "elements", "gathered parameters at most, before any is released", kBelow,
       "/zero_optimization/stage3_max_live_parameters", std::int64_t{1'000'000'000},
       R"({"min": 1e7, "max": 1e10, "scale": "log", "steps": 7})"},
      {"stage3_max_reuse_distance", "elements", "a parameter that is used again within this distance is kept", kBelow,
       "/zero_optimization/stage3_max_reuse_distance", std::int64_t{1'000'000'000},
       R"({"min": 1e7, "max": 1e10, "scale": "log", "steps": 7})"},
      {"offload_optimizer", "", "where the optimizer's states live and its step runs", "",
       "/zero_optimization/offload_optimizer/device", "none", R"(["none", "cpu", "nvme"])"},
      {"offload_param", "", "where the sharded parameters of stage 3 live", kBelow,
       "/zero_optimization/offload_param/device", "none", R"(["none", "cpu", "nvme"])"},
  };
}

}  // namespace

const std::vector<WellKnownParameter>& well_known_parameters() {
  static const std::vector<WellKnownParameter> kTable = [] {
    std::vector<WellKnownParameter> table = batch_parameters();
    for (const auto& block : {communication_parameters(), stage3_parameters()}) {
      table.insert(table.end(), block.begin(), block.end());
    }
    return table;
  }();
  return kTable;
}

const WellKnownParameter* find_well_known(std::string_view name) {
  const auto& table = well_known_parameters();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& known) { return name == known.name; });
  return found == table.end() ? nullptr : &*found;
}

const std::vector<KnownAlias>& known_aliases() {
  static const std::vector<KnownAlias> kAliases = {
      {"zero", "zero_stage", "scripts"},
      {"zero_stages", "zero_stage", "scripts"},
      {"zero_optimization_stage", "zero_stage", "scripts"},
      {"sharding_strategy", "zero_stage", "FSDP: FULL_SHARD is 3, SHARD_GRAD_OP 2, NO_SHARD 0"},
      {"data_parallel_sharding_strategy", "zero_stage",
       "Megatron-FSDP: optim is 1, optim_grads 2, optim_grads_params 3"},
      {"mbs", "micro_batch", "scripts"},
      {"micro_batch_size", "micro_batch", "Megatron-LM, NeMo, nanotron"},
      {"train_micro_batch_size_per_gpu", "micro_batch", "DeepSpeed"},
      {"per_device_train_batch_size", "micro_batch", "Hugging Face Trainer"},
      {"local_batch_size", "micro_batch", "torchtitan"},
      {"device_batch_size", "micro_batch", "scripts"},
      {"ga", "gradient_accumulation_steps", "scripts"},
      {"grad_accum", "gradient_accumulation_steps", "scripts"},
      {"accumulate_grad_batches", "gradient_accumulation_steps", "Lightning"},
      {"batch_accumulation_per_replica", "gradient_accumulation_steps", "nanotron"},
      {"recompute_granularity", "activation_checkpointing", "Megatron-LM"},
      {"gradient_checkpointing", "activation_checkpointing", "Hugging Face Trainer: true is full, false is none"},
      {"recompute_layer", "activation_checkpointing", "nanotron: true is full, false is none"},
      {"recompute_num_layers", "activation_checkpointing_layers", "Megatron-LM"},
      {"tp", "tensor_parallel", "nanotron, scripts"},
      {"tensor_parallel_size", "tensor_parallel", "vLLM, scripts"},
      {"tensor_model_parallel_size", "tensor_parallel", "Megatron-LM, NeMo"},
      {"tensor_parallel_degree", "tensor_parallel", "torchtitan"},
      {"tp_size", "tensor_parallel", "scripts"},
      {"autotp_size", "tensor_parallel", "DeepSpeed"},
      {"pp", "pipeline_parallel", "nanotron, scripts"},
      {"pipeline_parallel_size", "pipeline_parallel", "scripts"},
      {"pipeline_model_parallel_size", "pipeline_parallel", "Megatron-LM, NeMo"},
      {"pipeline_parallel_degree", "pipeline_parallel", "torchtitan"},
      {"pp_size", "pipeline_parallel", "scripts"},
      {"allreduce_bucket_size", "reduce_bucket_size", "DeepSpeed, older"},
      {"overlap_grad_reduce", "overlap_comm", "Megatron-LM"},
  };
  return kAliases;
}

std::string_view well_known_name(std::string_view name) {
  if (find_well_known(name) != nullptr) return name;
  for (const KnownAlias& known : known_aliases()) {
    if (name == known.alias) return known.name;
  }
  return "";
}

const std::vector<KnownFact>& known_facts() {
  static const std::vector<KnownFact> kFacts = {
      {"dp", "data-parallel ranks: ranks / (tensor_parallel * pipeline_parallel)"},
      {"ranks", "ranks of the whole job: nodes * gpus_per_node"},
      {"nodes", "nodes of the cluster"},
      {"gpus_per_node", "GPUs (or CPU ranks) of a node"},
      {"layers", "layers of the model"},
      {"hidden", "width of the model"},
      {"heads", "attention heads"},
      {"kv_heads", "heads of keys and values"},
      {"vocab", "tokens of the vocabulary"},
      {"seq_len", "tokens of a sequence"},
      {"train_batch_size", "sequences of an optimizer step, where it is kept"},
  };
  return kFacts;
}

}  // namespace krigtune

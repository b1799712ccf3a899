// Names, keys and defaults are those of DeepSpeed 0.19: deepspeed/runtime/zero/config.py (a second key is the pydantic
// field behind an alias, populate_by_name), runtime/zero/offload_config.py, runtime/constants.py, config_utils.py (old
// keys). If krigtune-bench differs, the value is the bench's (overlap_comm is off at every stage, and the micro-batch
// is 1 instead of missing). Flags are those of transformers' TrainingArguments; scripts of Accelerate and
// DeepSpeed-Chat use the same names.
//
// When a knob has no effect: docs/config-json, "ZeRO optimizations"; stages as in Rajbhandari et al. 2020. The first
// stage that reads it: stage 0 reduces gradients in pieces of a fixed size (runtime/engine.py,
// buffered_allreduce_fallback with MEMORY_OPT_ALLREDUCE_SIZE). Buckets, overlap and the ways of copying gradients are
// arguments of the optimizers of stages 1 and 2 (runtime/zero/stage_1_and_2.py) and 3 (stage3.py).
#include "space/well_known.h"

#include <algorithm>

#include "space/parallel_layout.h"
#include "space/parallel_parameters.h"

namespace krigtune::space {
namespace {

constexpr std::int64_t kDefaultBucketElems = 500'000'000;

WellKnownParameter zero_stage() {
  return {
      .name = kZeroStage,
      .meaning =
          "ZeRO stage: what is sharded over the data-parallel ranks (1 optimizer states, 2 and gradients, "
          "3 and parameters)",
      .default_value = std::int64_t{0},
      .default_range = "[0, 1, 2, 3]",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/stage", .largest = 3},
      .other_names = {{"zero", "scripts"},
                      {"zero_stages", "scripts"},
                      {"zero_optimization_stage", "scripts"},
                      {"sharding_strategy", "FSDP: FULL_SHARD is 3, SHARD_GRAD_OP 2, NO_SHARD 0"},
                      {"data_parallel_sharding_strategy",
                       "Megatron-FSDP: optim is 1, optim_grads 2, optim_grads_params 3"}},
      .rule = {.log_memory = -0.25, .success_slope = 0.3},
  };
}

WellKnownParameter micro_batch() {
  return {
      .name = kMicroBatch,
      .unit = "sequences per rank and micro-step",
      .meaning = "how many sequences a rank trains at once",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 64, "scale": "log2"})",
      .smallest = 1,
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/train_micro_batch_size_per_gpu",
                    .largest = kMostCount,
                    .trainer_flag = "--per_device_train_batch_size"},
      .other_names = {{"mbs", "scripts"},
                      {"micro_batch_size", "Megatron-LM, NeMo, nanotron"},
                      {"train_micro_batch_size_per_gpu", "DeepSpeed"},
                      {"per_device_train_batch_size", "Hugging Face Trainer"},
                      {"local_batch_size", "torchtitan"},
                      {"device_batch_size", "scripts"}},
      .rule = {.log_speed = 0.05, .log_memory = 0.4, .success_slope = -1.0},
  };
}

WellKnownParameter accumulation() {
  return {
      .name = kAccumulation,
      .unit = "micro-steps per optimizer step",
      .meaning = "how many micro-steps are accumulated before the optimizer step; derived if train_batch_size is given",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 64, "scale": "log2"})",
      .smallest = 1,
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/gradient_accumulation_steps",
                    .largest = kMostCount,
                    .trainer_flag = "--gradient_accumulation_steps"},
      .other_names = {{"ga", "scripts"},
                      {"grad_accum", "scripts"},
                      {"accumulate_grad_batches", "Lightning"},
                      {"batch_accumulation_per_replica", "nanotron"}},
  };
}

WellKnownParameter checkpointing() {
  return {
      .name = kCheckpointing,
      .meaning = "which activations are recomputed in the backward pass instead of being kept",
      .default_value = "none",
      .default_range = R"(["none", "selective", "full"])",
      .modelling = Modelling::kFull,
      .deepspeed = {.trainer_flag = "--gradient_checkpointing"},
      .other_names = {{"recompute_granularity", "Megatron-LM"},
                      {"gradient_checkpointing", "Hugging Face Trainer: true is full, false is none"},
                      {"recompute_layer", "nanotron: true is full, false is none"}},
      .rule = {.words = {{"full", -0.288, -0.8}, {"selective", -0.03, -0.3}}},
  };
}

WellKnownParameter checkpoint_layers() {
  return {
      .name = kCheckpointLayers,
      .unit = "layers",
      .meaning = "how many layers lie between two activations that are kept",
      .no_effect = "unless activation_checkpointing is full",
      .no_effect_if = "activation_checkpointing != 'full'",
      .default_value = std::int64_t{1},
      .default_range = R"({"min": 1, "max": 16, "scale": "log2"})",
      .smallest = 1,
      .modelling = Modelling::kFull,
      .other_names = {{"recompute_num_layers", "Megatron-LM"}},
  };
}

// Megatron Core: transformer/transformer_config.py, recompute_modules.
WellKnownParameter recompute_modules() {
  return {
      .name = kRecomputeModules,
      .meaning =
          "which parts of a layer selective recomputation computes again: usual, or some of core_attn, layernorm, "
          "mla_up_proj, mlp, moe, moe_act and shared_experts with + or commas between them",
      .no_effect = "unless activation_checkpointing is selective",
      .no_effect_if = "activation_checkpointing != 'selective'",
      .default_value = "usual",
      .default_range = R"(["usual", "core_attn", "layernorm+moe_act", "mla_up_proj", "mlp", "moe"])",
      .modelling = Modelling::kFull,
  };
}

WellKnownParameter reduce_bucket() {
  return {
      .name = kReduceBucket,
      .unit = "elements",
      .meaning = "size of the gradients that are reduced in one call; a larger tensor is reduced alone",
      .no_effect = "on one data-parallel rank; all sizes from the number of parameters on are equivalent",
      .no_effect_if = "dp == 1",
      .is_bucket = true,
      .default_value = kDefaultBucketElems,
      .default_range = R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/reduce_bucket_size", .first_stage = 1},
      .other_names = {{"allreduce_bucket_size", "DeepSpeed, older"}},
      .rule = {.log_speed = 0.03},
  };
}

// Stage 0 has nothing to gather, stage 3 gathers unit by unit.
WellKnownParameter allgather_bucket() {
  return {
      .name = kAllgatherBucket,
      .unit = "elements",
      .meaning = "size of the updated parameters that are gathered in one call",
      .no_effect =
          "at stages 0 and 3; on one data-parallel rank; all sizes from the number of parameters on are equivalent",
      .no_effect_if = "zero_stage == 0 || zero_stage == 3 || dp == 1",
      .is_bucket = true,
      .default_value = kDefaultBucketElems,
      .default_range = R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/allgather_bucket_size", .first_stage = 1, .is_even = true},
  };
}

WellKnownParameter overlap() {
  return {
      .name = kOverlap,
      .meaning = "whether gradients are reduced during the backward pass",
      .no_effect = "on one data-parallel rank",
      .no_effect_if = "dp == 1",
      .default_value = false,
      .default_range = "[true, false]",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/overlap_comm", .first_stage = 1},
      .other_names = {{"overlap_grad_reduce", "Megatron-LM"}},
  };
}

WellKnownParameter contiguous_gradients() {
  return {
      .name = kContiguousGradients,
      .meaning = "whether gradients are copied into one buffer as they are made",
      .default_value = true,
      .default_range = "[true, false]",
      .modelling = Modelling::kDefaultOnly,
      .deepspeed = {.key = "/zero_optimization/contiguous_gradients", .first_stage = 1},
  };
}

WellKnownParameter round_robin_gradients() {
  return {
      .name = "round_robin_gradients",
      .meaning = "whether ranks copy gradients to the host one after the other (with offload)",
      .default_value = false,
      .default_range = "[true, false]",
      .modelling = Modelling::kDefaultOnly,
      .deepspeed = {.key = "/zero_optimization/round_robin_gradients", .first_stage = 1},
  };
}

WellKnownParameter prefetch() {
  return {
      .name = kPrefetch,
      .unit = "elements",
      .meaning = "size of the parameters that are gathered before they are used",
      .no_effect = "below stage 3; on one data-parallel rank",
      .no_effect_if = "zero_stage < 3 || dp == 1",
      .default_value = std::int64_t{50'000'000},
      .default_range = R"({"min": 1e6, "max": 1e9, "scale": "log", "steps": 16})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/stage3_prefetch_bucket_size",
                    .second_key = "/zero_optimization/prefetch_bucket_size",
                    .first_stage = 3},
  };
}

WellKnownParameter persistence() {
  return {
      .name = kPersistence,
      .unit = "elements",
      .meaning = "tensors up to this size stay whole on every rank",
      .no_effect = "below stage 3",
      .no_effect_if = "zero_stage < 3",
      .default_value = std::int64_t{100'000},
      .default_range = R"({"min": 1e4, "max": 1e7, "scale": "log", "steps": 7})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/stage3_param_persistence_threshold",
                    .second_key = "/zero_optimization/param_persistence_threshold",
                    .first_stage = 3},
  };
}

WellKnownParameter max_live() {
  return {
      .name = kMaxLive,
      .unit = "elements",
      .meaning = "largest size of gathered parameters before some are released",
      .no_effect = "below stage 3",
      .no_effect_if = "zero_stage < 3",
      .default_value = std::int64_t{1'000'000'000},
      .default_range = R"({"min": 1e7, "max": 1e10, "scale": "log", "steps": 7})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/stage3_max_live_parameters",
                    .second_key = "/zero_optimization/max_live_parameters",
                    .first_stage = 3},
  };
}

WellKnownParameter max_reuse() {
  return {
      .name = kMaxReuse,
      .unit = "elements",
      .meaning = "a parameter that is used again within this distance is kept",
      .no_effect = "below stage 3",
      .no_effect_if = "zero_stage < 3",
      .default_value = std::int64_t{1'000'000'000},
      .default_range = R"({"min": 1e7, "max": 1e10, "scale": "log", "steps": 7})",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/stage3_max_reuse_distance",
                    .second_key = "/zero_optimization/max_reuse_distance",
                    .first_stage = 3},
  };
}

WellKnownParameter offload_optimizer() {
  return {
      .name = kOffloadOptimizer,
      .meaning = "where the optimizer's states live and its step runs",
      .default_value = "none",
      .default_range = R"(["none", "cpu", "nvme"])",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/offload_optimizer/device",
                    .old_key = "/zero_optimization/cpu_offload",
                    .first_stage = 1,
                    .off = "none",
                    .is_offload = true},
      .rule = {.words = {{"cpu", -0.3, -0.4}, {"nvme", -1.0, -0.4}}},
  };
}

WellKnownParameter offload_param() {
  return {
      .name = kOffloadParam,
      .meaning = "where the sharded parameters of stage 3 live",
      .no_effect = "below stage 3",
      .no_effect_if = "zero_stage < 3",
      .default_value = "none",
      .default_range = R"(["none", "cpu", "nvme"])",
      .modelling = Modelling::kFull,
      .deepspeed = {.key = "/zero_optimization/offload_param/device",
                    .old_key = "/zero_optimization/cpu_offload_param",
                    .first_stage = 3,
                    .off = "none",
                    .is_offload = true},
      .rule = {.words = {{"cpu", -0.5, -0.2}, {"nvme", -1.5, -0.2}}},
  };
}

// NCCL user guide: ncclConfig_t.maxCTAs and NCCL_MAX_CTAS (2.17), "User Buffer Registration" (2.19), "Window
// Registration" (2.27), NCCL_CTA_POLICY_ZERO (2.28). Each block of a collective takes a multiprocessor away from the
// kernels beside it.
WellKnownParameter nccl_max_ctas() {
  return {
      .name = kNcclMaxCtas,
      .unit = "thread blocks",
      .meaning = "most thread blocks that NCCL uses for a collective on a GPU (NCCL_MAX_CTAS); 0: NCCL decides",
      .no_effect = "on one rank",
      .no_effect_if = "ranks == 1",
      .default_value = std::int64_t{0},
      .default_range = "[0, 4, 8, 16, 32]",
      .modelling = Modelling::kExecuted,
  };
}

WellKnownParameter nccl_buffers() {
  return {
      .name = kNcclBuffers,
      .meaning =
          "how NCCL reads and writes tensors: through buffers of its own, in place, in windows at the same place on "
          "all "
          "ranks, or so that copy engines gather them",
      .no_effect = "on one rank",
      .no_effect_if = "ranks == 1",
      .default_value = "plain",
      .default_range = R"(["plain", "registered", "symmetric", "copy_engines"])",
      .modelling = Modelling::kExecuted,
  };
}

}  // namespace

const std::vector<WellKnownParameter>& well_known_parameters() {
  static const std::vector<WellKnownParameter> kTable = {zero_stage(),
                                                         micro_batch(),
                                                         accumulation(),
                                                         checkpointing(),
                                                         tensor_parallel(),
                                                         checkpoint_layers(),
                                                         recompute_modules(),
                                                         sequence_parallel(),
                                                         pipeline_parallel(),
                                                         virtual_pipeline(),
                                                         pipeline_schedule(),
                                                         context_parallel(),
                                                         context_kind(),
                                                         expert_parallel(),
                                                         expert_tensor_parallel(),
                                                         moe_dispatch(),
                                                         moe_overlap(),
                                                         tensor_overlap(),
                                                         hybrid_shard(),
                                                         secondary_shard(),
                                                         reduce_bucket(),
                                                         allgather_bucket(),
                                                         overlap(),
                                                         contiguous_gradients(),
                                                         round_robin_gradients(),
                                                         prefetch(),
                                                         persistence(),
                                                         max_live(),
                                                         max_reuse(),
                                                         offload_optimizer(),
                                                         offload_param(),
                                                         nccl_max_ctas(),
                                                         nccl_buffers()};
  return kTable;
}

const WellKnownParameter* find_well_known(std::string_view name) {
  const auto& table = well_known_parameters();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& known) { return name == known.name; });
  return found == table.end() ? nullptr : &*found;
}

std::string_view well_known_name(std::string_view name) {
  if (find_well_known(name) != nullptr) return name;
  for (const WellKnownParameter& known : well_known_parameters()) {
    for (const OtherName& other : known.other_names) {
      if (name == other.name) return known.name;
    }
  }
  return "";
}

bool needs_other_data_ranks(const WellKnownParameter& known) {
  if (*known.no_effect_if == '\0') return false;
  const Value alone = std::int64_t{1};
  const auto only_dp = [&](std::string_view name) { return name == "dp" ? &alone : nullptr; };
  return Expression::parse(known.no_effect_if).holds(only_dp).value_or(false);
}

namespace {

std::string product_of_divisors() {
  std::string product;
  for (const char* divisor : rank_divisors()) product += (product.empty() ? "" : " * ") + std::string(divisor);
  return product;
}

}  // namespace

const std::vector<KnownFact>& known_facts() {
  static const std::vector<KnownFact> kFacts = {
      {"dp", "data-parallel ranks: ranks / (" + product_of_divisors() + ")"},
      {"ranks", "ranks of the whole job: nodes * gpus_per_node"},
      {"nodes", "nodes of the cluster"},
      {"gpus_per_node", "GPUs (or CPU ranks) of a node"},
      {"layers", "layers of the model"},
      {"hidden", "width of the model"},
      {"heads", "attention heads"},
      {"kv_heads", "heads of keys and values"},
      {"vocab", "tokens of the vocabulary"},
      {"seq_len", "tokens of a sequence"},
      {"train_batch_size", "sequences of an optimizer step, if it is kept constant"},
  };
  return kFacts;
}

}  // namespace krigtune::space

// Numbers without their own source come from experiments/data/README.md.
#include "cost/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "space/well_known.h"

namespace krigtune::cost {
namespace {

// PyTorch without compilation: kernels are not fused, and one operation of the plan is several kernels, each called
// from Python. Fitted on llmfoundry_mpt_fsdp.csv and on vtrain_single_node.csv.
constexpr double kEagerBytes = 2.8;
constexpr double kEagerIssueS = 80e-6;
// With fused layers: 5 kernels of 5 microseconds and their call.
constexpr double kFusedIssueS = 30e-6;

// A logit of 2 bytes is copied to fp32 (2 + 4 bytes), its log-softmax is computed (4 + 4), differentiated (4 + 4) and
// rounded (4 + 2). The plan's kernel reads and writes it once (2 + 2).
constexpr double kEagerLossBytes = 28.0 / 4.0;

// The usual settings of Megatron and of frameworks modelled after it: --sequence-parallel whenever layers are split
// (Korthikanti et al. 2022; tp_mode REDUCE_SCATTER in nanotron's examples) and --use-distributed-optimizer.
space::Configuration tensor_parallel_habits() {
  return {{space::kSequenceParallel, true}, {space::kZeroStage, std::int64_t{1}}};
}

FrameworkTraits krigtune_bench() {
  return {
      .framework = workload::Framework::kKrigtune,
      .name = "krigtune",
      .exact_memory = true,
      .context_bytes = 0.0,
      .fragmentation = 1.0,
      .log_stddev = 0.0,
      .step_overhead_s = 0.0,
      .has_zero_knobs = true,
      .always_takes_norm = false,
  };
}

FrameworkTraits deepspeed() {
  return {
      .framework = workload::Framework::kDeepSpeed,
      .name = "deepspeed",
      .dialect = workload::Dialect::kDeepSpeed,
      .logits_bytes = 12.0,
      .log_stddev = 0.12,
      .elementwise_factor = kEagerBytes,
      .loss_factor = kEagerLossBytes,
      .issue_s = kEagerIssueS,
      .has_zero_knobs = true,
      .grows_gradients = true,
      .whole_packed_buckets = true,
      .even_stages = true,  // partition_method "type:transformer", as Megatron-DeepSpeed sets it
  };
}

FrameworkTraits fsdp() {
  return {
      .framework = workload::Framework::kFsdp,
      .name = "fsdp",
      .elementwise_factor = kEagerBytes,
      .optimizer_factor = kEagerBytes,
      .loss_factor = kEagerLossBytes,
      // llm-foundry uses FlashAttention's first version (Dao 2023: 1.7 to 3 times slower than the second).
      .attention_factor = 0.55,
      .issue_s = kEagerIssueS,
      .overlap_slowdown = 1.3,  // Galvatron's default (Miao et al. 2022)
      .units_from_stage = 0,
      // FSDP2 (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, post_backward) and FSDP1 all-reduce behind
      // each reduce-scatter. MiCS (deepspeed/runtime/zero/mics.py) and Megatron do in the last micro-step.
      .sums_copies_every_time = true,
      .recompute_stops_early = true,                    // torch.utils.checkpoint without re-entrance
      .usual = {{space::kZeroStage, std::int64_t{3}}},  // ShardingStrategy.FULL_SHARD, the default
  };
}

FrameworkTraits megatron() {
  return {
      .framework = workload::Framework::kMegatron,
      .name = "megatron",
      .logits_bytes = 2.0,
      .hides_tensor_backward = true,  // since 2022, in Transformer Engine's layers too
      .vendor_attention = true,       // Transformer Engine
      .separate_experts = true,       // its GroupedLinear
      .position_first = true,
      .issue_s = kFusedIssueS,
      // The implementation of Zero Bubble, a fork (github.com/sail-sg/zero-bubble-pipeline-parallelism:
      // --enable-optimizer-post-validation). Megatron-LM itself has no such schedule.
      .validates_later = true,
      .sends_kept_gradients = true,
      .bucket_bytes = 1.6e8,
      .units_from_stage = 2,  // Megatron-FSDP, optim_grads and optim_grads_params
      .even_stages = true,
      .usual = tensor_parallel_habits(),
  };
}

FrameworkTraits nanotron() {
  return {
      .framework = workload::Framework::kNanotron,
      .name = "nanotron",
      .activation_factor = 1.6,  // unfused layers; this, the logits and the spread are fitted on ultrascale_dev.csv
      .logits_bytes = 9.0,
      .context_bytes = 1e9,
      .log_stddev = 0.15,
      .elementwise_factor = kEagerBytes,
      .optimizer_factor = kEagerBytes,
      .loss_factor = kEagerLossBytes,
      .issue_s = kEagerIssueS,
      // Fitted on ultrascale_dev.csv, with an all-gather and a reduce-scatter instead of an all-reduce (sequence
      // parallelism).
      .internode_issue_s = 1e-3,
      .pipelined_issue_s = 0.3e-3,
      .pipelined_wait_s = 0.3,
      .sends_kept_gradients = true,
      .bucket_bytes = 25e6,
      .most_zero_stage = 1,
      .usual = tensor_parallel_habits(),
  };
}

const std::array<FrameworkTraits, 5>& registry() {
  static const std::array kTraits = {krigtune_bench(), deepspeed(), fsdp(), megatron(), nanotron()};
  return kTraits;
}

}  // namespace

const FrameworkTraits& traits_of(workload::Framework framework) {
  for (const FrameworkTraits& traits : registry()) {
    if (traits.framework == framework) return traits;
  }
  assert(false);
  return registry().front();
}

FrameworkTraits kernel_traits_of(const workload::Workload& workload) {
  FrameworkTraits traits = traits_of(workload.framework);
  if (!workload.training.compile) return traits;
  traits.elementwise_factor = 1.0;
  traits.issue_s = std::min(traits.issue_s, kFusedIssueS);
  return traits;
}

space::Configuration with_usual_settings(const workload::Workload& workload,
                                         const space::Configuration& configuration) {
  space::Configuration completed = configuration;
  for (const auto& [name, value] : traits_of(workload.framework).usual) {
    if (configuration.has(name)) continue;
    const std::int64_t ranks = configuration.integer(space::kTensorParallel, 1);
    const bool splits_tokens = name == space::kSequenceParallel;
    if (!splits_tokens || (ranks > 0 && workload.model.seq_len % ranks == 0)) completed.set(name, value);
  }
  return completed;
}

workload::Workload in_framework_dialect(const workload::Workload& workload) {
  workload::Workload translated = workload;
  if (workload.framework != workload::Framework::kKrigtune) translated.dialect = traits_of(workload.framework).dialect;
  return translated;
}

}  // namespace krigtune::cost

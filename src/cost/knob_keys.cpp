#include "cost/knob_keys.h"

#include <algorithm>

namespace krigtune::cost {
namespace {

using schedule::Knobs;

constexpr std::int64_t kLargeBucket = std::int64_t{1} << 50;

// What the data ranks share and send.
void leave_out_sharding(Knobs& knobs) {
  const Knobs defaults;
  knobs.copies = defaults.copies;
  knobs.secondary_ranks = defaults.secondary_ranks;
  knobs.zero_stage = defaults.zero_stage;
  knobs.reduce_bucket_elems = kLargeBucket;
  knobs.allgather_bucket_elems = kLargeBucket;
  knobs.overlap_comm = defaults.overlap_comm;
  knobs.offload_optimizer = defaults.offload_optimizer;
  knobs.offload_parameters = defaults.offload_parameters;
  knobs.prefetch_elems = defaults.prefetch_elems;
  knobs.persistence_elems = defaults.persistence_elems;
  knobs.max_live_elems = defaults.max_live_elems;
  knobs.max_reuse_elems = defaults.max_reuse_elems;
  knobs.nccl = defaults.nccl;
}

void leave_out_data_ranks(Knobs& knobs) {
  leave_out_sharding(knobs);
  knobs.data_ranks = Knobs().data_ranks;
}

// The order of micro-steps, and of the stages that they pass.
void leave_out_order(Knobs& knobs) {
  const Knobs defaults;
  knobs.virtual_stages = defaults.virtual_stages;
  knobs.pipeline_schedule = defaults.pipeline_schedule;
  knobs.micro_steps = defaults.micro_steps;
}

// How tokens travel between the ranks that share them.
void leave_out_exchanges(Knobs& knobs) {
  const Knobs defaults;
  knobs.dispatch = defaults.dispatch;
  knobs.overlaps_experts = defaults.overlaps_experts;
  knobs.overlaps_tensor = defaults.overlaps_tensor;
}

// How ranks that share a sequence attend to each other's tokens.
void leave_out_context_kind(Knobs& knobs) {
  const Knobs defaults;
  knobs.context_kind = defaults.context_kind;
  knobs.head_ranks = defaults.head_ranks;
}

void leave_out_kept_activations(Knobs& knobs) {
  const Knobs defaults;
  knobs.checkpointing = defaults.checkpointing;
  knobs.modules = defaults.modules;
  knobs.checkpoint_layers = defaults.checkpoint_layers;
}

}  // namespace

Knobs of_block(Knobs knobs) {
  const Knobs defaults;
  leave_out_data_ranks(knobs);
  leave_out_order(knobs);
  leave_out_exchanges(knobs);
  leave_out_context_kind(knobs);
  knobs.context_ranks = defaults.context_ranks;  // the workload has the rank's tokens and experts
  knobs.expert_ranks = defaults.expert_ranks;
  knobs.pipeline_ranks = defaults.pipeline_ranks;
  knobs.micro_steps = 2;
  knobs.checkpoint_layers = 1;
  return knobs;
}

Knobs of_template(Knobs knobs) {
  leave_out_data_ranks(knobs);
  leave_out_order(knobs);
  knobs.pipeline_ranks = std::min<std::int64_t>(knobs.pipeline_ranks, 2);
  knobs.checkpoint_layers = std::min<std::int64_t>(knobs.checkpoint_layers, 2);
  return knobs;
}

Knobs of_profile(Knobs knobs) {
  leave_out_data_ranks(knobs);
  leave_out_order(knobs);
  leave_out_exchanges(knobs);
  knobs.pipeline_ranks = Knobs().pipeline_ranks;
  knobs.micro_batch = 1;
  knobs.checkpoint_layers = 2;
  return knobs;
}

Knobs of_tensors(Knobs knobs) {
  const Knobs defaults;
  leave_out_sharding(knobs);
  leave_out_order(knobs);
  leave_out_exchanges(knobs);
  leave_out_context_kind(knobs);
  leave_out_kept_activations(knobs);
  knobs.context_ranks = defaults.context_ranks;
  knobs.pipeline_ranks = defaults.pipeline_ranks;
  knobs.micro_batch = defaults.micro_batch;
  return knobs;
}

Knobs of_spans(Knobs knobs) {
  const Knobs defaults;
  const std::int64_t copies = knobs.copies;
  const std::int64_t secondary_ranks = knobs.secondary_ranks;
  knobs = of_tensors(knobs);
  knobs.copies = copies;
  knobs.secondary_ranks = secondary_ranks;
  knobs.sequence_parallel = defaults.sequence_parallel;
  return knobs;
}

}  // namespace krigtune::cost

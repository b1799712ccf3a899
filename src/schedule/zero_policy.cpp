// The stages are those of Rajbhandari et al. 2020 ("ZeRO: Memory optimizations toward training trillion parameter
// models"). The dialect deepspeed follows DeepSpeed 0.19: runtime/zero/stage_1_and_2.py reduces contiguous buckets with
// all-reduce and lets one travel while the next is filled, engine.py reduces stage 0 behind backward,
// runtime/zero/stage3.py and partitioned_param_coordinator.py allow two reductions and two fetches under way.
#include "schedule/zero_policy.h"

namespace krigtune::schedule {
namespace {

void reduce_as_canonical(ZeroPolicy& policy, const Knobs& knobs) {
  const bool overlap = knobs.overlap_comm;
  policy.reduction = knobs.zero_stage == 0 ? OpKind::kAllReduce : OpKind::kReduceScatter;
  // Gradients that are reduced in place may all be in flight at once; others are freed after their reduction.
  policy.reductions_under_way = !overlap ? 0 : policy.shards_gradients ? 1 : ZeroPolicy::kNoLimit;
  policy.prefetches = overlap;
  policy.prefetches_one_at_least = overlap;
  policy.gathers_under_way = overlap ? ZeroPolicy::kNoLimit : 0;
  policy.gathers_updates_at_once = knobs.zero_stage == 3;
}

void reduce_as_deepspeed(ZeroPolicy& policy, const Knobs& knobs) {
  const bool overlap = knobs.overlap_comm && knobs.zero_stage > 0;
  policy.reduction = knobs.zero_stage == 3 ? OpKind::kReduceScatter : OpKind::kAllReduce;
  policy.reduces_behind_backward = knobs.zero_stage == 0;
  policy.packs = true;
  policy.packing_stream = knobs.zero_stage == 3 ? Stream::kReduce : Stream::kCompute;
  policy.keeps_packed_buckets = knobs.zero_stage == 3;
  policy.packed_buckets = overlap && knobs.zero_stage < 3 ? 2 : 1;
  policy.reductions_under_way = !overlap ? 0 : knobs.zero_stage == 3 ? 2 : 1;
  policy.fetches_tensors = true;
  policy.prefetches = true;
  policy.gathers_under_way = overlap ? 2 : 0;
  policy.gathers_updates_at_once = true;
}

OpKind update_of(workload::OptimizerKind optimizer) {
  switch (optimizer) {
    case workload::OptimizerKind::kAdamW:
      return OpKind::kAdamW;
    case workload::OptimizerKind::kSgd:
      return OpKind::kSgd;
    case workload::OptimizerKind::kAdamW8bit:
      return OpKind::kAdamW8bit;
    case workload::OptimizerKind::kLion:
    case workload::OptimizerKind::kLion8bit:
      return OpKind::kLion;
    case workload::OptimizerKind::kAdafactor:
      return OpKind::kAdafactor;
    case workload::OptimizerKind::kSgdPlain:
      return OpKind::kSgdPlain;
    case workload::OptimizerKind::kMuon:  // beside the update of matrices
      return OpKind::kAdamW;
  }
  return OpKind::kAdamW;
}

DType type_of(workload::StateType type) {
  switch (type) {
    case workload::StateType::kFp32:
      return DType::kFp32;
    case workload::StateType::kBf16:
      return DType::kBf16;
    case workload::StateType::kFp16:
      return DType::kFp16;
    case workload::StateType::kFp8:
      return DType::kUint8;
  }
  return DType::kFp32;
}

void keep_states(ZeroPolicy& policy, const workload::Workload& workload) {
  const workload::OptimizerTraits& optimizer = workload::traits_of(workload.optimizer);
  const workload::StateTypes& types = workload.training.state_types;
  policy.update = update_of(workload.optimizer);
  policy.moments = optimizer.moments;
  policy.orthogonalizes = optimizer.orthogonalizes;
  const bool as_model = workload.training.states == workload::OptimizerStates::kAsModel;
  const bool is_mixed = policy.type != DType::kFp32;
  policy.master_type = as_model ? policy.type : is_mixed ? type_of(types.masters) : DType::kFp32;
  policy.moment_types = {as_model ? policy.type : type_of(types.first_moment),
                         as_model ? policy.type : type_of(types.second_moment)};
  if (optimizer.in_8_bits) policy.moment_types = {DType::kUint8, DType::kUint8};
}

}  // namespace

double first_loss_scale(workload::Precision precision) {
  return precision == workload::Precision::kFp16 ? 0x1.0p16 : 1.0;
}

ZeroPolicy make_policy(const workload::Workload& workload, const Knobs& knobs) {
  ZeroPolicy policy;
  policy.type = compute_type(workload.precision);
  keep_states(policy, workload);
  policy.controls = workload.gradient_clipping > 0.0 || workload.precision == workload::Precision::kFp16;
  policy.shards_optimizer = knobs.zero_stage >= 1;
  policy.shards_gradients = knobs.zero_stage >= 2;
  policy.shards_parameters = knobs.zero_stage >= 3;
  policy.optimizer_place = knobs.offload_optimizer ? Place::kHost : Place::kDevice;
  policy.shard_place = knobs.offload_parameters ? Place::kHost : Place::kDevice;
  if (workload.dialect == workload::Dialect::kDeepSpeed) {
    reduce_as_deepspeed(policy, knobs);
  } else {
    reduce_as_canonical(policy, knobs);
  }
  return policy;
}

}  // namespace krigtune::schedule

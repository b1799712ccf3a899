#pragma once
#include <cstdint>

#include "plan/build_plan.h"

namespace krigtune {

/// A transformer so small that a step takes about a millisecond. Its sizes are odd, so that every tensor has padding.
inline workload::Workload small_model(std::int64_t layers = 2) {
  workload::Workload workload;
  workload.model = {
      .layers = layers, .hidden = 24, .heads = 3, .kv_heads = 3, .ffn_hidden = 40, .vocab = 67, .seq_len = 9};
  return workload;
}

inline workload::ClusterSpec cpu_ranks(std::int64_t ranks) {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = ranks;
  return cluster;
}

inline space::Configuration configuration(std::int64_t stage, std::int64_t micro_batch, std::int64_t micro_steps,
                                          std::int64_t reduce_bucket, std::int64_t gather_bucket, bool overlap) {
  return {{"zero_stage", stage},
          {"micro_batch", micro_batch},
          {"gradient_accumulation_steps", micro_steps},
          {"reduce_bucket_size", reduce_bucket},
          {"allgather_bucket_size", gather_bucket},
          {"overlap_comm", overlap},
          {"stage3_prefetch_bucket_size", std::int64_t{0}},
          {"stage3_param_persistence_threshold", std::int64_t{0}}};
}

}  // namespace krigtune

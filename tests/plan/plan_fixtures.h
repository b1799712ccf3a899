#pragma once
#include <cstdint>
#include <vector>

#include "plan/build_plan.h"
#include "plan/memory.h"

namespace krigtune {

inline workload::Workload small_workload() {
  workload::Workload workload;
  workload.model = {.layers = 3, .hidden = 32, .heads = 4, .kv_heads = 4, .ffn_hidden = 128, .vocab = 50, .seq_len = 8};
  return workload;
}

inline workload::ClusterSpec cpu_ranks(std::int64_t ranks) {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = ranks;
  return cluster;
}

inline space::Configuration knobs(std::int64_t stage, std::int64_t micro_batch, std::int64_t micro_steps,
                                  std::int64_t bucket_elems, bool overlap) {
  return {{"zero_stage", stage},
          {"micro_batch", micro_batch},
          {"gradient_accumulation_steps", micro_steps},
          {"reduce_bucket_size", bucket_elems},
          {"allgather_bucket_size", bucket_elems},
          {"overlap_comm", overlap},
          {"stage3_prefetch_bucket_size", std::int64_t{0}},
          {"stage3_param_persistence_threshold", std::int64_t{0}}};
}

/// Calls `visit(plan)` for stages x ranks x micro-steps x buckets x overlap: 144 plans.
template <class Visit>
void for_each_plan(Visit visit) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const std::int64_t ranks : {1, 2, 4}) {
      for (const std::int64_t micro_steps : {1, 3}) {
        for (const std::int64_t bucket_elems : {1, 5'000, 10'000'000}) {
          for (const bool overlap : {false, true}) {
            visit(plan::build_plan(small_workload(), cpu_ranks(ranks),
                                   knobs(stage, 2, micro_steps, bucket_elems, overlap)));
          }
        }
      }
    }
  }
}

/// Happens-before by its definition: reachability along stream order and waits. Quadratic and obvious.
class Reachability {
 public:
  explicit Reachability(const plan::StepPlan& plan) : before_(plan.operations.size()) {
    const std::size_t count = plan.operations.size();
    for (std::size_t i = 0; i < count; ++i) {
      before_[i].assign(count, false);
      const auto inherit = [&](std::size_t j) {
        before_[i][j] = true;
        for (std::size_t k = 0; k < count; ++k) before_[i][k] = before_[i][k] || before_[j][k];
      };
      for (std::size_t j = 0; j < i; ++j) {
        if (plan.operations[j].stream == plan.operations[i].stream) inherit(j);
      }
      for (const plan::OpId j : plan.operations[i].waits) inherit(static_cast<std::size_t>(j));
    }
  }
  bool ordered(std::size_t a, std::size_t b) const { return before_[a][b] || before_[b][a]; }
  bool before(std::size_t a, std::size_t b) const { return before_[b][a]; }

 private:
  std::vector<std::vector<bool>> before_;
};

}  // namespace krigtune

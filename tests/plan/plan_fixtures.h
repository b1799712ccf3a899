#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/build_plan.h"
#include "plan/memory.h"
#include "plan/op_traits.h"

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

/// Plans a micro-step on one tensor group.
inline plan::StepPlan plan_of(const workload::Workload& workload, std::int64_t tensor_parallel = 1,
                              bool sequence_parallel = false, const char* checkpointing = "none",
                              std::int64_t micro_batch = 1) {
  return plan::build_plan(workload, cpu_ranks(tensor_parallel),
                          {{"micro_batch", micro_batch},
                           {"tensor_parallel", tensor_parallel},
                           {"sequence_parallel", sequence_parallel},
                           {"activation_checkpointing", std::string(checkpointing)}});
}

inline double flops_of(const plan::StepPlan& plan, schedule::OpKind kind) {
  double flops = 0.0;
  for (const plan::Operation& operation : plan.operations) flops += operation.kind == kind ? operation.flops : 0.0;
  return flops;
}

/// Of matrix products.
inline double product_flops(const plan::StepPlan& plan) {
  double flops = 0.0;
  for (const plan::Operation& operation : plan.operations)
    if (plan::is_matrix_product(operation.kind)) flops += operation.flops;
  return flops;
}

/// Of all buffers of a term.
inline std::int64_t bytes_of(const plan::StepPlan& plan, schedule::Term term) {
  std::int64_t bytes = 0;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.term == term) bytes += buffer.bytes();
  return bytes;
}

/// What is kept from forward to backward.
inline std::int64_t kept_bytes(const plan::StepPlan& plan) { return bytes_of(plan, schedule::Term::kActivations); }

/// Of all parameters that a tensor rank has.
inline std::int64_t tensor_elems(const plan::StepPlan& plan) {
  std::int64_t elems = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
  return elems;
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

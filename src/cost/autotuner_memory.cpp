// The formula of DeepSpeed's autotuner (0.19, autotuning/autotuner.py, get_instantiation_memory_required_per_gpu and
// _get_activation_memory_per_gpu), with N the whole world:
//
//   states = (params + grads + optimizer) / tensor_parallel,   P times 2 + 2 + 16 in fp16, 4 + 4 + 8 otherwise;
//   the optimizer's part over N from stage 1 on, the gradients' from stage 2 on, the parameters' in stage 3
//   needed = states + micro_batch * (what the forward pass of one sequence leaves)
//
// It is reproduced with its defects, which is what the comparison is for:
// - 16 of the optimizer are 4 + 8 and an fp32 copy of the gradients that lives in the step only, when no activation is
//   there: too much by 4 P / N, at stage 0 by 4 P (issues 3598, 4519 of microsoft/DeepSpeed);
// - only the block fp16 is looked at: bf16 is taken for fp32;
// - N is data times tensor ranks, and the quotient is divided by the tensor ranks once more;
// - buckets, gathered parameters, what backward needs, context, fragmentation and offload do not exist.
#include "autotuner_memory.h"

#include <cmath>

namespace krigtune {

MemoryEstimate deepspeed_autotuner_estimate(const MemoryProfile& profile, const Workload& workload,
                                            const Knobs& knobs) {
  const bool fp16 = workload.precision == Precision::kFp16;
  const auto parameters = static_cast<double>(parameter_count(workload.model));
  const auto world = static_cast<double>(knobs.data_ranks * knobs.tensor_ranks * knobs.pipeline_ranks);
  const auto tensor = static_cast<double>(knobs.tensor_ranks);
  const auto part = [&](double bytes, std::int64_t from_stage) {
    const double shared = bytes * parameters / (knobs.zero_stage >= from_stage ? world : 1.0);
    return static_cast<std::int64_t>(std::llround(shared / tensor));
  };
  const std::int64_t group = knobs.checkpointing == Checkpointing::kFull ? knobs.checkpoint_layers : 1;
  MomentBytes needed = profile.embedding_kept;
  needed += profile.group_kept * ((workload.model.layers + group - 1) / group);
  needed += profile.head_backward.start;
  needed = needed * knobs.micro_batch;
  needed.add(Term::kParameters, part(fp16 ? 2.0 : 4.0, 3));
  needed.add(Term::kGradients, part(fp16 ? 2.0 : 4.0, 2));
  needed.add(Term::kOptimizerState, part(fp16 ? 16.0 : 8.0, 1));
  MemoryEstimate estimate;
  estimate.term_bytes = needed.terms;
  estimate.optimistic = estimate.expected = estimate.conservative = {needed.total};
  estimate.peak_at = "forward";
  return estimate;
}

}  // namespace krigtune

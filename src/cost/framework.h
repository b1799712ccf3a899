#pragma once
#include <cstdint>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// How a framework differs from the plan: its buffers, what its allocator and libraries keep, how it issues kernels.
/// The registry (src/cost/framework.cpp) has one row for each framework, and a source for every number.
struct FrameworkTraits {
  workload::Framework framework{};
  const char* name = "";
  workload::Dialect dialect = workload::Dialect::kCanonical;  ///< the schedule closest to the framework's
  bool exact_memory = false;                                  ///< the program runs exactly the plan
  // Memory:
  double activation_factor = 1.0;  ///< on the plan's activations: unfused kernels keep more
  double logits_bytes = 6.0;       ///< of one logit: its 16-bit value, its fp32 copy and their gradients
  double context_bytes = 1.5e9;    ///< CUDA context and communicators
  double fragmentation = 1.06;     ///< reserved bytes divided by allocated bytes
  double log_stddev = 0.1;         ///< of measured over predicted peaks
  // Time:
  bool overlaps = true;  ///< reduces gradients during the backward pass
  /// Runs collectives of the tensor group beside products in the backward pass, as products_beside_collectives pairs
  /// them (cost/time/tensor_overlap.h).
  bool hides_tensor_backward = false;
  double elementwise_factor = 1.0;  ///< on the plan's bytes: results that are not fused are written and read again
  double optimizer_factor = 1.0;    ///< the same for the update
  double loss_factor = 1.0;         ///< the same for the loss and its gradient
  double attention_factor = 1.0;    ///< on the rate of attention kernels: 1 is FlashAttention-2
  bool vendor_attention = false;    ///< has the vendor's attention kernels (cuDNN) on devices whose rate is known
  bool separate_experts = false;    ///< calls a product for each expert, unless TrainingSpec::fused_experts
  bool position_first = false;      ///< activations are (position, sequence, width), not (sequence, position, width)
  double issue_s = 5e-6;            ///< time of the program's thread to issue all kernels of one operation of the plan
  // Additional time for a collective of the tensor-parallel group:
  double internode_issue_s = 0.0;  ///< for each further node of the group
  double pipelined_issue_s = 0.0;  ///< for each rank of the group if there are pipeline stages
  /// Additional time of a send between pipeline stages in a job of 64 nodes. It grows with the square of the nodes.
  double pipelined_wait_s = 0.0;
  double overlap_slowdown = 1.1;  ///< of kernels during collectives
  double step_overhead_s = 9e-3;  ///< once per step
  /// Whether, with a schedule that splits the backward pass, pipeline ranks update and begin the next step without
  /// waiting for each other, and undo the update if another rank found an overflow ("post-validation",
  /// arXiv:2401.10241, section 4).
  bool validates_later = false;
  // Schedule, if the configuration does not determine it:
  /// Gradients are sent in the type in which they are kept (workload::kept_gradients); otherwise in the model's type.
  bool sends_kept_gradients = false;
  double bucket_bytes = 0.0;  ///< size of gradient buckets as they are sent; 0: reduce_bucket_size
  /// From this stage on it shards unit by unit, and at stage 3 no parameter stays whole; 4: never.
  std::int64_t units_from_stage = 4;
  /// Whether its jobs set overlap_comm; other frameworks have no such knob, or another name for it.
  bool has_zero_knobs = false;
  /// Whether it computes the norm of the whole gradient before any update, even without clipping.
  bool always_takes_norm = true;
  bool sums_copies_every_time = false;  ///< see ZeroPolicy
  std::int64_t most_zero_stage = 3;     ///< the largest stage that resembles its memory
  bool grows_gradients = false;         ///< below stage 2 gradients take memory only when backward has computed them
  bool whole_packed_buckets = false;    ///< all allocated at once, with the knob's size, regardless of the model's size
  /// Whether recomputation of a layer stops once everything that was not kept exists again.
  bool recompute_stops_early = false;
  /// Whether all pipeline stages have equally many layers; otherwise their times are as equal as possible.
  bool even_stages = false;
  space::Configuration usual = {};  ///< the usual settings of its jobs, assumed unless stated otherwise
};
const FrameworkTraits& traits_of(workload::Framework framework);
/// Returns the framework's traits as the job's kernels change them: those of a compiled model are fused, and issued
/// with less work.
FrameworkTraits kernel_traits_of(const workload::Workload& workload);
/// Returns the configuration with the framework's usual settings for possible parameters that it does not mention:
/// sequence_parallel only if tensor_parallel divides the tokens of a sequence.
space::Configuration with_usual_settings(const workload::Workload& workload, const space::Configuration& configuration);
/// Returns the workload in the dialect that is closest to its framework's schedule.
workload::Workload in_framework_dialect(const workload::Workload& workload);

}  // namespace krigtune::cost

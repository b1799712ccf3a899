#pragma once
#include <cstdint>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// What a framework does otherwise than the plan: its buffers, what its allocator and its libraries keep, how it issues
/// kernels. One line each in a registry (src/cost/framework.cpp), every number with its source.
struct FrameworkTraits {
  workload::Framework framework{};
  const char* name = "";
  workload::Dialect dialect = workload::Dialect::kCanonical;  ///< whose schedule comes closest
  bool exact_memory = false;                                  ///< the plan is what runs
  // Memory.
  double activation_factor = 1.0;  ///< on the plan's activations: unfused kernels keep more
  double logits_bytes = 6.0;       ///< of one logit, by its 16-bit value, its fp32 copy, their gradients
  double gradient_bytes = 2.0;     ///< of one element of the gradients that are kept
  double context_bytes = 1.5e9;    ///< CUDA context and communicators
  double fragmentation = 1.06;     ///< reserved over allocated
  double log_stddev = 0.1;         ///< of measured over predicted peaks
  // Time.
  bool overlaps = true;             ///< reduction beside the backward pass
  double elementwise_factor = 1.0;  ///< on the plan's bytes: what is not fused is read and written again
  double optimizer_factor = 1.0;    ///< likewise, of the update
  double loss_factor = 1.0;         ///< likewise, of the loss and its gradient
  double attention_factor = 1.0;    ///< on the rate of its kernels: 1 is FlashAttention-2
  double issue_s = 5e-6;            ///< of one operation of the plan by the program's thread, all its kernels
  // Of a collective of the tensor-parallel group, beside that:
  double internode_issue_s = 0.0;  ///< for each further node that the group spans
  double pipelined_issue_s = 0.0;  ///< for each rank of the group, where there are pipeline stages
  double pipelined_wait_s = 0.0;   ///< of a send between pipeline stages, in a job of 64 nodes; grows with their square
  double overlap_slowdown = 1.1;   ///< of kernels beside collectives
  double step_overhead_s = 9e-3;   ///< once a step
  // Schedule, where the configuration does not say it.
  double reduced_bytes = 0.0;          ///< of an element of the gradients that travel; 0: of the model's type
  double bucket_bytes = 0.0;           ///< of gradients, as they travel; 0: what reduce_bucket_size says
  bool whole_units = false;            ///< stage 3: parameters are sharded unit by unit, none stays whole
  bool has_zero_knobs = false;         ///< its jobs say overlap_comm, others have no knob for it, or others' names
  bool always_takes_norm = true;       ///< of the whole gradient before anything is updated, whether it clips or not
  std::int64_t most_zero_stage = 3;    ///< whose memory comes closest
  bool grows_gradients = false;        ///< below stage 2 they take memory only once backward has made them
  bool whole_packed_buckets = false;   ///< made all at once, as large as the knob says, whatever the model's size
  bool recompute_stops_early = false;  ///< of a layer, once all that was not kept is there again
  bool even_stages = false;            ///< as many layers in each pipeline stage; else as even in time as can be
  space::Configuration usual = {};     ///< what its jobs set as a rule: taken where nobody says otherwise
};
const FrameworkTraits& traits_of(workload::Framework framework);
/// The configuration, and of the framework's usual settings those that it does not name and that are possible:
/// sequence_parallel only where tensor_parallel divides the tokens of a sequence.
space::Configuration with_usual_settings(const workload::Workload& workload, const space::Configuration& configuration);
/// The workload in the dialect that comes closest to its framework's schedule.
workload::Workload in_framework_dialect(const workload::Workload& workload);

}  // namespace krigtune::cost

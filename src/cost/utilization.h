#pragma once
#include <cstdint>
#include <optional>

#include "schedule/knobs.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// The fraction of the GPUs' peak that a training step uses (0.4 means 40 %), by the conventions of publications.
struct Utilization {
  double tokens_per_s_per_gpu = 0.0;
  /// Model FLOPs utilization as in PaLM (Chowdhery et al. 2022, appendix B): 6 P + 12 L s h FLOPs per token.
  /// Recomputation does not count, and the causal mask saves nothing.
  double mfu = 0.0;
  double mfu_without_attention = 0.0;  ///< the same with 6 P FLOPs per token
  double hfu = 0.0;                    ///< hardware FLOPs utilization: mfu plus recomputation
  /// mfu exceeds kTooGoodMfu, or as many times that as products in fewer bits are faster.
  bool too_good = false;
};

/// A prediction above this is not credible: the best published runs of dense transformers reach 0.57 (Korthikanti et
/// al. 2022: 0.563 on A100s; benchmark reports of FSDP on A100s 0.57).
inline constexpr double kTooGoodMfu = 0.6;

/// Returns the utilization of a step over `sequences` sequences that takes `step_time_s`. Empty if no GPU is named, or
/// if its peak in the workload's precision is unknown.
std::optional<Utilization> utilization_of(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                                          schedule::Checkpointing checkpointing, std::int64_t sequences,
                                          double step_time_s);

}  // namespace krigtune::cost

#pragma once
#include <string>

#include "cost/framework.h"
#include "cost/memory/memory_model.h"
#include "cost/memory/memory_profile.h"
#include "cost/tensors_cache.h"

namespace krigtune::cost {

/// Memory that a framework uses in addition to the plan: the expected values, or conservative ones.
struct MemoryAssumptions {
  double activation_factor = 1.0;
  double logits_bytes = 6.0;
  double context_bytes = 0.0;
  double fragmentation = 1.0;
};
enum class MemoryOutlook { kExpected, kConservative };
MemoryAssumptions assumptions_of(const FrameworkTraits& traits, const schedule::Knobs& knobs, MemoryOutlook outlook,
                                 const MemoryCalibration& calibration);

/// Returns the profile with activations and logits as assumed.
MemoryProfile assumed_profile(MemoryProfile profile, const MemoryAssumptions& assumed, std::int64_t type_bytes);

struct FrameworkPeak {
  MomentBytes bytes;  ///< allocated bytes by term
  std::string at;
  /// For every stage, the moment with the most activations and its step, in a fixed order. Any of them may be the peak
  /// if the factors differ from the assumed ones.
  std::vector<MomentBytes> moments{};
  double gradients_left = 1.0;  ///< the share of gradients that a rank had if ranks sharded them as the states
};
/// Returns the peak of the pipeline stage that needs the most memory.
FrameworkPeak framework_peak(TensorsCache& cache, const MemoryProfile& profile, const workload::Workload& workload,
                             const schedule::Knobs& knobs);
/// Returns the moments by part, with the assumed overhead. `otherwise`: the same peak with tokens split the other way;
/// may be null. `checkpointing`: how the configuration recomputes activations.
std::vector<plan::MemoryParts> parts_of(const FrameworkPeak& peak, const FrameworkPeak* otherwise,
                                        const MemoryAssumptions& assumed, schedule::Checkpointing checkpointing);
/// Returns a lower bound for any program: states, half the gradients (a type of half the width), sharded if they may
/// be, and the smallest share of activations that frameworks keep, with the better split.
double least_bytes(const std::vector<plan::MemoryParts>& moments);
std::int64_t host_bytes_of_rank(TensorsCache& cache, const workload::Workload& workload, const schedule::Knobs& knobs);

std::string peak_text(const struct StepPeak& peak, std::int64_t micro_steps);

}  // namespace krigtune::cost

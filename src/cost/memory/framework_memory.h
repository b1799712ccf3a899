#pragma once
#include <string>

#include "cost/framework.h"
#include "cost/memory/memory_model.h"
#include "cost/memory/memory_profile.h"
#include "cost/tensors_cache.h"

namespace krigtune::cost {

/// What a framework keeps beside the plan's account, as expected, or on the heavy side.
struct MemoryAssumptions {
  double activation_factor = 1.0;
  double logits_bytes = 6.0;
  double context_bytes = 0.0;
  double fragmentation = 1.0;
};
enum class MemoryOutlook { kExpected, kConservative };
MemoryAssumptions assumptions_of(const FrameworkTraits& traits, const schedule::Knobs& knobs, MemoryOutlook outlook,
                                 const MemoryCalibration& calibration);

/// The profile with its activations and logits as assumed.
MemoryProfile assumed_profile(MemoryProfile profile, const MemoryAssumptions& assumed, std::int64_t type_bytes);

struct FrameworkPeak {
  MomentBytes bytes;  ///< allocated, by term
  std::string at;
  /// Of every stage the moment of most activations and its step, in a fixed order: any may be the peak where factors
  /// differ from those assumed.
  std::vector<MomentBytes> moments{};
};
/// Of the pipeline stage that needs most.
FrameworkPeak framework_peak(TensorsCache& cache, const MemoryProfile& profile, const workload::Workload& workload,
                             const schedule::Knobs& knobs);
/// The moments by part, their overhead as assumed. `otherwise`: the same with tokens split the other way; may be null.
std::vector<plan::MemoryParts> parts_of(const FrameworkPeak& peak, const FrameworkPeak* otherwise,
                                        const MemoryAssumptions& assumed);
/// Nothing that runs needs less: states, half the gradients (a type of half the width), and of the activations, split
/// the better way, what frameworks keep at least.
double least_bytes(const std::vector<plan::MemoryParts>& moments);
std::int64_t host_bytes_of_rank(TensorsCache& cache, const workload::Workload& workload, const schedule::Knobs& knobs);

std::string peak_text(const struct StepPeak& peak, std::int64_t micro_steps);

}  // namespace krigtune::cost

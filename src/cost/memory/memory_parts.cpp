// The moments of a step by what frameworks keep more or less of: the terms of a plan, put together.
#include <algorithm>

#include "memory/framework_memory.h"

namespace krigtune {

std::vector<MemoryParts> parts_of(const FrameworkPeak& peak, const FrameworkPeak* otherwise,
                                  const MemoryAssumptions& assumed) {
  const auto activations = [](const MomentBytes& bytes) {
    return static_cast<double>(bytes[Term::kActivations] + bytes[Term::kWorkspace]);
  };
  std::vector<MemoryParts> moments;
  for (std::size_t m = 0; m < peak.moments.size(); ++m) {
    const MomentBytes& bytes = peak.moments[m];
    MemoryParts parts{};
    const auto part = [&parts](MemoryPart of) -> double& { return parts[static_cast<std::size_t>(of)]; };
    const auto total = static_cast<double>(bytes.total);
    part(MemoryPart::kStates) = static_cast<double>(bytes[Term::kParameters] + bytes[Term::kOptimizerState]);
    part(MemoryPart::kGradients) = static_cast<double>(bytes[Term::kGradients]);
    part(MemoryPart::kActivations) = activations(bytes);
    if (otherwise != nullptr) part(MemoryPart::kOtherSplit) = activations(otherwise->moments[m]) - activations(bytes);
    part(MemoryPart::kLogits) = static_cast<double>(bytes[Term::kLogits]);
    part(MemoryPart::kBuffers) =
        static_cast<double>(bytes[Term::kGatheredParameters] + bytes[Term::kReduceBuckets] + bytes[Term::kInputs]);
    part(MemoryPart::kOverhead) = assumed.context_bytes + (assumed.fragmentation - 1.0) * total;
    moments.push_back(parts);
  }
  return moments;
}

double least_bytes(const std::vector<MemoryParts>& moments) {
  constexpr double kLeastActivations = 0.3;
  double least = 0.0;
  for (const MemoryParts& parts : moments) {
    const auto part = [&parts](MemoryPart of) { return parts[static_cast<std::size_t>(of)]; };
    const double activations = part(MemoryPart::kActivations) + std::min(0.0, part(MemoryPart::kOtherSplit));
    least = std::max(least,
                     part(MemoryPart::kStates) + 0.5 * part(MemoryPart::kGradients) + kLeastActivations * activations);
  }
  return least;
}

}  // namespace krigtune

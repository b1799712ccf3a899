#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/memory.h"

namespace krigtune::cost {

/// What a trial revealed about its memory: its peak, or whether it fitted into the usable memory.
struct MemoryEvidence {
  enum class Shows { kPeak, kRan, kRanOut };
  std::vector<plan::MemoryParts> moments;  ///< as planned
  Shows shows = Shows::kPeak;
  double bytes = 0.0;  ///< the peak as an allocator counts it; otherwise the usable bytes
};

/// Predicts the peak of a configuration with the plan corrected by trials: a factor on each part of the plan's memory
/// is learned from measurements. Frameworks keep two or three times the activations of the plan, or half the gradients,
/// and all configurations of a job share these factors. src/cost/memory/memory_shape.cpp has the model.
///
///   MemoryShape shape(0.15);
///   shape.learn(evidence);
///   const auto [log_bytes, log_stddev] = shape.needed(moments);     // of another configuration
class MemoryShape {
 public:
  /// Logarithms of factors: one for each part (for the two shares of differences: a logit), and one for the total.
  static constexpr std::size_t kFactors = plan::kMemoryPartCount + 1;

  /// A normal distribution of the natural logarithm of bytes.
  struct LogBytes {
    double mean = 0.0;
    double stddev = 0.0;
  };

  /// `log_stddev`: of measured over planned peaks, from the framework's traits.
  explicit MemoryShape(double log_stddev);
  /// Learns from all evidence at once. A trial with empty moments is ignored.
  void learn(std::span<const MemoryEvidence> evidence);

  /// Returns the memory that must be usable, including the framework's overhead. `moments`: at least one.
  LogBytes needed(const std::vector<plan::MemoryParts>& moments) const { return predicted(moments, true); }
  /// Returns the memory that the program's allocator counts.
  LogBytes allocated(const std::vector<plan::MemoryParts>& moments) const { return predicted(moments, false); }
  /// Returns the factor on a part, which is 1 before anything is learned; for kOtherSplit and kShardedGradients, the
  /// share of it that is present.
  double factor(plan::MemoryPart part) const;

 private:
  LogBytes predicted(const std::vector<plan::MemoryParts>& moments, bool with_overhead) const;

  double own_stddev_;  ///< of a single peak, in addition to what the factors explain
  std::array<double, kFactors> factors_{};
  std::array<double, kFactors * kFactors> covariance_{};
};

}  // namespace krigtune::cost

#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/memory.h"

namespace krigtune::cost {

/// What a trial showed of its memory: a peak, or on which side of what was usable it lay.
struct MemoryEvidence {
  enum class Shows { kPeak, kRan, kRanOut };
  std::vector<plan::MemoryParts> moments;  ///< as planned
  Shows shows = Shows::kPeak;
  double bytes = 0.0;  ///< the peak as an allocator counts it; else what was usable
};

/// The peak of a configuration as trials correct the plan: a factor on each of its parts, learned from what was
/// measured. Frameworks keep two or three times as many activations as the plan, or half the gradients; all
/// configurations of a job share these factors. src/cost/memory/memory_shape.cpp has the model.
///
///   MemoryShape shape(0.15);
///   shape.learn(evidence);
///   const auto [log_bytes, log_stddev] = shape.needed(moments);     // of another configuration
class MemoryShape {
 public:
  /// Logarithms of factors: one a part (of the split of tokens: a logit), and one on all.
  static constexpr std::size_t kFactors = plan::kMemoryPartCount + 1;

  /// Natural logarithm of bytes: a normal distribution.
  struct LogBytes {
    double mean = 0.0;
    double stddev = 0.0;
  };

  /// `log_stddev`: of measured over planned peaks, as the framework's traits have it.
  explicit MemoryShape(double log_stddev);
  /// From all evidence at once. Moments may be empty: such a trial says nothing.
  void learn(std::span<const MemoryEvidence> evidence);

  /// What must be usable, the framework's overhead included. `moments`: at least one.
  LogBytes needed(const std::vector<plan::MemoryParts>& moments) const { return predicted(moments, true); }
  /// What the program's allocator counts.
  LogBytes allocated(const std::vector<plan::MemoryParts>& moments) const { return predicted(moments, false); }
  /// The factor on a part, 1 before anything is learned; of kOtherSplit the share of it that is there.
  double factor(plan::MemoryPart part) const;

 private:
  LogBytes predicted(const std::vector<plan::MemoryParts>& moments, bool with_overhead) const;

  double own_stddev_;  ///< of one peak, beside what the factors explain
  std::array<double, kFactors> factors_{};
  std::array<double, kFactors * kFactors> covariance_{};
};

}  // namespace krigtune::cost

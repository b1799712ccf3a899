#pragma once
#include <optional>
#include <vector>

#include "krigtune/cost/memory_shape.h"
#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"

namespace krigtune {

/// How much memory is left, as planned and as the trials of a history correct it: log(usable / peak), in stddevs of
/// what is then known of the peak's logarithm. As planned where plans are exact.
class MemoryMargins {
 public:
  /// `candidates` must outlive it.
  MemoryMargins(const Candidates& candidates, const History& history);

  /// One a configuration; 0 without a plan.
  Eigen::VectorXd at(const std::vector<std::optional<MemoryVerdict>>& memory) const;
  /// What peaks taught; empty before any trial told something.
  const std::optional<MemoryShape>& shape() const { return shape_; }

 private:
  double at(const MemoryVerdict& memory) const;

  std::optional<MemoryShape> shape_;
};

}  // namespace krigtune

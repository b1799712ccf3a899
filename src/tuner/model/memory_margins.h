#pragma once
#include <optional>
#include <vector>

#include "krigtune/surrogate/gaussian_process.h"
#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/strategy.h"

namespace krigtune {

/// How much memory is left, as planned and as the trials of a history correct it: log(usable / peak), in stddevs of the
/// planned peak's logarithm. As planned where plans are exact.
class MemoryMargins {
 public:
  /// `candidates` must outlive it.
  MemoryMargins(const Candidates& candidates, const History& history);

  /// One a point; of a point without a plan 0. `memory`: one a point.
  Eigen::VectorXd at(const Points& points, const std::vector<std::optional<MemoryVerdict>>& memory) const;

  /// Rows of `too_large` (as planned) that may fit, as far as the trials say. None before a trial has shown that less
  /// is needed than was planned.
  std::vector<std::size_t> admitted(const CandidateList& too_large) const;
  /// Some trial has.
  bool doubts_plans() const { return doubts_plans_; }

 private:
  std::optional<GaussianProcess> process_;  ///< its points' one feature is the planned margin; none: as planned
  bool doubts_plans_ = false;
};

}  // namespace krigtune

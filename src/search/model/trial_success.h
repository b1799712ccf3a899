#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cost/memory/memory_shape.h"
#include "krigtune/surrogate/success_model.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

/// How much memory is left, as planned and as the trials of a history correct it: log(usable / peak), in stddevs of
/// what is then known of the peak's logarithm. As planned where plans are exact.
class MemoryMargins {
 public:
  /// `candidates` must outlive it.
  MemoryMargins(const Candidates& candidates, const History& history);

  /// One a configuration; 0 without a plan.
  Eigen::VectorXd at(const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;
  /// What peaks taught; empty before any trial told something.
  const std::optional<cost::MemoryShape>& shape() const { return shape_; }

 private:
  double at(const plan::MemoryVerdict& memory) const;

  std::optional<cost::MemoryShape> shape_;
};

/// Of all that TrialSuccess learns from: what is pending is no part of it. Equal numbers mean the same TrialSuccess.
std::size_t fingerprint_of_outcomes(const Candidates& candidates, const History& history);

/// What the trials of a history say of failing: how probable it is that a trial succeeds.
class TrialSuccess {
 public:
  /// The arguments must outlive it.
  TrialSuccess(const Candidates& candidates, const History& history);

  /// A trial ended as it was not foreseen: failing is possible.
  bool has_failures() const { return has_failures_; }
  /// Probability that a trial succeeds. `memory`: one a point.
  Eigen::VectorXd probability(const surrogate::Points& points,
                              const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;

 private:
  void read_walls(const History& history);
  void fit(const History& history);
  double planned_mean(const std::optional<plan::MemoryVerdict>& memory) const;
  Eigen::MatrixXd prior(const surrogate::Points& points,
                        const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;

  const Candidates& candidates_;
  bool has_failures_ = false;
  std::optional<double> memory_wall_;  ///< bytes; see trial_success.cpp
  bool wall_is_sharp_ = false;         ///< nothing larger has run
  Eigen::VectorXd slopes_;             ///< of the prior mean, one a leading ordered column: the rules of thumb
  MemoryMargins margins_;              ///< not where plans are exact
  surrogate::SuccessModel model_;
};

}  // namespace krigtune::search

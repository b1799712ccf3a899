#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cost/memory/memory_shape.h"
#include "krigtune/surrogate/success_model.h"
#include "search/candidates/candidates.h"
#include "search/model/learned_memory.h"
#include "search/trials/history.h"

namespace krigtune::search {

/// Returns the correction of planned peaks that trials show; empty if they show none. `outcomes` and `memory`: one per
/// trial.
std::optional<cost::MemoryShape> learned_shape(const std::vector<const trial::Outcome*>& outcomes,
                                               const std::vector<std::optional<plan::MemoryVerdict>>& memory);
/// Returns the margins of plans with that correction: log(usable / peak), in units of the remaining stddev of the
/// peak's logarithm; 0 without a plan.
Eigen::VectorXd margins_of(const std::vector<std::optional<plan::MemoryVerdict>>& memory,
                           const std::optional<cost::MemoryShape>& shape);

/// The memory margin, log(usable / peak), as planned and as corrected by a history's trials, in units of the remaining
/// stddev of the peak's logarithm. If plans are exact, it is the planned margin.
class MemoryMargins {
 public:
  /// `candidates` must outlive it.
  MemoryMargins(const Candidates& candidates, const History& history);

  /// Returns one margin per configuration; 0 without a plan.
  Eigen::VectorXd at(const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;
  /// Returns the correction learned from peaks; empty before any trial contributed.
  const std::optional<cost::MemoryShape>& shape() const { return shape_; }

 private:
  std::optional<cost::MemoryShape> shape_;
};

/// Returns a hash of everything that TrialSuccess learns from, which excludes pending trials. Equal hashes mean equal
/// TrialSuccess.
std::size_t fingerprint_of_outcomes(const Candidates& candidates, const History& history);

/// The probability that a trial succeeds, learned from the trials of a history.
class TrialSuccess {
 public:
  using MemoryOf = std::function<std::vector<std::optional<plan::MemoryVerdict>>(
      const std::vector<space::Configuration>& configurations)>;

  /// `memory_of` says whether configurations fit; empty: as the session's own plan says. The arguments must outlive it.
  TrialSuccess(const Candidates& candidates, const History& history, const MemoryOf& memory_of = {});

  /// Returns whether a trial failed unexpectedly, so that failures are possible.
  bool has_failures() const { return has_failures_; }
  /// Returns the probability that a trial succeeds. `memory`: one per point.
  Eigen::VectorXd probability(const surrogate::Points& points,
                              const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;

 private:
  void read_walls(const History& history);
  void fit(const History& history, const MemoryOf& memory_of);
  double planned_mean(const std::optional<plan::MemoryVerdict>& memory) const;
  Eigen::MatrixXd prior(const surrogate::Points& points,
                        const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;

  const Candidates& candidates_;
  bool has_failures_ = false;
  std::optional<double> memory_wall_;  ///< bytes; see trial_success.cpp
  bool knows_shared_error_ = false;    ///< of planned peaks, from trials that said that they ran out of memory
  bool wall_is_sharp_ = false;         ///< nothing larger has run
  Eigen::VectorXd slopes_;             ///< slopes of the prior mean, one per leading ordered column: the rules of thumb
  MemoryMargins margins_;              ///< unused if plans are exact
  LearnedMemory memory_;               ///< without plans: what trials out of memory say
  surrogate::SuccessModel model_;      ///< of all other failures, or of all if memory_ knows nothing
};

}  // namespace krigtune::search

#pragma once
#include <optional>
#include <vector>

#include "krigtune/surrogate/optimizer.h"

namespace krigtune::surrogate {

bool is_feasible(const Evaluation& evaluation);

/// What an Optimizer was told and has asked, as its models want it.
struct History {
  std::vector<Evaluation> told;
  Points pending;

  Eigen::Index size() const { return std::ssize(told) + pending.size(); }
  /// Whether the row is a point told or pending.
  bool contains(const Points& points, Eigen::Index row) const;
  void tell(const Evaluation& evaluation);

  bool has_failures() const;
  /// Smallest value told.
  std::optional<double> worst() const;
  std::optional<Evaluation> best() const;
  /// Feasible points, at most `count`, those of the largest values first.
  Points best_points(std::size_t count) const;
  Points feasible_points() const;
  /// Values told; failures as `of_failures`, or not at all.
  Observations values(std::optional<double> of_failures) const;
  /// Number of constraints that are measured.
  Eigen::Index constraints() const;
  Observations constraint(Eigen::Index index) const;
};

}  // namespace krigtune::surrogate

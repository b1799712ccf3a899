#pragma once
#include <optional>
#include <vector>

#include "krigtune/surrogate/optimizer.h"

namespace krigtune::surrogate {

bool is_feasible(const Evaluation& evaluation);

/// The points that an Optimizer was told or has asked, in the form that its models need.
struct History {
  std::vector<Evaluation> told;
  Points pending;

  Eigen::Index size() const { return std::ssize(told) + pending.size(); }
  /// Returns whether the row is a point that was told or is pending.
  bool contains(const Points& points, Eigen::Index row) const;
  void tell(const Evaluation& evaluation);

  bool has_failures() const;
  /// Returns the smallest value told.
  std::optional<double> worst() const;
  std::optional<Evaluation> best() const;
  /// Returns at most `count` feasible points, those with the largest values first.
  Points best_points(std::size_t count) const;
  Points feasible_points() const;
  /// Returns the values told; failures have the value `of_failures` or, if that is empty, are left out.
  Observations values(std::optional<double> of_failures) const;
  /// Returns the number of measured constraints.
  Eigen::Index constraints() const;
  Observations constraint(Eigen::Index index) const;
};

}  // namespace krigtune::surrogate

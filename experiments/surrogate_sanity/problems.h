#pragma once
#include <string>
#include <vector>

#include "krigtune/surrogate/optimizer.h"

namespace krigtune::sanity {

/// A stand-in for an expensive function, to be minimised.
struct Problem {
  std::string name;
  std::vector<int> levels;      ///< of each ordered column: k / (levels - 1); 0: continuous
  std::vector<int> categories;  ///< number of indices of each
  int evaluations;
  double optimum;
  /// Returns the value to be minimised (empty if failed) and the constraints, which are feasible if all are <= 0.
  surrogate::Evaluation (*evaluate)(const surrogate::Points& point);

  surrogate::MixedSpace space() const;
};

std::vector<Problem> problems();

/// Compares every row of expected_values.csv. Throws UserError if one differs.
void check_expected_values(const std::string& path);

}  // namespace krigtune::sanity

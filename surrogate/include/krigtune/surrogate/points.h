#pragma once
#include <Eigen/Core>
#include <vector>

namespace krigtune::surrogate {

/// n points of a mixed space: ordered columns (n x d, meant to lie in [0, 1]) and category indices (n x c). `features`
/// (n x q) are numbers known of each point for the mean function to use; kernels do not see them.
struct Points {
  Eigen::MatrixXd ordered;
  Eigen::MatrixXi categories;
  Eigen::MatrixXd features;

  Eigen::Index size() const { return ordered.rows(); }
  static Points zero(Eigen::Index count, Eigen::Index ordered_dims, Eigen::Index category_dims,
                     Eigen::Index features = 0);
  void append(const Points& more);  ///< same dimensions; an empty object takes them over
  Points slice(Eigen::Index first, Eigen::Index count) const;
  Points rows(const std::vector<Eigen::Index>& indices) const;  ///< in that order, repetitions too
};

/// Values of an unknown function measured at points.
struct Observations {
  Points points;
  Eigen::VectorXd values;  ///< n
  Eigen::VectorXd
      variance;  ///< n: what is known of each value's noise beforehand, values squared, >= 0; empty: nothing

  Eigen::Index size() const { return points.size(); }
  /// n >= 1, sizes that agree, everything finite, variances >= 0; else UserError.
  void validate() const;
  void append(const Observations& more);
};

}  // namespace krigtune::surrogate

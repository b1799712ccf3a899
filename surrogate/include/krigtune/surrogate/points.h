#pragma once
#include <Eigen/Core>
#include <vector>

namespace krigtune::surrogate {

/// n points of a mixed space: ordered columns (n x d, normally in [0, 1]) and category indices (n x c). `features` (n x
/// q) are known numbers of each point that the mean function uses; kernels do not see them.
struct Points {
  Eigen::MatrixXd ordered;
  Eigen::MatrixXi categories;
  Eigen::MatrixXd features;

  Eigen::Index size() const { return ordered.rows(); }
  static Points zero(Eigen::Index count, Eigen::Index ordered_dims, Eigen::Index category_dims,
                     Eigen::Index features = 0);
  void append(const Points& more);  ///< dimensions must agree; an empty object takes over those of `more`
  Points slice(Eigen::Index first, Eigen::Index count) const;
  Points rows(const std::vector<Eigen::Index>& indices) const;  ///< rows in the order of `indices`, which may repeat
};

/// Values of an unknown function measured at points.
struct Observations {
  Points points;
  Eigen::VectorXd values;  ///< n
  Eigen::VectorXd
      variance;  ///< n: known noise variance of each value, >= 0, in the value's unit squared; empty: unknown

  Eigen::Index size() const { return points.size(); }
  /// Throws UserError unless n >= 1, the sizes agree, everything is finite and the variances are >= 0.
  void validate() const;
  void append(const Observations& more);
};

}  // namespace krigtune::surrogate

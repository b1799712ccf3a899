#pragma once
#include <Eigen/Core>
#include <optional>

namespace krigtune {

struct Cholesky {
  Eigen::MatrixXd lower;  ///< L, n x n, zero above the diagonal
  double jitter = 0.0;    ///< what had to be added to the diagonal
};

/// K + jitter I = L L^T with the smallest jitter of the ladder 0, 1e-10, 1e-9, ..., 1e-4 times `unit` that works; none
/// where even the last does not (K is not finite, or not a covariance).
std::optional<Cholesky> cholesky_with_jitter(const Eigen::MatrixXd& covariance, double unit);
/// The same with the mean diagonal as unit.
std::optional<Cholesky> cholesky_with_jitter(const Eigen::MatrixXd& covariance);

/// Appends points to a factorised covariance: `cross` n x m, `block` m x m. O(n^2 m).
std::optional<Eigen::MatrixXd> extend_cholesky(const Eigen::MatrixXd& lower, const Eigen::MatrixXd& cross,
                                               const Eigen::MatrixXd& block);

}  // namespace krigtune

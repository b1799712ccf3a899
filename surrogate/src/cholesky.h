#pragma once
#include <Eigen/Core>
#include <optional>

namespace krigtune::surrogate {

struct Cholesky {
  Eigen::MatrixXd lower;  ///< L, n x n, zero above the diagonal
  double jitter = 0.0;    ///< added to the diagonal
};

/// Returns K + jitter I = L L^T with the smallest jitter that works, out of 0, 1e-10, 1e-9, ..., 1e-4 times `unit`.
/// Returns nothing if even the last one fails (K is not finite, or not a covariance).
std::optional<Cholesky> cholesky_with_jitter(Eigen::MatrixXd covariance, double unit);
/// Does the same with the mean of the diagonal as `unit`.
std::optional<Cholesky> cholesky_with_jitter(Eigen::MatrixXd covariance);

/// B <- B L^-T: the rows of B, m x n, are right-hand sides of L v = b.
void solve_rows(const Eigen::MatrixXd& lower, Eigen::MatrixXd& b);
/// Returns (L L^T)^-1.
Eigen::MatrixXd inverse_of_product(Eigen::MatrixXd lower);

/// Appends m points to a factorised covariance in O(n^2 m): `cross` is n x m, `block` m x m.
std::optional<Eigen::MatrixXd> extend_cholesky(const Eigen::MatrixXd& lower, const Eigen::MatrixXd& cross,
                                               const Eigen::MatrixXd& block);

}  // namespace krigtune::surrogate

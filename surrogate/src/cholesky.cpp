// Cholesky factorisation that survives nearly repeated points, and its extension by a block:
//
//   [ K11   K12 ]   [ L11    0  ] [ L11^T  L21^T ]
//   [ K12^T K22 ] = [ L21   L22 ] [   0    L22^T ],   L21^T = L11^-1 K12,   L22 L22^T = K22 - L21 L21^T
#include "cholesky.h"

#include <Eigen/Core>
#include <cassert>
#include <cmath>
#include <utility>

#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {
namespace {

// Below 1e-10 of the diagonal, the jitter would be as small as the rounding errors that it must outweigh (n times
// 2e-16, n up to some thousands). Above 1e-4 it would no longer be a perturbation but a noise of 1 % of the stddev.
constexpr double kFirstJitter = 1e-10;
constexpr double kLastJitter = 2e-4;

}  // namespace

/// Works in the memory of `covariance`, because bringing a second large matrix into memory costs as much as some of the
/// arithmetic. After a failed attempt the lower triangle is restored from the upper one.
std::optional<Cholesky> cholesky_with_jitter(Eigen::MatrixXd covariance, double unit) {
  if (!std::isfinite(unit)) return std::nullopt;
  const Eigen::VectorXd diagonal = covariance.diagonal();
  for (double relative = 0.0; relative < kLastJitter; relative = relative == 0.0 ? kFirstJitter : 10.0 * relative) {
    const double jitter = relative * unit;
    covariance.diagonal() = diagonal.array() + jitter;
    if (vector_unit().cholesky(covariance.rows(), covariance.data(), covariance.outerStride())) {
      covariance.triangularView<Eigen::StrictlyUpper>().setZero();
      return Cholesky{std::move(covariance), jitter};
    }
    covariance.triangularView<Eigen::StrictlyLower>() = covariance.transpose();
  }
  return std::nullopt;
}

std::optional<Cholesky> cholesky_with_jitter(Eigen::MatrixXd covariance) {
  const double unit = covariance.diagonal().mean();
  return cholesky_with_jitter(std::move(covariance), unit);
}

void solve_rows(const Eigen::MatrixXd& lower, Eigen::MatrixXd& b) {
  assert(b.cols() == lower.rows());
  vector_unit().solve_rows(b.rows(), b.cols(), lower.data(), lower.outerStride(), b.data(), b.outerStride());
}

Eigen::MatrixXd inverse_of_product(Eigen::MatrixXd lower) {
  vector_unit().invert(lower.rows(), lower.data(), lower.outerStride());
  return lower;
}

std::optional<Eigen::MatrixXd> extend_cholesky(const Eigen::MatrixXd& lower, const Eigen::MatrixXd& cross,
                                               const Eigen::MatrixXd& block) {
  const Eigen::Index n = lower.rows();
  const Eigen::Index m = block.rows();
  const Eigen::MatrixXd below = lower.triangularView<Eigen::Lower>().solve(cross).transpose();
  // If the new point repeats an old one, the complement consists of rounding errors, so its own diagonal cannot scale
  // the jitter.
  const auto corner = cholesky_with_jitter(block - below * below.transpose(), block.diagonal().mean());
  if (!corner) return std::nullopt;
  Eigen::MatrixXd extended(n + m, n + m);
  extended.topLeftCorner(n, n) = lower;
  extended.topRightCorner(n, m).setZero();
  extended.bottomLeftCorner(m, n) = below;
  extended.bottomRightCorner(m, m) = corner->lower;
  return extended;
}

}  // namespace krigtune::surrogate

// The covariance C of the posterior at many points is of low rank but for rounding: functions this smooth differ in few
// ways. Cholesky with pivoting (Harbrecht, Peters & Schneider 2012, Applied Numerical Mathematics 62) takes the column
// of the point whose variance is explained least, one after the other,
//
//   l_k = (C(:, p) - sum_{j<k} l_j l_j(p)) / sqrt(d(p)),   d -= l_k^2,   p = argmax d
//
// until every variance is explained but for 1e-6 of the largest, or rank 200 is reached. C ~ L L^T, draws are L z.
// Columns of C are made when they are needed: C(:, p) = k(x, x_p) - V^T V(:, p) with V = L_n^-1 k(X, x).
#include "insight/posterior_draws.h"

#include <algorithm>
#include <cmath>

namespace krigtune {
namespace {

constexpr Eigen::Index kMostRank = 200;
constexpr double kUnexplained = 1e-6;  // of the largest variance

Eigen::MatrixXd low_rank_factor(const GaussianProcess& process, const Points& points) {
  const Eigen::Index count = points.size();
  const Eigen::MatrixXd whitened =
      process.lower().triangularView<Eigen::Lower>().solve(process.prior_covariance(process.points(), points));
  Eigen::VectorXd left = (process.prior_variance(points) - whitened.colwise().squaredNorm().transpose()).cwiseMax(0.0);
  const double enough = kUnexplained * left.maxCoeff();
  Eigen::MatrixXd factor(count, std::min(count, kMostRank));
  Eigen::Index rank = 0;
  for (; rank < factor.cols(); ++rank) {
    Eigen::Index pivot = 0;
    const double variance = left.maxCoeff(&pivot);
    if (!(variance > enough)) break;
    Eigen::VectorXd column = process.prior_covariance(points, points.slice(pivot, 1));
    column.noalias() -= whitened.transpose() * whitened.col(pivot);
    column.noalias() -= factor.leftCols(rank) * factor.row(pivot).head(rank).transpose();
    column /= std::sqrt(variance);
    left = (left - column.cwiseAbs2()).cwiseMax(0.0);
    left(pivot) = 0.0;
    factor.col(rank) = column;
  }
  return factor.leftCols(rank);
}

}  // namespace

Eigen::MatrixXd posterior_deviations(const GaussianProcess& process, const Points& points, int count, Rng& rng) {
  const Eigen::MatrixXd factor = low_rank_factor(process, points);
  Eigen::MatrixXd normals(factor.cols(), count);
  for (double& normal : normals.reshaped()) normal = rng.normal();
  return factor * normals;
}

}  // namespace krigtune

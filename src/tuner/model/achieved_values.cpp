// A smooth surrogate explains what it cannot follow as noise. Of two kinds: errors of measurement, which another
// measurement would not repeat, and what is peculiar to a configuration (a kernel that suits just this size), which it
// would. With y the observed values, g the smooth function,
//
//   y_c = f_c + e_c,   f_c = g(x_c) + d_c,   e_c ~ N(0, V_c),   d_c ~ N(0, D_c)
//
// the surrogate's process observes y with noise V + D. Let K_y be the covariance of y, alpha = K_y^-1 (y - m):
//
//   E[f | y]   = y - V alpha
//   Cov[f | y] = V - V K_y^-1 V
//   Cov[f, g(x) | y] = V K_y^-1 k(X, x)
//
// and where the effects of runs (run_effects.cpp) are not known, F z with z ~ N(0, I) is part of e: V + F F^T is in V's
// place. (Condition e on y and take it from y; Rasmussen & Williams 2006, equations 2.23-2.24.) Exact values, V = 0,
// are what is achieved; D = 0 is the surrogate's own posterior.
#include "model/achieved_values.h"

#include <cmath>

namespace krigtune {
namespace {

// Repeated points are one row of the process.
Eigen::Index row_of(const GaussianProcess& process, const Points& points, Eigen::Index i) {
  const Points& rows = process.points();
  for (Eigen::Index row = i < process.observed() ? i : 0; row >= 0; --row) {
    if (rows.ordered.row(row) == points.ordered.row(i) && rows.categories.row(row) == points.categories.row(i)) {
      return row;
    }
  }
  return 0;
}

Eigen::MatrixXd solve(const GaussianProcess& process, Eigen::MatrixXd right) {
  process.lower().triangularView<Eigen::Lower>().solveInPlace(right);
  process.lower().triangularView<Eigen::Lower>().transpose().solveInPlace(right);
  return right;
}

}  // namespace

AchievedValues::AchievedValues(const Surrogate& surrogate, const Points& points, const Eigen::VectorXd& measurement,
                               double offset, const Eigen::MatrixXd& runs)
    : surrogate_(surrogate), measurement_(measurement.asDiagonal()) {
  if (runs.cols() > 0) measurement_ += runs * runs.transpose();
  measurement_ /= surrogate.scale() * surrogate.scale();
  const GaussianProcess& process = surrogate.processes().front();
  const Points standardised = surrogate.standardised(points);
  for (Eigen::Index i = 0; i < points.size(); ++i) rows_.push_back(row_of(process, standardised, i));
  const Eigen::Index count = process.points().size();
  const Eigen::MatrixXd inverse = solve(process, Eigen::MatrixXd::Identity(count, count));
  const Eigen::VectorXd alpha = process.lower().triangularView<Eigen::Lower>().transpose().solve(process.whitened());
  mean_ = process.values()(rows_) - measurement_ * alpha(rows_);
  mean_ = offset + surrogate.shift() + surrogate.scale() * mean_.array();
  covariance_ = measurement_ - measurement_ * inverse(rows_, rows_) * measurement_;
  covariance_ *= surrogate.scale() * surrogate.scale();
}

Eigen::VectorXd AchievedValues::covariance_with(const Points& point) const {
  const GaussianProcess& process = surrogate_.processes().front();
  const Eigen::VectorXd k = process.prior_covariance(process.points(), surrogate_.standardised(point)).col(0);
  const double square = surrogate_.scale() * surrogate_.scale();
  return square * (measurement_ * solve(process, k).col(0)(rows_));
}

}  // namespace krigtune

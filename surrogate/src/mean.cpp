#include "krigtune/surrogate/mean.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"

namespace krigtune::surrogate {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Mean::Mean(VectorXd centre, VectorXd stddev) : centre_(std::move(centre)), stddev_(std::move(stddev)) {
  // The coefficients add a covariance of rank p. A stddev of 1e4 would leave only rounding errors of the kernel's
  // covariance.
  constexpr double kLargestStddev = 1e3;
  if (stddev_.size() > 0 && !(stddev_.minCoeff() >= 0.0 && stddev_.maxCoeff() <= kLargestStddev))
    throw UserError("mean function: the stddev of a coefficient must be from 0 to 1000 (of standardised values)");
}

Mean Mean::zero() { return {VectorXd(), VectorXd()}; }

Mean Mean::constant(double stddev) { return {VectorXd::Zero(1), VectorXd::Constant(1, stddev)}; }

Mean Mean::linear(Index count, double offset_stddev, double slope_stddev) {
  VectorXd stddev = VectorXd::Constant(count + 1, slope_stddev);
  stddev[0] = offset_stddev;
  return {VectorXd::Zero(count + 1), stddev};
}

Mean Mean::scaled(double offset_stddev, double scale_stddev) {
  return {Eigen::Vector2d(0.0, 1.0), Eigen::Vector2d(offset_stddev, scale_stddev)};
}

Mean Mean::weighted(double offset_stddev, const VectorXd& centre, const VectorXd& stddev) {
  VectorXd centres(centre.size() + 1);
  VectorXd stddevs(stddev.size() + 1);
  centres << 0.0, centre;
  stddevs << offset_stddev, stddev;
  return {centres, stddevs};
}

Index Mean::features() const { return std::max<Index>(centre_.size() - 1, 0); }

void Mean::validate(const Points& points) const {
  if (points.features.cols() < features())
    throw UserError("mean function: it needs " + std::to_string(features()) + " features of every point, there are " +
                    std::to_string(points.features.cols()));
}

MatrixXd Mean::basis(const Points& points) const {
  MatrixXd h(points.size(), centre_.size());
  if (h.cols() == 0) return h;
  validate(points);
  h.col(0).setOnes();
  if (features() > 0) h.rightCols(features()) = points.features.leftCols(features());
  return h;
}

}  // namespace krigtune::surrogate

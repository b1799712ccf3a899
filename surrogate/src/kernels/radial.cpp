// Joint distance of ordered columns and categories:
//
//   r^2 = sum_i ((x_i - y_i) / l_i)^2 + sum_j [c_j(x) != c_j(y)] / l_j^2
//
// A category's term is the squared distance of scaled one-hot vectors, so r is Euclidean, and a correlation that is
// positive definite in every dimension stays so.
#include "kernels/radial.h"

#include <cassert>

namespace krigtune {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

ScaledPoints::ScaledPoints(const Points& points, const VectorXd& theta) {
  const Index d = points.ordered.cols();
  const Index c = points.categories.cols();
  const Index n = points.size();
  const Index whole = (n + kRowGroup - 1) / kRowGroup * kRowGroup;
  assert(theta.size() == d + c + 1);
  const VectorXd inverse_lengthscale = (-theta.head(d).array()).exp();
  ordered = MatrixXd::Zero(whole, d);
  ordered.topRows(n) = points.ordered * inverse_lengthscale.asDiagonal();
  categories = MatrixXd::Zero(whole, c);
  categories.topRows(n) = points.categories.cast<double>();
  category_weight = (-2.0 * theta.segment(d, c).array()).exp();
}

void squared_distances(const ScaledPoints& x, const ScaledPoints& y, Index j, ArrayOut r2) {
  const Index count = r2.size();
  const Index first = x.rows() - count;
  assert(first >= 0);
  r2.setZero();
  const VectorUnit& unit = vector_unit();
  unit.add_squares(count, x.ordered.cols(), x.ordered.data() + first, x.ordered.outerStride(), y.ordered.data() + j,
                   y.ordered.outerStride(), r2.data());
  if (x.categories.cols() > 0)
    unit.add_mismatches(count, x.categories.cols(), x.categories.data() + first, x.categories.outerStride(),
                        y.categories.data() + j, y.categories.outerStride(), x.category_weight.data(), r2.data());
}

void add_weighted_terms(const ScaledPoints& x, const ScaledPoints& y, Index j, const ArrayIn& weights,
                        Eigen::Ref<VectorXd> sums) {
  const Index d = x.ordered.cols();
  const Index c = x.categories.cols();
  const Index count = weights.size();
  const Index first = x.rows() - count;
  assert(first >= 0 && sums.size() == d + c);
  const VectorUnit& unit = vector_unit();
  unit.sum_squares(count, d, x.ordered.data() + first, x.ordered.outerStride(), y.ordered.data() + j,
                   y.ordered.outerStride(), weights.data(), sums.data());
  if (c == 0) return;
  VectorXd mismatches = VectorXd::Zero(c);
  unit.sum_mismatches(count, c, x.categories.data() + first, x.categories.outerStride(), y.categories.data() + j,
                      y.categories.outerStride(), weights.data(), mismatches.data());
  sums.tail(c) += mismatches.cwiseProduct(x.category_weight);
}

VectorUnit::Profile radial_profile(KernelKind kind) {
  switch (kind) {
    case KernelKind::kMatern32:
      return vector_unit().matern32();
    case KernelKind::kSquaredExponential:
      return vector_unit().squared_exponential();
    default:
      assert(kind == KernelKind::kMatern52);
      return vector_unit().matern52();
  }
}

}  // namespace krigtune

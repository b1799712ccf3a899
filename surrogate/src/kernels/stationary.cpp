// Stationary kernels with one lengthscale for each column (automatic relevance determination):
//
//   k(x, y) = s^2 k(r^2),   r^2 the joint distance, k(r^2) a correlation (vector_unit_radial.cpp)
//
//   theta = [log l_1, ..., log l_d of the ordered columns, log l_1, ..., log l_c of the categories, log s^2]
//   dk / d log l_p  = -2 s^2 k'(r^2) * (the term of r^2 with l_p)
//   dk / d log s^2  =  k
//   dk / d x_i      =  2 s^2 k'(r^2) (x_i - y_i) / l_i^2     (0 at x = y)
//
// Rasmussen & Williams 2006, sections 4.2.1 and 5.1; categories in the distance as in Vizier (Golovin et al. 2017).
#include "kernels/stationary.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/kernel_families.h"

namespace krigtune::surrogate {

// Joint distance of ordered columns and categories:
//
//   r^2 = sum_i ((x_i - y_i) / l_i)^2 + sum_j [c_j(x) != c_j(y)] / l_j^2
//
// A category's term is the squared distance of scaled one-hot vectors, so r is Euclidean, and a correlation that is
// positive definite in every dimension stays so.

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

namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Loops process whole groups of rows. With fewer rows than this, transposing the matrix is cheaper (measured).
constexpr Index kFewRows = 8;

double signal_variance(const VectorXd& theta) { return std::exp(theta[theta.size() - 1]); }

class Stationary final : public Kernel {
 public:
  explicit Stationary(const VectorUnit::Profile& profile) : profile_(profile) {}

  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    const auto lengthscales = static_cast<std::size_t>(ordered_dims + category_dims);
    std::vector<Hyperparameter> result(lengthscales, {Hyperparameter::Role::kLengthscale});
    result.push_back({Hyperparameter::Role::kSignalVariance});
    return result;
  }

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    const double variance = signal_variance(theta);
    const ScaledPoints scaled_x(x, theta);
    if (&x == &y) return symmetric_gram(scaled_x, x.size(), variance);
    if (x.size() < y.size() && x.size() < kFewRows) return gram(y, x, theta).transpose();
    const ScaledPoints scaled_y(y, theta);
    MatrixXd k(x.size(), y.size());
    ArrayXd column(scaled_x.rows());
    for (Index j = 0; j < y.size(); ++j) {
      squared_distances(scaled_x, scaled_y, j, column);
      profile_.correlation(column.size(), column.data());
      k.col(j) = variance * column.head(x.size());
    }
    return k;
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    return VectorXd::Constant(x.size(), signal_variance(theta));
  }

  /// dK is symmetric, so its lower triangle is combined with the weights of both triangles.
  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    assert(weights.rows() == x.size() && weights.cols() == x.size());
    const ScaledPoints points(x, theta);
    const Index last = theta.size() - 1;
    VectorXd gradient = VectorXd::Zero(theta.size());
    ArrayXd correlation(points.rows());
    ArrayXd slope(points.rows());
    ArrayXd both = ArrayXd::Zero(points.rows());
    for (Index j = 0; j < x.size(); ++j) {
      const Index rows = points.rows() - j / kRowGroup * kRowGroup;
      const Index count = x.size() - j;
      squared_distances(points, points, j, correlation.tail(rows));
      profile_.with_slope(rows, correlation.tail(rows).data(), slope.tail(rows).data());
      both.head(j).setZero();
      both.segment(j, count) = weights.col(j).tail(count) + weights.row(j).tail(count).transpose();
      both[j] = weights(j, j);
      gradient[last] += (both * correlation).tail(rows).sum();
      slope.tail(rows) *= both.tail(rows);
      add_weighted_terms(points, points, j, slope.tail(rows), gradient.head(last));
    }
    gradient.head(last) *= -2.0;
    return signal_variance(theta) * gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    assert(z.size() == 1 && weights.size() == x.size());
    const ScaledPoints points(x, theta);
    ArrayXd correlation(points.rows());
    ArrayXd slope(points.rows());
    squared_distances(points, ScaledPoints(z, theta), 0, correlation);
    profile_.with_slope(slope.size(), correlation.data(), slope.data());
    const ArrayXd weighted = 2.0 * signal_variance(theta) * slope.head(x.size()) * weights.array();
    VectorXd gradient(z.ordered.cols());
    for (Index i = 0; i < gradient.size(); ++i)
      gradient[i] = (weighted * (z.ordered(0, i) - x.ordered.col(i).array())).sum() * std::exp(-2.0 * theta[i]);
    return gradient;
  }

 private:
  /// Computes the matrix of n points in groups of columns, from their diagonal block down, and then mirrors it.
  MatrixXd symmetric_gram(const ScaledPoints& x, Index n, double variance) const {
    MatrixXd k(n, n);
    ArrayXd column(x.rows());
    for (Index first = 0; first < n; first += kRowGroup) {
      const Index last = std::min(first + kRowGroup, n);
      const Index rows = x.rows() - first;
      for (Index j = first; j < last; ++j) {
        squared_distances(x, x, j, column.head(rows));
        profile_.correlation(rows, column.data());
        k.col(j).tail(n - first) = variance * column.head(n - first);
      }
      k.block(first, last, last - first, n - last) = k.block(last, first, n - last, last - first).transpose();
    }
    return k;
  }

  VectorUnit::Profile profile_;
};

}  // namespace

KernelPointer make_stationary(KernelKind kind) { return std::make_shared<Stationary>(radial_profile(kind)); }

}  // namespace krigtune::surrogate

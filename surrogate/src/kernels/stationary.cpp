// Stationary kernels with one lengthscale for each column (automatic relevance determination):
//
//   k(x, y) = s^2 k(r^2),   r^2 the joint distance (radial.cpp), k(r^2) a correlation (vector_unit_radial.cpp)
//
//   theta = [log l_1, ..., log l_d of the ordered columns, log l_1, ..., log l_c of the categories, log s^2]
//   dk / d log l_p  = -2 s^2 k'(r^2) * (the term of r^2 that holds l_p)
//   dk / d log s^2  =  k
//   dk / d x_i      =  2 s^2 k'(r^2) (x_i - y_i) / l_i^2     (0 at x = y)
//
// Rasmussen & Williams 2006, sections 4.2.1 and 5.1; categories in the distance as in Vizier (Golovin et al. 2017).
#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/kernel_families.h"
#include "kernels/radial.h"

namespace krigtune {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Loops run down the rows in whole groups. With fewer than these it is cheaper to turn the matrix (measured).
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

  /// dK is symmetric: its lower triangle meets the weights of both.
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
  /// Of n points: groups of columns from their diagonal block down, then mirrored.
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

}  // namespace krigtune

// Stationary kernels with one lengthscale for each column (automatic relevance determination):
//
//   k(x, y) = s^2 k(r^2),   r^2 the joint distance, k(r^2) the correlation of radial.cpp
//
//   theta = [log l_1, ..., log l_d of the ordered columns, log l_1, ..., log l_c of the categories, log s^2]
//   dk / d log l_p  = -2 s^2 k'(r^2) * (the term of r^2 that holds l_p)
//   dk / d log s^2  =  k
//   dk / d x_i      =  2 s^2 k'(r^2) (x_i - y_i) / l_i^2     (0 at x = y)
//
// Rasmussen & Williams 2006, sections 4.2.1 and 5.1; categories in the distance as in Vizier (Golovin et al. 2017).
#include <cassert>
#include <cmath>

#include "kernel_families.h"
#include "radial.h"

namespace krigtune {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Loops run down the rows. With fewer than these the start of each loop costs more than to turn the matrix (measured).
constexpr Index kFewRows = 8;

double signal_variance(const VectorXd& theta) { return std::exp(theta[theta.size() - 1]); }

ScaledPoints scaled(const Points& x, const VectorXd& theta) {
  const Index d = x.ordered.cols();
  assert(theta.size() == d + x.categories.cols() + 1);
  const VectorXd inverse_lengthscale = (-theta.head(d).array()).exp();
  return {x.ordered * inverse_lengthscale.asDiagonal(), x.categories.cast<double>(),
          (-2.0 * theta.segment(d, x.categories.cols()).array()).exp()};
}

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
    if (&x == &y) return symmetric_gram(scaled(x, theta), variance);
    if (x.size() < y.size() && x.size() < kFewRows) return gram(y, x, theta).transpose();
    const ScaledPoints scaled_x = scaled(x, theta);
    const ScaledPoints scaled_y = scaled(y, theta);
    MatrixXd k(x.size(), y.size());
    for (Index j = 0; j < y.size(); ++j) {
      squared_distances(scaled_x, scaled_y, j, k.col(j).array());
      profile_.correlation(k.rows(), k.col(j).data());
      k.col(j) *= variance;
    }
    return k;
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    return VectorXd::Constant(x.size(), signal_variance(theta));
  }

  /// dK is symmetric: its lower triangle meets the weights of both.
  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    assert(weights.rows() == x.size() && weights.cols() == x.size());
    const ScaledPoints points = scaled(x, theta);
    const Index last = theta.size() - 1;
    VectorXd gradient = VectorXd::Zero(theta.size());
    ArrayXd correlation(x.size());
    ArrayXd slope(x.size());
    ArrayXd weight(x.size());
    for (Index j = 0; j < x.size(); ++j) {
      const Index count = x.size() - j;
      squared_distances(points, points, j, correlation.head(count));
      profile_.with_slope(count, correlation.data(), slope.data());
      auto both = weight.head(count);
      both = weights.col(j).tail(count) + weights.row(j).tail(count).transpose();
      both[0] = weights(j, j);
      gradient[last] += (both * correlation.head(count)).sum();
      slope.head(count) *= both;
      add_weighted_terms(points, points, j, slope.head(count), gradient.head(last));
    }
    gradient.head(last) *= -2.0;
    return signal_variance(theta) * gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    assert(z.size() == 1 && weights.size() == x.size());
    ArrayXd correlation(x.size());
    ArrayXd slope(x.size());
    squared_distances(scaled(x, theta), scaled(z, theta), 0, correlation);
    profile_.with_slope(x.size(), correlation.data(), slope.data());
    slope *= 2.0 * signal_variance(theta) * weights.array();
    VectorXd gradient(z.ordered.cols());
    for (Index i = 0; i < gradient.size(); ++i)
      gradient[i] = (slope * (z.ordered(0, i) - x.ordered.col(i).array())).sum() * std::exp(-2.0 * theta[i]);
    return gradient;
  }

 private:
  MatrixXd symmetric_gram(const ScaledPoints& x, double variance) const {
    MatrixXd k(x.size(), x.size());
    for (Index j = 0; j < x.size(); ++j) {
      const Index count = x.size() - j;
      auto column = k.col(j).tail(count);
      squared_distances(x, x, j, column.array());
      profile_.correlation(count, column.data());
      column *= variance;
      k.row(j).tail(count) = column.transpose();
    }
    return k;
  }

  VectorUnit::Profile profile_;
};

}  // namespace

KernelPointer make_stationary(KernelKind kind) { return std::make_shared<Stationary>(radial_profile(kind)); }

}  // namespace krigtune

// Matern 5/2 with one lengthscale per dimension over the joint distance of ordered and category columns.
//
//   k(x, y) = s^2 (1 + u + u^2 / 3) exp(-u),   u = sqrt(5) r
//   r^2     = sum_i ((x_i - y_i) / l_i)^2 + sum_j [c_j(x) != c_j(y)] / l_j^2
//
// A category term is the squared distance of scaled one-hot vectors, so r is Euclidean and k positive semi-definite.
//
//   log_theta = [log l_1, ..., log l_d, log l_1, ..., log l_c of the categories, log s^2]
//   dk / d r^2       = -(5/6) s^2 (1 + u) exp(-u)                              (no 0/0 at r = 0)
//   dk / d log l_i   =  (5/3) s^2 (1 + u) exp(-u) * (the term of r^2 that holds l_i)
//   dk / d log s^2   =  k
//
// Rasmussen & Williams 2006, eq. 4.17 and sec. 5.1.
#include "matern52.h"

#include <cassert>
#include <cmath>

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// log_theta taken apart and back from logarithms.
struct Scales {
  VectorXd inverse_lengthscale;      ///< d
  VectorXd inverse_square_category;  ///< c
  double signal_variance;

  Scales(const Points& x, const VectorXd& log_theta)
      : inverse_lengthscale((-log_theta.head(x.ordered.cols()).array()).exp()),
        inverse_square_category((-2.0 * log_theta.segment(x.ordered.cols(), x.categories.cols()).array()).exp()),
        signal_variance(std::exp(log_theta[log_theta.size() - 1])) {
    assert(log_theta.size() == x.ordered.cols() + x.categories.cols() + 1);
  }
};

/// Contribution of ordered column i to r^2, between all x and point j of y.
auto ordered_term(const MatrixXd& scaled_x, const MatrixXd& scaled_y, Index j, Index i) {
  return (scaled_x.col(i).array() - scaled_y(j, i)).square();
}

/// 1 where category column i of x differs from point j of y.
auto category_differs(const Points& x, const Points& y, Index j, Index i) {
  return (x.categories.col(i).array() != y.categories(j, i)).cast<double>();
}

/// r^2, x.size() by y.size(). Differences, not |x|^2 - 2 xy + |y|^2: that cancels for neighbours.
MatrixXd squared_distance(const Points& x, const Points& y, const Scales& scales) {
  const MatrixXd scaled_x = x.ordered * scales.inverse_lengthscale.asDiagonal();
  const MatrixXd scaled_y = y.ordered * scales.inverse_lengthscale.asDiagonal();
  MatrixXd r2 = MatrixXd::Zero(x.size(), y.size());
  for (Index j = 0; j < y.size(); ++j) {
    for (Index i = 0; i < x.ordered.cols(); ++i) r2.col(j).array() += ordered_term(scaled_x, scaled_y, j, i);
    for (Index i = 0; i < x.categories.cols(); ++i)
      r2.col(j).array() += category_differs(x, y, j, i) * scales.inverse_square_category[i];
  }
  return r2;
}

class Matern52 final : public Kernel {
 public:
  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    const auto lengthscales = static_cast<std::size_t>(ordered_dims + category_dims);
    std::vector<Hyperparameter> result(lengthscales, {Hyperparameter::Role::kLengthscale});
    result.push_back({Hyperparameter::Role::kSignalVariance});
    return result;
  }

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& log_theta) const override {
    const Scales scales(x, log_theta);
    MatrixXd u = squared_distance(x, y, scales);
    u.array() = (5.0 * u.array()).sqrt();
    u.array() = scales.signal_variance * (1.0 + u.array() + u.array().square() / 3.0) * (-u.array()).exp();
    return u;
  }

  VectorXd diagonal(const Points& x, const VectorXd& log_theta) const override {
    return VectorXd::Constant(x.size(), std::exp(log_theta[log_theta.size() - 1]));
  }

  VectorXd weighted_gradient(const Points& x, const VectorXd& log_theta, const MatrixXd& weights) const override {
    assert(weights.rows() == x.size() && weights.cols() == x.size());
    const Scales scales(x, log_theta);
    const Index d = x.ordered.cols();
    const MatrixXd scaled = x.ordered * scales.inverse_lengthscale.asDiagonal();
    VectorXd gradient = VectorXd::Zero(log_theta.size());
    const MatrixXd u = (5.0 * squared_distance(x, x, scales).array()).sqrt();
    const MatrixXd decayed = weights.array() * (-u.array()).exp() * scales.signal_variance;
    gradient[gradient.size() - 1] = (decayed.array() * (1.0 + u.array() + u.array().square() / 3.0)).sum();
    const MatrixXd slope = (5.0 / 3.0) * decayed.array() * (1.0 + u.array());
    for (Index j = 0; j < x.size(); ++j) {
      for (Index i = 0; i < d; ++i) gradient[i] += (slope.col(j).array() * ordered_term(scaled, scaled, j, i)).sum();
      for (Index i = 0; i < x.categories.cols(); ++i)
        gradient[d + i] +=
            (slope.col(j).array() * category_differs(x, x, j, i)).sum() * scales.inverse_square_category[i];
    }
    return gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& log_theta,
                          const VectorXd& weights) const override {
    const Scales scales(x, log_theta);
    const VectorXd u = (5.0 * squared_distance(x, z, scales).array()).sqrt();
    const VectorXd slope =
        (-5.0 / 3.0) * scales.signal_variance * weights.array() * (1.0 + u.array()) * (-u.array()).exp();
    VectorXd gradient(z.ordered.cols());
    for (Index i = 0; i < gradient.size(); ++i)
      gradient[i] = slope.dot((z.ordered(0, i) - x.ordered.col(i).array()).matrix()) * scales.inverse_lengthscale[i] *
                    scales.inverse_lengthscale[i];
    return gradient;
  }
};

}  // namespace

std::shared_ptr<const Kernel> make_matern52() { return std::make_shared<Matern52>(); }

}  // namespace krigtune

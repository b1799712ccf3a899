// A linear trend in the ordered columns, zero at the centre of the unit cube:
//
//   k(x, y) = s^2 sum_i (x_i - 1/2) (y_i - 1/2) / l_i^2,   x, y in [0, 1]^d
//
// the covariance of f(x) = sum_i b_i (x_i - 1/2), b_i ~ Normal(0, s^2 / l_i^2).
//
//   theta = [log l_1, ..., log l_d, log s^2]
//   dk / d log l_i  = -2 s^2 (x_i - 1/2) (y_i - 1/2) / l_i^2
//   dk / d log s^2  =  k
//   dk / d x_i      =  s^2 (y_i - 1/2) / l_i^2
//
// Rasmussen & Williams 2006, section 4.2.2.
#include <cassert>
#include <cmath>

#include "kernels/kernel_families.h"
#include "krigtune/core/error.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// s (x_i - 1/2) / l_i: k is the scalar product of two rows.
MatrixXd slopes(const Points& x, const VectorXd& theta) {
  const Index d = x.ordered.cols();
  assert(theta.size() == d + 1);
  const VectorXd scale = (0.5 * theta[d] - theta.head(d).array()).exp();
  return (x.ordered.array() - 0.5).matrix() * scale.asDiagonal();
}

class Linear final : public Kernel {
 public:
  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index) const override {
    if (ordered_dims == 0)
      throw UserError("a linear kernel looks at ordered columns, and there are none",
                      "use it on points that have some");
    std::vector<Hyperparameter> result(static_cast<std::size_t>(ordered_dims), {Hyperparameter::Role::kLengthscale});
    result.push_back({Hyperparameter::Role::kSignalVariance});
    return result;
  }

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    MatrixXd k = slopes(x, theta) * slopes(y, theta).transpose();
    // The two triangles of a product may differ by rounding.
    if (&x == &y) return k.selfadjointView<Eigen::Lower>();
    return k;
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    return slopes(x, theta).rowwise().squaredNorm();
  }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    assert(weights.rows() == x.size() && weights.cols() == x.size());
    const MatrixXd a = slopes(x, theta);
    const Index d = a.cols();
    VectorXd gradient(d + 1);
    gradient.head(d) = -2.0 * a.cwiseProduct(weights * a).colwise().sum();
    gradient[d] = -0.5 * gradient.head(d).sum();
    return gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    assert(z.size() == 1 && weights.size() == x.size());
    const Index d = z.ordered.cols();
    const VectorXd scale = (0.5 * theta[d] - theta.head(d).array()).exp();
    return scale.cwiseProduct(slopes(x, theta).transpose() * weights);
  }
};

}  // namespace

KernelPointer make_linear() { return std::make_shared<Linear>(); }

}  // namespace krigtune

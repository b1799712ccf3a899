// The covariance of the q levels of one column as a free matrix, for a factor with few values that are ordered but
// differ in kind:
//
//   k(x, y) = G[a, b],  a and b the levels of x and y,   G = F F^T,  F lower triangular with F_aa = exp(theta_aa) > 0
//
// so that G is positive definite for every theta. theta contains F row by row, F_00, F_10, F_11, F_20, ...: the
// diagonal entries as logarithms, the others unchanged.
//
//   with M[a, b] = sum of weights(i, j) over the points i of level a and j of level b:
//   d sum(weights * K) / dF = (M + M^T) F, its lower triangle;   dF_aa / dtheta_aa = F_aa
//
// The prior's centre is a correlation matrix (unit diagonal). For an ordered column it is that of an exponential kernel
// of lengthscale 1 over the unit interval, exp(-|a - b| / (q - 1)). For a category, whose indices have no order, it is
// exp(-1) between any two levels. Free form: Pinheiro & Bates 1996 ("Unconstrained parametrizations for
// variance-covariance matrices", the log-Cholesky one).
#include <Eigen/Cholesky>
#include <cassert>
#include <cmath>
#include <string>

#include "core/error.h"
#include "kernels/kernel_families.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Decimal fractions in a file may move an ordered value off its level by their rounding, but hardly by more.
constexpr double kLevelTolerance = 1e-6;

class FreeGram final : public Kernel {
 public:
  explicit FreeGram(int levels) : levels_(levels) {}

  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    if (ordered_dims + category_dims != 1)
      throw UserError("a free Gram matrix looks at one column, not at " + std::to_string(ordered_dims + category_dims),
                      "name the one in its columns");
    const MatrixXd factor = centre(ordered_dims == 1).llt().matrixL();
    std::vector<Hyperparameter> result;
    for (Index a = 0; a < levels_; ++a) {
      for (Index b = 0; b < a; ++b) result.push_back({Hyperparameter::Role::kLoading, factor(a, b)});
      result.push_back({Hyperparameter::Role::kLoading, std::log(factor(a, a))});
    }
    return result;
  }

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    return level_covariance(theta)(levels_of(x), levels_of(y));
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    return level_covariance(theta).diagonal()(levels_of(x));
  }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    assert(weights.rows() == x.size() && weights.cols() == x.size());
    const std::vector<Index> level = levels_of(x);
    MatrixXd rows = MatrixXd::Zero(levels_, x.size());
    MatrixXd sums = MatrixXd::Zero(levels_, levels_);
    for (Index j = 0; j < x.size(); ++j) {
      for (Index i = 0; i < x.size(); ++i) rows(level[static_cast<std::size_t>(i)], j) += weights(i, j);
      sums.col(level[static_cast<std::size_t>(j)]) += rows.col(j);
    }
    const MatrixXd f = factor(theta);
    const MatrixXd by_factor = (sums + sums.transpose()) * f;
    VectorXd gradient(theta.size());
    Index p = 0;
    for (Index a = 0; a < levels_; ++a) {
      for (Index b = 0; b < a; ++b) gradient[p++] = by_factor(a, b);
      gradient[p++] = by_factor(a, a) * f(a, a);
    }
    return gradient;
  }

  /// The derivative is zero, because the kernel is not defined between its levels.
  VectorXd input_gradient(const Points& z, const Points&, const VectorXd&, const VectorXd&) const override {
    return VectorXd::Zero(z.ordered.cols());
  }

 private:
  MatrixXd centre(bool ordered) const {
    const double ends = static_cast<double>(levels_ - 1);
    return MatrixXd::NullaryExpr(levels_, levels_, [ordered, ends](Index a, Index b) {
      if (a == b) return 1.0;
      return ordered ? std::exp(-std::abs(static_cast<double>(a - b)) / ends) : std::exp(-1.0);
    });
  }

  MatrixXd factor(const VectorXd& theta) const {
    assert(theta.size() == levels_ * (levels_ + 1) / 2);
    MatrixXd f = MatrixXd::Zero(levels_, levels_);
    Index p = 0;
    for (Index a = 0; a < levels_; ++a) {
      for (Index b = 0; b < a; ++b) f(a, b) = theta[p++];
      f(a, a) = std::exp(theta[p++]);
    }
    return f;
  }

  /// Returns G, exactly symmetric.
  MatrixXd level_covariance(const VectorXd& theta) const {
    const MatrixXd f = factor(theta);
    MatrixXd covariance(levels_, levels_);
    for (Index a = 0; a < levels_; ++a)
      for (Index b = 0; b <= a; ++b) covariance(a, b) = covariance(b, a) = f.row(a).dot(f.row(b));
    return covariance;
  }

  std::vector<Index> levels_of(const Points& x) const {
    assert(x.ordered.cols() + x.categories.cols() == 1);
    std::vector<Index> levels;
    levels.reserve(static_cast<std::size_t>(x.size()));
    for (Index i = 0; i < x.size(); ++i)
      levels.push_back(x.ordered.cols() == 1 ? level_of(x.ordered(i, 0)) : level_of(x.categories(i, 0)));
    return levels;
  }

  Index level_of(int index) const {
    if (index < 0 || index >= levels_)
      throw UserError("category index " + std::to_string(index) + " is none of the " + std::to_string(levels_) +
                      " levels of a free Gram matrix");
    return index;
  }

  Index level_of(double value) const {
    const double steps = static_cast<double>(levels_ - 1);
    const double level = std::round(value * steps);
    if (!(level >= 0.0 && level <= steps && std::abs(value - level / steps) <= kLevelTolerance))
      throw UserError("the ordered value " + std::to_string(value) + " is none of the " + std::to_string(levels_) +
                          " levels of a free Gram matrix",
                      "they are k / " + std::to_string(levels_ - 1));
    return static_cast<Index>(level);
  }

  int levels_;
};

}  // namespace

KernelPointer make_free_gram(int levels) { return std::make_shared<FreeGram>(levels); }

}  // namespace krigtune::surrogate

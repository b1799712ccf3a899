#include "krigtune/surrogate/kernel.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/kernel_families.h"

namespace krigtune::surrogate {
namespace {

/// `where` tells the user which part of the whole spec is meant.
[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw UserError(where + ": " + what, hint);
}

void check_indices(std::vector<Eigen::Index> indices, const std::string& where, const std::string& what) {
  std::sort(indices.begin(), indices.end());
  if (!indices.empty() && indices.front() < 0)
    refuse(where, what + " column " + std::to_string(indices.front()) + " is negative");
  const auto twice = std::adjacent_find(indices.begin(), indices.end());
  if (twice != indices.end()) refuse(where, what + " column " + std::to_string(*twice) + " is named twice");
}

void check_columns(const KernelSpec& spec, const std::string& where) {
  const Columns& columns = spec.columns;
  const std::size_t named = columns.ordered.size() + columns.categories.size();
  if (columns.all && named > 0)
    refuse(where, "columns are named although columns.all is true", "set columns.all = false");
  if (columns.all) return;
  if (named == 0) refuse(where, "it looks at no column", "name one, or set columns.all = true");
  check_indices(columns.ordered, where, "ordered");
  check_indices(columns.categories, where, "category");
  if (spec.kind == KernelKind::kLinear && !columns.categories.empty())
    refuse(where, "a linear kernel looks at ordered columns only");
}

void check(const KernelSpec& spec, const std::string& where) {
  check_columns(spec, where);
  const bool composite = spec.kind == KernelKind::kSum || spec.kind == KernelKind::kProduct;
  if (composite && spec.parts.size() < 2)
    refuse(where, "a sum or product needs two parts or more, not " + std::to_string(spec.parts.size()));
  if (!composite && !spec.parts.empty()) refuse(where, "only a sum or product has parts");
}

KernelPointer make(const KernelSpec& spec, const std::string& where);

std::vector<KernelPointer> make_parts(const KernelSpec& spec, const std::string& where) {
  std::vector<KernelPointer> parts;
  for (std::size_t q = 0; q < spec.parts.size(); ++q)
    parts.push_back(make(spec.parts[q], where + ".parts[" + std::to_string(q) + "]"));
  return parts;
}

KernelPointer make_of_all_columns(const KernelSpec& spec, const std::string& where) {
  switch (spec.kind) {
    case KernelKind::kMatern52:
    case KernelKind::kMatern32:
    case KernelKind::kSquaredExponential:
      return make_stationary(spec.kind);
    case KernelKind::kLinear:
      return make_linear();
    case KernelKind::kMainEffects:
      return make_main_effects();
    case KernelKind::kSum:
      return make_sum(make_parts(spec, where));
    case KernelKind::kProduct:
      return make_product(make_parts(spec, where));
  }
  refuse(where, "there is no such kind");
}

KernelPointer make(const KernelSpec& spec, const std::string& where) {
  check(spec, where);
  KernelPointer kernel = make_of_all_columns(spec, where);
  return spec.columns.all ? kernel : make_on_columns(spec.columns, std::move(kernel));
}

}  // namespace

std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec) { return make(spec, "kernel"); }

std::shared_ptr<const Kernel> make_kernel(KernelKind kind) {
  KernelSpec spec;
  spec.kind = kind;
  return make_kernel(spec);
}

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

}  // namespace krigtune::surrogate

// Sums and products of kernels:
//
//   sum      k = sum_q k_q       dk = sum_q dk_q
//   product  k = prod_q k_q      dk = sum_q dk_q * (product of the others)
//
// theta = [that of the first part, that of the second, ...]. The weights of a product's derivative, times the Gram
// matrix of the other parts, are weights of one part's derivative. So no part's derivative is ever formed as a matrix.
// Sums and (Schur) products of positive semi-definite matrices are positive semi-definite (Rasmussen & Williams 2006,
// section 4.2.4).
#include <cassert>
#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/kernel_families.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

class Composite : public Kernel {
 public:
  explicit Composite(std::vector<KernelPointer> parts) : parts_(std::move(parts)) { assert(!parts_.empty()); }

  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    std::vector<Hyperparameter> all;
    for (const KernelPointer& part : parts_) {
      const auto own = part->hyperparameters(ordered_dims, category_dims);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

 protected:
  struct Part {
    const Kernel* kernel;
    Index first;  ///< of its theta in the whole theta
    VectorXd theta;
  };

  std::vector<Part> parts(const Points& x, const VectorXd& theta) const {
    std::vector<Part> result;
    Index first = 0;
    for (const KernelPointer& part : parts_) {
      const auto count = static_cast<Index>(part->hyperparameters(x.ordered.cols(), x.categories.cols()).size());
      assert(first + count <= theta.size());
      result.push_back({part.get(), first, theta.segment(first, count)});
      first += count;
    }
    assert(first == theta.size());
    return result;
  }

 private:
  std::vector<KernelPointer> parts_;
};

class Sum final : public Composite {
 public:
  using Composite::Composite;

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    MatrixXd k = MatrixXd::Zero(x.size(), y.size());
    for (const Part& part : parts(x, theta)) k += part.kernel->gram(x, y, part.theta);
    return k;
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    VectorXd k = VectorXd::Zero(x.size());
    for (const Part& part : parts(x, theta)) k += part.kernel->diagonal(x, part.theta);
    return k;
  }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    VectorXd gradient(theta.size());
    for (const Part& part : parts(x, theta))
      gradient.segment(part.first, part.theta.size()) = part.kernel->weighted_gradient(x, part.theta, weights);
    return gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    VectorXd gradient = VectorXd::Zero(z.ordered.cols());
    for (const Part& part : parts(x, theta)) gradient += part.kernel->input_gradient(z, x, part.theta, weights);
    return gradient;
  }
};

/// Returns for each matrix the elementwise product of the others with `weights`. It does not divide, because a factor
/// may be zero.
std::vector<MatrixXd> times_the_others(const std::vector<MatrixXd>& factors, const MatrixXd& weights) {
  std::vector<MatrixXd> products(factors.size(), weights);
  MatrixXd before = weights;
  for (std::size_t q = 0; q < factors.size(); ++q) {
    products[q] = before;
    before.array() *= factors[q].array();
  }
  MatrixXd after = factors.back();
  for (std::size_t q = factors.size() - 1; q-- > 0;) {
    products[q].array() *= after.array();
    after.array() *= factors[q].array();
  }
  return products;
}

class Product final : public Composite {
 public:
  using Composite::Composite;

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    MatrixXd k = MatrixXd::Ones(x.size(), y.size());
    for (const Part& part : parts(x, theta)) k.array() *= part.kernel->gram(x, y, part.theta).array();
    return k;
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override {
    VectorXd k = VectorXd::Ones(x.size());
    for (const Part& part : parts(x, theta)) k.array() *= part.kernel->diagonal(x, part.theta).array();
    return k;
  }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    const std::vector<Part> all = parts(x, theta);
    const std::vector<MatrixXd> part_weights = times_the_others(grams(all, x, x), weights);
    VectorXd gradient(theta.size());
    for (std::size_t q = 0; q < all.size(); ++q)
      gradient.segment(all[q].first, all[q].theta.size()) =
          all[q].kernel->weighted_gradient(x, all[q].theta, part_weights[q]);
    return gradient;
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    const std::vector<Part> all = parts(x, theta);
    const std::vector<MatrixXd> part_weights = times_the_others(grams(all, x, z), weights);
    VectorXd gradient = VectorXd::Zero(z.ordered.cols());
    for (std::size_t q = 0; q < all.size(); ++q)
      gradient += all[q].kernel->input_gradient(z, x, all[q].theta, part_weights[q].col(0));
    return gradient;
  }

 private:
  static std::vector<MatrixXd> grams(const std::vector<Part>& all, const Points& x, const Points& y) {
    std::vector<MatrixXd> result;
    for (const Part& part : all) result.push_back(part.kernel->gram(x, y, part.theta));
    return result;
  }
};

}  // namespace

KernelPointer make_sum(std::vector<KernelPointer> parts) { return std::make_shared<Sum>(std::move(parts)); }

KernelPointer make_product(std::vector<KernelPointer> parts) { return std::make_shared<Product>(std::move(parts)); }

// A kernel that sees only some of the points' columns, so that all other kernels can use every column that they get.
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

void check_range(const std::vector<Index>& columns, Index count, const std::string& what) {
  for (const Index column : columns)
    if (column >= count)
      throw UserError("a kernel looks at " + what + " column " + std::to_string(column) + " of points that have " +
                          std::to_string(count),
                      "columns count from 0");
}

class OnColumns final : public Kernel {
 public:
  OnColumns(Columns columns, KernelPointer kernel) : columns_(std::move(columns)), kernel_(std::move(kernel)) {}

  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    check_range(columns_.ordered, ordered_dims, "ordered");
    check_range(columns_.categories, category_dims, "category");
    return kernel_->hyperparameters(static_cast<Index>(columns_.ordered.size()),
                                    static_cast<Index>(columns_.categories.size()));
  }

  /// A kernel recognises equal arguments by their address.
  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    const Points own = pick(x);
    return &x == &y ? kernel_->gram(own, own, theta) : kernel_->gram(own, pick(y), theta);
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override { return kernel_->diagonal(pick(x), theta); }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    return kernel_->weighted_gradient(pick(x), theta, weights);
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    VectorXd gradient = VectorXd::Zero(z.ordered.cols());
    gradient(columns_.ordered) = kernel_->input_gradient(pick(z), pick(x), theta, weights);
    return gradient;
  }

 private:
  Points pick(const Points& x) const {
    check_range(columns_.ordered, x.ordered.cols(), "ordered");
    check_range(columns_.categories, x.categories.cols(), "category");
    return {x.ordered(Eigen::all, columns_.ordered), x.categories(Eigen::all, columns_.categories), {}};
  }

  Columns columns_;
  KernelPointer kernel_;
};

}  // namespace

KernelPointer make_on_columns(Columns columns, KernelPointer kernel) {
  return std::make_shared<OnColumns>(std::move(columns), std::move(kernel));
}

// The main effects of a mixed space plus the joint effect of all columns:
//
//   k(x, y) = k_o(x, y) + sum_j k_j(x, y) + k_all(x, y)
//
// k_o is a Matern 5/2 of the ordered columns, k_j one of category j alone, and k_all one of all columns. With a kernel
// over the joint distance alone, points with different categories are unrelated, and every combination of categories
// must be learned separately. Here a trial also informs about all points that share its ordered columns or one of its
// categories, and k_all models the remainder (sums of effects: Duvenaud, Nickisch & Rasmussen 2011, "Additive Gaussian
// processes"; a sum and a product for mixed spaces: Ru et al. 2020, "Bayesian optimisation over multiple continuous and
// categorical inputs").
//
//   theta = [that of k_o, those of k_j, that of k_all], each as in stationary.cpp
//
// Without categories, or with one category and nothing else, k_all is the whole kernel.
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

KernelPointer matern_on(std::vector<Index> ordered, std::vector<Index> categories) {
  return make_on_columns({false, std::move(ordered), std::move(categories)}, make_stationary(KernelKind::kMatern52));
}

/// The sum for points with so many columns.
KernelPointer sum_for(Index ordered_dims, Index category_dims) {
  KernelPointer all = make_stationary(KernelKind::kMatern52);
  if (category_dims == 0 || ordered_dims + category_dims == 1) return all;
  std::vector<KernelPointer> parts;
  std::vector<Index> ordered;
  for (Index i = 0; i < ordered_dims; ++i) ordered.push_back(i);
  if (ordered_dims > 0) parts.push_back(matern_on(std::move(ordered), {}));
  for (Index j = 0; j < category_dims; ++j) parts.push_back(matern_on({}, {j}));
  parts.push_back(std::move(all));
  return make_sum(std::move(parts));
}

KernelPointer sum_for(const Points& points) { return sum_for(points.ordered.cols(), points.categories.cols()); }

class MainEffects final : public Kernel {
 public:
  std::vector<Hyperparameter> hyperparameters(Index ordered_dims, Index category_dims) const override {
    return sum_for(ordered_dims, category_dims)->hyperparameters(ordered_dims, category_dims);
  }

  MatrixXd gram(const Points& x, const Points& y, const VectorXd& theta) const override {
    return sum_for(x)->gram(x, y, theta);
  }

  VectorXd diagonal(const Points& x, const VectorXd& theta) const override { return sum_for(x)->diagonal(x, theta); }

  VectorXd weighted_gradient(const Points& x, const VectorXd& theta, const MatrixXd& weights) const override {
    return sum_for(x)->weighted_gradient(x, theta, weights);
  }

  VectorXd input_gradient(const Points& z, const Points& x, const VectorXd& theta,
                          const VectorXd& weights) const override {
    return sum_for(x)->input_gradient(z, x, theta, weights);
  }
};

}  // namespace

KernelPointer make_main_effects() { return std::make_shared<MainEffects>(); }

}  // namespace krigtune::surrogate

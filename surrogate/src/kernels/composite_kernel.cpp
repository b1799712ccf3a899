// Sums and products of kernels:
//
//   sum      k = sum_q k_q       dk = sum_q dk_q
//   product  k = prod_q k_q      dk = sum_q dk_q * (product of the others)
//
// theta = [that of the first part, that of the second, ...]. Weights of a product's derivative times the Gram matrix of
// the others are weights of a part's derivative, so that no part's derivative is ever formed as a matrix.
// Sums and (Schur) products of positive semi-definite matrices are so too (Rasmussen & Williams 2006, section 4.2.4).
#include <cassert>
#include <utility>

#include "kernels/kernel_families.h"

namespace krigtune {
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
    Index first;  ///< of its theta in the whole
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

/// For each matrix the elementwise product of the others with `weights`. Not by division: a factor may be zero.
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

}  // namespace krigtune

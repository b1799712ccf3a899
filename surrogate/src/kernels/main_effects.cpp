// The main effects of a mixed space and what all columns do together:
//
//   k(x, y) = k_o(x, y) + sum_j k_j(x, y) + k_all(x, y)
//
// k_o is a Matern 5/2 of the ordered columns, k_j one of category j alone, k_all one of all columns. A kernel over the
// joint distance alone calls two points unrelated once their categories differ, so that every combination of categories
// learns from nothing. Here a trial teaches what its ordered columns and each of its categories do wherever else they
// occur, and k_all is what is left (sums of effects: Duvenaud, Nickisch & Rasmussen 2011, "Additive Gaussian
// processes"; a sum and a product for mixed spaces: Ru et al. 2020, "Bayesian optimisation over multiple continuous and
// categorical inputs").
//
//   theta = [that of k_o, those of k_j, that of k_all], each as in stationary.cpp
//
// Where there is no category, or where one category is all there is, k_all is the whole kernel.
#include <utility>

#include "kernels/kernel_families.h"

namespace krigtune {
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

}  // namespace krigtune

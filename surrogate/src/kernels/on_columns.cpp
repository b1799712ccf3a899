// A kernel that sees some of the points' columns: every other kernel may take all that it is given for its own.
#include <string>
#include <utility>

#include "kernels/kernel_families.h"
#include "krigtune/core/error.h"

namespace krigtune {
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

  /// A kernel tells by the address that both its arguments are one.
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

}  // namespace krigtune

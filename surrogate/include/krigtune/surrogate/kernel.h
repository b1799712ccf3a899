#pragma once
#include <Eigen/Core>
#include <memory>
#include <vector>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// What a number of a kernel's theta is; its prior and its bounds follow from that (hyperparameters.h).
struct Hyperparameter {
  enum class Role {
    kLengthscale,     ///< log l, of the unit cube or of a category
    kSignalVariance,  ///< log s^2
    kLoading,         ///< an entry of a free Gram matrix's factor: any real number
  };
  Role role;
  double centre = 0.0;  ///< of a loading's prior
};

/// A covariance function k(x, y; theta). Stateless; theta is always passed, positive numbers as natural logarithms.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// One for every entry of theta, in its order, for points with so many columns.
  virtual std::vector<Hyperparameter> hyperparameters(Eigen::Index ordered_dims, Eigen::Index category_dims) const = 0;
  /// x.size() by y.size(). Exactly symmetric (and cheaper) if x and y are one object.
  virtual Eigen::MatrixXd gram(const Points& x, const Points& y, const Eigen::VectorXd& theta) const = 0;
  /// k(x_i, x_i).
  virtual Eigen::VectorXd diagonal(const Points& x, const Eigen::VectorXd& theta) const = 0;
  /// For every parameter p: sum_ij weights(i, j) * d k(x_i, x_j) / d theta_p; weights n x n.
  virtual Eigen::VectorXd weighted_gradient(const Points& x, const Eigen::VectorXd& theta,
                                            const Eigen::MatrixXd& weights) const = 0;
  /// For every ordered column i: sum_j weights(j) * d k(z, x_j) / d z_i at the one point z; zero where it has a kink.
  virtual Eigen::VectorXd input_gradient(const Points& z, const Points& x, const Eigen::VectorXd& theta,
                                         const Eigen::VectorXd& weights) const = 0;
};

enum class KernelKind { kMatern52, kMatern32, kSquaredExponential, kLinear, kFreeGram, kMainEffects, kSum, kProduct };

/// Which columns a kernel looks at: all of a Points object's, or those named here, counted from 0. A part of a sum or
/// product counts among the columns that the whole looks at.
struct Columns {
  bool all = true;  ///< else those named
  std::vector<Eigen::Index> ordered;
  std::vector<Eigen::Index> categories;
};

/// How a kernel is made. The stationary three: one lengthscale per column over the joint distance of ordered columns
/// and categories (Hamming), and s^2. kLinear: s^2 sum_i (x_i - 1/2)(y_i - 1/2) / l_i^2 of the ordered columns.
/// kFreeGram: the covariance of the levels of one column as a free positive definite matrix, for a few-valued factor: a
/// category column with `levels` indices, or an ordered one whose values are k / (levels - 1); other values are
/// refused (UserError). kMainEffects: for mixed spaces, a Matern 5/2 of the ordered columns, plus one of each category
/// alone, plus one of all columns; without categories kMatern52. kSum, kProduct: of two `parts` or more, theta one
/// after the other; each part keeps its s^2.
struct KernelSpec {
  KernelKind kind = KernelKind::kMatern52;
  Columns columns;
  int levels = 0;                 ///< kFreeGram, at least 2; else 0
  std::vector<KernelSpec> parts;  ///< kSum, kProduct; else empty
};

/// UserError if the spec makes no sense; what only shows with the points (a column they lack) is refused by
/// hyperparameters().
std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec);
std::shared_ptr<const Kernel> make_kernel(KernelKind kind);  ///< one that needs no more than its kind

}  // namespace krigtune::surrogate

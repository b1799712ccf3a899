#pragma once
#include <Eigen/Core>
#include <memory>
#include <vector>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// The role of one number of a kernel's theta; its prior and its bounds follow from the role (hyperparameters.h).
struct Hyperparameter {
  enum class Role {
    kLengthscale,     ///< log l, in the unit cube or of a category
    kSignalVariance,  ///< log s^2
  };
  Role role;
};

/// A covariance function k(x, y; theta). Kernels hold no state: theta is always passed, and its positive numbers are
/// natural logarithms.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Returns one entry for every number of theta, in order, for points with these numbers of columns.
  virtual std::vector<Hyperparameter> hyperparameters(Eigen::Index ordered_dims, Eigen::Index category_dims) const = 0;
  /// Returns the covariances, x.size() by y.size(). The matrix is exactly symmetric (and cheaper) if x and y are the
  /// same object.
  virtual Eigen::MatrixXd gram(const Points& x, const Points& y, const Eigen::VectorXd& theta) const = 0;
  /// Returns k(x_i, x_i) for every i.
  virtual Eigen::VectorXd diagonal(const Points& x, const Eigen::VectorXd& theta) const = 0;
  /// Returns, for every parameter p, sum_ij weights(i, j) * d k(x_i, x_j) / d theta_p; weights is n x n.
  virtual Eigen::VectorXd weighted_gradient(const Points& x, const Eigen::VectorXd& theta,
                                            const Eigen::MatrixXd& weights) const = 0;
  /// Returns, for every ordered column i, sum_j weights(j) * d k(z, x_j) / d z_i at the single point z. The derivative
  /// is 0 where k has a kink.
  virtual Eigen::VectorXd input_gradient(const Points& z, const Points& x, const Eigen::VectorXd& theta,
                                         const Eigen::VectorXd& weights) const = 0;
};

enum class KernelKind { kMatern52, kMatern32, kSquaredExponential, kLinear, kMainEffects, kSum, kProduct };

/// The columns that a kernel looks at: all columns of a Points object, or those named here, counted from 0. In a part
/// of a sum or product they are counted among the columns of the whole.
struct Columns {
  bool all = true;  ///< if false, only the columns named below
  std::vector<Eigen::Index> ordered;
  std::vector<Eigen::Index> categories;
};

/// How to make a kernel:
/// - The three stationary kinds have one lengthscale per column, a joint distance over ordered columns and categories
/// (Hamming), and a variance s^2.
/// - kLinear is s^2 sum_i (x_i - 1/2)(y_i - 1/2) / l_i^2 over the ordered columns.
/// - kMainEffects is for mixed spaces: a Matern 5/2 of the ordered columns, plus one of each category alone, plus one
/// of all columns. Without categories it is kMatern52.
/// - kSum and kProduct combine two or more `parts`. Their theta is the concatenation of the parts', and each part keeps
/// its own s^2.
struct KernelSpec {
  KernelKind kind = KernelKind::kMatern52;
  Columns columns;
  std::vector<KernelSpec> parts;  ///< kSum and kProduct; otherwise empty
};

/// Makes a kernel. Throws UserError if the spec is inconsistent; errors that only the points reveal (a column that they
/// lack) are thrown by hyperparameters().
std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec);
std::shared_ptr<const Kernel> make_kernel(KernelKind kind);  ///< for kinds that need no further settings

}  // namespace krigtune::surrogate

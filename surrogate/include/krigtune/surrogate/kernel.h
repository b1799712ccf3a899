#pragma once
#include <Eigen/Core>
#include <memory>

namespace krigtune {

/// n points of a mixed space: ordered columns (n x d, meant to lie in [0, 1]) and category indices (n x c).
struct Points {
  Eigen::MatrixXd ordered;
  Eigen::MatrixXi categories;

  Eigen::Index size() const { return ordered.rows(); }
  static Points zero(Eigen::Index count, Eigen::Index ordered_dims, Eigen::Index category_dims);
  void append(const Points& more);  ///< same dimensions; an empty object takes them over
  Points slice(Eigen::Index first, Eigen::Index count) const;
};

/// A covariance function k(x, y; theta). Stateless; theta is always passed as natural logarithms.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Length of log_theta = [log l_1 ... log l_d, log l_1 ... log l_c of the categories, log s^2].
  virtual Eigen::Index parameter_count(Eigen::Index ordered_dims, Eigen::Index category_dims) const = 0;
  /// x.size() by y.size().
  virtual Eigen::MatrixXd gram(const Points& x, const Points& y, const Eigen::VectorXd& log_theta) const = 0;
  /// k(x_i, x_i).
  virtual Eigen::VectorXd diagonal(const Points& x, const Eigen::VectorXd& log_theta) const = 0;
  /// For every parameter p: sum_ij weights(i, j) * d k(x_i, x_j) / d log_theta_p; weights n x n.
  virtual Eigen::VectorXd weighted_gradient(const Points& x, const Eigen::VectorXd& log_theta,
                                            const Eigen::MatrixXd& weights) const = 0;
};

enum class KernelKind { kMatern52 };
std::unique_ptr<Kernel> make_kernel(KernelKind kind);

}  // namespace krigtune

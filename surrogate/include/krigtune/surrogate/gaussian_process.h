#pragma once
#include <Eigen/Core>
#include <memory>

#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/mean.h"
#include "krigtune/surrogate/model.h"
#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Each observation as predicted from all the others.
struct LeaveOneOut {
  Eigen::VectorXd mean;      ///< n
  Eigen::VectorXd variance;  ///< n; variance of the observation, noise included
  /// Returns the share of the values that lie inside their central interval of probability `level`.
  double coverage(const Eigen::VectorXd& values, double level) const;
  double log_density(const Eigen::VectorXd& values) const;  ///< sum over the observations
};

/// Posterior of the mean function's p coefficients.
struct Coefficients {
  Eigen::VectorXd mean;        ///< p
  Eigen::MatrixXd covariance;  ///< p x p
};

/// Gaussian-process regression with given hyperparameters (Rasmussen & Williams 2006, chapter 2). Outputs are in their
/// own units; the noise is Gaussian, with known variances plus a common one:
///
///   y_i = f(x_i) + eps_i,   eps_i ~ Normal(0, variance_i + noise_stddev^2)
///
/// theta = [the kernel's, log noise stddev]. Copies are independent values.
class GaussianProcess final : public Model {
 public:
  explicit GaussianProcess(std::shared_ptr<const Kernel> kernel, Mean mean = Mean::zero());

  /// Fits the process to the observations in O(n^3). Observations of the same point are merged into one, weighted by
  /// inverse variance, so the rows are distinct points. Throws UserError if the observations, their features or the
  /// size of theta do not match the kernel and the mean. With no observations (n = 0, but the columns of future ones)
  /// the process predicts the prior.
  void condition(const Observations& observations, const Eigen::VectorXd& theta);
  /// Adds observations as rows at the end, in O(n^2) each; repeated points get rows of their own. No points may be
  /// believed at the time.
  void append(const Observations& more);
  /// Adds points that are being measured, at their posterior mean (kriging believer: only the variance changes).
  /// `success` is the probability, above 0, that each point will yield a value at all; empty means certainty. Without
  /// noise the variance at such a point becomes its expectation over both cases: (1 - success) times the variance
  /// before.
  void believe(const Points& pending, const Eigen::VectorXd& success = {});
  /// Removes the believed points, in O(1) apart from the copy.
  void forget_believed();

  Prediction predict(const Points& points) const override;
  PredictionGradient predict_with_gradient(const Points& point) const override;
  /// Returns the posterior covariance between the points, m x m.
  Eigen::MatrixXd posterior_covariance(const Points& points) const;
  LeaveOneOut leave_one_out() const;       ///< for the observed rows, without the believed ones
  Coefficients coefficients() const;       ///< posterior given the observed rows
  double log_marginal_likelihood() const;  ///< for the observed rows; merged repetitions count as one

  const Eigen::VectorXd& theta() const { return theta_; }
  double noise_stddev() const;
  double jitter() const { return jitter_; }

  // The parts of a prediction: V = L^-1 prior_covariance(points(), x*), mean = prior_mean(x*) + V^T whitened, variance
  // = prior_variance(x*) - |V|^2. Rows of earlier points do not change when others are appended.
  const std::shared_ptr<const Kernel>& kernel() const { return kernel_; }
  const Mean& mean() const { return mean_; }
  const Points& points() const { return points_; }  ///< observed points, then believed ones
  Eigen::Index observed() const { return values_.size(); }
  const Eigen::VectorXd& values() const { return values_; }         ///< of the observed rows
  const Eigen::VectorXd& noise_variance() const { return noise_; }  ///< of all rows, jitter() included
  const Eigen::MatrixXd& lower() const { return lower_; }           ///< Cholesky factor L of all rows
  const Eigen::VectorXd& whitened() const { return whitened_; }     ///< L^-1 (values - prior mean); 0 for believed rows
  Eigen::VectorXd prior_mean(const Points& points) const;           ///< h(x)^T centre
  Eigen::VectorXd prior_variance(const Points& points) const;       ///< k + h^T B h
  Eigen::MatrixXd prior_covariance(const Points& x, const Points& y) const;

 private:
  void check_theta(const Points& points, const Eigen::VectorXd& theta) const;
  Eigen::VectorXd kernel_theta() const;
  void add_rows(const Points& points, const Eigen::VectorXd& noise);

  std::shared_ptr<const Kernel> kernel_;
  Mean mean_;
  Eigen::VectorXd theta_;
  Points points_;
  Eigen::VectorXd values_;
  Eigen::VectorXd noise_;
  Eigen::MatrixXd lower_;
  Eigen::VectorXd whitened_;
  double jitter_ = 0.0;
};

}  // namespace krigtune::surrogate

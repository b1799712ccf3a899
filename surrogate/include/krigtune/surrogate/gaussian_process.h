#pragma once
#include <Eigen/Core>
#include <memory>

#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/mean.h"
#include "krigtune/surrogate/model.h"
#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Each observation predicted from all others.
struct LeaveOneOut {
  Eigen::VectorXd mean;      ///< n
  Eigen::VectorXd variance;  ///< n, of the observation: noise included
  /// Share of the values inside their central interval of probability `level`.
  double coverage(const Eigen::VectorXd& values, double level) const;
  double log_density(const Eigen::VectorXd& values) const;  ///< sum over the observations
};

/// What the data say of the mean function's coefficients.
struct Coefficients {
  Eigen::VectorXd mean;        ///< p
  Eigen::MatrixXd covariance;  ///< p x p
};

/// Gaussian-process regression with given hyperparameters (Rasmussen & Williams 2006, chapter 2): outputs in their own
/// units, Gaussian noise of known variances plus a common one. A value: copies are independent.
/// theta = [the kernel's, log noise stddev].
class GaussianProcess final : public Model {
 public:
  explicit GaussianProcess(std::shared_ptr<const Kernel> kernel, Mean mean = Mean::zero());

  /// O(n^3). Repeated points become one, weighted by inverse variance: the rows are then distinct points. UserError
  /// where the observations, their features or the size of theta are not what the kernel and the mean need.
  /// With no observations (n = 0, columns as those to come) it predicts the prior.
  void condition(const Observations& observations, const Eigen::VectorXd& theta);
  /// Adds observations in O(n^2) each, as rows at the end, repeated points too. Nothing may be believed at the time.
  void append(const Observations& more);
  /// Adds points that are being measured, at their posterior mean (kriging believer: only the variance changes).
  /// `success`: the probability, above 0, that each will have a value at all; empty: it is sure. The variance at such a
  /// point becomes its expectation over both ends, (1 - success) times what it was where there is no noise.
  void believe(const Points& pending, const Eigen::VectorXd& success = {});
  /// Drops the believed points again, O(1) but for the copy.
  void forget_believed();

  Prediction predict(const Points& points) const override;
  PredictionGradient predict_with_gradient(const Points& point) const override;
  /// Covariance of the posterior between points, m x m.
  Eigen::MatrixXd posterior_covariance(const Points& points) const;
  LeaveOneOut leave_one_out() const;       ///< of the rows, without believed ones
  Coefficients coefficients() const;       ///< by the observed rows
  double log_marginal_likelihood() const;  ///< of the rows' values; merged repetitions count as one

  const Eigen::VectorXd& theta() const { return theta_; }
  double noise_stddev() const;
  double jitter() const { return jitter_; }

  // What predictions are made of: V = L^-1 prior_covariance(points(), x*), mean = prior_mean(x*) + V^T whitened,
  // variance = prior_variance(x*) - |V|^2. Rows of earlier points stay as they are when others are appended.
  const std::shared_ptr<const Kernel>& kernel() const { return kernel_; }
  const Mean& mean() const { return mean_; }
  const Points& points() const { return points_; }  ///< observed, then believed
  Eigen::Index observed() const { return values_.size(); }
  const Eigen::VectorXd& values() const { return values_; }         ///< of the observed rows
  const Eigen::VectorXd& noise_variance() const { return noise_; }  ///< of all rows, with jitter()
  const Eigen::MatrixXd& lower() const { return lower_; }           ///< Cholesky factor L of all rows
  const Eigen::VectorXd& whitened() const { return whitened_; }     ///< L^-1 (values - prior mean); 0 if believed
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

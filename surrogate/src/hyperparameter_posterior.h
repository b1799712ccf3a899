#pragma once
#include <Eigen/Core>

#include "krigtune/core/rng.h"
#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune {

/// log p(y | X, theta) + log p(theta) as a function of the hyperparameters theta = [the kernel's log_theta, log noise
/// stddev]. Borrows everything that it is made of.
class HyperparameterPosterior {
 public:
  /// `outputs`, `known_variance`: n, standardised.
  HyperparameterPosterior(const Kernel& kernel, const GpOptions& options, const Points& points,
                          const Eigen::VectorXd& outputs, const Eigen::VectorXd& known_variance);

  Eigen::Index size() const;
  /// Writes the gradient if there is one to write to. NaN where the covariance cannot be factorised.
  double log_density(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;
  double log_marginal_likelihood(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;

  Eigen::VectorXd prior_mode() const;
  Eigen::VectorXd draw(Rng& rng) const;  ///< from the prior, inside the bounds
  Eigen::VectorXd lower_bound() const;
  Eigen::VectorXd upper_bound() const;

 private:
  /// log_density of the prior, the gradient added to.
  double log_prior(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;
  template <class Get>
  Eigen::VectorXd assemble(Get get) const;

  const Kernel& kernel_;
  const GpOptions& options_;
  const Points& points_;
  const Eigen::VectorXd& outputs_;
  const Eigen::VectorXd& known_variance_;
};

/// K + diag(known variance) + noise^2 I.
Eigen::MatrixXd noisy_covariance(const Kernel& kernel, const Points& points, const Eigen::VectorXd& known_variance,
                                 const Eigen::VectorXd& theta);

}  // namespace krigtune

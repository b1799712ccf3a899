#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/hyperparameters.h"
#include "merged_observations.h"

namespace krigtune::surrogate {

/// log p(y | X, theta) + log p(theta) as a function of theta = [the kernel's, log noise stddev]. `structure` must
/// outlive it.
class HyperparameterPosterior {
 public:
  HyperparameterPosterior(const GpStructure& structure, const Observations& observations);

  Eigen::Index size() const { return static_cast<Eigen::Index>(roles_.size()) + 1; }
  /// Returns the log density and writes its gradient unless `gradient` is null. NaN if the covariance cannot be
  /// factorised.
  double log_density(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;
  double log_marginal_likelihood(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;

  Eigen::VectorXd prior_mode() const;
  Eigen::VectorXd draw(Rng& rng) const;  ///< a draw from the prior, inside the bounds
  Eigen::VectorXd lower_bound() const;
  Eigen::VectorXd upper_bound() const;

 private:
  /// Normal prior and bounds of one entry of theta.
  struct Entry {
    double mean;
    double stddev;
    double lower;
    double upper;
  };
  Entry entry(Eigen::Index i) const;
  double log_prior(const Eigen::VectorXd& theta, Eigen::VectorXd* gradient) const;

  const GpStructure& structure_;
  MergedObservations observations_;
  std::vector<Hyperparameter> roles_;
  Eigen::MatrixXd basis_;            ///< H of the merged points
  Eigen::MatrixXd mean_covariance_;  ///< H B H^T, or empty
};

}  // namespace krigtune::surrogate

#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// Likelihoods Phi(sign_i (f_i - bound_i) / stddev) of latent values f: "f_i with noise of that stddev lies above
/// (sign 1) or below (sign -1) its bound".
struct ProbitSites {
  Eigen::VectorXd sign;   ///< n, +1 or -1
  Eigen::VectorXd bound;  ///< n
  double stddev = 1.0;    ///< > 0
};

/// Gaussian observations, with noise of the sites' stddev, that stand for sites.
struct SiteSubstitutes {
  Eigen::VectorXd value;     ///< n
  Eigen::VectorXd variance;  ///< n, >= 0: beyond stddev^2
  bool converged = false;
  int sweeps = 0;
  double log_evidence = 0.0;  ///< log of the expectation of the sites' product under the prior
};

/// Expectation propagation for f ~ Normal(mean, covariance). O(n^3) a sweep.
SiteSubstitutes propagate_expectations(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                                       const ProbitSites& sites);

/// The same where the prior is what `process` says of `points`: its posterior, if it has observed something. Observing
/// the substitutes there makes it the approximate posterior, if its common noise is the sites'.
SiteSubstitutes propagate_expectations(const GaussianProcess& process, const Points& points, const ProbitSites& sites);

}  // namespace krigtune::surrogate

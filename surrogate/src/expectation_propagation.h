#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// Likelihoods Phi(sign_i (f_i - bound_i) / stddev) of latent values f: "f_i plus noise of that stddev lies above (sign
/// 1) or below (sign -1) its bound".
struct ProbitSites {
  Eigen::VectorXd sign;   ///< n, +1 or -1
  Eigen::VectorXd bound;  ///< n
  double stddev = 1.0;    ///< > 0
};

/// Gaussian observations that replace the sites; their noise has the sites' stddev.
struct SiteSubstitutes {
  Eigen::VectorXd value;     ///< n
  Eigen::VectorXd variance;  ///< n, >= 0: in addition to stddev^2
  bool converged = false;
  int sweeps = 0;
  double log_evidence = 0.0;  ///< log of the expectation of the sites' product under the prior
};

/// Runs expectation propagation for f ~ Normal(mean, covariance), in O(n^3) per sweep.
SiteSubstitutes propagate_expectations(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                                       const ProbitSites& sites);

/// Does the same with the prediction of `process` at `points` as the prior; this is its posterior if it has
/// observations. If the process has the sites' noise, then observing the substitutes turns it into the approximate
/// posterior.
SiteSubstitutes propagate_expectations(const GaussianProcess& process, const Points& points, const ProbitSites& sites);

}  // namespace krigtune::surrogate

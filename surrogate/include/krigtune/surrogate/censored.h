#pragma once
#include <Eigen/Core>
#include <memory>
#include <vector>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune {

/// Points where the function is only known to lie on one side: where memory ran out, say. The likelihood of "noisy
/// value >= bound" is Phi((f - bound) / noise stddev), of "<= bound" Phi((bound - f) / noise stddev).
struct Bounds {
  Points points;
  Eigen::VectorXd bounds;
  Eigen::VectorXd sign{};  ///< 1: at least the bound, -1: at most; empty: at least, all of them
};

/// What an approximation by expectation propagation (Minka 2001; Rasmussen & Williams 2006, algorithm 3.5) puts in the
/// place of the bounds: Gaussian observations.
struct CensoredFit {
  GaussianProcess process;   ///< conditioned on the observations and the substitutes
  Observations substitutes;  ///< one for each bound
  bool converged = false;
  int sweeps = 0;
  double log_evidence = 0.0;  ///< log p(observations, bounds | theta)
};

/// Conditions on values and on bounds, with given theta (as GaussianProcess). Either may be empty, not both.
CensoredFit condition_on_bounds(std::shared_ptr<const Kernel> kernel, const Mean& mean,
                                const Observations& observations, const Bounds& bounds, const Eigen::VectorXd& theta);

}  // namespace krigtune

#pragma once
#include <Eigen/Core>
#include <functional>
#include <limits>
#include <string>

#include "krigtune/surrogate/hyperparameters.h"

namespace krigtune::surrogate {

/// Returns f(x) and writes df/dx. A value that is not finite ends the search, and the best point so far is the result.
using DifferentiableFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct MinimizeLimits {
  // Relative change of f that stops the search. With smaller values NLopt's L-BFGS fails on rounding errors.
  double ftol_rel = 1e-6;
  int evaluations = 200;
};

struct Minimum {
  Eigen::VectorXd point;  ///< the best point seen; empty if no evaluation was finite
  double value = std::numeric_limits<double>::infinity();
  int evaluations = 0;
  FitReport::Termination termination = FitReport::Termination::kNotRun;
  std::string message = "not run";
};

/// Minimises f over lower <= x <= upper from `start`, which is moved into the box. It uses L-BFGS and, if that fails,
/// SLSQP from the best point so far. It is deterministic: there is no time limit, and NLopt's own generator is seeded
/// here.
Minimum minimize_in_box(const DifferentiableFunction& f, const Eigen::VectorXd& start, const Eigen::VectorXd& lower,
                        const Eigen::VectorXd& upper, const MinimizeLimits& limits = {});

}  // namespace krigtune::surrogate

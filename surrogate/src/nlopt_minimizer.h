#pragma once
#include <Eigen/Core>
#include <functional>
#include <limits>
#include <string>

#include "krigtune/surrogate/hyperparameters.h"

namespace krigtune::surrogate {

/// f(x), writing df/dx; a value that is not finite ends the search there (the best point seen stands).
using DifferentiableFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct MinimizeLimits {
  // The stopping test of the algorithm: relative change of f. Tighter ones make NLopt's L-BFGS fail on rounding.
  double ftol_rel = 1e-6;
  int evaluations = 200;
};

struct Minimum {
  Eigen::VectorXd point;  ///< the best seen; empty if no evaluation was finite
  double value = std::numeric_limits<double>::infinity();
  int evaluations = 0;
  FitReport::Termination termination = FitReport::Termination::kNotRun;
  std::string message = "not run";
};

/// Minimises f over lower <= x <= upper from `start` (moved into the box): L-BFGS, and where that fails SLSQP from the
/// best point seen. Deterministic: no time limit, NLopt's own generator seeded here.
Minimum minimize_in_box(const DifferentiableFunction& f, const Eigen::VectorXd& start, const Eigen::VectorXd& lower,
                        const Eigen::VectorXd& upper, const MinimizeLimits& limits = {});

}  // namespace krigtune::surrogate

#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/mean.h"
#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// A log-normal prior of a positive hyperparameter: log theta ~ Normal(log_median, log_stddev^2). Its density is taken
/// with respect to log theta (no factor 1 / theta), so that the mode is the median, whether the parameter is written as
/// a stddev or as a variance.
struct LogNormalPrior {
  double log_median = 0.0;
  double log_stddev = 1.0;
};

struct HyperparameterPriors {
  LogNormalPrior lengthscale{-0.7, 0.6};   ///< in the unit cube; log 0.5 = -0.7
  LogNormalPrior signal_stddev{0.0, 0.7};  ///< for standardised outputs
  LogNormalPrior noise_stddev{-3.5, 1.0};  ///< for standardised outputs; log 0.03 = -3.5
  void validate() const;
};

/// Returns a kernel's part of theta with the same value for all lengthscales and the same for all signal stddevs.
Eigen::VectorXd uniform_theta(const std::vector<Hyperparameter>& parameters, double lengthscale, double signal_stddev);
/// Returns the whole theta of a process with that kernel in the same way, for points with the columns of `points`.
Eigen::VectorXd uniform_theta(const Kernel& kernel, const Points& points, double lengthscale, double signal_stddev,
                              double noise_stddev);

/// Why the maximum-a-posteriori fit ended.
struct FitReport {
  enum class Termination { kNotRun, kConverged, kEvaluationLimit, kFallback, kFailed };
  Termination termination = Termination::kNotRun;
  std::string message = "not run";
  int evaluations = 0;
  double log_posterior = 0.0;
  double jitter = 0.0;  ///< added to the diagonal in addition to the noise
};

/// The parts of a Gaussian process whose theta is learned.
struct GpStructure {
  std::shared_ptr<const Kernel> kernel;
  Mean mean = Mean::constant();
  HyperparameterPriors priors;
};

struct FittedHyperparameters {
  Eigen::VectorXd theta;  ///< [the kernel's, log noise stddev]
  FitReport report;
};

/// Finds the maximum a posteriori from several starts: the prior's mode, `start` if given, and `random_starts` draws
/// from the prior. Standardise the observations first, because the priors assume it.
FittedHyperparameters fit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                          int random_starts, Rng& rng,
                                          const std::optional<Eigen::VectorXd>& start = std::nullopt);
/// Searches from `start` only: cheaper, and enough when a few new observations have hardly moved the optimum.
FittedHyperparameters refit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                            const Eigen::VectorXd& start);

}  // namespace krigtune::surrogate

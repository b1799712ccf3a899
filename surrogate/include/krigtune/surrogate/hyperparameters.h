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

/// log theta ~ Normal(log_median, log_stddev^2): a log-normal prior of a positive hyperparameter. Its density is taken
/// with respect to log theta (no factor 1 / theta), so that its mode is the median and does not depend on whether one
/// thinks of a stddev or of a variance.
struct LogNormalPrior {
  double log_median = 0.0;
  double log_stddev = 1.0;
};

/// The prior of Hvarfner, Hellsten & Nardi 2024 ("Vanilla Bayesian optimization performs great in high dimensions"),
/// LogNormal(sqrt 2 + log(d) / 2, sqrt 3) of a lengthscale, moved to have its mode where that density of l has it.
LogNormalPrior dimension_scaled_lengthscale(Eigen::Index dims);

struct HyperparameterPriors {
  LogNormalPrior lengthscale{-0.7, 0.6};   ///< of the unit cube; log 0.5 = -0.7
  LogNormalPrior signal_stddev{0.0, 0.7};  ///< of standardised outputs
  LogNormalPrior noise_stddev{-3.5, 1.0};  ///< likewise; log 0.03 = -3.5
  double loading_stddev = 1.0;             ///< of a free Gram matrix's entries around their centres
  void validate() const;
};

/// A kernel's part of theta with all lengthscales, and all signals' stddevs, alike; loadings at their centres.
Eigen::VectorXd uniform_theta(const std::vector<Hyperparameter>& parameters, double lengthscale, double signal_stddev);
/// Likewise the whole theta of a process with that kernel, over points like these.
Eigen::VectorXd uniform_theta(const Kernel& kernel, const Points& points, double lengthscale, double signal_stddev,
                              double noise_stddev);

/// Why the maximum-a-posteriori fit ended.
struct FitReport {
  enum class Termination { kNotRun, kConverged, kEvaluationLimit, kFallback, kFailed };
  Termination termination = Termination::kNotRun;
  std::string message = "not run";
  int evaluations = 0;
  double log_posterior = 0.0;
  double jitter = 0.0;  ///< added to the diagonal beyond the noise
};

/// The parts of a Gaussian process whose theta is to be learned.
struct GpStructure {
  std::shared_ptr<const Kernel> kernel;
  Mean mean = Mean::constant();
  HyperparameterPriors priors;
};

struct FittedHyperparameters {
  Eigen::VectorXd theta;  ///< [the kernel's, log noise stddev]
  FitReport report;
};

/// Maximum a posteriori from several starts: the prior's mode, `start` if there is one, and `random_starts` draws from
/// the prior. Observations should be standardised, as the priors are.
FittedHyperparameters fit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                          int random_starts, Rng& rng,
                                          const std::optional<Eigen::VectorXd>& start = std::nullopt);
/// From `start` alone: one search instead of several, for an optimum that a few observations more have hardly moved.
FittedHyperparameters refit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                            const Eigen::VectorXd& start);

/// `count` draws from the posterior of theta by slice sampling from `start` (Neal 2003; for Gaussian processes Murray &
/// Adams 2010).
std::vector<Eigen::VectorXd> sample_hyperparameters(const GpStructure& structure, const Observations& observations,
                                                    const Eigen::VectorXd& start, int count, Rng& rng);

}  // namespace krigtune::surrogate

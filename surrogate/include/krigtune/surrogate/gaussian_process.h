#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>

#include "krigtune/core/rng.h"
#include "krigtune/surrogate/kernel.h"

namespace krigtune {

/// log theta ~ Normal(log_median, log_stddev^2): a log-normal prior of a positive hyperparameter. Its density is taken
/// with respect to log theta (no factor 1 / theta), so that its mode is the median and does not depend on whether one
/// thinks of a stddev or of a variance.
struct LogNormalPrior {
  double log_median = 0.0;
  double log_stddev = 1.0;
};

struct GpOptions {
  LogNormalPrior lengthscale{0.0, 0.7};    ///< of the unit cube
  LogNormalPrior signal_stddev{0.0, 0.7};  ///< of standardised outputs
  LogNormalPrior noise_stddev{-3.5, 1.0};  ///< likewise; log 0.03 = -3.5
  int random_starts = 2;                   ///< besides the prior's mode and the last fit
  void validate() const;
};

/// Why the maximum-a-posteriori fit ended.
struct FitReport {
  enum class Termination { kNotRun, kConverged, kEvaluationLimit, kFallback, kFailed };
  Termination termination = Termination::kNotRun;
  std::string message = "not run";
  int evaluations = 0;
  double log_posterior = 0.0;
  double jitter = 0.0;  ///< added to the diagonal beyond the noise
};

struct Prediction {
  Eigen::VectorXd mean;
  Eigen::VectorXd variance;  ///< of the noise-free function
};

/// Gaussian-process regression, outputs standardised inside (values that do not differ are only shifted), constant
/// mean, MAP hyperparameters (Rasmussen & Williams 2006, ch. 2 and 5). Hyperparameters as one vector: the kernel's
/// log_theta, then log noise stddev (of standardised outputs).
class GaussianProcess {
 public:
  explicit GaussianProcess(std::unique_ptr<Kernel> kernel, GpOptions options = {});
  ~GaussianProcess();
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;

  /// Learns the hyperparameters and conditions on (points, values). `known_variance` (n, or empty: none) is added to
  /// the learned noise, in the units of values squared. `start`: hyperparameters of an earlier fit. n >= 1, all finite.
  FitReport fit(const Points& points, const Eigen::VectorXd& values, const Eigen::VectorXd& known_variance, Rng& rng,
                const std::optional<Eigen::VectorXd>& start = std::nullopt);
  /// Conditions with given hyperparameters, nothing learned.
  void condition(const Points& points, const Eigen::VectorXd& values, const Eigen::VectorXd& known_variance,
                 const Eigen::VectorXd& hyperparameters);
  /// Adds points that are being measured at their posterior mean (kriging believer): only the variance changes.
  void believe(const Points& pending);

  Prediction predict(const Points& points) const;
  const Eigen::VectorXd& hyperparameters() const;
  double noise_stddev() const;  ///< in the units of the values

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krigtune

#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/gaussian_process.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "krigtune/surrogate/nearby_observations.h"
#include "krigtune/surrogate/output_transform.h"

namespace krigtune::surrogate {

struct SurrogateOptions {
  KernelSpec kernel;
  Mean mean = Mean::constant();
  HyperparameterPriors priors;
  OutputTransform::Kind transform = OutputTransform::Kind::kIdentity;
  bool standardise = true;         ///< latent outputs to mean 0, stddev 1 before the priors see them
  int random_starts = 2;           ///< of the fit, besides the prior's mode and the last fit
  int hyperparameter_samples = 0;  ///< predictions average over so many draws of theta; 0: the mode alone
  void validate() const;
};

/// The whole regression: transform, standardisation, hyperparameters learned, one Gaussian process (or several, one for
/// each draw of the hyperparameters). Predictions are Gaussian in the latent units of the transform (those of the
/// values for kIdentity); transform() takes them back. A feature that predicts the function (Mean::scaled) is given in
/// the values' units and transformed as they are, but centred on its own mean: an offset between the two (with kLog a
/// factor) is no error of the prediction.
class Surrogate final : public Model {
 public:
  explicit Surrogate(SurrogateOptions options = {});

  /// `start`: theta of an earlier fit.
  FitReport fit(const Observations& observations, Rng& rng, const std::optional<Eigen::VectorXd>& start = std::nullopt);
  /// From `start` alone, theta of a fit to somewhat fewer observations: the cheap one.
  FitReport refit(const Observations& observations, Rng& rng, const Eigen::VectorXd& start);
  /// Conditions with given hyperparameters, nothing learned.
  void condition(const Observations& observations, const Eigen::VectorXd& theta);
  /// Adds observations; hyperparameters, transform and standardisation stay. O(n^2) each.
  void append(const Observations& more);
  /// As GaussianProcess::believe.
  void believe(const Points& pending, const Eigen::VectorXd& success = {});
  void forget_believed();

  /// Adds observations that only predictions near them learn of (NearbyObservations): any number, with so many
  /// `neighbours` for each point, which is fixed by the first call. Nothing may be appended or believed afterwards.
  void append_nearby(const Observations& more, Eigen::Index neighbours);
  bool has_nearby() const { return !nearby_.empty(); }
  /// Keeps predictions of the points while more is appended nearby (KeptPredictions); has_nearby() must hold. Until the
  /// next fit or condition.
  void keep(const Points& points);
  Prediction kept() const;

  Prediction predict(const Points& points) const override;
  /// The same without what was appended nearby: wider, and cheaper.
  Prediction predict_coarsely(const Points& points) const;
  /// Without what was appended nearby.
  PredictionGradient predict_with_gradient(const Points& point) const override;

  const OutputTransform& transform() const { return *transform_; }
  const Eigen::VectorXd& theta() const { return theta_; }  ///< the mode; of standardised outputs
  double noise_stddev() const;                             ///< in latent units
  /// latent = shift + scale * standardised.
  double shift() const { return shift_; }
  double scale() const { return scale_; }
  /// Of standardised outputs: one, or one for each draw of the hyperparameters.
  const std::vector<GaussianProcess>& processes() const { return processes_; }
  /// The points as the processes know them: features transformed and standardised.
  Points standardised(const Points& points) const;

 private:
  Observations learn_scales(const Observations& observations);
  FitReport take(FittedHyperparameters fitted, const Observations& data, Rng& rng);
  Observations standardised(const Observations& observations) const;
  /// Predictions of the processes, one each, as one in latent units: mean and variance of their equal mixture.
  Prediction mixture(const std::vector<Prediction>& each) const;

  SurrogateOptions options_;
  std::shared_ptr<const Kernel> kernel_;
  std::optional<OutputTransform> transform_;
  double shift_ = 0.0;
  double feature_shift_ = 0.0;
  double scale_ = 1.0;
  Eigen::VectorXd theta_;
  std::vector<GaussianProcess> processes_;
  std::vector<NearbyObservations> nearby_;  ///< one a process, or none
  std::vector<KeptPredictions> kept_;       ///< likewise
};

}  // namespace krigtune::surrogate

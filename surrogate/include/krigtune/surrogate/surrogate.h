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
  bool standardise = true;  ///< scale latent outputs to mean 0 and stddev 1 first, as the priors assume
  int random_starts = 2;    ///< for the fit, in addition to the prior's mode and the last fit
  void validate() const;
};

/// The whole regression: a transform of the outputs, standardisation, learned hyperparameters, and a Gaussian process.
/// Predictions are Gaussian in the latent units of the transform (those
/// of the values for kIdentity); transform() maps them back. A feature that predicts the function (Mean::scaled) is
/// given in the values' units. It is transformed in the same way as the values, but centred on its own mean, so that an
/// offset between the two (with kLog a factor) is not an error of the prediction.
class Surrogate final : public Model {
 public:
  explicit Surrogate(SurrogateOptions options = {});

  /// Learns the hyperparameters from the observations. `start` is theta of an earlier fit.
  FitReport fit(const Observations& observations, Rng& rng, const std::optional<Eigen::VectorXd>& start = std::nullopt);
  /// Searches only from `start`, which is theta of a fit to somewhat fewer observations. This is cheaper than fit().
  FitReport refit(const Observations& observations, const Eigen::VectorXd& start);
  /// Conditions on the observations with given hyperparameters; nothing is learned.
  void condition(const Observations& observations, const Eigen::VectorXd& theta);
  /// Adds observations in O(n^2) each. Hyperparameters, transform and standardisation stay the same.
  void append(const Observations& more);
  /// Does the same as GaussianProcess::believe.
  void believe(const Points& pending, const Eigen::VectorXd& success = {});
  void forget_believed();

  /// Adds any number of observations that only affect predictions near them (NearbyObservations). Each point uses
  /// `neighbours` of them; the first call fixes this number. Afterwards nothing may be appended or believed.
  void append_nearby(const Observations& more, Eigen::Index neighbours);
  bool has_nearby() const { return nearby_.has_value(); }
  /// Keeps the predictions of these points up to date while observations are appended nearby (KeptPredictions), until
  /// the next fit or condition. has_nearby() must be true.
  void keep(const Points& points);
  Prediction kept() const;

  Prediction predict(const Points& points) const override;
  /// Predicts without the nearby observations, which is cheaper and gives wider predictions.
  Prediction predict_coarsely(const Points& points) const;
  /// Predicts without the nearby observations.
  PredictionGradient predict_with_gradient(const Points& point) const override;

  const OutputTransform& transform() const { return *transform_; }
  const Eigen::VectorXd& theta() const { return theta_; }  ///< the mode, for standardised outputs
  double noise_stddev() const;                             ///< in latent units
  /// latent = shift + scale * standardised.
  double shift() const { return shift_; }
  double scale() const { return scale_; }
  /// The process for standardised outputs: one entry, or none before the first fit or condition.
  const std::vector<GaussianProcess>& processes() const { return processes_; }
  /// Returns the points in the form that the processes use: features are transformed and standardised.
  Points standardised(const Points& points) const;

 private:
  Observations learn_scales(const Observations& observations);
  FitReport take(FittedHyperparameters fitted, const Observations& data);
  Observations standardised(const Observations& observations) const;
  Prediction in_latent_units(const Prediction& standardised) const;

  SurrogateOptions options_;
  std::shared_ptr<const Kernel> kernel_;
  std::optional<OutputTransform> transform_;
  double shift_ = 0.0;
  double feature_shift_ = 0.0;
  double scale_ = 1.0;
  Eigen::VectorXd theta_;
  std::vector<GaussianProcess> processes_;
  std::optional<NearbyObservations> nearby_;
  std::optional<KeptPredictions> kept_;
};

}  // namespace krigtune::surrogate

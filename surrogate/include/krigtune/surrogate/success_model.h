#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <vector>

#include "krigtune/surrogate/acquisition.h"
#include "krigtune/surrogate/gaussian_process.h"
#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/model.h"

namespace krigtune::surrogate {

/// Points where the function is only known to lie on one side of a bound, for example because memory ran out. The
/// likelihood of "noisy value >= bound" is Phi((f - bound) / noise stddev), that of "<= bound" is Phi((bound - f) /
/// noise stddev).
struct Bounds {
  Points points;
  Eigen::VectorXd bounds;
  Eigen::VectorXd sign{};  ///< 1: at least the bound, -1: at most; empty: at least, for all points
};

/// The Gaussian observations by which expectation propagation replaces the bounds (Minka 2001; Rasmussen & Williams
/// 2006, algorithm 3.5).
struct CensoredFit {
  GaussianProcess process;   ///< conditioned on the observations and the substitutes
  Observations substitutes;  ///< one for each bound
  bool converged = false;
  int sweeps = 0;
  double log_evidence = 0.0;  ///< log p(observations, bounds | theta)
};

/// Conditions a process on values and on bounds for a given theta (see GaussianProcess). Either may be empty, but not
/// both.
CensoredFit condition_on_bounds(std::shared_ptr<const Kernel> kernel, const Mean& mean,
                                const Observations& observations, const Bounds& bounds, const Eigen::VectorXd& theta);

/// Returns Phi^-1(probability); 0 < probability < 1.
double probit(double probability);

/// Prior of a SuccessModel, in probit units: a latent value of 1 means success in 84 % of the cases, 1.65 in 95 %. One
/// probit unit is about 1.7 logits.
struct SuccessOptions {
  double signal_stddev = 1.2;
  double lengthscale = 0.5;
  double offset_stddev = 0.6;  ///< of a common offset of the mean
  double slope_stddev = 0.0;   ///< of a linear trend across each ordered column, from 0 to 1
  /// Stddevs of the coefficients of further features, Normal(0, stddev^2) each: errors of a known size that points
  /// share.
  std::vector<double> shift_stddevs;
  /// The feature column that holds a point's prior mean for predict(); the further features follow it. Empty: the prior
  /// mean is 0 everywhere.
  std::optional<Eigen::Index> mean_feature;
  void validate() const;
};

/// How the approximation of the last fit ended.
struct SuccessFit {
  bool converged = false;
  int sweeps = 0;
  double log_evidence = 0.0;  ///< log probability of the outcomes under the prior
};

/// Probability that a trial succeeds, P(success | f) = Phi(f): Gaussian-process classification by expectation
/// propagation with fixed hyperparameters (Rasmussen & Williams 2006, section 3.6). As a Model it predicts the latent
/// f.
class SuccessModel final : public Model {
 public:
  explicit SuccessModel(std::shared_ptr<const Kernel> kernel, SuccessOptions options = {});

  /// Fits n >= 0 outcomes in O(n^3). `prior`, n x (1 + shifts), has the latent's prior mean at each point and then the
  /// further features; `succeeded` has one outcome for each point.
  SuccessFit fit(const Points& points, const Eigen::MatrixXd& prior, const std::vector<bool>& succeeded);
  /// Returns the probability of success at each point. This and the predictions require an earlier fit().
  Eigen::VectorXd probability(const Points& points, const Eigen::MatrixXd& prior) const;

  Prediction predict(const Points& points) const override;
  PredictionGradient predict_with_gradient(const Points& point) const override;

 private:
  void assume_prior(const Points& points);
  Points with_prior(const Points& points) const;
  Eigen::Index prior_columns() const { return 1 + static_cast<Eigen::Index>(options_.shift_stddevs.size()); }

  std::shared_ptr<const Kernel> kernel_;
  SuccessOptions options_;
  GaussianProcess latent_;  ///< the features of its points are the prior mean and the further features
};

/// log P(success) = log Phi(mean / sqrt(1 + variance)) for a SuccessModel's prediction.
std::unique_ptr<Acquisition> make_log_success_probability();

}  // namespace krigtune::surrogate

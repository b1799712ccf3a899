// With priors g_k (logarithms, centred on their means over the observations) the latent objective is
//
//   y(x) = o + a + sum_k b_k g_k(x) + r(x) + noise,   o the median of y - sum_k centre_k g_k
//   a ~ Normal(0, 1),  b_k ~ Normal(centre_k, stddev_k^2),  r ~ GP(0, s^2 Matern52 with one lengthscale per column)
//
// The part of run effects that is unknown (run_effects.cpp) adds a term F z with z ~ Normal(0, I).
//
// The hyperparameters are maximum a posteriori estimates under log-normal priors in nats. Residuals of half a nat are
// expected, because the values of a few trials cannot distinguish physics that is right from physics that happens to
// fit. Without priors g_k the lengthscales are expected to be about the whole range: two values that happen to be alike
// must not make it impossible that another trial was ended far below them. Each category then has an effect of its own
// in addition to its joint effect with all columns. y is standardised only if values have no logarithm.
//
// Outliers: one configuration that is far slower than the others suggest (a link that retransmits, an allocator at its
// limit) would distort the model around it. So with at least three observations the leave-one-out errors are computed,
// at the medians of the hyperparameters' priors because a fit would explain the outlier away. An observation with an
// error below -4 stddev that is also more than 0.7 nats (twice as slow) gets the square of that error as noise; the
// worst comes first, and at most a fifth of all are treated so. Only slow values are doubted, because a fast one was
// really fast. This applies only to logarithms, because otherwise there is no scale for "far too slow".
#include "search/model/objective_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/statistics.h"
#include "krigtune/surrogate/acquisition.h"

namespace krigtune::search {

namespace {

constexpr double kOutlierDeviations = -4.0;
constexpr double kOutlierNats = -0.7;
constexpr Eigen::Index kFewestForOutliers = 3;
constexpr Eigen::Index kObservationsPerOutlier = 5;

// For values that have no logarithm.
surrogate::SurrogateOptions standardised_options() {
  surrogate::SurrogateOptions options;
  options.priors.signal_stddev = {0.0, 0.7};
  options.priors.noise_stddev = {-3.5, 1.0};
  return options;
}

}  // namespace

// Three constants of the search recipe. They were fitted on the tuning tables of experiments/data to minimise the
// number of trials until the best configuration.
surrogate::HyperparameterPriors residual_priors() {
  surrogate::HyperparameterPriors priors;
  priors.lengthscale = {std::log(0.6), 0.7};
  priors.signal_stddev = {std::log(0.5), 0.7};
  priors.noise_stddev = {std::log(0.03), 0.5};
  return priors;
}

namespace {

surrogate::SurrogateOptions residual_options(const Eigen::VectorXd& centre, const Eigen::VectorXd& stddev) {
  surrogate::SurrogateOptions options;
  options.standardise = false;
  options.mean = surrogate::Mean::weighted(1.0, centre, stddev);
  options.priors = residual_priors();
  return options;
}

// A list of a few values cannot show the ripples that a continuous axis may have. So continuous axes get the
// lengthscales of surrogate_for_unknown_functions() and less noise, because noise would hide the ripples.
void expect_anything(bool has_reals, surrogate::SurrogateOptions& options) {
  options.kernel.kind = surrogate::KernelKind::kMainEffects;
  options.priors.lengthscale = {0.0, 0.7};
  if (!has_reals) return;
  options.priors.lengthscale = {std::log(0.5), 1.0};
  options.priors.noise_stddev = {std::log(0.01), 1.0};
}

// The columns of doubts have no coefficient: they only travel with the points. The columns of runs have the last
// coefficients, which are standard normal.
surrogate::SurrogateOptions options_for(const forecast::Priors& priors, bool logarithmic, Eigen::Index doubts,
                                        Eigen::Index run_columns, bool has_reals) {
  const auto count = static_cast<Eigen::Index>(priors.size());
  Eigen::VectorXd centre = Eigen::VectorXd::Zero(count + doubts + run_columns);
  Eigen::VectorXd stddev = Eigen::VectorXd::Ones(centre.size());
  stddev.segment(count, doubts).setZero();
  for (Eigen::Index k = 0; k < count; ++k) {
    const forecast::Prior::Coefficient coefficient = priors[static_cast<std::size_t>(k)]->coefficient();
    centre(k) = coefficient.centre;
    stddev(k) = coefficient.stddev;
  }
  const bool standardised = priors.empty() && !logarithmic;
  surrogate::SurrogateOptions options = standardised ? standardised_options() : residual_options(centre, stddev);
  if (priors.empty()) expect_anything(has_reals, options);
  return options;
}

surrogate::Points with_runs(surrogate::Points points, const Eigen::MatrixXd& runs) {
  if (runs.cols() == 0) return points;
  points.features.conservativeResize(points.size(), points.features.cols() + runs.cols());
  points.features.rightCols(runs.cols()) = runs;
  return points;
}

/// Returns the hyperparameters at the medians of their priors.
Eigen::VectorXd prior_theta(const surrogate::Kernel& kernel, const surrogate::HyperparameterPriors& priors,
                            const surrogate::Points& points) {
  return surrogate::uniform_theta(kernel, points, std::exp(priors.lengthscale.log_median),
                                  std::exp(priors.signal_stddev.log_median), std::exp(priors.noise_stddev.log_median));
}

}  // namespace

ObjectiveModel::ObjectiveModel(const forecast::Priors& priors, bool logarithmic, Eigen::Index run_columns,
                               bool has_reals, Eigen::Index doubts)
    : run_columns_(run_columns),
      doubts_(doubts),
      options_(options_for(priors, logarithmic, doubts, run_columns, has_reals)),
      prior_centres_(static_cast<Eigen::Index>(priors.size())),
      surrogate_(options_) {
  for (std::size_t k = 0; k < priors.size(); ++k) {
    prior_centres_(static_cast<Eigen::Index>(k)) = priors[k]->coefficient().centre;
  }
}

Eigen::VectorXd ObjectiveModel::prior_values(const surrogate::Points& points) const {
  if (prior_centres_.size() == 0) return Eigen::VectorXd::Zero(points.size());
  return points.features.leftCols(prior_centres_.size()) * prior_centres_;
}

surrogate::Points ObjectiveModel::centred(const surrogate::Points& points) const {
  surrogate::Points result = with_runs(points, Eigen::MatrixXd::Zero(points.size(), run_columns_));
  result.features.rowwise() -= prior_shifts_;
  return result;
}

Eigen::VectorXd ObjectiveModel::noise_of_outliers(const surrogate::Observations& residuals) const {
  Eigen::VectorXd noise = Eigen::VectorXd::Zero(residuals.size());
  if (residuals.size() < kFewestForOutliers) return noise;
  const std::shared_ptr<const surrogate::Kernel> kernel = surrogate::make_kernel(options_.kernel);
  const Eigen::VectorXd theta = prior_theta(*kernel, options_.priors, residuals.points);
  const Eigen::Index most = std::max<Eigen::Index>(residuals.size() / kObservationsPerOutlier, 1);
  for (Eigen::Index found = 0; found < most; ++found) {
    surrogate::GaussianProcess process(kernel, options_.mean);
    process.condition({residuals.points, residuals.values, residuals.variance + noise}, theta);
    if (process.observed() != residuals.size()) break;  // the columns cannot distinguish two configurations
    const surrogate::LeaveOneOut others = process.leave_one_out();
    double worst = kOutlierDeviations;
    Eigen::Index outlier = -1;
    for (Eigen::Index i = 0; i < residuals.size(); ++i) {
      const double error = residuals.values(i) - others.mean(i);
      const double deviations = error / std::sqrt(others.variance(i));
      if (noise(i) > 0.0 || error > kOutlierNats || deviations >= worst) continue;
      worst = deviations;
      outlier = i;
    }
    if (outlier < 0) break;
    const double error = residuals.values(outlier) - others.mean(outlier);
    noise(outlier) = error * error;
  }
  return noise;
}

ObjectiveModel::Residuals ObjectiveModel::residuals_of(const surrogate::Observations& latent) const {
  Residuals result{latent, latent.points.features.colwise().mean(), 0.0};
  result.shifts.tail(run_columns_).setZero();  // run effects are relative to the latest run, which has zeros
  result.observations.points.features.rowwise() -= result.shifts;
  if (options_.standardise) return result;
  const Eigen::VectorXd over_priors = latent.values - prior_values(result.observations.points);
  result.offset = median({over_priors.begin(), over_priors.end()});
  result.observations.values.array() -= result.offset;
  result.observations.variance += noise_of_outliers(result.observations);
  return result;
}

surrogate::Observations ObjectiveModel::learn_residuals(const surrogate::Observations& latent,
                                                        const Eigen::MatrixXd& runs) {
  Residuals residuals = residuals_of({with_runs(latent.points, runs), latent.values, latent.variance});
  prior_shifts_ = residuals.shifts;
  offset_ = residuals.offset;
  return std::move(residuals.observations);
}

// The posterior mean is linear in the prior's values. So with d_h the difference of hypothesis h from the average and
// w_h its weight, the means of the hypotheses scatter about the mean of all by
//
//   sum_h w_h (d_h(x) - k(x, X) K^-1 d_h(X))^2
//
// which is the variance between the components of the mixture (the law of total variance).
Eigen::VectorXd ObjectiveModel::doubt(const surrogate::Points& centred) const {
  if (doubts_ < 2) return Eigen::VectorXd::Zero(centred.size());
  const surrogate::GaussianProcess& process = surrogate_.processes().front();
  const surrogate::Points at = surrogate_.standardised(centred);
  Eigen::MatrixXd known = process.points().features.middleCols(prior_centres_.size(), doubts_);
  process.lower().triangularView<Eigen::Lower>().solveInPlace(known);
  process.lower().triangularView<Eigen::Lower>().transpose().solveInPlace(known);
  const Eigen::MatrixXd learned = process.prior_covariance(at, process.points()) * known;
  const Eigen::MatrixXd left = at.features.middleCols(prior_centres_.size(), doubts_) - learned;
  return left.rowwise().squaredNorm();
}

void ObjectiveModel::fit(const surrogate::Observations& latent, Rng& rng, const std::optional<Eigen::VectorXd>& start,
                         const Eigen::MatrixXd& runs) {
  surrogate_.fit(learn_residuals(latent, runs), rng, start);
}

void ObjectiveModel::condition(const surrogate::Observations& latent, const Eigen::VectorXd& theta,
                               const Eigen::MatrixXd& runs) {
  surrogate_.condition(learn_residuals(latent, runs), theta);
}

// Values that are far too slow are treated as outliers by the same rule, measured against the predictions of the
// process.
void ObjectiveModel::add_nearby(const surrogate::Observations& latent, const Eigen::MatrixXd& runs) {
  constexpr Eigen::Index kNeighbours = 16;
  if (latent.size() == 0) return;
  surrogate::Observations residuals{centred(latent.points), latent.values.array() - offset_, latent.variance};
  if (runs.cols() > 0) residuals.points.features.rightCols(run_columns_) = runs;
  if (!options_.standardise) {
    const surrogate::Prediction expected = surrogate_.predict_coarsely(residuals.points);
    const double noise = surrogate_.noise_stddev() * surrogate_.noise_stddev();
    for (Eigen::Index i = 0; i < residuals.size(); ++i) {
      const double error = residuals.values(i) - expected.mean(i);
      const double stddev = std::sqrt(expected.variance(i) + noise + residuals.variance(i));
      if (error < kOutlierNats && error < kOutlierDeviations * stddev) residuals.variance(i) += error * error;
    }
  }
  surrogate_.append_nearby(residuals, kNeighbours);
}

// With nearby observations, each pending point is believed at its prediction from the process and its neighbours, which
// include the pending points before it.
void ObjectiveModel::believe(const surrogate::Points& pending, const Eigen::VectorXd& success) {
  const surrogate::Points points = centred(pending);
  if (!surrogate_.has_nearby()) return surrogate_.believe(points, success);
  constexpr Eigen::Index kAsBefore = 1;
  const double measured = surrogate_.noise_stddev() * surrogate_.noise_stddev();
  for (Eigen::Index row = 0; row < points.size(); ++row) {
    const surrogate::Points one = points.slice(row, 1);
    const surrogate::Prediction believed = surrogate_.predict(one);
    Eigen::VectorXd noise;  // the same noise as in GaussianProcess::believe
    if (success.size() > 0) {
      const double odds = (1.0 - success(row)) / success(row);
      noise = odds * (believed.variance.array().max(0.0) + measured);
    }
    surrogate_.append_nearby({one, believed.mean, noise}, kAsBefore);
  }
}

void ObjectiveModel::bound_from_above(const surrogate::Points& points, const Eigen::VectorXd& bounds,
                                      const Eigen::MatrixXd& runs) {
  surrogate::Points at = centred(points);
  at.features.rightCols(run_columns_) = runs;
  condition_on_upper_bounds(surrogate_, at, bounds.array() - offset_);
}

surrogate::Prediction ObjectiveModel::predict(const surrogate::Points& points) const {
  const surrogate::Points at = centred(points);
  surrogate::Prediction prediction = surrogate_.predict(at);
  prediction.mean.array() += offset_;
  prediction.variance += doubt(at);
  return prediction;
}

surrogate::Prediction ObjectiveModel::kept() const {
  surrogate::Prediction prediction = surrogate_.kept();
  prediction.mean.array() += offset_;
  return prediction;
}

surrogate::Prediction ObjectiveModel::predict_coarsely(const surrogate::Points& points) const {
  const surrogate::Points at = centred(points);
  surrogate::Prediction prediction = surrogate_.predict_coarsely(at);
  prediction.mean.array() += offset_;
  prediction.variance += doubt(at);
  return prediction;
}

// A trial that was ended early is a censored observation: its noisy value is at most b. If the posterior of the
// function at its point is Normal(m, v) and the noise has variance s^2, then the likelihood is Phi((b - f) / s), and
// with
//
//   z = (b - m) / sqrt(v + s^2),   h = phi(z) / Phi(z)
//   mean     m - v h / sqrt(v + s^2)
//   variance v - v^2 h (z + h) / (v + s^2)
//
// are the moments of the function given the bound (Rasmussen & Williams 2006, equations 3.82 to 3.85, mirrored). The
// bound is replaced by the Gaussian observation that gives exactly these moments. This is assumed-density filtering:
// one pass of the expectation propagation of surrogate/success_model.h, which would also revise the other bounds.
// Bounds are far below the best value, so revising them would not change any suggestion.
namespace {

struct Substitute {
  double value = 0.0;
  double variance = 0.0;  ///< of the observation, including all noise
};

double log_normal_density(double z) {
  constexpr double kLogSqrtTwoPi = 0.918938533204672742;
  return -0.5 * z * z - kLogSqrtTwoPi;
}

// Empty if nothing is learned because the function was believed to be lower anyway.
std::optional<Substitute> substitute_for(double mean, double variance, double noise_variance, double bound) {
  const double total = variance + noise_variance;
  if (!(variance > 0.0)) return std::nullopt;
  const double z = (bound - mean) / std::sqrt(total);
  const double h = std::exp(log_normal_density(z) - surrogate::log_normal_cdf(z));
  const double shrinkage = h * (z + h);  // within 0 and 1
  constexpr double kLeast = 1e-9;
  if (!(shrinkage > kLeast)) return std::nullopt;
  const double new_mean = mean - variance * h / std::sqrt(total);
  const double new_variance = variance * (1.0 - variance / total * shrinkage);
  const double precision = shrinkage / (total - variance * shrinkage);  // 1 / new_variance - 1 / variance
  return Substitute{mean + (new_mean - mean) / (new_variance * precision), 1.0 / precision};
}

}  // namespace

void condition_on_upper_bounds(surrogate::Surrogate& surrogate, const surrogate::Points& points,
                               const Eigen::VectorXd& bounds) {
  const double noise_variance = surrogate.noise_stddev() * surrogate.noise_stddev();
  for (Eigen::Index row = 0; row < bounds.size(); ++row) {
    const surrogate::Points point = points.slice(row, 1);
    const surrogate::Prediction prediction = surrogate.predict(point);
    const auto instead = substitute_for(prediction.mean(0), prediction.variance(0), noise_variance, bounds(row));
    if (!instead) continue;
    // The surrogate adds its own noise to the stated one. A bound never says more than a noisy value would.
    surrogate::Observations observation{
        point, Eigen::VectorXd::Constant(1, instead->value),
        Eigen::VectorXd::Constant(1, std::max(instead->variance - noise_variance, 0.0))};
    surrogate.append(observation);
  }
}

}  // namespace krigtune::search

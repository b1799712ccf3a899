// With priors g_k (logarithms, centred on their means over the observations) the latent objective is
//
//   y(x) = o + a + sum_k b_k g_k(x) + r(x) + noise,   o the median of y - sum_k centre_k g_k
//   a ~ Normal(0, 1),  b_k ~ Normal(centre_k, stddev_k^2),  r ~ GP(0, s^2 Matern52 with a lengthscale a column)
//
// What is not known of the effects of runs (run_effects.cpp) is a term F z with z ~ Normal(0, I) more.
//
// Hyperparameters: maximum a posteriori under log-normal priors in nats: residuals of half a nat, because values of few
// trials do not tell a physics that is right from one that happens to be. Without priors the same, with lengthscales of
// about the whole range: two values that happen to be alike must not make a trial that was ended far below them
// impossible. Each category then has an effect of its own, beside what it does together with all columns. Only where
// values have no logarithm y is standardised.
//
// Outliers: a configuration far slower than all others say (a retransmitting link, an allocator at its limit) bends
// everything around it. With at least three observations, at the priors' medians of the hyperparameters (a fit would
// explain it away), one whose leave-one-out error is below -4 stddev and more than 0.7 nats (twice as slow) gets the
// square of that error as noise; the worst first, a fifth of them at most. Only "far too slow" is doubted: what is fast
// was fast. Only where values are logarithms, else nobody knows what is far.
#include "model/objective_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "krigtune/core/statistics.h"

namespace krigtune {
namespace {

constexpr double kOutlierDeviations = -4.0;
constexpr double kOutlierNats = -0.7;
constexpr Eigen::Index kFewestForOutliers = 3;
constexpr Eigen::Index kObservationsPerOutlier = 5;

// Of values that have no logarithm.
SurrogateOptions standardised_options() {
  SurrogateOptions options;
  options.priors.signal_stddev = {0.0, 0.7};
  options.priors.noise_stddev = {-3.5, 1.0};
  return options;
}

// Three constants of the search recipe, fitted on the tuning tables of experiments/data by trials to the best.
SurrogateOptions residual_options(const Eigen::VectorXd& centre, const Eigen::VectorXd& stddev) {
  SurrogateOptions options;
  options.standardise = false;
  options.mean = Mean::weighted(1.0, centre, stddev);
  options.priors.lengthscale = {std::log(0.6), 0.7};
  options.priors.signal_stddev = {std::log(0.5), 0.7};
  options.priors.noise_stddev = {std::log(0.03), 0.5};
  return options;
}

// A list of a few values cannot show the ripples that an axis of real numbers may have: there lengthscales are expected
// as in surrogate_for_unknown_functions(), and less noise, which would hide them.
void expect_anything(bool has_reals, SurrogateOptions& options) {
  options.kernel.kind = KernelKind::kMainEffects;
  options.priors.lengthscale = {0.0, 0.7};
  if (!has_reals) return;
  options.priors.lengthscale = {std::log(0.5), 1.0};
  options.priors.noise_stddev = {std::log(0.01), 1.0};
}

// The columns of runs are the last coefficients, and standard normal.
SurrogateOptions options_for(const std::vector<Belief>& beliefs, bool logarithmic, Eigen::Index run_columns,
                             bool has_reals) {
  Eigen::VectorXd centre = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(beliefs.size()) + run_columns);
  Eigen::VectorXd stddev = Eigen::VectorXd::Ones(centre.size());
  for (std::size_t k = 0; k < beliefs.size(); ++k) {
    const Prior::Coefficient coefficient = beliefs[k].prior->coefficient();
    centre(static_cast<Eigen::Index>(k)) = coefficient.centre;
    stddev(static_cast<Eigen::Index>(k)) = coefficient.stddev;
  }
  const bool standardised = beliefs.empty() && !logarithmic;
  SurrogateOptions options = standardised ? standardised_options() : residual_options(centre, stddev);
  if (beliefs.empty()) expect_anything(has_reals, options);
  return options;
}

Points with_runs(Points points, const Eigen::MatrixXd& runs) {
  if (runs.cols() == 0) return points;
  points.features.conservativeResize(points.size(), points.features.cols() + runs.cols());
  points.features.rightCols(runs.cols()) = runs;
  return points;
}

/// The hyperparameters at the medians of their priors.
Eigen::VectorXd prior_theta(const Kernel& kernel, const HyperparameterPriors& priors, const Points& points) {
  return uniform_theta(kernel, points, std::exp(priors.lengthscale.log_median),
                       std::exp(priors.signal_stddev.log_median), std::exp(priors.noise_stddev.log_median));
}

}  // namespace

ObjectiveModel::ObjectiveModel(const std::vector<Belief>& beliefs, bool logarithmic, Eigen::Index run_columns,
                               bool has_reals)
    : run_columns_(run_columns),
      options_(options_for(beliefs, logarithmic, run_columns, has_reals)),
      weights_(beliefs),
      prior_centres_(static_cast<Eigen::Index>(beliefs.size())),
      surrogate_(options_) {
  for (std::size_t k = 0; k < beliefs.size(); ++k) {
    prior_centres_(static_cast<Eigen::Index>(k)) = beliefs[k].prior->coefficient().centre;
  }
}

Eigen::VectorXd ObjectiveModel::prior_values(const Points& points) const {
  if (prior_centres_.size() == 0) return Eigen::VectorXd::Zero(points.size());
  return points.features.leftCols(prior_centres_.size()) * prior_centres_;
}

Points ObjectiveModel::centred(const Points& points) const {
  Points result = with_runs(weights_.mixed(points), Eigen::MatrixXd::Zero(points.size(), run_columns_));
  result.features.rowwise() -= prior_shifts_;
  return result;
}

Eigen::VectorXd ObjectiveModel::noise_of_outliers(const Observations& residuals) const {
  Eigen::VectorXd noise = Eigen::VectorXd::Zero(residuals.size());
  if (residuals.size() < kFewestForOutliers) return noise;
  const std::shared_ptr<const Kernel> kernel = make_kernel(options_.kernel);
  const Eigen::VectorXd theta = prior_theta(*kernel, options_.priors, residuals.points);
  const Eigen::Index most = std::max<Eigen::Index>(residuals.size() / kObservationsPerOutlier, 1);
  for (Eigen::Index found = 0; found < most; ++found) {
    GaussianProcess process(kernel, options_.mean);
    process.condition({residuals.points, residuals.values, residuals.variance + noise}, theta);
    if (process.observed() != residuals.size()) break;  // two configurations that the columns cannot tell apart
    const LeaveOneOut others = process.leave_one_out();
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

ObjectiveModel::Residuals ObjectiveModel::residuals_of(const Observations& mixed) const {
  Residuals result{mixed, mixed.points.features.colwise().mean(), 0.0};
  result.shifts.tail(run_columns_).setZero();  // 0 is the latest run
  result.observations.points.features.rowwise() -= result.shifts;
  if (options_.standardise) return result;
  const Eigen::VectorXd over_priors = mixed.values - prior_values(result.observations.points);
  result.offset = median({over_priors.begin(), over_priors.end()});
  result.observations.values.array() -= result.offset;
  result.observations.variance += noise_of_outliers(result.observations);
  return result;
}

// Lengthscales and noise at the medians of their priors (a fit would explain what the prior gets wrong), s integrated
// out by Gauss and Hermite's five points: a prior that leaves little is as much more probable as its residuals are
// small.
double ObjectiveModel::log_evidence(const Observations& mixed) const {
  struct Node {
    double deviations;
    double weight;
  };
  constexpr std::array<Node, 5> kNodes{{{-2.8569700138728, 0.0112574113277},
                                        {-1.3556261799743, 0.2220759220056},
                                        {0.0, 0.5333333333333},
                                        {1.3556261799743, 0.2220759220056},
                                        {2.8569700138728, 0.0112574113277}}};
  const Observations residuals = residuals_of(mixed).observations;
  const std::shared_ptr<const Kernel> kernel = make_kernel(options_.kernel);
  Eigen::VectorXd terms(static_cast<Eigen::Index>(kNodes.size()));
  for (std::size_t i = 0; i < kNodes.size(); ++i) {
    HyperparameterPriors at = options_.priors;
    at.signal_stddev.log_median += kNodes[i].deviations * at.signal_stddev.log_stddev;
    GaussianProcess process(kernel, options_.mean);
    process.condition(residuals, prior_theta(*kernel, at, residuals.points));
    terms(static_cast<Eigen::Index>(i)) = std::log(kNodes[i].weight) + process.log_marginal_likelihood();
  }
  return terms.maxCoeff() + std::log((terms.array() - terms.maxCoeff()).exp().sum());
}

void ObjectiveModel::fit(const Observations& latent, Rng& rng, const std::optional<Eigen::VectorXd>& start,
                         const Eigen::MatrixXd& runs) {
  weights_.learn(latent, [&](const Observations& mixed) {
    return log_evidence({with_runs(mixed.points, runs), mixed.values, mixed.variance});
  });
  const Points points = with_runs(weights_.mixed(latent.points), runs);
  const Residuals residuals = residuals_of({points, latent.values, latent.variance});
  prior_shifts_ = residuals.shifts;
  offset_ = residuals.offset;
  surrogate_.fit(residuals.observations, rng, start);
}

void ObjectiveModel::bound_from_above(const Points& points, const Eigen::VectorXd& bounds,
                                      const Eigen::MatrixXd& runs) {
  Points at = centred(points);
  at.features.rightCols(run_columns_) = runs;
  condition_on_upper_bounds(surrogate_, at, bounds.array() - offset_);
}

Prediction ObjectiveModel::predict(const Points& points) const {
  Prediction prediction = surrogate_.predict(centred(points));
  prediction.mean.array() += offset_;
  return prediction;
}

}  // namespace krigtune

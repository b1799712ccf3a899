#include "krigtune/surrogate/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "surrogate/reference_gp.h"

namespace krigtune::surrogate_test {

using Eigen::Index;
using Eigen::VectorXd;
using reference::Real;
using reference::Vector;

surrogate::Surrogate make_surrogate(const surrogate::HyperparameterPriors& priors = {}) {
  surrogate::SurrogateOptions options;
  options.mean = surrogate::Mean::zero();
  options.priors = priors;
  return surrogate::Surrogate(options);
}

/// A mixed problem whose values are far from standardised.
struct Problem {
  surrogate::Points points;
  VectorXd values;
  VectorXd known_variance;
  VectorXd theta;  ///< log lengthscales, log signal variance, log noise stddev
  surrogate::Points at;

  explicit Problem(std::uint64_t seed, int count = 12) {
    Rng rng(seed, 0);
    points = reference::random_points(rng, count, 2, 1);
    at = reference::random_points(rng, 20, 2, 1);
    values = VectorXd(count);
    known_variance = VectorXd(count);
    for (Index i = 0; i < count; ++i) {
      values[i] = 500.0 + 40.0 * std::sin(6.0 * points.ordered(i, 0)) + 20.0 * points.categories(i, 0) + rng.normal();
      known_variance[i] = 10.0 * rng.uniform();
    }
    theta = VectorXd::Zero(5);
    theta << std::log(0.4), std::log(0.8), std::log(1.5), std::log(1.3), std::log(0.1);
  }
};

/// Sample mean and stddev, computed directly.
struct Scale {
  Real mean = 0;
  Real stddev = 0;
  explicit Scale(const VectorXd& values) {
    for (const double value : values) mean += static_cast<Real>(value) / static_cast<Real>(values.size());
    for (const double value : values) stddev += (value - mean) * (value - mean);
    stddev = std::sqrt(stddev / static_cast<Real>(values.size() - 1));
  }
};

/// Returns the reference's answer in the units of the values.
reference::Moments expected_moments(const Scale& scale, const surrogate::Points& points, const Vector& values,
                                    const Vector& known_variance, const VectorXd& theta, const surrogate::Points& at) {
  Vector outputs;
  Vector noise;
  for (const Real value : values) outputs.push_back((value - scale.mean) / scale.stddev);
  for (const Real variance : known_variance)
    noise.push_back(variance / (scale.stddev * scale.stddev) +
                    std::exp(2 * static_cast<Real>(theta[theta.size() - 1])));
  auto moments = reference::predict(points, outputs, noise, theta.head(theta.size() - 1), at);
  for (Real& mean : moments.mean) mean = scale.mean + scale.stddev * mean;
  for (Real& variance : moments.variance) variance *= scale.stddev * scale.stddev;
  return moments;
}

// The condition number of these covariances is below 1e4, which costs four of sixteen digits; there is some margin.
constexpr double kTolerance = 1e-10;

void expect_moments(const surrogate::Prediction& got, const reference::Moments& want, double unit) {
  ASSERT_EQ(static_cast<std::size_t>(got.mean.size()), want.mean.size());
  for (Index i = 0; i < got.mean.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_LE(std::abs(got.mean[i] - static_cast<double>(want.mean[k])), kTolerance * unit) << i;
    EXPECT_LE(std::abs(got.variance[i] - static_cast<double>(want.variance[k])), kTolerance * unit * unit) << i;
  }
}

TEST(Surrogate, PredictsWhatDenseInversesInLongDoublePredict) {
  const Problem p(1);
  surrogate::Surrogate gp = make_surrogate();
  gp.condition({p.points, p.values, p.known_variance}, p.theta);
  const Scale scale(p.values);
  const auto want = expected_moments(scale, p.points, reference::to_reference(p.values),
                                     reference::to_reference(p.known_variance), p.theta, p.at);
  expect_moments(gp.predict(p.at), want, static_cast<double>(scale.stddev));
  EXPECT_NEAR(gp.noise_stddev(), 0.1 * static_cast<double>(scale.stddev), 1e-12);
}

TEST(Surrogate, BelievingLeavesTheMeanAndEqualsObservingIt) {
  const Problem p(2);
  surrogate::Surrogate gp = make_surrogate();
  gp.condition({p.points, p.values, p.known_variance}, p.theta);
  const surrogate::Prediction before = gp.predict(p.at);
  const surrogate::Points pending = p.at.slice(0, 3);
  surrogate::Points joined = p.points;
  joined.append(pending);
  const Scale scale(p.values);
  Vector values = reference::to_reference(p.values);
  Vector variance = reference::to_reference(p.known_variance);
  const surrogate::Prediction at_pending = gp.predict(pending);
  for (const double mean : at_pending.mean) {
    values.push_back(mean);
    variance.push_back(0);
  }

  gp.believe(pending.slice(0, 1));
  gp.believe(pending.slice(1, 2));  // in two steps, because trials begin one after the other
  const surrogate::Prediction after = gp.predict(p.at);
  EXPECT_LE((after.mean - before.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((after.variance - before.variance).maxCoeff(), 1e-10);
  EXPECT_LE(after.variance[0], 0.2 * before.variance[0]);
  expect_moments(after, expected_moments(scale, joined, values, variance, p.theta, p.at),
                 static_cast<double>(scale.stddev));
}

TEST(Surrogate, BelievingThePointThatIsAlreadyBelievedIsHarmless) {
  const Problem p(3);
  surrogate::Surrogate gp = make_surrogate();
  VectorXd theta = p.theta;
  theta[4] = std::log(1e-9);  // without noise the repeated row makes the covariance singular
  gp.condition({p.points, p.values, {}}, theta);
  gp.believe(p.at.slice(0, 1));
  gp.believe(p.at.slice(0, 1));
  gp.believe(p.points.slice(0, 2));
  const surrogate::Prediction prediction = gp.predict(p.at);
  EXPECT_TRUE(prediction.mean.allFinite() && prediction.variance.allFinite());
  EXPECT_GE(prediction.variance.minCoeff(), 0.0);
}

TEST(Surrogate, WithoutNoiseInterpolates) {
  const Problem p(4);
  surrogate::Surrogate gp = make_surrogate();
  VectorXd theta = p.theta;
  theta[4] = std::log(1e-7);
  gp.condition({p.points, p.values, {}}, theta);
  const surrogate::Prediction prediction = gp.predict(p.points);
  // The pull towards the mean is the noise variance (1e-14) times the condition number (here at most 1e6).
  EXPECT_LE((prediction.mean - p.values).cwiseAbs().maxCoeff(), 1e-6 * p.values.cwiseAbs().maxCoeff());
  EXPECT_LE(prediction.variance.maxCoeff(), 1e-6);
  EXPECT_GE(prediction.variance.minCoeff(), 0.0);
}

TEST(Surrogate, FarFromDataReturnsToThePrior) {
  const Problem p(5);
  surrogate::Surrogate gp = make_surrogate();
  gp.condition({p.points, p.values, {}}, p.theta);
  surrogate::Points far = surrogate::Points::zero(1, 2, 1);
  far.ordered.setConstant(1e3);
  const Scale scale(p.values);
  EXPECT_NEAR(gp.predict(far).mean[0], static_cast<double>(scale.mean), 1e-9);
  EXPECT_NEAR(gp.predict(far).variance[0], 1.3 * static_cast<double>(scale.stddev * scale.stddev), 1e-9);
}

TEST(Surrogate, ScoresManyCandidatesAsItScoresOne) {
  const Problem p(6);
  surrogate::Surrogate gp = make_surrogate();
  gp.condition({p.points, p.values, {}}, p.theta);
  Rng rng(6, 1);
  const surrogate::Points many = reference::random_points(rng, 2500, 2, 1);  // three blocks
  const surrogate::Prediction all = gp.predict(many);
  for (const Index i : {0, 1023, 1024, 2047, 2048, 2499}) {
    const surrogate::Prediction one = gp.predict(many.slice(i, 1));
    EXPECT_LE(std::abs(all.mean[i] - one.mean[0]), 1e-10);
    EXPECT_LE(std::abs(all.variance[i] - one.variance[0]), 1e-10);
  }
}

TEST(Surrogate, RepeatedPointsCountAsOneWithTheirAverage) {
  // m observations with noise v at one point are equivalent to one observation of their average with noise v / m.
  surrogate::Points points = surrogate::Points::zero(6, 1, 0);
  points.ordered.col(0) << 0.2, 0.2, 0.2, 0.2, 0.7, 0.9;
  VectorXd values(6);
  values << 1.0, 3.0, 2.0, 2.5, -1.0, -1.4;
  VectorXd theta(3);
  theta << std::log(0.3), 0.0, std::log(0.5);
  surrogate::Surrogate gp = make_surrogate();
  gp.condition({points, values, {}}, theta);
  const Scale scale(values);
  surrogate::Points merged = points.slice(3, 3);
  const Real noise = 0.25L * scale.stddev * scale.stddev;
  VectorXd free = theta;
  free[2] = -40.0;  // all noise is in the known variances
  const auto want = expected_moments(scale, merged, {2.125L, -1.0L, -1.4L}, {noise / 4, noise, noise}, free, points);
  expect_moments(gp.predict(points), want, static_cast<double>(scale.stddev));
}

TEST(Surrogate, OptionsThatMakeNoSenseAreRefused) {
  surrogate::HyperparameterPriors priors;
  priors.noise_stddev.log_stddev = 0.0;
  EXPECT_THROW(make_surrogate(priors), UserError);
  priors = {};
  priors.lengthscale.log_median = std::nan("");
  EXPECT_THROW(make_surrogate(priors), UserError);
  surrogate::SurrogateOptions options;
  options.random_starts = -1;
  EXPECT_THROW(surrogate::Surrogate{options}, UserError);
}

}  // namespace krigtune::surrogate_test

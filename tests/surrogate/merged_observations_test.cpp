#include "merged_observations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hyperparameters.h"
#include "krigtune/surrogate/gaussian_process.h"
#include "surrogate/reference_kriging.h"

namespace krigtune::merged_observations_test {

using Eigen::Index;
using Eigen::VectorXd;
using reference::Real;
using reference::Vector;

/// Some points are measured up to four times, in no order, each value with its own known variance.
struct Problem {
  surrogate::GpStructure structure{
      surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::linear(1, 1.5, 0.7), {}};
  reference::CoefficientPrior prior{{0, 0}, {2.25L, 0.49L}};
  surrogate::Observations data;
  VectorXd theta = VectorXd::Zero(5);

  Problem() {
    Rng rng(41, 0);
    surrogate::Points distinct = reference::random_points(rng, 8, 2, 1);
    distinct.features = distinct.ordered.col(0).array().exp().matrix();
    for (const Index i : {0, 1, 2, 1, 3, 4, 4, 0, 5, 6, 1, 7, 1}) data.points.append(distinct.slice(i, 1));
    data.values = VectorXd::NullaryExpr(13, [&rng](Index) { return rng.normal(); });
    data.variance = VectorXd::NullaryExpr(13, [&rng](Index i) { return i % 4 == 0 ? 0.0 : 0.2 * rng.uniform(); });
    theta << std::log(0.4), std::log(0.8), std::log(1.2), std::log(1.7), std::log(0.15);
  }
  reference::Matrix basis(const surrogate::Points& points) const {
    reference::Matrix h;
    for (const double feature : points.features.col(0)) h.push_back({1, feature});
    return h;
  }
  /// Uses all thirteen rows without merging.
  reference::Kriging unmerged(Real log_noise_stddev) const {
    Vector noise;
    for (const double known : data.variance) noise.push_back(known + std::exp(2 * log_noise_stddev));
    return {data.points, reference::to_reference(data.values), noise, theta.head(4), basis(data.points), prior};
  }
};

TEST(MergedObservations, AreTheDistinctPointsInTheOrderOfTheirAppearance) {
  const Problem p;
  const surrogate::MergedObservations merged(p.data);
  EXPECT_EQ(merged.size(), 8);
  EXPECT_EQ(merged.points().ordered.row(1), p.data.points.ordered.row(1));
  EXPECT_EQ(merged.points().ordered.row(7), p.data.points.ordered.row(11));
  EXPECT_EQ(merged.points().features(4, 0), p.data.points.features(5, 0));
}

TEST(MergedObservations, ArePointsOfTheirOwnWhereACategoryOrAFeatureDiffers) {
  surrogate::Observations data{surrogate::Points::zero(3, 1, 1, 1), VectorXd::Zero(3), {}};
  data.points.categories(1, 0) = 1;
  data.points.features(2, 0) = 0.5;
  EXPECT_EQ(surrogate::MergedObservations(data).size(), 3);
}

TEST(MergedObservations, PredictWhatAllRowsPredict) {
  const Problem p;
  surrogate::GaussianProcess gp(p.structure.kernel, p.structure.mean);
  gp.condition(p.data, p.theta);
  EXPECT_EQ(gp.observed(), 8);
  Rng rng(42, 0);
  surrogate::Points at = reference::random_points(rng, 10, 2, 1);
  at.features = at.ordered.col(1);
  const surrogate::Prediction got = gp.predict(at);
  const auto want = p.unmerged(p.theta[4]);
  const Vector mean = want.mean(at, p.basis(at));
  const reference::Matrix covariance = want.covariance(at, p.basis(at));
  for (Index i = 0; i < at.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_LE(std::abs(got.mean[i] - static_cast<double>(mean[k])), 1e-11);
    EXPECT_LE(std::abs(got.variance[i] - static_cast<double>(covariance[k][k])), 1e-11);
  }
}

TEST(MergedObservations, HaveTheMarginalLikelihoodOfAllRowsAndItsSlopeByTheNoise) {
  const Problem p;
  const surrogate::HyperparameterPosterior posterior(p.structure, p.data);
  for (const double log_noise : {-4.0, -1.0, 0.5}) {
    VectorXd theta = p.theta;
    theta[4] = log_noise;
    VectorXd gradient;
    const double got = posterior.log_marginal_likelihood(theta, &gradient);
    const Real want = p.unmerged(log_noise).log_marginal_likelihood();
    EXPECT_LE(std::abs(got - static_cast<double>(want)), 1e-10 * std::abs(got));
    // In long double: truncation h^2 and rounding 1e-17 / h leave 1e-10.
    constexpr Real kStep = 1e-5L;
    const Real slope = (p.unmerged(log_noise + kStep).log_marginal_likelihood() -
                        p.unmerged(log_noise - kStep).log_marginal_likelihood()) /
                       (2 * kStep);
    EXPECT_LE(std::abs(gradient[4] - static_cast<double>(slope)), 1e-8 * (1.0 + std::abs(gradient[4])))
        << "log noise stddev " << log_noise;
  }
}

TEST(MergedObservations, GiveADoubtedPointLessWeight) {
  // Five values agree, and one is far too slow. If its variance is raised by the square of its deviation, the others
  // decide.
  surrogate::Observations data{surrogate::Points::zero(6, 1, 0), VectorXd(6), VectorXd::Zero(6)};
  data.points.ordered.col(0) << 0.0, 0.2, 0.4, 0.6, 0.8, 1.0;
  data.values << 0.0, 0.1, 0.2, -4.0, 0.4, 0.5;
  VectorXd theta(3);
  theta << std::log(0.8), 0.0, std::log(0.05);
  surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::constant());
  gp.condition(data, theta);
  const double believed = gp.predict(data.points).mean[3];
  const double surprise = data.values[3] - gp.leave_one_out().mean[3];
  data.variance[3] = surprise * surprise;
  gp.condition(data, theta);
  EXPECT_LE(believed, -2.0);
  EXPECT_LE(std::abs(gp.predict(data.points).mean[3] - 0.3), 0.1);
  // If the variance is raised without limit, the point counts as never measured.
  data.variance[3] = 1e12;
  gp.condition(data, theta);
  const surrogate::Prediction raised = gp.predict(data.points);
  surrogate::Observations without{data.points.slice(0, 3), data.values.head(3), {}};
  without.append({data.points.slice(4, 2), data.values.tail(2), {}});
  gp.condition(without, theta);
  EXPECT_LE((raised.mean - gp.predict(data.points).mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((raised.variance - gp.predict(data.points).variance).cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace krigtune::merged_observations_test

// Compares predictions from a process and the nearest of further observations with a process that has observed all of
// them.
#include "krigtune/surrogate/nearby_observations.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "krigtune/surrogate/hyperparameters.h"
#include "surrogate/reference_gp.h"

namespace krigtune::nearby_observations_test {

using surrogate::GaussianProcess;
using surrogate::NearbyObservations;
using surrogate::Observations;
using surrogate::Points;
using surrogate::Prediction;

constexpr Eigen::Index kBackbone = 20;
constexpr Eigen::Index kOthers = 30;

// Features of the mean function that kernels do not see.
Eigen::MatrixXd features_of(const Points& points) { return points.ordered.col(0) - points.ordered.col(1); }

class BesideAProcess : public testing::Test {
 protected:
  BesideAProcess() {
    Rng rng(7, 0);  // seed 7
    all_.points = reference::random_points(rng, kBackbone + kOthers, 3, 1);
    all_.points.features = features_of(all_.points);
    all_.values.resize(all_.points.size());
    all_.variance.resize(all_.points.size());
    for (Eigen::Index i = 0; i < all_.size(); ++i) {
      all_.values(i) = std::sin(5.0 * all_.points.ordered(i, 0)) + all_.points.ordered(i, 1) + 0.1 * rng.normal();
      all_.variance(i) = 0.01 * rng.uniform();
    }
    asked_ = reference::random_points(rng, 40, 3, 1);
    asked_.features = features_of(asked_);
    theta_ = surrogate::uniform_theta(*kernel_, all_.points, 0.5, 1.0, 0.1);
  }
  Observations part(Eigen::Index first, Eigen::Index count) const {
    return {all_.points.slice(first, count), all_.values.segment(first, count), all_.variance.segment(first, count)};
  }
  GaussianProcess process_of(const Observations& observations) const {
    GaussianProcess process(kernel_, surrogate::Mean::linear(1));
    process.condition(observations, theta_);
    return process;
  }
  Prediction exact() const { return process_of(all_).predict(asked_); }

  std::shared_ptr<const surrogate::Kernel> kernel_ = surrogate::make_kernel(surrogate::KernelKind::kMatern52);
  Observations all_;
  Points asked_;
  Eigen::VectorXd theta_;
};

TEST_F(BesideAProcess, AllOthersAsNeighboursMakeTheExactPosterior) {
  const GaussianProcess backbone = process_of(part(0, kBackbone));
  const NearbyObservations others(backbone, part(kBackbone, kOthers), kOthers);
  const Prediction got = others.predict(backbone, asked_);
  const Prediction want = exact();
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-10);
}

TEST_F(BesideAProcess, FewerNeighboursAreNeverSurerThanAllData) {
  const GaussianProcess backbone = process_of(part(0, kBackbone));
  const Prediction want = exact();
  const Prediction coarse = backbone.predict(asked_);
  double last_error = (coarse.variance - want.variance).sum();
  for (const Eigen::Index neighbours : {4, 12, 24}) {
    const Prediction got = NearbyObservations(backbone, part(kBackbone, kOthers), neighbours).predict(backbone, asked_);
    EXPECT_GE((got.variance - want.variance).minCoeff(), -1e-10) << neighbours;
    EXPECT_LE((got.variance - coarse.variance).maxCoeff(), 1e-10) << neighbours;
    const double error = (got.variance - want.variance).sum();
    EXPECT_LE(error, last_error + 1e-10) << neighbours;
    last_error = error;
  }
}

// Over data from the prior, E (mean given all - mean given a part)^2 = variance given the part - variance given all.
TEST_F(BesideAProcess, TheMeansErrorIsTheDifferenceOfTheVariances) {
  constexpr int kDraws = 400;
  Rng rng(11, 0);  // seed 11
  const GaussianProcess prior_of_data = process_of(all_);
  Eigen::MatrixXd covariance = prior_of_data.prior_covariance(all_.points, all_.points);
  covariance.diagonal() += prior_of_data.noise_variance();
  const Eigen::MatrixXd lower = covariance.llt().matrixL();
  double squares = 0.0;
  double promised = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Eigen::VectorXd normals(all_.size());
    for (double& normal : normals) normal = rng.normal();
    all_.values = prior_of_data.prior_mean(all_.points) + lower * normals;
    const GaussianProcess backbone = process_of(part(0, kBackbone));
    const Prediction got = NearbyObservations(backbone, part(kBackbone, kOthers), 6).predict(backbone, asked_);
    const Prediction want = exact();
    squares += (got.mean - want.mean).squaredNorm();
    promised += (got.variance - want.variance).sum();
  }
  // A sum of dependent squares over 40 points and 400 draws; within a tenth for all seeds that were tried.
  EXPECT_NEAR(squares / promised, 1.0, 0.1);
}

TEST_F(BesideAProcess, AppendedOneByOneTheyAreAsGivenAtOnce) {
  const GaussianProcess backbone = process_of(part(0, kBackbone));
  NearbyObservations one_by_one(backbone, part(kBackbone, 1), 8);
  for (Eigen::Index i = 1; i < kOthers; ++i) one_by_one.append(backbone, part(kBackbone + i, 1));
  const NearbyObservations at_once(backbone, part(kBackbone, kOthers), 8);
  ASSERT_EQ(one_by_one.size(), at_once.size());
  const Prediction got = one_by_one.predict(backbone, asked_);
  const Prediction want = at_once.predict(backbone, asked_);
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-12);
}

class Kept : public BesideAProcess {
 protected:
  surrogate::KeptPredictions after(Eigen::Index neighbours, Eigen::Index first, Eigen::Index at_once) const {
    const GaussianProcess backbone = process_of(part(0, kBackbone));
    NearbyObservations others(backbone, part(kBackbone, first), neighbours);
    surrogate::KeptPredictions kept(backbone, others, asked_);
    for (Eigen::Index known = first; known < kOthers; ++known) {
      others.append(backbone, part(kBackbone + known, 1));
      if ((known + 1) % at_once == 0 || known + 1 == kOthers) kept.update(backbone, others);
    }
    return kept;
  }
};

// If there are as many neighbours as other observations, each appended observation becomes one more row.
TEST_F(Kept, RowByRowTheyBecomeTheExactPosterior) {
  const Prediction got = after(kOthers, 3, 1).prediction();
  const Prediction want = exact();
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-9);
}

// With two neighbours, some points use six observations and then choose new neighbours.
TEST_F(Kept, AreNeverSurerThanAllDataAndKnowMoreThanTheNeighboursAlone) {
  const GaussianProcess backbone = process_of(part(0, kBackbone));
  const Prediction first = NearbyObservations(backbone, part(kBackbone, 2), 2).predict(backbone, asked_);
  const Prediction got = after(2, 2, 1).prediction();
  const Prediction want = exact();
  EXPECT_GE((got.variance - want.variance).minCoeff(), -1e-10);
  EXPECT_LT((got.variance - want.variance).sum(), (first.variance - want.variance).sum());
}

TEST_F(Kept, AreTheSameHoweverManyAreTakenInAtOnce) {
  const Prediction one_by_one = after(3, 4, 1).prediction();
  const Prediction at_once = after(3, 4, kOthers).prediction();
  EXPECT_EQ(one_by_one.mean, at_once.mean);
  EXPECT_EQ(one_by_one.variance, at_once.variance);
}

}  // namespace krigtune::nearby_observations_test

#include "krigtune/surrogate/candidate_predictions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "surrogate/reference_gp.h"

namespace krigtune::candidate_predictions_test {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kOrdered = 3;
constexpr int kCategories = 1;

surrogate::Observations draw_observations(Rng& rng, int count, bool features) {
  surrogate::Observations drawn{reference::random_points(rng, count, kOrdered, kCategories), VectorXd(count),
                                VectorXd(count)};
  for (Index i = 0; i < count; ++i) {
    drawn.values[i] = 3.0 + std::sin(5.0 * drawn.points.ordered(i, 0)) + drawn.points.categories(i, 0) + rng.normal();
    drawn.variance[i] = 0.1 * rng.uniform();
  }
  if (features) drawn.points.features = (drawn.points.ordered.rowwise().sum().array() + 3.0).matrix();
  return drawn;
}

surrogate::Points draw_candidates(Rng& rng, int count, bool features) {
  return draw_observations(rng, count, features).points;
}

VectorXd draw_theta(Rng& rng) {
  VectorXd theta(kOrdered + kCategories + 2);
  for (double& entry : theta) entry = 0.5 * rng.normal();
  theta[theta.size() - 1] = -1.5;  // log noise stddev: nothing is ill-conditioned
  return theta;
}

// Condition numbers below 1e5, sixteen digits: eleven are left, and two for margin.
void expect_same(const surrogate::Prediction& got, const surrogate::Prediction& want) {
  ASSERT_EQ(got.mean.size(), want.mean.size());
  EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-10);
}

/// One of the things that happen to a surrogate; believed points are forgotten before anything else is told.
void change(surrogate::Surrogate& surrogate, surrogate::Observations& told, int kind, Rng& rng, bool features) {
  const int count = 1 + static_cast<int>(rng.below(20));
  if (kind == 0) return surrogate.believe(draw_candidates(rng, count, features));
  surrogate.forget_believed();
  if (kind == 1) return;
  const surrogate::Observations more = draw_observations(rng, count, features);
  told.append(more);
  if (kind == 2) return surrogate.append(more);
  surrogate.condition(told, kind == 3 ? surrogate.theta() : draw_theta(rng));
}

class RandomSequence : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomSequence, OfChangesLeavesThePredictionsThoseOfTheSurrogate) {
  Rng rng(GetParam(), 0);
  const bool features = GetParam() % 2 == 1;
  surrogate::SurrogateOptions options;
  options.mean = features ? surrogate::Mean::scaled() : surrogate::Mean::constant();
  surrogate::Surrogate surrogate(options);
  surrogate::Observations told = draw_observations(rng, 12, features);
  surrogate.condition(told, draw_theta(rng));
  // More than one block of candidates, the last not full.
  surrogate::CandidatePredictions predictions(draw_candidates(rng, 700, features));
  for (int step = 0; step < 40; ++step) {
    SCOPED_TRACE(step);
    expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
    change(surrogate, told, static_cast<int>(rng.below(5)), rng, features);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSequence, testing::Range<std::uint64_t>(1, 9));

TEST(CandidatePredictions, AverageOverTheDrawsOfTheHyperparameters) {
  Rng rng(21, 0);
  surrogate::SurrogateOptions options;
  options.hyperparameter_samples = 3;
  options.random_starts = 0;
  surrogate::Surrogate surrogate(options);
  surrogate::Observations told = draw_observations(rng, 15, false);
  surrogate.fit(told, rng);
  surrogate::CandidatePredictions predictions(draw_candidates(rng, 50, false));
  expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
  EXPECT_EQ(predictions.rows_computed(), 3 * 15);
  surrogate.append(draw_observations(rng, 1, false));
  expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
  EXPECT_EQ(predictions.rows_computed(), 3);
}

struct Grown : testing::Test {
  Rng rng{31, 0};
  surrogate::Surrogate surrogate;
  surrogate::Observations told = draw_observations(rng, 30, false);
  surrogate::CandidatePredictions predictions{draw_candidates(rng, 20, false)};
  Index computed() {
    predictions.predict(surrogate);
    return predictions.rows_computed();
  }
};

TEST_F(Grown, ComputesOnlyTheRowsThatAreNew) {
  surrogate.condition(told, draw_theta(rng));
  EXPECT_EQ(computed(), 30);
  EXPECT_EQ(computed(), 0);
  surrogate.append(draw_observations(rng, 2, false));
  EXPECT_EQ(computed(), 2);
  surrogate.believe(draw_candidates(rng, 40, false));
  EXPECT_EQ(computed(), 40);
  surrogate.forget_believed();
  EXPECT_EQ(computed(), 0);
  surrogate.believe(draw_candidates(rng, 3, false));
  EXPECT_EQ(computed(), 3);
}

TEST_F(Grown, KeepsTheRowsWhereOnlyTheValuesAreOthers) {
  surrogate.condition(told, draw_theta(rng));
  computed();
  told.values = told.values.array().square();
  told.variance.setZero();  // its scale is that of the values
  surrogate.condition(told, surrogate.theta());
  EXPECT_EQ(computed(), 30);
  told.values = told.values.array().sqrt();
  surrogate.condition(told, surrogate.theta());
  expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
  EXPECT_EQ(predictions.rows_computed(), 0);
}

TEST_F(Grown, ComputesEverythingAnewForOtherHyperparameters) {
  surrogate.condition(told, draw_theta(rng));
  computed();
  surrogate.condition(told, draw_theta(rng));
  EXPECT_EQ(computed(), 30);
}

TEST_F(Grown, StartsAtTheFirstPointThatDiffers) {
  told.variance.resize(0);
  surrogate.condition(told, draw_theta(rng));
  computed();
  told.points.ordered(10, 1) += 0.1;
  surrogate.condition(told, surrogate.theta());
  expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
  EXPECT_EQ(predictions.rows_computed(), 20);
  told.points.ordered(0, 1) += 0.1;  // the first pivot is the same for every point
  surrogate.condition(told, surrogate.theta());
  expect_same(predictions.predict(surrogate), surrogate.predict(predictions.candidates()));
  EXPECT_EQ(predictions.rows_computed(), 30);
}

TEST_F(Grown, DoesNotTakeAnotherKernelForTheSame) {
  told = draw_observations(rng, 1, false);  // one point: no kernel can be told from another by its factor
  surrogate.condition(told, draw_theta(rng));
  computed();
  surrogate::Surrogate other;
  other.condition(told, surrogate.theta());
  predictions.predict(other);
  EXPECT_EQ(predictions.rows_computed(), 1);
}

TEST_F(Grown, KeepsNothingBeyondItsMemory) {
  surrogate::CandidatePredictions small(predictions.candidates(), 1000);
  surrogate.condition(told, draw_theta(rng));
  expect_same(small.predict(surrogate), surrogate.predict(small.candidates()));
  expect_same(small.predict(surrogate), surrogate.predict(small.candidates()));
  EXPECT_EQ(small.rows_computed(), 30);
}

TEST_F(Grown, MovesWithWhatItKeeps) {
  surrogate.condition(told, draw_theta(rng));
  computed();
  surrogate::CandidatePredictions moved = std::move(predictions);
  expect_same(moved.predict(surrogate), surrogate.predict(moved.candidates()));
  EXPECT_EQ(moved.rows_computed(), 0);
}

}  // namespace krigtune::candidate_predictions_test

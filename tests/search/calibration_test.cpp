// How much intervals widen because of the errors of a session's own predictions.
#include <gtest/gtest.h>

#include <cmath>

#include "search/fixtures.h"
#include "search/model/trial_model.h"
#include "search/trials/objective_scale.h"

namespace krigtune::calibration_test {

constexpr double kNormal95 = 1.6448536269514722;
constexpr double kAtFirst = 1.296;  // 95 % points: t with 4 degrees of freedom over the normal, 2.1318 / 1.6449

class Calibration : public testing::Test {
 protected:
  Calibration() : session_(plain_session(R"({"x": {"min": 0, "max": 10}})")) {}

  // Adds a trial that was predicted to measure 100, with a latent standard deviation of `stddev` after `widening`, and
  // whose result deviated from that by `error`.
  void add(double error, double stddev = 0.2, double widening = 1.0) {
    journal::Trial trial;
    trial.number = static_cast<int>(history_.size());
    trial.proposal.predicted_value = 100.0;
    trial.proposal.predicted_stddev = 100.0 * std::sinh(widening * stddev);
    trial.proposal.widening = widening;
    trial.outcome = measured(session_, 100.0 * std::exp(error * stddev));
    history_.push_back(trial);
  }
  double factor() const {
    return search::learned_widening(session_.objective, search::ObjectiveScale(session_.objective, history_), history_);
  }

  /// Returns the share of 4000 errors, drawn like the 60 from which it learned, that lie within the widened interval of
  /// 90 %.
  double share_held(const std::function<double(Rng&)>& draw, std::uint64_t seed) {
    Rng rng(seed, 0);
    history_.clear();
    for (int i = 0; i < 60; ++i) add(draw(rng));
    const double most = kNormal95 * factor();
    int held = 0;
    for (int i = 0; i < 4000; ++i) held += std::abs(draw(rng)) <= most ? 1 : 0;
    return held / 4000.0;
  }

  session::Session session_;
  search::History history_;
};

TEST_F(Calibration, BeginsWiderThanTheSurrogateSays) { EXPECT_NEAR(factor(), kAtFirst, 1e-3); }

TEST_F(Calibration, HoldsAsOftenAsItSaysWhateverTheErrorsAreLike) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto as_said = [](Rng& rng) { return rng.normal(); };
    const auto too_sure = [](Rng& rng) { return 3.0 * rng.normal(); };
    const auto with_outliers = [](Rng& rng) { return rng.uniform() < 0.1 ? -15.0 * rng.uniform() : rng.normal(); };
    for (const auto& draw : {std::function<double(Rng&)>(as_said), {too_sure}, {with_outliers}}) {
      const double held = share_held(draw, seed);
      EXPECT_GE(held, 0.84) << seed;
      EXPECT_LE(held, 0.97) << seed;
    }
  }
}

TEST_F(Calibration, IsNeverSurerThanTheSurrogate) {
  for (int i = 0; i < 10; ++i) add(0.1);
  EXPECT_EQ(factor(), 1.0);
}

// Intervals that were widened at that time are not widened again.
TEST_F(Calibration, DoesNotDependOnEarlierWidening) {
  for (const double error : {0.5, -2.5, 1.0, 3.0}) add(error);
  ASSERT_GT(factor(), 1.1 * kAtFirst);
  const double without = factor();
  history_.clear();
  for (const double error : {0.5, -2.5, 1.0, 3.0}) add(error, 0.2, 2.0);
  EXPECT_NEAR(factor(), without, 1e-9);
}

TEST_F(Calibration, OneTrialFarOffWidensAndIsForgottenByGoodOnes) {
  add(-40.0);
  EXPECT_GT(factor(), 1.5 * kAtFirst);
  EXPECT_LT(factor(), 2.5 * kAtFirst);
  for (int i = 0; i < 5; ++i) add(0.5);
  EXPECT_LT(factor(), kAtFirst);
}

TEST_F(Calibration, TakesValuesThatHaveNoLogarithmAsTheyAre) {
  for (const double error : {2.0, -3.0}) {
    journal::Trial trial;
    trial.number = static_cast<int>(history_.size());
    trial.proposal.predicted_value = -1.0;
    trial.proposal.predicted_stddev = 0.5;
    trial.outcome = measured(session_, -1.0 + 0.5 * error);
    history_.push_back(trial);
  }
  const double plain = factor();
  history_.clear();
  for (const double error : {2.0, -3.0}) add(error);
  EXPECT_NEAR(factor(), plain, 1e-9);
}

TEST_F(Calibration, PassesOverWhatWasNotPredictedAndWhatIsMeasuredAgain) {
  add(4.0);
  add(4.0);
  history_[0].proposal.predicted_stddev.reset();
  history_[1].proposal.repeat_of = 0;
  EXPECT_NEAR(factor(), kAtFirst, 1e-3);
}

}  // namespace krigtune::calibration_test

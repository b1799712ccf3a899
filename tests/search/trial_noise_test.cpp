#include <gtest/gtest.h>

#include <cmath>

#include "krigtune/rng.h"
#include "search/fixtures.h"
#include "search/model/trial_model.h"
#include "search/trials/objective_scale.h"

namespace krigtune::trial_noise_test {

constexpr double kDefault = session::kUsualRunNoise;

class TrialNoises : public testing::Test {
 protected:
  TrialNoises() : problem_(plain_session(R"({"x": {"min": 0, "max": 10}})")) {}

  void add(std::int64_t x, double value, double sem) {
    journal::Trial trial;
    trial.number = static_cast<int>(history_.size());
    trial.proposal.configuration = space::Configuration({{"x", x}});
    trial::Measured outcome = std::get<trial::Measured>(measured(problem_.session, value));
    outcome.value_sem = sem;
    trial.outcome = outcome;
    history_.push_back(trial);
  }
  search::TrialNoise noise() const { return {problem_.session.objective, history_}; }

  Problem problem_;
  search::History history_;
};

TEST_F(TrialNoises, IsTheDefaultWhereNothingWasRepeated) {
  EXPECT_DOUBLE_EQ(noise().between_fraction(), kDefault);
  add(1, 100.0, 1.0);
  add(2, 200.0, 1.0);
  EXPECT_DOUBLE_EQ(noise().between_fraction(), kDefault);
  EXPECT_DOUBLE_EQ(noise().total_sem(100.0, 1.0), std::sqrt(1.0 + 100.0 * 100.0 * kDefault * kDefault));
  EXPECT_DOUBLE_EQ(noise().total_sem(-100.0, 1.0), noise().total_sem(100.0, 1.0));
  EXPECT_EQ(noise().total_sem(100.0, 0.0), 0.0);  // nothing is known
}

TEST_F(TrialNoises, IsWhatTheSessionSaysWhereNothingWasRepeated) {
  problem_.session.objective.run_noise = 0.3;
  add(1, 100.0, 1.0);
  EXPECT_DOUBLE_EQ(noise().between_fraction(), 0.3);
  EXPECT_DOUBLE_EQ(noise().total_sem(100.0, 1.0), std::hypot(1.0, 30.0));
}

TEST_F(TrialNoises, LearnsFromRepeatsByTheAnalysisOfVariance) {
  // Two runs at 90 and 110, each with an error of 1: 2 * 0.1^2 with one degree of freedom, minus 0.01^2.
  add(1, 90.0, 1.0);
  add(1, 110.0, 1.0);
  EXPECT_DOUBLE_EQ(noise().between_fraction(), std::sqrt((3.0 * kDefault * kDefault + 0.02 - 1e-4) / 4.0));
  // Three more of another size, and a single one, which adds no information.
  add(2, 9.0, 0.1);
  add(2, 10.0, 0.1);
  add(2, 11.0, 0.1);
  add(3, 500.0, 1.0);
  EXPECT_DOUBLE_EQ(noise().between_fraction(),
                   std::sqrt((3.0 * kDefault * kDefault + 0.02 - 1e-4 + 0.02 - 2.0 * 1e-4) / 6.0));
}

TEST_F(TrialNoises, NeverFallsBelowNothing) {
  add(1, 100.0, 50.0);
  add(1, 101.0, 50.0);  // they differ by less than their own errors
  EXPECT_DOUBLE_EQ(noise().between_fraction(), std::sqrt(3.0 / 4.0) * kDefault);
}

TEST_F(TrialNoises, LeavesOutWhatStatesNoSpreadAndWhatDoesNotCount) {
  add(1, 100.0, 0.0);
  add(1, 200.0, 0.0);
  history_.push_back({});  // pending
  add(2, 100.0, 1.0);
  add(2, std::nan(""), 1.0);
  EXPECT_DOUBLE_EQ(noise().between_fraction(), kDefault);
}

TEST_F(TrialNoises, FindsTheFractionThatItWasGiven) {
  Rng rng(1, 0);
  for (int repeat = 0; repeat < 40; ++repeat) {
    for (const std::int64_t x : {0, 3, 7}) {
      const double configuration = 100.0 * static_cast<double>(x + 1);
      const double run = configuration * (1.0 + 0.08 * rng.normal());
      add(x, run * (1.0 + 0.02 * rng.normal()), 0.02 * configuration);
    }
  }
  EXPECT_LE(std::abs(noise().between_fraction() / 0.08 - 1.0), 0.15);  // 117 degrees of freedom leave an error of 7 %
}

// The same smooth values have an unknown spread within a run or almost none: the spread between runs must matter.
TEST_F(TrialNoises, IsPartOfWhatTheSurrogateAssumes) {
  const auto stddev_at_measured = [&](double sem) {
    history_.clear();
    for (std::int64_t x = 0; x <= 10; x += 2) add(x, 100.0 + static_cast<double>(x), sem);
    search::TrialModel model(problem_.session.objective, problem_.candidates, history_);
    Rng rng(1, 0);
    model.fit(rng);
    return std::sqrt(model.predict_measured().variance.mean());
  };
  const double unknown = stddev_at_measured(0.0);
  const double stated = stddev_at_measured(1e-6);
  EXPECT_GT(stated, 2.0 * unknown);
  EXPECT_GT(stated, 0.2 * kDefault);
  EXPECT_LT(stated, kDefault);  // from one run alone; neighbours help
}

}  // namespace krigtune::trial_noise_test

// tune --repeat: the best and the baseline are measured alternately at the end, until the gain is certain.
#include "run/repeats.h"

#include <gtest/gtest.h>

#include "run/loop_fixture.h"
#include "search/model/best.h"

namespace krigtune::repeats_test {

class Repeats : public Loop {
 protected:
  Repeats() {
    options_.machine = "node1";
    session_.baseline = space::Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{1}}};
    session_.runner = runner::CommandSpec();
  }

  std::optional<search::Recommendation> best_of(const search::History& history) const {
    const Problem problem(session_);
    return search::recommend(problem.session, problem.candidates, history, options_.loop.seed);
  }

  session::Session session_ = budgeted(8);
};

std::vector<std::optional<int>> repeated(const search::History& history) {
  std::vector<std::optional<int>> trials;
  for (const journal::Trial& trial : history) {
    if (trial.proposal.strategy == search::kRepeatStrategy) trials.push_back(trial.proposal.repeat_of);
  }
  return trials;
}

TEST_F(Repeats, TheBestAndTheBaselineAlternateUntilEachHasSoMany) {
  const search::History before = run(session_).history;
  ASSERT_EQ(before.size(), 8U);
  const int leader = best_of(before)->trial;
  options_.repeats = 3;
  const run::RunResult result = run(session_);
  // Each has one measurement, so two more are made of each, and the baseline comes first.
  EXPECT_EQ(repeated(result.history), (std::vector<std::optional<int>>{0, leader, 0, leader}));
  EXPECT_EQ(search::closed_trials(result.history), 8) << "repetitions are not of the budget";
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(run(session_).trials_now, 0) << "the same command repeats nothing";
}

TEST_F(Repeats, AnInterruptionLosesNone) {
  run(session_);
  options_.repeats = 3;
  const run::RunResult interrupted = run(session_, 1);
  EXPECT_EQ(interrupted.reason, run::EndReason::kInterrupted);
  EXPECT_EQ(repeated(interrupted.history).size(), 1U);
  EXPECT_EQ(repeated(run(session_).history).size(), 4U);
}

TEST_F(Repeats, TheGainComparesMeans) {
  StoppingObserver observer;
  double baseline_is = 1.0;
  FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
    const bool is_baseline = c == *session_.baseline;
    if (is_baseline) baseline_is += 0.3;  // 1.3, 1.6 and 1.9 times its speed
    return loop_fails(c) ? trial::Outcome(trial::OutOfMemory{})
                         : measured(session_, loop_speed(c) * (is_baseline ? baseline_is : 1.0));
  });
  options_.repeats = 3;
  const std::optional<search::Recommendation> best = best_of(run(session_, observer, runner).history);
  EXPECT_EQ(best->reference_measurements, 3);
  EXPECT_NEAR(best->reference_value, 1.6 * loop_speed(*session_.baseline), 1e-9);
  EXPECT_NEAR(best->gain, best->value / best->reference_value, 1e-12);
}

TEST_F(Repeats, ALeaderThatFallsIsReplaced) {
  StoppingObserver observer;
  std::map<std::string, int> times;
  FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
    if (loop_fails(c)) return trial::OutOfMemory{};
    // The first measurement of the fastest configuration was luck; it is a tenth as fast when it is measured again.
    const bool is_lucky = space::as_number(*c.find("b")) == 8 && space::as_number(*c.find("a")) == 3;
    return measured(session_, loop_speed(c) * (is_lucky && times[c.text()]++ > 0 ? 0.1 : 1.0));
  });
  session_.budget.trials = 20;
  options_.repeats = 4;
  const search::History history = run(session_, observer, runner).history;
  std::map<std::string, int> measurements;
  for (const journal::Trial& trial : history) {
    if (search::value_of(trial, session_.objective)) ++measurements[trial.proposal.configuration.text()];
  }
  const std::optional<search::Recommendation> best = best_of(history);
  EXPECT_NE(best->configuration.text(), "a=3 b=8");
  EXPECT_GE(measurements.at(best->configuration.text()), 4);
  EXPECT_GE(measurements.at(session_.baseline->text()), 4);
}

// Otherwise a configuration that can no longer run would be repeated forever.
TEST_F(Repeats, FailuresEnd) {
  run(session_);
  options_.repeats = 3;
  StoppingObserver observer(100);
  FakeRunner runner([](const space::Configuration&) {
    return trial::Failed{trial::FailureReason::kCrash, 1, "segmentation fault"};
  });
  EXPECT_EQ(run(session_, observer, runner).trials_now, 4);
}

TEST_F(Repeats, AFailingEnvironmentIsTheReason) {
  run(session_);
  options_.repeats = 3;
  StoppingObserver observer(100);
  FakeRunner runner([](const space::Configuration&) {
    return trial::Failed{trial::FailureReason::kEnvironment, 1, "no GPU"};
  });
  const run::RunResult result = run(session_, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kEnvironment);
  EXPECT_EQ(result.trials_now, 3);
  EXPECT_EQ(result.detail, "no GPU");
}

}  // namespace krigtune::repeats_test

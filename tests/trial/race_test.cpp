#include "trial/race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "krigtune/rng.h"
#include "trial/temporary_directory.h"

namespace krigtune::race_test {

trial::Rival rival(double value, double sem, bool maximize = true) { return {"samples_per_s", maximize, value, sem}; }

TEST(Race, IsLostBeyondDriftAndThreeStandardErrors) {
  // log(100 / v) > 0.05 + 3 sqrt(0.03^2 + 0.04^2) = 0.2.
  const double at = 100.0 * std::exp(-0.2);
  EXPECT_FALSE(trial::bound_of_a_loser({at * 1.0001, 0.03 * at * 1.0001, 10}, rival(100.0, 4.0)));
  const auto bound = trial::bound_of_a_loser({at * 0.999, 0.03 * at * 0.999, 10}, rival(100.0, 4.0));
  ASSERT_TRUE(bound);
  EXPECT_LE(std::abs(*bound - 99.9), 1e-9);
}

TEST(Race, OfTimesIsThatOfTheirInverses) {
  const auto rate = trial::bound_of_a_loser({50.0, 1.0, 10}, rival(100.0, 4.0));
  const auto time = trial::bound_of_a_loser({0.02, 0.0004, 10}, rival(0.01, 0.0004, false));
  ASSERT_TRUE(rate && time);
  EXPECT_LE(std::abs(*rate * *time - 1.0), 1e-12);
  EXPECT_FALSE(trial::bound_of_a_loser({0.01, 0.0004, 10}, rival(0.02, 0.0004, false)));
}

TEST(Race, IsNotRunOnFewStepsOrOnValuesThatAreNotPositive) {
  EXPECT_FALSE(trial::bound_of_a_loser({1.0, 0.0, 4}, rival(100.0, 0.0)));
  EXPECT_TRUE(trial::bound_of_a_loser({1.0, 0.0, 5}, rival(100.0, 0.0)));
  EXPECT_FALSE(trial::bound_of_a_loser({-1.0, 0.0, 5}, rival(100.0, 0.0)));
  EXPECT_FALSE(trial::bound_of_a_loser({1.0, 0.0, 5}, rival(0.0, 0.0)));
  EXPECT_FALSE(trial::bound_of_a_loser({1.0, std::nan(""), 5}, rival(100.0, 0.0)));
  EXPECT_FALSE(trial::bound_of_a_loser({std::nan(""), 0.0, 5}, rival(100.0, 0.0)));
}

// Trials as good as the rival, with runs 3 % apart (as stated), steps 10 % apart and correlated with their neighbours
// (0.8), the first ones up to 5 % too slow: fewer than one in a thousand may be ended, over all checks.
TEST(Race, EndsFewerThanOneInAThousandOfThoseThatAreAsGood) {
  constexpr int kTrials = 20'000;
  constexpr double kRun = 0.03;
  constexpr double kStep = 0.10;
  constexpr double kResemblance = 0.8;
  int ended = 0;
  Rng rng(11, 0);
  for (int trial = 0; trial < kTrials; ++trial) {
    const double best = std::exp(kRun * rng.normal());
    const trial::Rival against = rival(best, std::sqrt(2.0) * kRun * best);
    const double ours = kRun * rng.normal();
    double noise = kStep * rng.normal();
    double sum = 0.0;
    for (int step = 1; step <= 60; ++step) {
      noise = kResemblance * noise + std::sqrt(1.0 - kResemblance * kResemblance) * kStep * rng.normal();
      sum += ours + noise - 0.05 * std::exp(-step / 20.0);
      if (step < 5) continue;
      // The variance of the mean of n steps of an AR(1) process, to first order.
      const double tau = (1.0 + kResemblance) / (1.0 - kResemblance);
      const double value = std::exp(sum / step);
      const double sem = value * kStep * std::sqrt(std::min(tau / step, 1.0));
      if (!trial::bound_of_a_loser({value, sem, step}, against)) continue;
      ++ended;
      break;
    }
  }
  EXPECT_LE(ended, kTrials / 1000);
}

// Trials that take twice as long are ended as early as allowed.
TEST(Race, EndsWhatIsHalfAsFastAfterFiveSteps) {
  EXPECT_TRUE(trial::bound_of_a_loser({50.0, 50.0 * 0.05, 5}, rival(100.0, std::sqrt(2.0) * 3.0)));
}

TEST(ProgressLines, GivesTheLastWholeLineThatHasTheField) {
  const TemporaryDirectory directory;
  const auto file = directory / "heartbeat.jsonl";
  trial::ProgressLines lines(file);
  EXPECT_FALSE(lines.next("step_time_s"));  // the file does not exist
  std::ofstream out(file);
  out << "{\"phase\":\"measure\",\"step\":1}\n{\"step\":2,\"step_time_s\":0.5}\n{\"step\":3,\"step_time_s\":0.4}\n"
      << "garbage\n{\"step\":4}\n{\"step\":5,\"step_ti" << std::flush;
  const auto first = lines.next("step_time_s");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at("step"), 3.0);
  EXPECT_EQ(first->at("step_time_s"), 0.4);
  EXPECT_FALSE(lines.next("step_time_s"));  // torn
  out << "me_s\":0.3}\n" << std::flush;
  const auto second = lines.next("step_time_s");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at("step"), 5.0);
  EXPECT_FALSE(lines.next("step_time_s"));
}

}  // namespace krigtune::race_test

// The expected time of a whole training against Daly's closed form in the limits, a numerical minimum and a simulation.
#include "fleet/whole_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "core/json.h"

namespace krigtune::whole_run_test {

constexpr double kDay = 86'400.0;

session::RunSpec usual() {
  session::RunSpec run;
  run.checkpoint_s = 60.0;
  run.checkpoint_every_s = 1800.0;
  run.failures_per_gpu_day = 0.01;
  run.restart_s = 600.0;
  return run;
}

TEST(WholeRun, IsThatOfTheStepsIfNothingElseIsStated) {
  const fleet::WholeRun whole = fleet::whole_run(1e6, 64, {}).value();
  EXPECT_EQ(whole.wall_s, 1e6);
  EXPECT_EQ(whole.failures, 0.0);
  EXPECT_FALSE(whole.interval_s || whole.best_interval_s || whole.energy_kwh);
}

TEST(WholeRun, AddsSharesCheckpointsAndEnergy) {
  session::RunSpec run;
  run.evaluation_share = 0.02;
  run.data_wait_share = 0.03;
  run.checkpoint_s = 60.0;
  run.checkpoint_every_s = 1800.0;
  run.power_w = 1000.0;
  const fleet::WholeRun whole = fleet::whole_run(1e6, 64, run).value();
  EXPECT_DOUBLE_EQ(whole.evaluation_s, 5e4);
  EXPECT_DOUBLE_EQ(whole.wall_s, 1.05e6 * (1.0 + 60.0 / 1800.0));
  EXPECT_DOUBLE_EQ(whole.energy_kwh.value(), 64.0 * whole.wall_s / 3600.0) << "64 GPUs of a kilowatt";
}

// A rare failure costs a restart, and half an interval with its checkpoint.
TEST(WholeRun, LosesHalfAnIntervalAndARestartWithEachRareFailure) {
  session::RunSpec run = usual();
  run.failures_per_gpu_day = 1e-6;
  const fleet::WholeRun whole = fleet::whole_run(1e6, 64, run).value();
  const double without_s = 1e6 * (1.0 + 60.0 / 1800.0);
  const double failures = without_s * 64e-6 / kDay;
  EXPECT_NEAR(whole.failures, failures, 1e-3 * failures);
  EXPECT_NEAR(whole.failures_s, failures * (600.0 + 0.5 * 1860.0), 1e-3 * whole.failures_s);
  EXPECT_NEAR(whole.steps_s + whole.evaluation_s + whole.checkpoints_s + whole.failures_s, whole.wall_s, 1e-6);
}

// Plays one training, and returns its time and its failures: one may come at any time, also during a restart.
std::pair<double, double> played(double work_s, const session::RunSpec& run, double mean_s, std::mt19937_64& random) {
  std::exponential_distribution<double> next(1.0 / mean_s);
  double wall_s = 0.0, failures = 0.0;
  double failure_s = next(random);  // on the clock of the wall
  const auto passes = [&](double duration_s) {
    if (wall_s + duration_s < failure_s) {
      wall_s += duration_s;
      return true;
    }
    wall_s = failure_s;
    ++failures;
    failure_s = wall_s + next(random);
    return false;
  };
  const auto intervals = static_cast<int>(std::lround(work_s / *run.checkpoint_every_s));
  for (int done = 0; done < intervals;) {
    if (passes(*run.checkpoint_every_s + *run.checkpoint_s)) {
      ++done;
    } else {
      while (!passes(run.restart_s)) {
      }
    }
  }
  return {wall_s, failures};
}

TEST(WholeRun, IsTheMeanOfASimulation) {
  constexpr std::uint64_t kSeed = 20261201;
  constexpr int kTrainings = 2000;
  const session::RunSpec run = usual();
  for (const std::int64_t gpus : {64, 1024, 8192}) {
    const double mean_s = kDay / (run.failures_per_gpu_day * static_cast<double>(gpus));
    const double work_s = 200.0 * *run.checkpoint_every_s;
    std::mt19937_64 random(kSeed);
    double sum = 0.0, squares = 0.0, failures = 0.0;
    for (int i = 0; i < kTrainings; ++i) {
      const auto [wall_s, count] = played(work_s, run, mean_s, random);
      sum += wall_s;
      squares += wall_s * wall_s;
      failures += count;
    }
    const double mean = sum / kTrainings;
    const double error = std::sqrt((squares / kTrainings - mean * mean) / kTrainings);
    const fleet::WholeRun whole = fleet::whole_run(work_s, gpus, run).value();
    EXPECT_NEAR(whole.wall_s, mean, 4.0 * error) << gpus << " GPUs, seed " << kSeed;
    EXPECT_NEAR(whole.failures, failures / kTrainings,
                4.0 * std::sqrt(whole.failures / kTrainings) + 4.0 * error / mean_s)
        << gpus << " GPUs, seed " << kSeed;
  }
}

// Returns the shortest wall time among intervals that differ by a thousandth.
double least_wall_s(session::RunSpec run, std::int64_t gpus) {
  double least = INFINITY;
  for (double interval = 1.0; interval < 1e7; interval *= 1.001) {
    run.checkpoint_every_s = interval;
    if (const auto whole = fleet::whole_run(1e6, gpus, run)) least = std::min(least, whole->wall_s);
  }
  return least;
}

TEST(BestInterval, IsTheMinimumOfTheTime) {
  for (const std::int64_t gpus : {8, 256, 4096, 16384}) {
    session::RunSpec run = usual();
    const double least = least_wall_s(run, gpus);
    run.checkpoint_every_s.reset();
    const fleet::WholeRun whole = fleet::whole_run(1e6, gpus, run).value();
    EXPECT_LE(whole.wall_s, 1.0005 * least) << gpus;
    EXPECT_EQ(whole.interval_s, whole.best_interval_s);
    EXPECT_FALSE(whole.interval_is_far_off());
  }
}

// Daly 2006, figures 3 to 5: checkpoints of 5 min, and failures every 24 h, 6 h and 15 min.
TEST(BestInterval, IsThatOfDalysFigures) {
  constexpr double kMinute = 60.0;
  EXPECT_NEAR(fleet::best_interval_s(5.0 * kMinute, 24.0 * 60.0 * kMinute), 117.0 * kMinute, 0.5 * kMinute);
  EXPECT_NEAR(fleet::best_interval_s(5.0 * kMinute, 6.0 * 60.0 * kMinute), 57.0 * kMinute, 0.5 * kMinute);
  EXPECT_NEAR(fleet::best_interval_s(5.0 * kMinute, 15.0 * kMinute), 9.1 * kMinute, 0.05 * kMinute);
}

TEST(BestInterval, IsYoungsForRareFailures) {
  EXPECT_NEAR(fleet::best_interval_s(60.0, 1e9), std::sqrt(2.0 * 60.0 * 1e9), 1e-3 * std::sqrt(2.0 * 60.0 * 1e9));
  // With checkpoints that take more than twice the time between failures, it is that time (Daly 2006).
  EXPECT_EQ(fleet::best_interval_s(100.0, 40.0), 40.0);
}

TEST(WholeRun, SaysWhenTheStatedIntervalIsFarOff) {
  session::RunSpec run = usual();
  EXPECT_FALSE(fleet::whole_run(1e6, 64, run)->best_wall_s.value() > fleet::whole_run(1e6, 64, run)->wall_s);
  run.checkpoint_every_s = 30.0;
  EXPECT_TRUE(fleet::whole_run(1e6, 64, run)->interval_is_far_off());
}

TEST(WholeRun, IsEmptyIfFailuresNeverLetItGetOn) {
  session::RunSpec run = usual();
  run.failures_per_gpu_day = 10.0;
  EXPECT_FALSE(fleet::whole_run(1e6, 16384, run));
  run.failures_per_gpu_day = 1000.0;
  EXPECT_FALSE(fleet::whole_run(1e6, 1'000'000, run)) << "no overflow";
}

TEST(RunBlock, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const std::string& text) {
    try {
      session::read_run(parse_json(text, "s"), "s", "/run");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(R"({"failures_per_gpu_day": 0.01})"),
            "s: /run/checkpoint_s: is missing: without checkpoints a failure loses everything; write how long a "
            "checkpoint takes, for example 60");
  EXPECT_NE(refusal(R"({"checkpoint_every_s": 60})"), "");
  EXPECT_NE(refusal(R"({"checkpoint_s": 60})"), "");
  EXPECT_NE(refusal(R"({"checkpoint_s": 0, "failures_per_gpu_day": 0.1})"), "");
  EXPECT_NE(refusal(R"({"power_w": 0})"), "");
  EXPECT_EQ(refusal(R"({"checkpoint_s": 60, "failures_per_gpu_day": 0.01, "evaluation_share": 0.02})"), "");
}

}  // namespace krigtune::whole_run_test

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "core/files.h"
#include "diagnose/log_parts.h"
#include "diagnose/progress_bars.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::log_test {

using diagnose::Limit;

// 60 steps of 100 ms; every tenth takes 400 ms.
std::vector<double> with_evaluations() {
  std::vector<double> seconds(60, 0.1);
  for (std::size_t i = 9; i < seconds.size(); i += 10) seconds[i] = 0.4;
  return seconds;
}

TEST(Logs, StepsThatTakeLongerNowAndThenHaveTheirShareAndPeriod) {
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({with_evaluations()}, {});
  EXPECT_NEAR(parts.span_s, 54 * 0.1 + 6 * 0.4, 1e-12);
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(parts);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts.front().limit, Limit::kLongSteps);
  EXPECT_NEAR(verdicts.front().share, 6 * 0.3 / 7.8, 1e-9);
  EXPECT_NE(verdicts.front().sentence.find("6 take longer than 1.5 times the median, about every 10"),
            std::string::npos)
      << verdicts.front().sentence;
}

TEST(Logs, LongStepsWithoutAPeriodAreNotGivenOne) {
  std::vector<double> seconds(60, 0.1);
  for (const std::size_t at : {3, 4, 20, 55}) seconds[at] = 0.9;
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(diagnose::parts_of_log({seconds}, {}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_NE(verdicts.front().sentence.find("without a period"), std::string::npos) << verdicts.front().sentence;
}

TEST(Logs, EvenStepsLimitNothing) {
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({std::vector<double>(20, 0.25)}, {});
  EXPECT_TRUE(diagnose::verdicts_of(parts).empty());
  ASSERT_FALSE(parts.remarks.empty());
  EXPECT_EQ(parts.remarks.front(), "20 steps: median 250 ms, from 250 ms to 250 ms for 8 of 10");
}

TEST(Logs, ATrendIsSaid) {
  std::vector<double> seconds(60);
  std::iota(seconds.begin(), seconds.end(), 100.0);
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({seconds}, {});
  ASSERT_EQ(parts.remarks.size(), 2U);
  EXPECT_NE(parts.remarks.back().find("slower from the first third to the last"), std::string::npos);
}

// Recorded: tests/deepspeed/deepspeed_outputs.
TEST(Logs, DeepSpeedsBreakdownIsReadFromARealLog) {
  diagnose::PrintedBreakdown printed;
  std::istringstream lines(read_text(KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs/success.txt"));
  for (std::string line; std::getline(lines, line);) printed.take(line);
  ASSERT_FALSE(printed.is_empty());
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({}, printed);
  double sum = 0.0;
  for (const diagnose::Part& part : parts.parts) sum += part.seconds;
  EXPECT_NEAR(sum, parts.span_s, 1e-12);
  EXPECT_NEAR(parts.span_s, printed.seconds("fwd") + printed.seconds("bwd") + printed.seconds("step"), 1e-12);
  EXPECT_GT(parts.span_s, 0.0);
}

TEST(Logs, TheReductionIsTakenOutOfTheBackwardPass) {
  diagnose::PrintedBreakdown printed;
  printed.take("[Rank 0] time (ms) | fwd: 100 | bwd: 300 | bwd_inner: 120 | bwd_allreduce: 180 | step: 20");
  printed.take("[Rank 0] time (ms) | fwd_microstep: 1 | bwd_microstep: 2 | bwd_allreduce_microstep: 1");
  printed.take("time (ms) | optimizer_step: 3.2");
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(diagnose::parts_of_log({}, printed));
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts.front().limit, Limit::kDataCommunication);
  EXPECT_NEAR(verdicts.front().share, 180.0 / 420.0, 1e-9);
  EXPECT_EQ(verdicts.back().limit, Limit::kCompute);
  EXPECT_NEAR(verdicts.back().share, 220.0 / 420.0, 1e-9);
}

// The names before DeepSpeed 0.10.1, behind a progress bar.
TEST(Logs, DeepSpeedsOlderBreakdownIsRead) {
  diagnose::PrintedBreakdown printed;
  printed.take(
      "  0%|## | 2/345 [00:00<06:50,  5.53it/s][INFO] [Rank 0] rank=0 time (ms) | forward_microstep: 27.85 | "
      "backward_microstep: 74.15 | backward_inner_microstep: 50.96 | step_microstep: 72.79");
  EXPECT_TRUE(printed.is_empty());
  printed.take(
      "[INFO] [Rank 0] rank=0 time (ms) | forward: 27.53 | backward: 74.35 | backward_inner: 51.18 | "
      "backward_allreduce: 23.16 | step: 72.96");
  EXPECT_NEAR(printed.seconds("fwd"), 0.02753, 1e-12);
  EXPECT_NEAR(printed.seconds("bwd_allreduce"), 0.02316, 1e-12);
  EXPECT_NEAR(printed.seconds("step"), 0.07296, 1e-12);
}

// GPT-NeoX prints the engine's numbers again in a line of its own.
TEST(Logs, NeoxsLineCountsOnlyWithoutTheEngines) {
  const std::string own =
      "time (ms) | forward: 657.41 | backward: 2159.23 | backward-backward: 2159.23 | backward-allreduce: 0.00 | "
      "optimizer: 1711.05 | batch generator: 0.79";
  diagnose::PrintedBreakdown printed;
  printed.take(own);
  EXPECT_NEAR(printed.seconds("fwd"), 0.65741, 1e-12);
  EXPECT_NEAR(printed.seconds("step"), 1.71105, 1e-12);
  printed.take("rank=0 time (ms) | forward: 649.41 | backward: 2159.23 | backward_allreduce: 162.78 | step: 1711.05");
  printed.take(own);
  EXPECT_NEAR(printed.seconds("fwd"), 0.64941, 1e-12);
  EXPECT_NEAR(printed.seconds("bwd_allreduce"), 0.16278, 1e-12);
}

TEST(Logs, TheEnginesRatesAreRead) {
  EXPECT_EQ(diagnose::printed_samples_per_s("[timer.py:189:stop] 0/10, SamplesPerSec=84.048840, MemAllocated=0.26GB"),
            84.048840);
  EXPECT_EQ(
      diagnose::printed_samples_per_s(
          "global_step=1, RunningAvgSamplesPerSec=7.702737381175319, CurrSamplesPerSec=7.090102, MemAllocated=5GB"),
      7.090102);
  for (const char* line : {"", "RunningAvgSamplesPerSec=7.7", "0/1, SamplesPerSec=nan, x", "0/1, SamplesPerSec=0, x",
                           "0/1, SamplesPerSec="})
    EXPECT_FALSE(diagnose::printed_samples_per_s(line)) << line;
}

std::string bar(std::int64_t step, std::int64_t elapsed_s, const std::string& rate, std::int64_t due = 500) {
  const auto two = [](std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return " 2%|#    | " + std::to_string(step) + "/" + std::to_string(due) + " [" + two(elapsed_s / 60) + ":" +
         two(elapsed_s % 60) + "<26:10,  " + rate + "]";
}

// As the Trainer shows it: steps of 3 s, and an evaluation after every tenth.
TEST(Logs, StepsAreReadFromAProgressBar) {
  diagnose::ProgressBars bars;
  std::int64_t clock = 0;
  for (std::int64_t step = 1; step <= 60; ++step) {
    clock += step % 10 == 0 ? 45 : 3;
    bars.take(bar(step, clock, step % 10 == 0 ? "45.00s/it" : "3.20s/it"));
    if (step % 10 == 0) {
      for (std::int64_t i = 1; i <= 30; ++i) bars.take(bar(i, i, "1.00s/it", 30));  // of the evaluation
      bars.take("{'loss': 1.4900, 'learning_rate': 1.9e-05, 'epoch': 0.02}");
    }
  }
  const diagnose::StepTimesOfLog steps = bars.steps();
  ASSERT_EQ(steps.seconds.size(), 59U);
  EXPECT_EQ(steps.seconds.front(), 3.0);
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(diagnose::parts_of_log(steps, {}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_NE(verdicts.front().sentence.find("6 take longer than 1.5 times the median, about every 10"),
            std::string::npos);
}

TEST(Logs, ABarOfShortStepsIsReadByItsRate) {
  diagnose::ProgressBars bars;
  for (std::int64_t step = 1; step <= 24; ++step) bars.take(bar(step, step / 6, "6.25it/s, loss=1.79"));
  const diagnose::StepTimesOfLog steps = bars.steps();
  ASSERT_EQ(steps.seconds.size(), 23U);
  EXPECT_NEAR(steps.seconds.back(), 0.16, 1e-12);
  diagnose::ProgressBars none;
  for (const char* line : {"", "3/4 [", "| 1/2 [x<y, 3s/it]", "a/b [00:01<00:02, 1it/s]", "step 3/500 [warmup]",
                           " [00:03<26:10", "|/ [00:03<26:10, 3.20s/it]"})
    none.take(line);
  EXPECT_TRUE(none.steps().seconds.empty());
}

TEST(Logs, WithNeitherStepsNorABreakdownTheySayNothing) {
  EXPECT_EQ(
      user_error_of([] {
        diagnose::parts_of_log({{0.1, 0.2}}, {});
      }),
      "the log has 2 steps with a time, no progress bar, and neither DeepSpeed's breakdown nor Megatron's timers; "
      "at least three steps are needed, and a loss alone has no time; krigtune measure --log shows what is found "
      "in the log");
}

diagnose::MegatronTimers timers_of(const std::string& log) {
  diagnose::MegatronTimers timers;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) timers.take(line);
  return timers;
}

double part_named(const diagnose::MeasuredParts& parts, const std::string& name) {
  for (const diagnose::Part& part : parts.parts) {
    if (part.name == name) return part.seconds;
  }
  return 0.0;
}

// The form is that of megatron/core/timers.py; the numbers were chosen so that they are easy to add.
constexpr const char* kLevelTwo = R"(
(min, max) time across ranks (ms):
    model-and-optimizer-setup ......................: (1345.37, 1359.59)
    train/valid/test-data-iterators-setup ..........: (3078.04, 3884.57)
 [2024-04-06 02:59:36] iteration       43/     100 | elapsed time per iteration (ms): 500.0 |
(min, max) time across ranks (ms):
    forward-backward ...............................: (395.00, 400.00)
    forward-compute ................................: (90.00, 110.00)
    backward-compute ...............................: (175.00, 180.00)
    batch-generator ................................: (8.00, 10.00)
    forward-recv ...................................: (1.00, 20.00)
    backward-send ..................................: (1.00, 10.00)
    forward-backward-send-forward-backward-recv ....: (1.00, 5.00)
    all-grads-sync .................................: (50.00, 60.00)
    params-all-gather ..............................: (14.00, 15.00)
    optimizer-inner-step ...........................: (20.00, 21.00)
    optimizer ......................................: (40.00, 45.00)
)";

TEST(Logs, MegatronsTimersAreReadWithWhatHoldsThem) {
  const diagnose::MegatronTimers timers = timers_of(kLevelTwo);
  ASSERT_FALSE(timers.is_empty());
  EXPECT_EQ(timers.seconds("forward-backward"), 0.4);
  EXPECT_EQ(timers.least_seconds("forward-compute"), 0.09);
  const diagnose::MeasuredParts parts = diagnose::parts_of_timers(timers, 0.5);
  EXPECT_NEAR(parts.span_s, 0.5, 1e-12);
  EXPECT_NEAR(part_named(parts, "forward"), 0.1, 1e-12) << "without the data loading in it";
  EXPECT_NEAR(part_named(parts, "backward"), 0.18, 1e-12);
  EXPECT_NEAR(part_named(parts, "data loading"), 0.01, 1e-12);
  EXPECT_NEAR(part_named(parts, "sends between stages, and waiting for them"), 0.035, 1e-12);
  EXPECT_NEAR(part_named(parts, "reduction of gradients, exposed"), 0.06, 1e-12);
  EXPECT_NEAR(part_named(parts, "between passes"), 0.4 - 0.06 - 0.01 - 0.1 - 0.18 - 0.035, 1e-12);
  EXPECT_NEAR(part_named(parts, "gathering of parameters"), 0.015, 1e-12);
  EXPECT_NEAR(part_named(parts, "optimizer"), 0.03, 1e-12);
  EXPECT_NEAR(part_named(parts, "outside all timers"), 0.055, 1e-12);
  double sum = 0.0;
  for (const diagnose::Part& part : parts.parts) sum += part.seconds;
  EXPECT_NEAR(sum, parts.span_s, 1e-12);
  const std::vector<diagnose::Verdict> verdicts = diagnose::verdicts_of(parts);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().limit, Limit::kDataCommunication);
  EXPECT_NEAR(verdicts.front().share, 0.075 / 0.5, 1e-9);
  ASSERT_EQ(parts.remarks.size(), 3U);
  EXPECT_EQ(parts.remarks[1],
            "forward-compute takes 110.0 ms on the slowest rank and 90.0 ms on the fastest: a slow rank, or pipeline "
            "stages of different sizes");
}

// Level 1, as of 2023: gradients are reduced after the passes, and only the largest time is printed, after a launcher's
// prefix.
TEST(Logs, MegatronsOlderTimersStandBesideEachOther) {
  const diagnose::MegatronTimers timers = timers_of(
      "[default0]:max time across ranks (ms):\n"
      "[default0]:    forward-backward ...............................: 300.00\n"
      "[default0]:    grads-all-reduce ...............................: 80.00\n"
      "[default0]:    optimizer ......................................: 20.00\n"
      "[default0]:    forward-backward ...............................: 302.00\n"
      "[default0]:    not a timer ....................................: soon\n");
  const diagnose::MeasuredParts parts = diagnose::parts_of_log({}, {}, timers);
  EXPECT_NEAR(part_named(parts, "forward and backward"), 0.301, 1e-12) << "the median of two";
  EXPECT_NEAR(part_named(parts, "reduction of gradients"), 0.08, 1e-12);
  EXPECT_NEAR(parts.span_s, 0.401, 1e-12);
}

TEST(Logs, MegatronsTimersOfEachRankAreReadToo) {
  const diagnose::MegatronTimers timers = timers_of(
      "times across ranks (ms):\n"
      "  forward-backward:\n"
      "     rank  0: 210.40\n"
      "     rank  1: 221.30\n"
      "  optimizer:\n"
      "     rank  0: 40.10\n"
      "an epoch begins:\n"
      "rank 3 is there: 7\n");
  EXPECT_NEAR(timers.seconds("forward-backward"), 0.2213, 1e-12);
  EXPECT_NEAR(timers.least_seconds("forward-backward"), 0.2104, 1e-12);
  EXPECT_NEAR(timers.seconds("optimizer"), 0.0401, 1e-12);
}

class MonitorFolder : public testing::Test {
 protected:
  void write(const std::string& timer, const std::string& rows) const {
    std::filesystem::create_directories(directory_ / "job");
    const std::string name = "elapsed_time_ms_" + timer;
    directory_.write("job/Train_Samples_" + name + ".csv", "step," + name + "\n" + rows);
  }
  TemporaryDirectory directory_;
};

TEST_F(MonitorFolder, IsReadBehindItsWarmUp) {
  std::string forward, backward, reduction, step;
  for (int i = 1; i <= 9; ++i) {
    const std::string samples = std::to_string(16 * i) + ",";
    forward += samples + (i <= 4 ? "900\n" : "100\n");
    backward += samples + "300.5\n";
    reduction += samples + "180.5\n";
    step += samples + "20\n";
  }
  write("forward", forward);
  write("backward", backward);
  write("backward_allreduce", reduction);
  write("step", step);
  for (const std::filesystem::path& path :
       {directory_.path(), directory_ / "job", directory_ / "job/Train_Samples_elapsed_time_ms_step.csv"}) {
    const auto files = diagnose::read_monitor(path);
    ASSERT_TRUE(files) << path;
    EXPECT_EQ(files->steps.seconds.size(), 5U);
    const diagnose::MeasuredParts parts = diagnose::parts_of_log(files->steps, files->printed);
    EXPECT_NEAR(parts.span_s, 0.4205, 1e-12);
    EXPECT_EQ(diagnose::verdicts_of(parts).front().limit, Limit::kDataCommunication);
  }
}

TEST_F(MonitorFolder, ThatIsNoneIsNotTakenForOne) {
  EXPECT_FALSE(diagnose::read_monitor(directory_.path()));
  EXPECT_FALSE(diagnose::read_monitor(directory_.write("a.csv", "step,x\n1,2\n")));
  EXPECT_FALSE(diagnose::read_monitor(directory_ / "nowhere"));
  write("forward", "16,100\n");
  EXPECT_NE(user_error_of([&] {
              diagnose::read_monitor(directory_ / "job");
            }).find("it has no times of the forward and the backward pass; let the job run with"),
            std::string::npos);
  write("backward", "16,soon\n");
  EXPECT_NE(user_error_of([&] {
              diagnose::read_monitor(directory_ / "job");
            }).find("backward.csv: line 2: 'soon' is not a number of milliseconds; remove the line"),
            std::string::npos);
}

}  // namespace krigtune::log_test

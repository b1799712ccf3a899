// Command trials that are measured by their output, with small programs that print it.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "runner/command.h"
#include "trial/event_clock.h"
#include "trial/expect_failed.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::command_measure_test {

class CommandMeasure : public ::testing::Test {
 protected:
  CommandMeasure() {
    job_.metric = "tokens_per_second";
    job_.spec.working_directory = dir_.path();
    job_.spec.grace_s = 5.0;
    space::JobFacts facts;
    facts.ranks = 4;
    facts.train_batch_size = 8;
    facts.numbers = {{"seq_len", 100.0}};
    job_.space = space::Space({{.name = "micro_batch", .values = {std::int64_t{1}, std::int64_t{2}}}}, facts);
    measure("step_time_s", "time ([^ ]+) s");
    job_.spec.measure.warmup_steps = 2;
    job_.spec.measure.measure_steps = 6;
    std::filesystem::create_directory(trial_dir());
  }

  trial::Measure& measure(const std::string& name, const std::string& regex) {
    trial::Measure measure;
    measure.name = name;
    measure.pattern = regex;
    job_.spec.measure.metrics.push_back(measure);
    return job_.spec.measure.metrics.back();
  }
  void check(const std::string& regex, const std::string& equals, const std::string& what) {
    job_.spec.measure.checks.push_back({regex, equals, what});
  }

  std::filesystem::path trial_dir() const { return dir_ / "0003_mb2"; }
  Json summary() const { return Json::parse(read_text(trial_dir() / "measured.json")); }

  trial::Outcome run(const std::string& script, const Clock& clock, const std::optional<trial::Rival>& rival = {}) {
    job_.spec.argv = {"/bin/sh", "-c", script, "sh", "{dir}"};
    return runner::make_command_runner(job_, clock)->run({{"micro_batch", std::int64_t{2}}}, trial_dir(), rival);
  }
  trial::Outcome run(const std::string& script) { return run(script, still_); }
  std::string failure(const std::string& script, trial::FailureReason reason) {
    return expect_failed(run(script), reason).last_lines;
  }

  TemporaryDirectory dir_;
  ManualClock still_;
  runner::CommandJob job_;
};

// Steps of 0.5 s after two steps of 3 s.
constexpr const char* kSteps =
    "for i in 1 2; do echo \"step $i time 3 s\"; done; for i in 3 4 5 6 7 8; do echo \"step $i time 0.5 s\"; done";
const std::string kAndGoOn = std::string(kSteps) + "; exec sleep 600";

TEST_F(CommandMeasure, EndsTheTrialOnceEnoughStepsAreReadAndNeedsNoResult) {
  const trial::Outcome outcome = run(kAndGoOn);
  ASSERT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
  const auto& measured = std::get<trial::Measured>(outcome);
  EXPECT_EQ(measured.metrics.at("step_time_s"), 0.5);
  EXPECT_EQ(measured.metrics.at("samples_per_s"), 16.0);
  EXPECT_EQ(measured.metrics.at("tokens_per_s"), 1600.0);
  EXPECT_EQ(measured.metrics.at("tokens_per_second"), 1600.0) << "as the session calls it";
  EXPECT_EQ(measured.metrics.at("steps"), 6.0);
  EXPECT_EQ(measured.metrics.at("drift"), 0.0);
  EXPECT_EQ(measured.value_sem, 0.0) << "all steps are alike";
  EXPECT_GT(measured.metrics.at("peak_rss_bytes"), 0.0);
  EXPECT_EQ(summary().at("steps"), 8);
  EXPECT_EQ(Json::parse(read_text(trial_dir() / "exit.json")).at("exit_code"), 143);
}

TEST_F(CommandMeasure, AProgramThatReportsItsStepsIsToldTheFile) {
  job_.spec.measure.metrics.clear();
  for (const char* name : {"step_time_s", "tokens"}) {
    trial::Measure& reported = measure(name, name);
    reported.how = trial::MeasureHow::kKey;
    reported.from = trial::kStepsFile;
  }
  const std::string reports =
      R"(for s in 9 9 2 2 2 2 2 2; do echo "{\"step_time_s\": $s, \"tokens\": 50}" >>"$KRIGTUNE_STEPS_FILE"; done; exec sleep 600)";
  const trial::Measured measured = std::get<trial::Measured>(run(reports));
  EXPECT_EQ(measured.metrics.at("tokens_per_second"), 25.0);
  EXPECT_EQ(failure("test -n \"$KRIGTUNE_STEPS_FILE\" || exit 3", trial::FailureReason::kBadResult)
                .rfind("the program reported no step: call krigtune.StepReporter().step()", 0),
            0U);
  job_.spec.measure.metrics.clear();
  measure("step_time_s", "time ([^ ]+) s");
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(run("test -z \"$KRIGTUNE_STEPS_FILE\" || exit 3; " + kAndGoOn)));
}

// 8 sequences on 4 ranks with micro-batches of 2: a step has one micro-step; times 3 for the test.
TEST_F(CommandMeasure, TakesAFactorWithPlaceholders) {
  job_.spec.measure.metrics.back().times_by = "{24 / (micro_batch * dp)}";
  EXPECT_EQ(std::get<trial::Measured>(run(kAndGoOn)).metrics.at("step_time_s"), 1.5);
}

TEST_F(CommandMeasure, EndsAlsoAProgramThatCatchesTheSignalAndFails) {
  const trial::Outcome outcome = run("trap 'exit 7' TERM; " + std::string(kSteps) + "; while :; do sleep 0.05; done");
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
}

TEST_F(CommandMeasure, IsMeasuredFromWhatIsThereWhereTheProgramEndsByItself) {
  const trial::Outcome outcome = run("for i in 1 2 3 4 5; do echo \"time 0.25 s\"; done");
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("steps"), 3.0);
  EXPECT_NE(failure("for i in 1 2 3 4; do echo \"time 0.25 s\"; done", trial::FailureReason::kBadResult)
                .find("too short: 4 steps of 'tokens_per_s' were printed, and 5 are needed"),
            std::string::npos);
  expect_failed(run("for i in 1 2 3 4 5; do echo \"time 0.25 s\"; done; exit 3"), trial::FailureReason::kCrash);
}

TEST_F(CommandMeasure, ARegexThatNeverMatchedIsToldWithTheLineThatLookedClosest) {
  const std::string text = failure("echo begin; echo 'Time: 0.5 s'; echo end >&2", trial::FailureReason::kBadResult);
  EXPECT_EQ(
      text,
      "nothing in the output is 'step_time_s': regex 'time ([^ ]+) s' never matched; the most similar line: Time: "
      "0.5 s");
  EXPECT_EQ(failure(":", trial::FailureReason::kBadResult),
            "nothing in the output is 'step_time_s': regex 'time ([^ ]+) s' never matched; the job printed nothing");
}

/// Two seconds pass each time somebody looks.
class FastClock final : public Clock {
 public:
  double now_s() const override { return now_s_ = now_s_ + 2.0; }
  std::int64_t unix_us() const override { return 0; }
  void sleep_until_s(double /*deadline_s*/) const override {}

 private:
  mutable std::atomic<double> now_s_ = 0.0;
};

std::string printing_for_ever(const std::string& line) {
  return "i=0; while :; do i=$((i + 1)); echo \"" + line + "\"; sleep 0.02; done";
}

/// The objective is a number of the user's own, as with --metric.
class VainMetric : public CommandMeasure {
 protected:
  VainMetric() {
    job_.metric = "value";
    job_.spec.measure.metrics.clear();
    measure("value", "tokens/s ([0-9.]+)");
    job_.spec.timeout_s = 1e6;
    job_.spec.grace_s = 1e6;
  }
  std::string ended(const std::string& script, const Clock& clock) {
    const trial::Failed failed = expect_failed(run(script, clock), trial::FailureReason::kBadResult);
    EXPECT_EQ(failed.exit_code, 143) << "ended by krigtune";
    EXPECT_EQ(failed.last_lines.find('\n'), std::string::npos) << failed.last_lines;
    return failed.last_lines;
  }
};

TEST_F(VainMetric, EndsATrialThatPrintsItInAnotherSpelling) {
  const std::string text = ended("echo batch 8; " + printing_for_ever("step $i: 101.0 tok/s"), FastClock());
  EXPECT_EQ(
      text,
      "nothing in the output is 'value': regex 'tokens/s ([0-9.]+)' never matched; the most similar line: step 1: "
      "101.0 tok/s; so the trial was ended (--no-early-end: never)");
}

TEST_F(VainMetric, EndsATrialThatTrainsSoLongThatTooFewCanCome) {
  job_.spec.timeout_s = 5000.0;  // for five lines
  const std::string text = ended(printing_for_ever("iteration $i: loss 2.$i"), FastClock());
  EXPECT_NE(text.find("never matched"), std::string::npos) << text;
}

TEST_F(VainMetric, WaitsForAMetricThatComesLate) {
  const std::string late = "for i in 1 2 3 4 5 6 7 8; do echo \"tokens/s $i\"; done";
  for (const std::string early : {"rank $i: 7 tokens", "iteration $i: loss 2.$i", "Map: $i%|##| $i/900 tokens"}) {
    const std::string many = "for i in $(seq 300); do echo \"" + early + "\"; done; ";
    EXPECT_TRUE(std::holds_alternative<trial::Measured>(run(many + late))) << early;
  }
}

TEST_F(VainMetric, IsAwaitedIfTheUserWantsTrialsInFullOrItCameBefore) {
  const std::string vain = "for i in $(seq 40); do echo \"step $i: 101.0 tok/s\"; sleep 0.02; done";
  const FastClock clock;
  job_.spec.argv = {"/bin/sh", "-c", vain};
  trial::ThisMachine here;
  const trial::RunContext in_full{trial_dir(), std::nullopt, here, false, true};
  const trial::Failed failed =
      expect_failed(runner::make_command_runner(job_, clock)->run({}, in_full), trial::FailureReason::kBadResult);
  EXPECT_EQ(failed.exit_code, 0) << failed.last_lines;
  job_.spec.argv = {"/bin/sh", "-c",
                    "if [ -e came ]; then " + vain +
                        "; else touch came; for i in 1 2 3 4 5 6 7 8; do echo tokens/s $i; "
                        "done; fi"};
  const auto runner = runner::make_command_runner(job_, clock);
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(runner->run({}, trial_dir())));
  EXPECT_EQ(expect_failed(runner->run({}, trial_dir()), trial::FailureReason::kBadResult).exit_code, 0);
}

TEST_F(VainMetric, IsNamedLastWhereTheTimeLimitEndsTheTrial) {
  job_.spec.timeout_s = 100.0;
  const std::string text =
      expect_failed(run("echo loading; exec sleep 600", FastClock()), trial::FailureReason::kTimeout).last_lines;
  EXPECT_NE(text.find("\nnothing in the output is 'value': regex 'tokens/s ([0-9.]+)' never matched"),
            std::string::npos)
      << text;
}

TEST_F(VainMetric, OfAFileIsMissedOnlyAtTheEnd) {
  job_.spec.measure.metrics.front().how = trial::MeasureHow::kKey;
  job_.spec.measure.metrics.front().pattern = "speed";
  job_.spec.measure.metrics.front().from = "log.jsonl";
  EXPECT_EQ(failure("echo 'epoch 1: loss 2'", trial::FailureReason::kBadResult),
            "nothing in log.jsonl is 'value': key 'speed' never matched; the job did not write it");
  const std::string text = ended(
      "i=0; while :; do i=$((i + 1)); echo \"{\\\"step\\\": $i, \\\"speeds\\\": 3}\" >>log.jsonl; sleep 0.02; done",
      FastClock());
  EXPECT_NE(text.find("did you mean 'speeds'?"), std::string::npos) << text;
}

TEST_F(CommandMeasure, ACheckThatFailsEndsTheTrialAtOnceAsNotApplied) {
  check("world size (\\d+)", "{ranks}", "ranks");
  check("batch (\\d+)", "{train_batch_size}", "batch");
  const std::string text =
      failure("echo world size 4; echo global batch 16; " + kAndGoOn, trial::FailureReason::kNotApplied);
  EXPECT_EQ(text.rfind("batch: the program printed 16 where 8 was intended: global batch 16", 0), 0U) << text;
}

TEST_F(CommandMeasure, AChecksThatHoldsOrIsNeverPrintedLetsItPass) {
  check("mbs (\\d+)", "{micro_batch}", "micro-batch");
  check("tokens (\\d+)", "{train_batch_size * seq_len}", "tokens of a step");
  check("dp (\\d+)", "{dp}", "data-parallel ranks");
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(run("echo mbs 2, tokens 800; " + kAndGoOn)));
  EXPECT_EQ(summary().at("warnings").dump(),
            R"(["data-parallel ranks could not be checked: 'dp (\\d+)' never matched"])");
}

TEST_F(CommandMeasure, ALossThatIsNoNumberEndsTheTrial) {
  measure("loss", "loss ([^ ]+)");
  EXPECT_EQ(failure("echo 'time 1 s loss nan'; exec sleep 600", trial::FailureReason::kBadResult)
                .rfind("the loss is not a number: time 1 s loss nan", 0),
            0U);
}

TEST_F(CommandMeasure, ATrialThatHasLostIsBounded) {
  const trial::Rival best{"tokens_per_second", true, 10000.0, 100.0};
  job_.spec.measure.measure_steps = 1000;
  const trial::Outcome lost = run(kAndGoOn, still_, best);
  ASSERT_TRUE(std::holds_alternative<trial::Bounded>(lost)) << trial::reason_text(lost);
  EXPECT_LT(std::get<trial::Bounded>(lost).at_best, 10000.0);
  EXPECT_GE(std::get<trial::Bounded>(lost).at_best, 1600.0);
  job_.spec.measure.measure_steps = 6;
  const trial::Rival near{"tokens_per_second", true, 1650.0, 100.0};
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(run(kAndGoOn, still_, near)));
}

// A program that ends well when it is asked to has printed its steps, which say more than a bound.
TEST_F(CommandMeasure, ATrialThatHasLostAndEndedWellIsMeasured) {
  const trial::Rival best{"tokens_per_second", true, 10000.0, 100.0};
  job_.spec.measure.measure_steps = 1000;
  const std::string ends_well = "trap 'exit 0' TERM; " + std::string(kSteps) + "; sleep 600 & wait";
  const trial::Outcome outcome = run(ends_well, still_, best);
  ASSERT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("step_time_s"), 0.5);
}

TEST_F(CommandMeasure, OutOfMemoryIsRecognisedAsEver) {
  const trial::Outcome outcome = run(
      "echo 'time 1 s'; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.' >&2; exit 1");
  EXPECT_EQ(std::get<trial::OutOfMemory>(outcome).requested, Bytes{2684354560});
}

TEST_F(CommandMeasure, AHangIsAHangUnlessAFileThatIsReadGrows) {
  job_.spec.no_progress_s = 60.0;
  const EventClock late([&] { return std::filesystem::exists(trial_dir() / "there") ? 1e6 : 0.0; });
  EXPECT_TRUE(std::holds_alternative<trial::Failed>(run("echo 'time 1 s'; : > \"$1/there\"; exec sleep 600", late)));

  trial::Measure& loss = measure("loss", "loss ([^ ]+)");
  loss.from = "{dir}/log*.txt";
  std::filesystem::remove(trial_dir() / "there");
  // Each line of the file stands for half a minute, and the file alone keeps the trial alive for 5 minutes. A new file
  // is noticed within a second.
  const EventClock clock([&] {
    std::error_code error;
    const auto size = std::filesystem::file_size(trial_dir() / "log1.txt", error);
    return error ? 0.0 : 30.0 * static_cast<double>(size) / 7.0;
  });
  job_.spec.timeout_s = 1e6;
  const trial::Outcome outcome =
      run(": > \"$1/log1.txt\"; sleep 1.5; for i in 0 1 2 3 4 5 6 7 8 9; do echo \"loss $i\" >> \"$1/log1.txt\"; sleep "
          "0.2; done; " +
              std::string(kSteps),
          clock);
  ASSERT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("loss"), 9.0);
}

TEST_F(CommandMeasure, RanksThatPrintTheSameStepsCountOnceAndAProgressBarIsRead) {
  job_.spec.measure.metrics.clear();
  measure("iteration", "\\| (\\d+)/100 ");
  measure("step_time_s", "([0-9.]+)s/it");
  const trial::Outcome outcome =
      run("for i in 1 2 3 4 5 6 7 8; do for r in 0 1 2 3; do printf '[rank%d]: 12%%|#  | %d/100 [00:00<00:01, "
          "0.%d5s/it]\\r' $r $i "
          "$r >&2; done; done; exec sleep 600");
  ASSERT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("steps"), 6.0);
  EXPECT_LE(std::abs(std::get<trial::Measured>(outcome).metrics.at("step_time_s") - 0.2), 1e-12) << "mean of the ranks";
}

TEST_F(CommandMeasure, PythonDoesNotBufferUnlessTheUserSaysSo) {
  run("echo \"[$PYTHONUNBUFFERED]\"");
  EXPECT_EQ(read_text(trial_dir() / "stdout.log"), "[1]\n");
  job_.spec.environment = {{"PYTHONUNBUFFERED", ""}};
  run("echo \"[$PYTHONUNBUFFERED]\"");
  EXPECT_EQ(read_text(trial_dir() / "stdout.log"), "[]\n");
}

TEST_F(CommandMeasure, AnObjectiveThatOnlyTheEndTellsLetsTheProgramRunToItsEnd) {
  job_.metric = "val_loss";
  measure("val_loss", "val_loss ([0-9.]+)").kind = trial::MeasureKind::kFinal;
  const trial::Outcome outcome =
      run(std::string(kSteps) + "; sleep 0.2; echo val_loss 2.5; sleep 0.2; echo val_loss 2.25");
  ASSERT_TRUE(std::holds_alternative<trial::Measured>(outcome)) << trial::reason_text(outcome);
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("val_loss"), 2.25);
}

TEST_F(CommandMeasure, WithoutAWorkloadTheBatchIsTakenOnlyWhereTheObjectiveNeedsIt) {
  space::JobFacts facts;
  facts.ranks = 2;
  facts.well_known = false;
  job_.space = space::Space({{.name = "micro_batch", .values = {std::int64_t{1}, std::int64_t{2}}}}, facts);
  job_.metric = "step_time_s";
  EXPECT_FALSE(std::get<trial::Measured>(run(kAndGoOn)).metrics.contains("samples_per_s"));
  job_.metric = "throughput";
  EXPECT_EQ(std::get<trial::Measured>(run(kAndGoOn)).metrics.at("throughput"), 8.0)
      << "2 ranks of 2 sequences in 0.5 s";
}

TEST_F(CommandMeasure, AnEarlierRunOfTheSameTrialIsNotRead) {
  run(kAndGoOn);
  expect_failed(run("exit 0"), trial::FailureReason::kBadResult);
}

TEST_F(CommandMeasure, AnObjectiveThatNothingTellsIsRefused) {
  job_.metric = "speed";
  job_.spec.argv = {"/bin/true"};
  EXPECT_EQ(user_error_of([&] { runner::make_command_runner(job_, still_); }),
            "/runner/measure: nothing measures the objective 'speed'; measure it by its name, or \"step_time_s\", "
            "\"samples_per_s\" or \"tokens_per_s\", from which it may follow");
}

}  // namespace krigtune::command_measure_test

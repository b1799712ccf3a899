#include "runner/command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "scoped_variable.h"
#include "trial/event_clock.h"
#include "trial/expect_failed.h"
#include "trial/scripted_place.h"
#include "trial/temporary_directory.h"

namespace krigtune::command_test {

class Command : public ::testing::Test {
 protected:
  Command() {
    job_.metric = "throughput";
    job_.spec.working_directory = dir_.path();
    std::filesystem::create_directory(trial_dir());
  }

  std::filesystem::path trial_dir() const { return dir_ / "0007_z1"; }
  std::string text_of(const std::string& file) const { return read_text(trial_dir() / file); }

  // Runs a few shell lines as the user's program: $1 is {config}, $2 {result}, $3 {dir}.
  trial::Outcome run(const std::string& script, const Clock& clock) {
    job_.spec.argv = {"/bin/sh", "-c", script, "sh", "{config}", "{result}", "{dir}"};
    return runner::make_command_runner(job_, clock)
        ->run({{"zero_stage", 1.0}, {"lr", 0.5}, {"flag", true}}, trial_dir());
  }
  trial::Outcome run(const std::string& script) { return run(script, still_); }

  TemporaryDirectory dir_;
  ManualClock still_;
  runner::CommandJob job_;
};

constexpr const char* kGood = "echo '{\"throughput\": 12.5, \"loss\": 3, \"peak_memory_bytes\": 4096}' > \"$2\"";

TEST_F(Command, TheNumbersOfTheResultAreTheMeasurement) {
  const trial::Outcome outcome = run(kGood);
  const trial::Measured& measured = std::get<trial::Measured>(outcome);
  EXPECT_EQ(measured.metrics.at("throughput"), 12.5);
  EXPECT_EQ(measured.metrics.at("loss"), 3.0);
  EXPECT_EQ(measured.peak_memory, Bytes{4096});
  EXPECT_GT(measured.metrics.at("peak_rss_bytes"), 0.0);
  EXPECT_EQ(measured.metrics.size(), 3U);
}

TEST_F(Command, IsEndedEarlyWhereItsProgressSaysThatItIsSurelyWorse) {
  const trial::Rival best{"throughput", true, 100.0, 2.0};
  const auto race = [&](const std::string& progress, const std::string& then) {
    job_.spec.argv = {"/bin/sh",           "-c",      "echo '" + progress + "' >> \"$1\"; " + then, "sh",
                      "{result}.progress", "{result}"};
    return runner::make_command_runner(job_, still_)->run({}, trial_dir(), best);
  };
  const std::string good = "sleep 0.3; echo '{\"throughput\": 12.5}' > \"$2\"";
  const trial::Outcome ended = race(R"({"throughput": 50, "value_sem": 0.5, "steps": 8})", "exec sleep 600");
  ASSERT_TRUE(std::holds_alternative<trial::Bounded>(ended));
  EXPECT_LE(std::abs(std::get<trial::Bounded>(ended).at_best - 50.0 * std::exp(0.05 + 3.0 * std::hypot(0.01, 0.02))),
            1e-9);
  // Equally good, or not enough is known.
  for (const char* progress : {R"({"throughput": 95, "value_sem": 0.5, "steps": 8})",
                               R"({"throughput": 50, "value_sem": 0.5, "steps": 4})", R"({"throughput": 50})"}) {
    EXPECT_TRUE(std::holds_alternative<trial::Measured>(race(progress, good))) << progress;
  }
}

TEST_F(Command, APeakOfItsOwnIsNotReplaced) {
  const trial::Outcome outcome = run("echo '{\"throughput\": 1, \"peak_rss_bytes\": 7}' > \"$2\"");
  EXPECT_EQ(std::get<trial::Measured>(outcome).metrics.at("peak_rss_bytes"), 7.0);
}

TEST_F(Command, TheProgramReadsTheConfigurationWithWholeNumbersAsIntegers) {
  run("cp \"$1\" \"$3/copy\"");
  EXPECT_EQ(text_of("copy"), "{\n  \"zero_stage\": 1,\n  \"lr\": 0.5,\n  \"flag\": true\n}\n");
}

TEST_F(Command, PlaceholdersAreFilledInWithinWords) {
  job_.spec.argv = {"/bin/echo", "--trial={trial}", "{dir}/{trial}.txt", "{{config}", "{\"a\": {trial}}", "{ x }", "}"};
  runner::make_command_runner(job_, still_)->run({}, trial_dir());
  EXPECT_EQ(text_of("stdout.log"), "--trial=7 " + trial_dir().string() + "/7.txt {config} {\"a\": 7} { x } }\n");
}

TEST_F(Command, WhatItWasGivenAndSaidIsKept) {
  const ScopedVariable kept("NCCL_DEBUG", "WARN");
  const ScopedVariable hidden("MY_API_TOKEN", "secret");
  job_.spec.environment = {{"NCCL_ALGO", "Ring"}, {"MY_OWN", "x"}};
  run("echo said; echo trouble >&2; echo \"$MY_OWN $NCCL_ALGO $NCCL_DEBUG\"; pwd; exit 3");
  EXPECT_EQ(text_of("stdout.log"), "said\nx Ring WARN\n" + dir_.path().string() + "\n");
  EXPECT_EQ(text_of("stderr.log"), "trouble\n");
  EXPECT_NE(text_of("env.txt").find("MY_OWN=x\nNCCL_ALGO=Ring\nNCCL_DEBUG=WARN\n"), std::string::npos);
  EXPECT_EQ(text_of("env.txt").find("secret"), std::string::npos);
  EXPECT_EQ(text_of("cmd.txt").find("/bin/sh -c 'echo said"), 0U);
  Json exit = Json::parse(text_of("exit.json"));
  EXPECT_GT(exit.at("peak_rss_bytes").get<double>(), 0.0);
  exit.erase("peak_rss_bytes");
  EXPECT_EQ(exit, Json::parse(R"({"exit_code": 3, "signal": 0, "timed_out": false, "hung": false, "wall_s": 0.0})"));
}

TEST_F(Command, AResultOfAnEarlierRunIsNotTakenForThisOne) {
  dir_.write("0007_z1/result.json", R"({"throughput": 99})");
  EXPECT_NE(expect_failed(run("exit 0"), trial::FailureReason::kBadResult).last_lines.find("wrote no result"),
            std::string::npos);
}

TEST_F(Command, AResultThatIsNoFileIsABadResultAndNobodyWaitsForIt) {
  for (const char* script :
       {"mkfifo \"$2\"", "mkdir \"$2\"", "ln -s /dev/zero \"$2\"", "ln -s nowhere \"$2\"",
        "head -c 1048577 /dev/zero > \"$2\"", ": > \"$2\"", "head -c 1000 /dev/urandom > \"$2\""}) {
    const trial::Outcome outcome = run(script);
    const trial::Failed failed = expect_failed(outcome, trial::FailureReason::kBadResult);
    EXPECT_NE(failed.last_lines.find("result"), std::string::npos) << script;
  }
}

TEST_F(Command, TheStatusOfTheResultCountsMoreThanTheExitCode) {
  const trial::Outcome oom = run("echo '{\"status\": \"oom\"}' > \"$2\"; exit 0");
  EXPECT_TRUE(std::holds_alternative<trial::OutOfMemory>(oom));
  const trial::Outcome failed =
      run("echo '{\"status\": \"failed\", \"reason\": \"invalid\"}' > \"$2\"; echo why >&2; exit 5");
  const trial::Failed invalid = expect_failed(failed, trial::FailureReason::kInvalid);
  EXPECT_EQ(invalid.exit_code, 5);
  EXPECT_EQ(invalid.last_lines, "why");
  expect_failed(run(std::string(kGood) + "; exit 1"), trial::FailureReason::kCrash);
}

TEST_F(Command, AStopRequestInterruptsTheTrial) {
  std::atomic<bool> stop = true;
  job_.stop = &stop;
  expect_failed(run("exec sleep 600"), trial::FailureReason::kInterrupted);
}

TEST_F(Command, ATimeoutIsATimeoutAlthoughThereIsAResult) {
  const EventClock clock([&] { return std::filesystem::exists(trial_dir() / "there") ? 1e6 : 0.0; });
  expect_failed(run(std::string(kGood) + "; : > \"$3/there\"; exec sleep 600", clock), trial::FailureReason::kTimeout);
}

TEST_F(Command, ARankThatRanOutOfMemoryExplainsTheHangOfTheOthers) {
  const EventClock clock([&] { return std::filesystem::exists(trial_dir() / "there") ? 1e6 : 0.0; });
  const trial::Outcome outcome =
      run("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.' >&2; : > \"$3/there\"; exec "
          "sleep 600",
          clock);
  EXPECT_EQ(std::get<trial::OutOfMemory>(outcome).requested, Bytes{2684354560});
}

TEST_F(Command, SilenceIsAHang) {
  double now_s = 0.0;  // once the program exists, every call of the clock is a second later
  const EventClock clock([&] {
    if (std::filesystem::exists(trial_dir() / "there")) now_s += 1.0;
    return now_s;
  });
  job_.spec.no_progress_s = 20.0;
  expect_failed(run("echo begun; : > \"$3/there\"; exec sleep 600", clock), trial::FailureReason::kHang);
  EXPECT_TRUE(Json::parse(text_of("exit.json")).at("hung").get<bool>());
}

TEST_F(Command, AMissingProgramIsFoundOutBeforeAnythingRuns) {
  for (const char* program : {"no-such-program-here", "./absent.sh", "/nowhere/absent", "0007_z1"}) {
    job_.spec.argv = {program};
    EXPECT_THROW(runner::make_command_runner(job_, still_), EnvironmentError) << program;
  }
  dir_.write_program("run.sh", "exit 0\n");
  for (const std::string program : {"./run.sh", "sh"}) {
    job_.spec.argv = {program};
    EXPECT_NO_THROW(runner::make_command_runner(job_, still_)) << program;
  }
  job_.spec.argv = {"run.sh"};
  EXPECT_THROW(runner::make_command_runner(job_, still_), EnvironmentError);
  job_.spec.environment = {{"PATH", dir_.path().string()}};
  EXPECT_NO_THROW(runner::make_command_runner(job_, still_));
  expect_failed(runner::make_command_runner(job_, still_)->run({}, trial_dir()), trial::FailureReason::kBadResult);
}

// What its place reports has precedence over its files.
TEST_F(Command, ThatLosesItsPlaceOrItsMemoryThereSaysSo) {
  job_.spec.argv = {"/bin/sh", "{gpus}", "{slot}", "{port}"};
  ScriptedPlace lost(lost_place("node n1 failed"), {.slot = 3, .gpus = {2, 3}, .port = 29501});
  const auto runner = runner::make_command_runner(job_, still_);
  const trial::Outcome outcome = runner->run({}, trial::RunContext{trial_dir(), std::nullopt, lost});
  EXPECT_EQ(expect_failed(outcome, trial::FailureReason::kLost).last_lines, "node n1 failed");
  EXPECT_EQ(lost.asked.argv, (std::vector<std::string>{"/bin/sh", "2,3", "3", "29501"}));
  EXPECT_EQ(Json::parse(text_of("exit.json")).at("where"), "n1, job 4711");
  EXPECT_EQ(Json::parse(text_of("exit.json")).at("lost"), "node n1 failed");
  trial::ProcessResult killed;
  killed.exit_code = 1;
  killed.out_of_memory = true;
  ScriptedPlace small(killed);
  EXPECT_TRUE(
      std::holds_alternative<trial::OutOfMemory>(runner->run({}, trial::RunContext{trial_dir(), std::nullopt, small})));
}

// The job may have written its result while nobody watched.
TEST_F(Command, ThatIsAdoptedKeepsWhatItsProgramHasLeft) {
  job_.spec.argv = {"/bin/sh", "{config}", "{result}"};
  std::ofstream(trial_dir() / "result.json") << R"({"throughput": 12.5})";
  std::ofstream(trial_dir() / "cmd.txt") << "as it was started";
  std::ofstream(trial_dir() / "stdout.log") << "";
  std::ofstream(trial_dir() / "stderr.log") << "";
  ScriptedPlace place{trial::ProcessResult()};
  const auto runner = runner::make_command_runner(job_, still_);
  const trial::Outcome adopted = runner->run({}, trial::RunContext{trial_dir(), std::nullopt, place, true});
  EXPECT_EQ(std::get<trial::Measured>(adopted).metrics.at("throughput"), 12.5);
  EXPECT_EQ(text_of("cmd.txt"), "as it was started");
  const trial::Outcome anew = runner->run({}, trial::RunContext{trial_dir(), std::nullopt, place});
  expect_failed(anew, trial::FailureReason::kBadResult);  // an earlier result does not belong to the new program
}

}  // namespace krigtune::command_test

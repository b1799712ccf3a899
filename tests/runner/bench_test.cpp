#include "runner/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/files.h"
#include "core/json.h"
#include "scoped_variable.h"
#include "trial/event_clock.h"
#include "trial/expect_failed.h"
#include "trial/scripted_place.h"
#include "trial/temporary_directory.h"

namespace krigtune::bench_test {

constexpr const char* kGoodResult =
    R"({"schema_version": 1, "status": "ok", "reason": "", "step_time_s": 0.25, "step_time_sem_s": 0.005, "steps": 40,
        "samples_per_s": 64.0, "tokens_per_s": 8192.0, "flops_per_s": 1.5e9, "planned_peak_bytes": 1048576,
        "arena_peak_bytes": 1048000, "process_peak_bytes": 9000000, "exposed_comm_s": 0.0625,
        "wire_bytes": {"all_reduce": 100, "reduce_scatter": 200, "all_gather": 300}, "loss_first": 5.5,
        "loss_last": 5.25, "parameters_fnv1a64": "00112233445566aa", "emulated": true, "list": [1, 2], "seed": 1,
        "configuration": {"zero_stage": 1}})";

class Bench : public ::testing::Test {
 protected:
  Bench() {
    job_.workload.model = workload::model_preset("gpt2-124m");
    job_.workload.train_batch_size = 16;
    job_.memory.limit_gib = 2.0;
    job_.metric_field = "samples_per_s";
    std::filesystem::create_directory(trial_dir());
  }

  std::filesystem::path trial_dir() const { return dir_ / "0000_z1"; }
  std::string text_of(const std::string& file) const { return read_text(trial_dir() / file); }

  // Runs a few shell lines in place of krigtune-bench.
  trial::Outcome run(const std::string& script, const Clock& clock) {
    job_.program = dir_.write_program("fake-bench", script);
    return runner::make_bench_runner(job_, clock)
        ->run({{"zero_stage", std::int64_t{1}}, {"overlap_comm", true}}, trial_dir());
  }
  trial::Outcome run(const std::string& script) { return run(script, still_); }
  trial::Outcome run_printing(const std::string& document, int exit_code = 0) {
    return run("cat <<'END'\n" + document + "\nEND\nexit " + std::to_string(exit_code) + "\n");
  }

  // Returns the good result with another value in one field.
  static std::string with(const std::string& field, const Json& value) {
    Json document = Json::parse(kGoodResult);
    document[field] = value;
    return document.dump();
  }

  TemporaryDirectory dir_;
  ManualClock still_;
  runner::BenchJob job_;
};

TEST_F(Bench, EveryNumberOfTheResultBecomesAMetric) {
  const trial::Measured measured = std::get<trial::Measured>(run_printing(kGoodResult));
  const std::map<std::string, double> expected = {{"step_time_s", 0.25},
                                                  {"step_time_sem_s", 0.005},
                                                  {"steps", 40},
                                                  {"samples_per_s", 64},
                                                  {"tokens_per_s", 8192},
                                                  {"flops_per_s", 1.5e9},
                                                  {"planned_peak_bytes", 1048576},
                                                  {"arena_peak_bytes", 1048000},
                                                  {"process_peak_bytes", 9e6},
                                                  {"exposed_comm_s", 0.0625},
                                                  {"wire_bytes_all_reduce", 100},
                                                  {"wire_bytes_reduce_scatter", 200},
                                                  {"wire_bytes_all_gather", 300},
                                                  {"loss_first", 5.5},
                                                  {"loss_last", 5.25}};
  EXPECT_EQ(measured.metrics, expected);
  EXPECT_EQ(measured.peak_memory, Bytes{1048000});
}

TEST_F(Bench, TheStandardErrorFollowsTheObjective) {
  // v = c / t: |dv/dt| sem = v sem / t = 64 * 0.005 / 0.25.
  const std::map<std::string, double> expected = {{"step_time_s", 0.005},
                                                  {"samples_per_s", 1.28},
                                                  {"tokens_per_s", 163.84},
                                                  {"flops_per_s", 3e7},
                                                  {"exposed_comm_s", 0.0}};
  for (const auto& [field, sem] : expected) {
    job_.metric_field = field;
    const double told = std::get<trial::Measured>(run_printing(kGoodResult)).value_sem;
    EXPECT_LE(std::abs(told - sem), 1e-12 * sem) << field;
  }
}

TEST_F(Bench, TheProgramIsToldWhatToDo) {
  job_.spec.warmup_s = 0.5;
  job_.spec.measure_s = 3;
  job_.spec.memory_limit_gib = 0.125;
  const std::string save_arguments = "printf '%s\\n' \"$@\" > " + (dir_ / "arguments").string() + "\n";
  run(save_arguments + "exit 77");
  const std::string config = (trial_dir() / "config.json").string();
  const std::string heartbeat = (trial_dir() / "heartbeat.jsonl").string();
  EXPECT_EQ(text_of("cmd.txt"), job_.program.string() + " --config " + config +
                                    " --json --warmup-s 0.5 --measure-s 3 --heartbeat " + heartbeat +
                                    " --hang-s 60 --memory-limit 0.125\n");
  std::string words = text_of("cmd.txt").substr(job_.program.string().size() + 1);
  std::replace(words.begin(), words.end(), ' ', '\n');
  EXPECT_EQ(read_text(dir_ / "arguments"), words);
  const Json written = Json::parse(text_of("config.json"));
  EXPECT_EQ(written.at("configuration").dump(), R"({"zero_stage":1,"overlap_comm":true})");
  EXPECT_EQ(workload::read_workload(written.at("workload"), "c", "").model, job_.workload.model);
  EXPECT_EQ(workload::read_cluster(written.at("cluster"), "c", "").ranks(), job_.cluster.ranks());
  EXPECT_EQ(workload::read_memory(written.at("memory"), "c", "").limit_gib, 2.0);
}

TEST_F(Bench, WithoutALimitOfItsOwnNoneIsPassed) {
  run("printf '%s\\n' \"$@\" > " + (dir_ / "arguments").string());
  EXPECT_EQ(read_text(dir_ / "arguments").find("memory-limit"), std::string::npos);
}

TEST_F(Bench, WhatItWasGivenAndSaidIsKept) {
  const ScopedVariable kept("NCCL_DEBUG", "WARN");
  const ScopedVariable hidden("MY_API_TOKEN", "secret");
  run("echo '{\"status\": \"failed\", \"n\": 1}'; echo trouble >&2; exit 1");
  EXPECT_EQ(Json::parse(text_of("result.json")), Json::parse(R"({"status": "failed", "n": 1})"));
  EXPECT_EQ(text_of("stderr.log"), "trouble\n");
  Json exit = Json::parse(text_of("exit.json"));
  EXPECT_GT(exit.at("peak_rss_bytes").get<double>(), 0.0);
  exit.erase("peak_rss_bytes");
  EXPECT_EQ(exit, Json::parse(R"({"exit_code": 1, "signal": 0, "timed_out": false, "hung": false, "wall_s": 0.0})"));
  EXPECT_NE(text_of("env.txt").find("NCCL_DEBUG=WARN\n"), std::string::npos);
  EXPECT_EQ(text_of("env.txt").find("secret"), std::string::npos);
}

TEST_F(Bench, OutOfMemoryTellsHowMuchWasAskedFor) {
  // If the session does not know the limit, it learns here that a plan does not fit.
  for (const auto limit : {std::optional<double>(), std::optional(0.125)}) {
    for (const int code : {10, 11}) {
      job_.spec.memory_limit_gib = limit;
      const trial::Outcome outcome = run_printing(R"({"status": "oom", "planned_peak_bytes": 5000000000})", code);
      const trial::OutOfMemory& oom = std::get<trial::OutOfMemory>(outcome);
      EXPECT_EQ(oom.requested, Bytes{5000000000});
      EXPECT_EQ(oom.predicted, code == 10 && !limit);
    }
  }
  const trial::Outcome silent = run("exit 11");
  EXPECT_FALSE(std::get<trial::OutOfMemory>(silent).requested.has_value());
}

TEST_F(Bench, ATimeoutIsATimeoutWhateverTheProgramSays) {
  const EventClock clock([&] { return std::filesystem::exists(trial_dir() / "there") ? 1000.0 : 0.0; });
  const trial::Outcome outcome = run("trap 'exit 0' TERM\ncat <<'END'\n" + std::string(kGoodResult) + "\nEND\n: > " +
                                         (trial_dir() / "there").string() + "\nwhile :; do sleep 0.01; done",
                                     clock);
  expect_failed(outcome, trial::FailureReason::kTimeout);
  EXPECT_TRUE(Json::parse(text_of("exit.json")).at("timed_out").get<bool>());
}

TEST_F(Bench, WithoutHeartbeatsForLongItHangs) {
  job_.spec.timeout_s = 1e6;
  double now_s = 0.0;
  const EventClock clock([&] { return std::filesystem::exists(trial_dir() / "there") ? now_s += 50.0 : 0.0; });
  const std::string heartbeat = (trial_dir() / "heartbeat.jsonl").string();
  const trial::Failed failed =
      expect_failed(run("echo old >> " + heartbeat + "\necho '{\"phase\": \"measure\", \"step\": 7}' >> " + heartbeat +
                            "\n: > " + (trial_dir() / "there").string() + "\nexec sleep 600",
                        clock),
                    trial::FailureReason::kHang);
  EXPECT_NE(failed.last_lines.find("last heartbeat: {\"phase\": \"measure\", \"step\": 7}"), std::string::npos)
      << failed.last_lines;
  EXPECT_TRUE(Json::parse(text_of("exit.json")).at("hung").get<bool>());
}

// A heartbeat line as krigtune-bench writes it, with 50 samples a second so far.
constexpr const char* kHalfAsFast =
    R"({"phase":"measure","step":9,"steps":6,"step_time_s":0.32,"step_time_sem_s":0.0032,"samples_per_s":50.0,)"
    R"("tokens_per_s":6400.0,"flops_per_s":1e9})";

// For standard errors of 1 % and 2 %.
const double kMargin = std::exp(0.05 + 3.0 * std::hypot(0.01, 0.02));

class RacingBench : public Bench {
 protected:
  // The script reports its progress and continues until it is ended.
  trial::Outcome race(const std::optional<trial::Rival>& rival, const std::string& then = "exec sleep 600",
                      const std::string& before = "") {
    job_.program = dir_.write_program("fake-bench", before + "echo '" + std::string(kHalfAsFast) + "' >> '" +
                                                        (trial_dir() / "heartbeat.jsonl").string() + "'\n" + then);
    return runner::make_bench_runner(job_, still_)->run({{"zero_stage", std::int64_t{1}}}, trial_dir(), rival);
  }
  std::string prints_good_result() const { return "cat <<'END'\n" + std::string(kGoodResult) + "\nEND\n"; }
};

TEST_F(RacingBench, EndsATrialThatIsSurelyWorse) {
  const trial::Outcome outcome = race(trial::Rival{"samples_per_s", true, 100.0, 2.0});
  ASSERT_TRUE(std::holds_alternative<trial::Bounded>(outcome));
  EXPECT_LE(std::abs(std::get<trial::Bounded>(outcome).at_best - 50.0 * kMargin), 1e-9);
  const Json result = Json::parse(text_of("result.json"));
  EXPECT_EQ(result.at("status"), "bounded");
  EXPECT_EQ(result.at("samples_per_s"), 50.0);
  EXPECT_EQ(result.at("steps"), 6);
}

TEST_F(RacingBench, KnowsTheBetterOfTwoTimes) {
  job_.metric_field = "step_time_s";
  const trial::Outcome outcome = race(trial::Rival{"step_time_s", false, 0.16, 0.0032});
  ASSERT_TRUE(std::holds_alternative<trial::Bounded>(outcome));
  EXPECT_LE(std::abs(std::get<trial::Bounded>(outcome).at_best - 0.32 / kMargin), 1e-9);
}

TEST_F(RacingBench, LetsATrialRunThatMayWinOrHasNoRivalOrIsNotToBeEnded) {
  const trial::Rival better{"samples_per_s", true, 100.0, 2.0};
  const auto is_measured = [&](const std::optional<trial::Rival>& rival) {
    return std::holds_alternative<trial::Measured>(race(rival, "sleep 0.3\n" + prints_good_result()));
  };
  EXPECT_TRUE(is_measured(trial::Rival{"samples_per_s", true, 55.0, 2.0}));
  EXPECT_TRUE(is_measured(trial::Rival{"of_another_kind", true, 100.0, 2.0}));
  EXPECT_TRUE(is_measured(std::nullopt));
  job_.spec.early_end = false;
  EXPECT_TRUE(is_measured(better));
}

TEST_F(RacingBench, MeasuresATrialThatComesToItsOwnEndMeanwhile) {
  write_atomically(dir_ / "good.json", kGoodResult);
  const std::string ends_well = "trap 'cat " + (dir_ / "good.json").string() + "; exit 0' TERM\n";
  const trial::Outcome outcome =
      race(trial::Rival{"samples_per_s", true, 100.0, 2.0}, "while :; do sleep 0.01; done", ends_well);
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(outcome));
}

TEST_F(Bench, MpirunStartsAProcessForEachRank) {
  job_.cluster.nodes = 2;
  job_.spec.launcher = runner::Launcher::kMpirun;
  run("exit 77");
  EXPECT_EQ(text_of("cmd.txt").rfind("mpirun -np 4 " + job_.program.string() + " --config ", 0), 0U);
  EXPECT_NE(text_of("env.txt").find("OMPI_MCA_hwloc_base_binding_policy=none\n"), std::string::npos);
}

TEST_F(Bench, ASignalThatMpirunPassesOnIsNamed) {
  const trial::Failed failed = expect_failed(run("exit 137"), trial::FailureReason::kCrash);
  EXPECT_NE(failed.last_lines.find("signal 9"), std::string::npos) << failed.last_lines;
}

TEST_F(Bench, AStopRequestInterruptsTheTrial) {
  std::atomic<bool> stop = true;
  job_.stop = &stop;
  expect_failed(run("exec sleep 600"), trial::FailureReason::kInterrupted);
}

TEST_F(Bench, ACrashKeepsItsSignalAndTheLastTwentyLines) {
  const trial::Failed failed =
      expect_failed(run("i=1; while [ $i -le 30 ]; do echo line $i >&2; i=$((i+1)); done; kill -ABRT $$"),
                    trial::FailureReason::kCrash);
  EXPECT_EQ(failed.exit_code, 134);
  EXPECT_EQ(failed.last_lines.find("line 10\n"), std::string::npos);
  EXPECT_NE(failed.last_lines.find("line 11\n"), std::string::npos);
  EXPECT_NE(failed.last_lines.find("line 30"), std::string::npos);
  EXPECT_NE(failed.last_lines.find("signal 6"), std::string::npos);
  EXPECT_EQ(Json::parse(text_of("exit.json")).at("signal"), 6);
}

TEST_F(Bench, ExitCodesHaveTheirReasons) {
  const std::map<int, trial::FailureReason> reasons = {
      {1, trial::FailureReason::kCrash},      {2, trial::FailureReason::kInvalid},
      {12, trial::FailureReason::kHang},      {13, trial::FailureReason::kCrash},
      {14, trial::FailureReason::kBadResult}, {77, trial::FailureReason::kEnvironment}};
  for (const auto& [code, reason] : reasons) {
    const trial::Failed failed = expect_failed(run("echo why >&2; exit " + std::to_string(code)), reason);
    EXPECT_EQ(failed.exit_code, code);
    EXPECT_EQ(failed.last_lines, "why");
  }
}

TEST_F(Bench, AProgramThatIsNotThereIsAMatterOfTheEnvironment) {
  job_.program = dir_ / "absent";
  const trial::Failed failed =
      expect_failed(runner::make_bench_runner(job_, still_)->run({}, trial_dir()), trial::FailureReason::kEnvironment);
  EXPECT_NE(failed.last_lines.find("No such file"), std::string::npos);
}

TEST_F(Bench, ABadResultIsRefused) {
  std::vector<std::string> results = {"", "garbage", "[1]", "{\"status\": \"ok\"",
                                      std::string("warning: x\n") + kGoodResult};
  const std::pair<const char*, Json> changes[] = {
      {"status", "oom"},      {"samples_per_s", nullptr}, {"samples_per_s", "64"},   {"samples_per_s", -64.0},
      {"samples_per_s", 0.0}, {"step_time_s", -0.25},     {"step_time_sem_s", -1.0}, {"arena_peak_bytes", -1}};
  for (const auto& [key, value] : changes) results.push_back(with(key, value));
  for (const char* number : {"NaN}", "1e999}"})
    results.push_back(std::string(R"({"status": "ok", "step_time_s": 0.25, "samples_per_s": )") + number);
  for (const std::string& result : results) {
    EXPECT_FALSE(expect_failed(run_printing(result), trial::FailureReason::kBadResult).last_lines.empty()) << result;
  }
}

TEST_F(Bench, TheObjectiveMayBeAnotherFieldButMustBeThere) {
  job_.metric_field = "loss_last";
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(run_printing(kGoodResult)));
  job_.metric_field = "goodness";
  EXPECT_NE(expect_failed(run_printing(kGoodResult), trial::FailureReason::kBadResult).last_lines.find("'goodness'"),
            std::string::npos);
}

TEST_F(Bench, ThatLosesItsPlaceOrItsMemoryThereSaysSo) {
  job_.program = "krigtune-bench";
  for (const char* log : {"stdout.log", "stderr.log"}) std::ofstream(trial_dir() / log) << "";
  const auto runner = runner::make_bench_runner(job_, still_);
  const auto at = [&](const trial::ProcessResult& result) {
    ScriptedPlace place(result);
    return runner->run({{"zero_stage", std::int64_t{1}}}, trial::RunContext{trial_dir(), std::nullopt, place});
  };
  EXPECT_EQ(expect_failed(at(lost_place("preempted")), trial::FailureReason::kLost).last_lines, "preempted");
  trial::ProcessResult killed;
  killed.exit_code = 1;
  killed.out_of_memory = true;
  EXPECT_TRUE(std::holds_alternative<trial::OutOfMemory>(at(killed)));
}

}  // namespace krigtune::bench_test

// What the rest of krigtune may ask of a runner, whichever it is.
#include <gtest/gtest.h>

#include <array>

#include "core/files.h"
#include "core/json.h"
#include "runner/begun_file.h"
#include "runner/runner.h"
#include "trial/temporary_directory.h"

namespace krigtune::questions_test {

using Names = std::vector<std::string>;

runner::RunnerSpec read(const std::string& text, const std::filesystem::path& base_dir = "/tmp") {
  return runner::read_runner(parse_json(text, "s.json"), "s.json", "/runner", base_dir);
}

constexpr const char* kBench = R"({"kind": "bench", "warmup_s": 0.5, "measure_s": 3, "launcher": "mpirun",
                                   "memory_limit_gib": 1.25, "timeout_s": 40})";
constexpr const char* kSimulate = R"({"kind": "simulate", "seed": 7, "today": {"slowdown": 1.5}})";
constexpr const char* kReplay = R"({"kind": "replay", "table": "t.csv", "value": "v", "metrics": {"loss": "l"}})";
constexpr const char* kCommand =
    R"-({"kind": "command", "argv": ["python", "t.py"], "env": {"A": "b"}, "recipe": "megatron",
         "measure": {"loss": {"regex": "loss ([0-9.]+)"}}})-";
constexpr const char* kDeepSpeed = R"({"kind": "deepspeed", "argv": ["deepspeed", "t.py", "--deepspeed", "d.json"]})";
constexpr const char* kNone = R"({"kind": "none"})";

// One row for each runner: yes or no.
struct Row {
  const char* text;
  bool runs_programs, only_what_is_modelled, trains_our_step, by_hand, starts_a_command, reads_config;
  bool has_table, has_command, has_ds_job, has_program, has_time, edits_a_file;
};

constexpr std::array kRows = {
    Row{kBench, true, true, true, false, false, true, false, false, false, false, true, false},
    Row{kSimulate, false, true, false, false, false, true, false, false, false, false, false, false},
    Row{kReplay, false, false, false, false, false, false, true, false, false, false, false, false},
    Row{kCommand, true, false, false, false, true, true, false, true, false, true, false, false},
    Row{kDeepSpeed, true, false, false, false, false, false, false, false, true, true, false, true},
    Row{kNone, false, false, false, true, false, true, false, false, false, false, false, false},
};

TEST(RunnerQuestions, EveryRunnerAnswersWhatItIs) {
  static_assert(kRows.size() == std::variant_size_v<runner::RunnerSpec>);
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.text);
    const runner::RunnerSpec spec = read(row.text);
    for (const trial::RunnerTraits& traits :
         {runner::traits_of(spec), runner::traits_of_block(parse_json(row.text, "s.json"))}) {
      EXPECT_EQ(traits.runs_programs, row.runs_programs);
      EXPECT_EQ(traits.only_what_is_modelled, row.only_what_is_modelled);
      EXPECT_EQ(traits.trains_our_step, row.trains_our_step);
      EXPECT_EQ(traits.by_hand, row.by_hand);
      EXPECT_EQ(traits.starts_a_command, row.starts_a_command);
      EXPECT_EQ(traits.reads_config, row.reads_config);
    }
    EXPECT_EQ(runner::table_file(spec) != nullptr, row.has_table);
    EXPECT_EQ(runner::command_of(spec) != nullptr, row.has_command);
    EXPECT_EQ(runner::measure_of(spec) != nullptr, row.has_command);
    EXPECT_EQ(runner::ds_job_of(spec) != nullptr, row.has_ds_job);
    EXPECT_EQ(runner::users_program(spec).has_value(), row.has_program);
    EXPECT_EQ(runner::trial_time(spec).has_value(), row.has_time);
    EXPECT_EQ(runner::edited_file(spec) != nullptr, row.edits_a_file);
  }
}

TEST(RunnerQuestions, ABlockThatIsNotValidYetStillSaysWhichRunnerItMeans) {
  EXPECT_TRUE(runner::traits_of_block(parse_json(R"({"kind": "command", "argv": 3})", "s")).starts_a_command);
  EXPECT_TRUE(runner::traits_of_block(parse_json("{}", "s")).trains_our_step) << "as read_runner reads it";
  EXPECT_TRUE(runner::traits_of_block(parse_json(R"({"kind": null})", "s")).trains_our_step);
  for (const char* text : {"null", "[]", R"({"kind": 3})", R"({"kind": "comand"})"}) {
    EXPECT_STREQ(runner::traits_of_block(parse_json(text, "s")).name, "") << text;
  }
  EXPECT_TRUE(runner::traits_of(runner::default_runner(true)).trains_our_step);
  EXPECT_TRUE(runner::traits_of(runner::default_runner(false)).by_hand);
}

TEST(RunnerQuestions, OnlyTheBenchKnowsTheTimeOfATrial) {
  const auto time = runner::trial_time(read(kBench));
  ASSERT_TRUE(time);
  EXPECT_EQ(time->warmup_s, 0.5);
  EXPECT_EQ(time->measure_s, 3.0);
  EXPECT_EQ(time->total_s(), 3.5);
}

TEST(RunnerQuestions, ATableRepeatsItsValuesUnlessItGoesThroughItsRows) {
  const auto with = [](const std::string& repeats) {
    return read(R"({"kind": "replay", "table": "t.csv", "value": "v", "repeats": ")" + repeats + "\"}");
  };
  EXPECT_TRUE(runner::repeats_exactly(with("best")));
  EXPECT_TRUE(runner::repeats_exactly(with("median")));
  EXPECT_FALSE(runner::repeats_exactly(with("cycle")));
  for (const char* text : {kBench, kSimulate, kCommand, kDeepSpeed, kNone})
    EXPECT_FALSE(runner::repeats_exactly(read(text))) << text;
}

TEST(RunnerQuestions, ASimulatedMachineIsThatOfToday) {
  EXPECT_EQ(runner::simulated_machine(read(kSimulate)), "simulated: slowdown 1.5, seed 7");
  EXPECT_EQ(runner::simulated_machine(read(R"({"kind": "simulate", "today": {"seed": 3}})")),
            "simulated: slowdown 1, seed 3");
  for (const char* text : {kBench, kReplay, kCommand, kDeepSpeed, kNone})
    EXPECT_EQ(runner::simulated_machine(read(text)), "") << text;
}

TEST(RunnerQuestions, WhatIsMeasuredIsKnownUnlessTheProgramSaysItLater) {
  EXPECT_EQ(runner::measured_names(read(kReplay)), Names{"loss"});
  EXPECT_EQ(runner::measured_names(read(R"({"kind": "replay", "table": "t.csv", "value": "v"})")), Names{});
  EXPECT_EQ(runner::measured_names(read(kCommand)), Names{"loss"});
  EXPECT_EQ(runner::measured_names(read(R"({"kind": "command", "argv": ["x"]})")), std::nullopt);
  EXPECT_EQ(runner::measured_names(read(kNone)), std::nullopt);
  const Names ours = {"samples_per_s", "tokens_per_s",      "step_time_s",
                      "flops_per_s",   "peak_memory_bytes", "exposed_comm_s"};
  EXPECT_EQ(runner::measured_names(read(kSimulate)), ours);
  EXPECT_EQ(runner::measured_names(read(kDeepSpeed)), ours);
  Names with_bench = ours;
  with_bench.insert(with_bench.end(), {"process_peak_bytes", "loss_last"});
  EXPECT_EQ(runner::measured_names(read(kBench)), with_bench);
}

TEST(RunnerQuestions, ACommandSaysItsWordsItsVariablesAndItsRecipe) {
  const auto program = runner::users_program(read(kCommand));
  ASSERT_TRUE(program);
  EXPECT_EQ(program->argv, (Names{"python", "t.py"}));
  EXPECT_EQ(program->environment, (trial::Environment{{"A", "b"}}));
  EXPECT_EQ(runner::users_program(read(kDeepSpeed))->argv.front(), "deepspeed");
  EXPECT_EQ(runner::recipe_of(read(kCommand)), "megatron");
  EXPECT_EQ(runner::recipe_of(read(kDeepSpeed)), "");
}

TEST(RunnerQuestions, TheConfigurationHasTheFormThatATrialReads) {
  const std::optional<workload::Workload> workload = workload::Workload();
  const workload::ClusterSpec cluster = workload::read_cluster(Json("local"), "s.json", "/cluster", "/tmp");
  const space::Configuration configuration{{"micro_batch", std::int64_t{4}}};
  const auto config = [&](const char* text) {
    return runner::config_of(read(text), configuration, workload, cluster, workload::MemorySpec());
  };
  EXPECT_EQ(config(kCommand)->dump(), R"({"micro_batch":4})");
  EXPECT_EQ(config(kNone)->dump(), R"({"micro_batch":4})");
  EXPECT_FALSE(config(kReplay).has_value());
  EXPECT_FALSE(config(kDeepSpeed).has_value());
  const Json of_bench = config(kBench).value();
  Names keys;
  for (const auto& [key, value] : of_bench.items()) keys.push_back(key);
  EXPECT_EQ(keys, (Names{"workload", "cluster", "memory", "configuration"}));
  EXPECT_EQ(of_bench["configuration"].dump(), R"({"micro_batch":4})");
}

TEST(RunnerQuestions, TheCommandOfTheBenchIsThatOfItsTrials) {
  EXPECT_EQ(runner::bench_command(read(kBench), "/bin/krigtune-bench", "/run/config.json", 8),
            (Names{"mpirun", "-np", "8", "/bin/krigtune-bench", "--config", "/run/config.json", "--json", "--warmup-s",
                   "0.5", "--measure-s", "3", "--memory-limit", "1.25"}));
  for (const char* text : {kSimulate, kReplay, kCommand, kDeepSpeed, kNone})
    EXPECT_TRUE(runner::bench_command(read(text), "/bin/krigtune-bench", "/c", 8).empty()) << text;
}

class BegunFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(run_);
    write_atomically(own_, "{}");
    spec_ = read(kDeepSpeed, directory_.path());
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path own_ = directory_.path() / "d.json";
  const std::filesystem::path run_ = directory_.path() / "run";
  runner::RunnerSpec spec_;
};

TEST_F(BegunFile, TrialsKeepTheFileWithWhichTheRunBegan) {
  EXPECT_TRUE(runner::recall_begun_file(spec_, ""));
  runner::keep_begun_file(spec_, run_);
  EXPECT_EQ(read_text(runner::begun_file_in(spec_, run_)), "{}");
  EXPECT_FALSE(runner::begins_otherwise(spec_, run_));

  write_atomically(own_, R"({"steps": 1})");
  runner::RunnerSpec later = read(kDeepSpeed, directory_.path());
  EXPECT_FALSE(runner::recall_begun_file(later, run_)) << "the user has changed it";
  EXPECT_FALSE(runner::begins_otherwise(later, run_)) << "trials go on with the old text";
  runner::keep_begun_file(later, run_);
  EXPECT_EQ(read_text(runner::begun_file_in(later, run_)), "{}") << "the copy is written once";
  EXPECT_TRUE(runner::recall_begun_file(later, "")) << "a new run begins with the new text";
  EXPECT_TRUE(runner::begins_otherwise(later, run_));
}

TEST_F(BegunFile, AMissingFileHasChanged) {
  EXPECT_TRUE(runner::recall_begun_file(spec_, ""));
  std::filesystem::remove(own_);
  EXPECT_FALSE(runner::recall_begun_file(spec_, ""));
}

TEST_F(BegunFile, OtherRunnersEditNoFile) {
  for (const char* text : {kBench, kSimulate, kReplay, kCommand, kNone}) {
    runner::RunnerSpec spec = read(text);
    EXPECT_EQ(runner::begun_file_in(spec, run_), "") << text;
    runner::keep_begun_file(spec, run_);
    EXPECT_TRUE(runner::recall_begun_file(spec, run_)) << text;
    EXPECT_FALSE(runner::begins_otherwise(spec, run_)) << text;
  }
  EXPECT_TRUE(std::filesystem::is_empty(run_));
}

}  // namespace krigtune::questions_test

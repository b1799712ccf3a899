// krigtune-bench --check: its output for a correct plan, for damaged ones, and for input that gives no plan.
#include "programs/bench/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "bench/ended.h"
#include "plan/build_plan.h"
#include "plan/mutants.h"

namespace krigtune::check_test {

class CheckOfABench : public testing::Test {
 protected:
  CheckOfABench() {
    job_.workload.model = {
        .layers = 1, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn_hidden = 64, .vocab = 8, .seq_len = 2};
    job_.cluster.gpus_per_node = 2;
    job_.configuration = {{"zero_stage", std::int64_t{2}}, {"micro_batch", std::int64_t{1}}};
    plan_ = plan::build_plan(job_.workload, job_.cluster, job_.configuration);
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("check_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    config_ = {{"workload", {{"model", {{"layers", 1}, {"hidden", 16}, {"heads", 2}, {"vocab", 8}, {"seq_len", 2}}}}},
               {"cluster", {{"gpus_per_node", 2}}},
               {"configuration", {{"zero_stage", 2}, {"micro_batch", 1}}}};
    config_["workload"]["precision"] = "fp32";
  }
  ~CheckOfABench() override { std::filesystem::remove_all(folder_); }

  /// `before`: environment variables in the shell's form.
  Ended run(const std::string& arguments, const std::string& before = "") {
    const std::filesystem::path path = folder_ / "config.json";
    write_atomically(path, config_.dump());
    return run_shell(before + " '" + KRIGTUNE_BENCH + "' --check --config '" + path.string() + "' " + arguments,
                     folder_);
  }
  Ended check(const plan::StepPlan& plan, bool json) const {
    bench::BenchOptions options;
    options.json = json;
    std::ostringstream out;
    Ended ended;
    ended.exit_code = bench::check(job_, plan, options, out);
    ended.out = out.str();
    return ended;
  }

  bench::TrainingJob job_;
  plan::StepPlan plan_;
  Json config_;
  std::filesystem::path folder_;
};

TEST_F(CheckOfABench, SaysWhatIsTrueOfARightPlan) {
  const Ended ended = run("");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::string counts = std::to_string(plan_.operations.size()) + " operations, " +
                             std::to_string(plan_.buffers.size()) + " buffers, 2 ranks, 1 micro-steps, ZeRO stage 2";
  for (const std::string& words :
       {counts, std::string("zero_stage=2"), std::string("  structure    ok: "), std::string("  operands     ok: "),
        std::string("  order        ok: no races"), std::string("  collectives  ok: the same on all ranks"),
        std::string("  memory       ok: "), std::string("  data flow    ok: ")}) {
    EXPECT_NE(ended.out.find(words), std::string::npos) << words << "\n" << ended.out;
  }
}

TEST_F(CheckOfABench, PrintsOneDocument) {
  const Ended ended = run("--json");
  EXPECT_EQ(ended.exit_code, 0);
  const Json document = ended.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["status"], "ok");
  EXPECT_EQ(document["findings"], Json::array());
  EXPECT_EQ(document["operations"], plan_.operations.size());
  EXPECT_EQ(document["buffers"], plan_.buffers.size());
  EXPECT_EQ(document["ranks"], 2);
  ASSERT_EQ(document["checks"].size(), 6U);
  for (const Json& check : document["checks"]) EXPECT_EQ(check["status"], "ok") << check;
}

TEST_F(CheckOfABench, PrintsEachFindingOfADamagedPlanOnALine) {
  int damaged = 0;
  constexpr std::size_t kStride = 50;
  Mutants(plan_).for_each(kStride, [&](const std::string& name, const plan::StepPlan& mutant) {
    const Json document = check(mutant, true).document();
    if (document["findings"].empty()) return;  // this mutant is equivalent to the plan
    ++damaged;
    EXPECT_EQ(document["status"], "failed") << name;
    const Ended text = check(mutant, false);
    EXPECT_EQ(text.exit_code, 1) << name;
    for (const Json& finding : document["findings"]) {
      EXPECT_NE(text.out.find("\n" + finding.get<std::string>() + "\n"), std::string::npos) << name << "\n" << text.out;
    }
  });
  EXPECT_GT(damaged, 20);
}

TEST_F(CheckOfABench, ClaimsNothingOfWhatItDidNotCheck) {
  plan::StepPlan plan = plan_;
  const auto collective = std::find_if(plan.operations.begin(), plan.operations.end(),
                                       [](const auto& operation) { return plan::is_collective(operation.kind); });
  collective->wire_bytes += 4;
  const Ended ended = check(plan, false);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.out.find("  order        ok: "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("\ncollectives: operation "), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("collectives  ok"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("  memory       not checked"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("  data flow    not checked"), std::string::npos) << ended.out;
}

TEST_F(CheckOfABench, RefusesBadInput) {
  EXPECT_EQ(run_shell(std::string("'") + KRIGTUNE_BENCH + "' --check", folder_).exit_code, 2);
  config_["configuration"]["zero_stage"] = 4;
  const Ended ended = run("--json");
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.document()["status"], "failed");
  EXPECT_EQ(ended.document()["reason"], "invalid");
  EXPECT_NE(ended.err.find("zero_stage"), std::string::npos) << ended.err;
}

TEST_F(CheckOfABench, RefusesToDoSomethingElseBesides) {
  const auto refuses = [&](const std::string& arguments, const std::string& words) {
    const Ended ended = run_shell(std::string("'") + KRIGTUNE_BENCH + "' " + arguments, folder_);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_EQ(ended.out, "") << arguments;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1) << ended.err;
  };
  refuses("--check --config c.json --probe", "--check and --probe cannot be combined");
  refuses("--measure-machine 2 --check", "--check and --measure-machine cannot be combined");
  refuses("--probe --measure-machine 2", "--probe and --measure-machine cannot be combined");
  refuses("--probe --check --measure-machine 2", "--check and --probe and --measure-machine cannot be combined");
}

// Started as by torchrun, all processes end alike, and the first one prints why.
TEST_F(CheckOfABench, PrintsOnceWhereEachRankIsAProcess) {
  const std::string second = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1";
  const auto is_said_once = [&](int exit_code) {
    const Ended alone = run("");
    const Ended first = run("", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1");
    EXPECT_EQ(first.exit_code, exit_code) << first.err;
    EXPECT_EQ(first.out, alone.out);
    EXPECT_EQ(first.err, alone.err);
    EXPECT_NE(first.out + first.err, "");
    for (const char* arguments : {"", "--json"}) {
      const Ended other = run(arguments, second);
      EXPECT_EQ(other.exit_code, exit_code);
      EXPECT_EQ(other.out, "");
      EXPECT_EQ(other.err, "");
    }
  };
  is_said_once(0);
  config_["configuration"]["zero_stage"] = 4;
  is_said_once(2);
}

// It also checks plans that cannot run here: for a missing GPU, and with more memory than the machine has.
TEST_F(CheckOfABench, NeedsNeitherGpuNorMemory) {
  config_["cluster"]["gpu"] = "h100-80gb";
  config_["memory"] = {{"limit_gib", 1e-6}};
  EXPECT_EQ(run("").exit_code, 0);
}

}  // namespace krigtune::check_test

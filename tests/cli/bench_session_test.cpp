#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"

namespace krigtune::bench_session_test {

/// Sessions whose krigtune-bench is a script: stage s has 10 (s + 1) samples/s, but stage 3 with overlap crashes.
class BenchSessionTest : public testing::Test {
 protected:
  static constexpr const char* kMeasure = R"(
    stage=$(sed -n 's/.*"zero_stage": *\([0-9]*\).*/\1/p' "$2")
    if [ "$stage" = 3 ] && grep -q '"overlap_comm": *true' "$2"; then echo "rank 1: lost its way" >&2; exit 1; fi
    echo "{\"status\": \"ok\", \"reason\": \"\", \"samples_per_s\": $((10 * (stage + 1))), \"step_time_s\": 0.1,"
    echo " \"step_time_sem_s\": 0.001, \"arena_peak_bytes\": 4096, \"exposed_comm_s\": 0.01}"
  )";

  void SetUp() override {
    write_bench(kMeasure);
    session_ = directory_
                   .write("job.json", R"({
      "workload": {"model": {"layers": 1, "hidden": 16, "heads": 2, "vocab": 16, "seq_len": 4}, "train_batch_size": 4},
      "cluster": {"gpus_per_node": 2, "emulate_network": "eth-25"},
      "space": {"zero_stage": [0, 1, 2, 3], "overlap_comm": [false, true]},
      "baseline": {"zero_stage": 1, "overlap_comm": true},
      "memory": {"limit_gib": 1}, "runner": {"kind": "bench", "timeout_s": 60}, "budget": {"trials": 8}})")
                   .string();
  }
  /// A krigtune-bench that cannot measure the machine, so no times are predicted.
  void write_bench(const std::string& measure) const {
    directory_.write_program("krigtune-bench",
                             "[ \"$1\" = --measure-machine ] && { echo 'no clock' >&2; exit 3; }\n" + measure);
  }
  Said tune(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"tune", session_, "--out", (directory_ / "run").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return krigtune::run_krigtune(arguments, directory_ / "krigtune", clock_);
  }
  /// Returns a command for a trial's program that sends a signal to this process, which runs the command line.
  static std::string kill_us(const std::string& signal) {
    return "kill -" + signal + " " + std::to_string(::getpid()) + "\n";
  }
  std::vector<std::string> column(const std::string& name) const {
    const CsvTable table = parse_csv(read_text(directory_ / "run/trials.csv"), "trials");
    std::vector<std::string> values;
    for (const auto& row : table.rows) values.push_back(row[static_cast<std::size_t>(table.column(name))]);
    return values;
  }

  const SystemClock clock_;
  const TemporaryDirectory directory_;
  std::string session_;
};

TEST_F(BenchSessionTest, ComparesTheBestWithTheUsersOwnConfigurationAndLabelsTheNetwork) {
  const Said said = tune();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find(": zero_stage=3 overlap_comm=false"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("throughput 40 samples/s, 2.00x trial 0 (20 samples/s) (emulated network eth-25)\n"),
            std::string::npos)
      << said.out;
  EXPECT_NE(
      said.out.find("trials.csv best.json ds_config_optimal.json config_optimal.json cmd_optimal.txt report.html\n"),
      std::string::npos)
      << said.out;
  EXPECT_NE(said.err.find("failed (crash)"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("rank 1: lost its way"), std::string::npos) << said.err;
  EXPECT_EQ(column("strategy").at(0), "baseline");
  EXPECT_EQ(column("peak_memory_bytes").at(0), "4096");
  EXPECT_EQ(load_json(directory_ / "run/ds_config_optimal.json")["zero_optimization"]["stage"], 3);
  const std::string command = read_text(directory_ / "run/cmd_optimal.txt");
  EXPECT_EQ(command.rfind((directory_ / "krigtune-bench").string() + " --config ", 0), 0U) << command;
}

TEST_F(BenchSessionTest, EndsAfterTheRunningTrialWhenInterruptedAndGoesOnWithTheLineItPrints) {
  write_bench(kill_us("INT") + kMeasure);
  const Said said = tune({"--fresh"});
  EXPECT_EQ(said.code, 130);
  EXPECT_EQ(column("status"), std::vector<std::string>{"ok"}) << "the running trial was finished and saved";
  EXPECT_NE(
      said.err.find("saved; to continue: krigtune tune " + session_ + " --out " + (directory_ / "run").string() + "\n"),
      std::string::npos)
      << said.err;
  write_bench(kMeasure);
  EXPECT_EQ(tune({"--full-budget"}).code, 0);
  EXPECT_EQ(column("trial").size(), 8U);
}

TEST_F(BenchSessionTest, EndsTheRunningTrialWhenTerminatedAndAsksItAgain) {
  write_bench(kill_us("TERM") + "exec sleep 60\n");
  EXPECT_EQ(tune().code, 130);
  EXPECT_EQ(column("reason"), std::vector<std::string>{"interrupted"});
  write_bench(kMeasure);
  EXPECT_EQ(tune().code, 0);
  EXPECT_EQ(column("strategy").at(1), "baseline") << "it counts nowhere and is asked again";
}

TEST_F(BenchSessionTest, AdvisesToOffloadWhereMemoryRunsOut) {
  write_bench("echo '{\"status\": \"oom\", \"reason\": \"memory\"}'; exit 11\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 1) << said.err;
  EXPECT_NE(
      said.err.find("to try: let the space contain tensor_parallel, activation_checkpointing or offload_optimizer"),
      std::string::npos)
      << said.err;
}

TEST_F(BenchSessionTest, ThatLacksSomethingOfTheEnvironmentEndsWithThree) {
  write_bench("echo '{\"status\": \"failed\", \"reason\": \"no device\"}'; exit 77\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 3) << said.err;
}

TEST_F(BenchSessionTest, ComparesByMeasuringWhereThereIsNoTable) {
  const std::string out = (directory_ / "compared").string();
  const Said said = krigtune::run_krigtune(
      {"compare", session_, "--strategies", "random", "--seeds", "2", "--trials", "3", "--out", out},
      directory_ / "krigtune", clock_);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("the best of all runs here (emulated network eth-25)"), std::string::npos) << said.out;
  EXPECT_EQ(parse_csv(read_text(directory_ / "compared/comparison.csv"), "comparison").rows.size(), 6U);
}

}  // namespace krigtune::bench_session_test

#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "krigtune/core/csv.h"
#include "krigtune/core/json.h"
#include "krigtune/plan/memory.h"
#include "krigtune/tuner/session.h"

namespace krigtune {
namespace {

// Two ranks, 8 sequences a step; micro-batch 8 does not divide them; the limit excludes some of the rest.
constexpr const char* kSession = R"({
  "workload": {"model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 128, "seq_len": 16}, "train_batch_size": 8},
  "cluster": {"gpus_per_node": 2, "emulate_network": "eth-25"},
  "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4, 8], "allgather_bucket_size": [1000, 10000],
            "overlap_comm": [true, false]},
  "memory": {"limit_gib": LIMIT},
  "baseline": {"zero_stage": 1, "micro_batch": 1},
  "runner": {"kind": "bench", "warmup_s": 1, "measure_s": 4},
  "budget": {"trials": 10}})";

class PlanTest : public testing::Test {
 protected:
  std::string session(double limit_gib) const {
    std::string text = kSession;
    text.replace(text.find("LIMIT"), 5, std::to_string(limit_gib));
    return directory_.write("job.json", text).string();
  }
  TemporaryDirectory directory_;
};

// The limit between the smallest and the largest peak: found from the plan itself.
double limit_that_excludes_some(const std::string& csv) {
  const CsvTable table = parse_csv(csv, "plan");
  std::vector<double> peaks;
  for (const auto& row : table.rows)
    peaks.push_back(std::stod(row[static_cast<std::size_t>(table.column("predicted_memory_bytes"))]));
  std::sort(peaks.begin(), peaks.end());
  return (peaks[peaks.size() / 2] + 0.5) / (1024.0 * 1024.0 * 1024.0);
}

TEST_F(PlanTest, CountsWhatIsExcludedAndWhy) {
  const std::string csv = (directory_ / "plan.csv").string();
  ASSERT_EQ(run({"plan", session(1.0), "--csv", csv}).code, 0);
  const std::string file = session(limit_that_excludes_some(read_text(csv)));
  const Said said = run({"plan", file, "--json", "--csv", csv});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = parse_json(said.out, "plan");
  EXPECT_EQ(json["lattice_points"], 64);
  EXPECT_EQ(json["excluded"], parse_json(R"({"batch not divisible": 16})", "expected"));
  const auto configurations = json["configurations"].get<int>();
  EXPECT_EQ(json["lattice_points"].get<int>(), configurations + json["same_meaning"].get<int>() + 16);
  EXPECT_EQ(json["emulated_network"], "emulated network eth-25");

  // The file agrees with the document, and its memory with a plan made here.
  const CsvTable table = parse_csv(read_text(csv), "plan");
  EXPECT_EQ(static_cast<int>(table.rows.size()), configurations);
  int too_large = 0;
  const Session read = load_session(file);
  for (const auto& row : table.rows) {
    Configuration configuration;
    for (const std::string& name : read.space.columns()) {
      configuration.set(name, value_from_text(row[static_cast<std::size_t>(table.column(name))]));
    }
    StepPlan plan = build_plan(*read.workload, read.cluster, configuration);
    lay_out(plan);
    EXPECT_EQ(row[static_cast<std::size_t>(table.column("predicted_memory_bytes"))], std::to_string(plan.arena_bytes));
    const bool fits = plan.arena_bytes <= read.usable_per_rank->count;
    EXPECT_EQ(row[static_cast<std::size_t>(table.column("memory_verdict"))], fits ? "fits" : "too_large");
    too_large += fits ? 0 : 1;
  }
  EXPECT_EQ(json["too_large"].get<int>(), too_large);
  EXPECT_GT(too_large, 0);
  EXPECT_LT(too_large, configurations);
}

TEST_F(PlanTest, TellsTheTermsOfEachStageAndTheirSum) {
  const Json json = parse_json(run({"plan", session(1.0), "--json"}).out, "plan");
  ASSERT_EQ(json["memory_by_zero_stage"].size(), 4U);
  for (const auto& [stage, memory] : json["memory_by_zero_stage"].items()) {
    const Json& small = memory["example"];
    std::int64_t sum = 0;
    for (const auto& [term, bytes] : small["terms"].items()) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, small["peak_bytes"].get<std::int64_t>()) << stage;
    EXPECT_EQ(small["headroom_bytes"].get<std::int64_t>(), (1LL << 30) - sum) << stage;
    EXPECT_EQ(small["configuration"]["micro_batch"], 1);
    EXPECT_LE(memory["smallest_peak_bytes"].get<std::int64_t>(), memory["largest_peak_bytes"].get<std::int64_t>());
  }
}

TEST_F(PlanTest, ExpectsTheBudgetsTimeAndNoMoreTrialsThanThereAre) {
  const Json json = parse_json(run({"plan", session(1.0), "--json"}).out, "plan");
  EXPECT_EQ(json["expected_s"], 50);
  const std::string text = run({"plan", session(1.0)}).out;
  EXPECT_NE(text.find("10 trials of at most 5.00 s each"), std::string::npos) << text;
  EXPECT_NE(text.find("emulated network eth-25"), std::string::npos) << text;
}

TEST_F(PlanTest, ExitsWithOneWhenNothingFits) {
  const Said said = run({"plan", session(0.000001)});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("no configuration fits in memory"), std::string::npos);
  const TemporaryDirectory bench;
  bench.write_program("krigtune-bench", "exit 1\n");
  const Said tuned = run({"tune", session(0.000001), "--out", (directory_ / "run").string()}, bench / "krigtune");
  EXPECT_EQ(tuned.code, 1) << tuned.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

TEST_F(PlanTest, OfATuneWithoutTheBenchProgramIsRefusedWithThree) {
  ::setenv("PATH", "/nowhere", 1);
  const Said said = run({"tune", session(1.0), "--out", (directory_ / "run").string()});
  EXPECT_EQ(said.code, 3);
  EXPECT_NE(said.err.find("krigtune-bench is neither in '/nowhere' nor on PATH"), std::string::npos) << said.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

}  // namespace
}  // namespace krigtune

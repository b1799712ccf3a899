#include <gtest/gtest.h>

#include <set>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "plan/memory.h"
#include "scoped_variable.h"
#include "session/session.h"

namespace krigtune::plan_test {

// Two ranks, 8 sequences per step. Micro-batch 8 does not divide them, and the limit excludes some of the others.
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

// Returns a limit between the smallest and the largest peak, both from the plan itself.
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
  ASSERT_EQ(run_krigtune({"plan", session(1.0), "--csv", csv}).code, 0);
  const std::string file = session(limit_that_excludes_some(read_text(csv)));
  const Said said = run_krigtune({"plan", file, "--json", "--csv", csv});
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
  const session::Session read = session::load_session(file);
  for (const auto& row : table.rows) {
    space::Configuration configuration;
    for (const std::string& name : read.space.columns()) {
      configuration.set(name, space::value_from_text(row[static_cast<std::size_t>(table.column(name))]));
    }
    plan::StepPlan plan = plan::build_plan(*read.workload, read.cluster, configuration);
    plan::lay_out(plan);
    EXPECT_EQ(row[static_cast<std::size_t>(table.column("predicted_memory_bytes"))], std::to_string(plan.arena_bytes));
    const bool fits = plan.arena_bytes <= read.usable_per_rank->count;
    EXPECT_EQ(row[static_cast<std::size_t>(table.column("memory_verdict"))], fits ? "fits" : "too_large");
    too_large += fits ? 0 : 1;
  }
  EXPECT_EQ(json["too_large"].get<int>(), too_large);
  EXPECT_GT(too_large, 0);
  EXPECT_LT(too_large, configurations);
}

TEST_F(PlanTest, TellsTokensASecondAndMfuAndFlagsWhatIsTooGood) {
  const auto session = [&](const std::string& hardware) {
    return directory_
        .write("gpus.json", R"({"workload": {"model": {"preset": "llama-7b"}, "precision": "bf16"},
          "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb")" +
                                hardware + R"(}, "space": {"zero_stage": [3], "micro_batch": [1, 2]},
          "baseline": null, "runner": {"kind": "none"}})")
        .string();
  };
  const Json json = parse_json(run_krigtune({"plan", session(""), "--json"}).out, "plan");
  const Json& best = json["best"][0];
  const double tokens = best["predicted_samples_per_s"].get<double>() * 2048.0 / 8.0;
  EXPECT_NEAR(best["predicted_tokens_per_s_per_gpu"].get<double>(), tokens, 1e-6 * tokens);
  EXPECT_LT(best["predicted_mfu_without_attention"].get<double>(), best["predicted_mfu"].get<double>());
  EXPECT_EQ(best["predicted_hfu"], best["predicted_mfu"]);
  EXPECT_EQ(best["too_good"], false);
  const std::string text = run_krigtune({"plan", session("")}).out;
  EXPECT_NE(text.find("MFU: model FLOPs as in PaLM (Chowdhery et al. 2022)"), std::string::npos) << text;
  EXPECT_EQ(text.find("too good"), std::string::npos) << text;
  // A table in which products reach the whole peak.
  const std::string perfect =
      session(R"(, "hardware": {"gpus": {"a100-80gb": {"gemm_fraction": 1, "attention_fraction": 1}}})");
  EXPECT_NE(run_krigtune({"plan", perfect}).out.find("of the peak is too good to be true"), std::string::npos);
  EXPECT_EQ(parse_json(run_krigtune({"plan", perfect, "--json"}).out, "plan")["best"][0]["too_good"], true);
}

TEST_F(PlanTest, TellsTheTermsOfEachStageAndTheirSum) {
  const Json json = parse_json(run_krigtune({"plan", session(1.0), "--json"}).out, "plan");
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
  const Json json = parse_json(run_krigtune({"plan", session(1.0), "--json"}).out, "plan");
  EXPECT_EQ(json["expected_s"], 50);
  const std::string text = run_krigtune({"plan", session(1.0)}).out;
  EXPECT_NE(text.find("10 trials of at most 5.00 s each"), std::string::npos) << text;
  EXPECT_NE(text.find("emulated network eth-25"), std::string::npos) << text;
}

constexpr const char* kNamedGpus = R"({
  "workload": {"model": {"preset": "gpt2-350m"}, "precision": "bf16", "train_batch_size": 64},
  "cluster": {"nodes": 2, "gpus_per_node": 8, "gpu": "a100-80gb", "network": "ib-hdr-200"},
  "space": {"zero_stage": [1, 2, 3], "micro_batch": [1, 2, 4], "tensor_parallel": [1, 2], "overlap_comm": [true, false],
            "activation_checkpointing": ["none", "full"]},
  "baseline": {"zero_stage": 1, "micro_batch": 1},
  "runner": {"kind": "KIND"}, "budget": {"trials": 6}})";

std::string named_gpus(const std::string& kind) {
  std::string text = kNamedGpus;
  return text.replace(text.find("KIND"), 4, kind);
}

TEST_F(PlanTest, OfNamedGpusPredictsWithoutAny) {
  const std::string file = directory_.write("gpus.json", named_gpus("none")).string();
  const std::string csv = (directory_ / "plan.csv").string();
  const std::string trace = (directory_ / "trace.json").string();
  const Said said = run_krigtune({"plan", file, "--json", "--csv", csv, "--trace", trace});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = parse_json(said.out, "plan");
  const CsvTable table = parse_csv(read_text(csv), "plan");
  ASSERT_EQ(table.header.size(), 6U + 6U);  // including the derived accumulation
  EXPECT_EQ(table.rows.size(), json["configurations"].get<std::size_t>());
  double best = 0.0;
  for (const auto& row : table.rows) {
    const auto at = [&](const char* name) { return row[static_cast<std::size_t>(table.column(name))]; };
    EXPECT_LE(std::abs(std::stod(at("predicted_value")) * std::stod(at("predicted_step_time_s")) - 64.0), 1e-9);
    EXPECT_GT(std::stod(at("predicted_memory_bytes")), 0.0);
    EXPECT_TRUE(at("bottleneck") == "compute" || at("bottleneck") == "communication" || at("bottleneck") == "memory");
    if (std::stod(at("probability_fits")) >= 0.5) best = std::max(best, std::stod(at("predicted_value")));
  }
  EXPECT_EQ(json["best"][0]["predicted_value"], best);
  EXPECT_GE(best, json["baseline_forecast"]["predicted_value"].get<double>());
  EXPECT_EQ(json["by_zero_stage"].size(), 3U);
  EXPECT_EQ(json["by_micro_batch"].size(), 3U);
  EXPECT_FALSE(json["what_if"].empty());
  std::set<std::string> kinds;
  const Json document = parse_json(read_text(trace), "trace");
  for (const Json& event : document.at("traceEvents")) kinds.insert(event.at("ph"));
  EXPECT_EQ(kinds, (std::set<std::string>{"M", "X", "C"}));  // names, operations, memory over time

  const std::string text = run_krigtune({"plan", file}).out;
  for (const char* section :
       {"Job\n", "\nParameters\n", "\nSpace\n", "\nMemory of one rank", "\nPredicted best ", "\nWhat would change it\n",
        "\nBatch size", "\nCommunication of one rank", "\nTime of the session\n", "  baseline: ", "<- plateau"}) {
    EXPECT_NE(text.find(section), std::string::npos) << section << text;
  }
}

// Megatron-Bridge's tables have this very job, so the models can be compared with them here.
TEST_F(PlanTest, HasASecondOpinionOfPublishedRuns) {
  const std::string file = directory_
                               .write("llama.json", R"({
    "workload": {"model": {"preset": "llama-3-8b"}, "precision": "fp8-tensorwise", "train_batch_size": 128,
                 "framework": "megatron"},
    "cluster": {"gpu": "h100-80gb", "gpus_per_node": 8},
    "space": {"zero_stage": [3], "micro_batch": [1], "overlap_comm": [true], "tensor_parallel": [1],
              "pipeline_parallel": [1], "activation_checkpointing": ["none"]}, "baseline": null, "runner": {"kind": "none"}})")
                               .string();
  const std::string html = (directory_ / "plan.html").string();
  const Said said = run_krigtune({"plan", file, "--html", html});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("\nSecond opinion\n  the nearest published run (LLAMA3_8B, 8 x h100-80gb, "),
            std::string::npos)
      << said.out;
  EXPECT_NE(read_text(html).find("the nearest published run (LLAMA3_8B"), std::string::npos);
  const Json json = parse_json(run_krigtune({"plan", file, "--json"}).out, "plan");
  const Json& nearest = json["second_opinion"][0];
  EXPECT_EQ(nearest["distance"], 0);
  EXPECT_EQ(nearest["differences"], Json::array());
  EXPECT_DOUBLE_EQ(nearest["reached"].get<double>(),
                   nearest["predicted_step_time_s"].get<double>() / nearest["published_step_time_s"].get<double>());
  // It is the job's own prediction, because the configuration is that of the run.
  EXPECT_NEAR(nearest["predicted_step_time_s"].get<double>(), json["best"][0]["predicted_step_time_s"].get<double>(),
              1e-9);
}

TEST_F(PlanTest, OfAnAmountOfDataSaysHowLongTheWholeTrainingTakes) {
  const std::string file = directory_
                               .write("amount.json", R"({
    "workload": {"model": {"preset": "llama-3-8b"}, "precision": "bf16", "train_batch_size": 128, "framework": "fsdp"},
    "cluster": {"gpu": "h100-80gb", "gpus_per_node": 8},
    "space": {"zero_stage": [3], "micro_batch": [1], "activation_checkpointing": ["full"]}, "baseline": null,
    "run": {"evaluation_share": 0.05}, "runner": {"kind": "none"}})")
                               .string();
  const Said without = run_krigtune({"plan", file});
  EXPECT_EQ(without.out.find("The whole training"), std::string::npos);
  EXPECT_TRUE(parse_json(run_krigtune({"plan", file, "--json"}).out, "plan")["whole_run"].is_null());
  const Said said = run_krigtune({"plan", file, "--tokens", "1e12"});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("\nThe whole training\n  1 trillion tokens with row 1\n"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("  steps "), std::string::npos);
  const Json json = parse_json(run_krigtune({"plan", file, "--tokens", "1e12", "--json"}).out, "plan");
  const double samples_per_s = json["best"][0]["predicted_samples_per_s"].get<double>();
  const double steps_s = 1e12 / (8192.0 * samples_per_s);
  EXPECT_NEAR(json["whole_run"]["steps_s"].get<double>(), steps_s, 1e-9 * steps_s);
  EXPECT_NEAR(json["whole_run"]["wall_s"].get<double>(), 1.05 * steps_s, 1e-9 * steps_s);
}

TEST_F(PlanTest, TracesEveryPipelineStage) {
  std::string text = named_gpus("none");
  const std::string tensor = R"("tensor_parallel": [1, 2])";
  text.replace(text.find(tensor), tensor.size(), R"("pipeline_parallel": [4])");
  text.replace(text.find(R"("baseline": {)"), 13, R"("baseline": {"pipeline_parallel": 4, )");
  const std::string file = directory_.write("stages.json", text).string();
  const std::string trace = (directory_ / "stages_trace.json").string();
  const Said said = run_krigtune({"plan", file, "--trace", trace});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find(trace + ": written\n"), std::string::npos) << said.out;
  std::set<std::string> processes;
  std::map<int, int> forwards;
  const Json document = parse_json(read_text(trace), "trace");
  for (const Json& event : document.at("traceEvents")) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["ph"] == "X" && event["cat"] == "forward") ++forwards[event["pid"].get<int>()];
  }
  EXPECT_EQ(processes.size(), 4U);
  EXPECT_EQ(processes.count("pipeline stage 0 (6 layers)"), 1U) << *processes.begin();
  ASSERT_EQ(forwards.size(), 4U);
  for (const auto& [stage, count] : forwards) EXPECT_EQ(count, forwards[0]) << "of each micro-step one";
}

TEST_F(PlanTest, TracesGradientsOfWeightsApartWhereTheScheduleHasThemSo) {
  std::string text = named_gpus("none");
  const std::string tensor = R"("tensor_parallel": [1, 2])";
  text.replace(text.find(tensor), tensor.size(), R"("pipeline_parallel": [4], "pipeline_schedule": ["zb-v"])");
  text.replace(text.find(R"("baseline": {)"), 13,
               R"("baseline": {"pipeline_parallel": 4, "pipeline_schedule": "zb-v", )");
  const std::string file = directory_.write("weights.json", text).string();
  const std::string trace = (directory_ / "weights_trace.json").string();
  const Said said = run_krigtune({"plan", file, "--trace", trace});
  ASSERT_EQ(said.code, 0) << said.err;
  std::map<std::string, std::map<int, int>> passes;
  std::set<std::string> processes;
  const Json document = parse_json(read_text(trace), "trace");
  for (const Json& event : document.at("traceEvents")) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["ph"] == "X") ++passes[event["cat"]][event["pid"].get<int>()];
  }
  EXPECT_EQ(processes.count("pipeline rank 0 (6 layers in 2 stages)"), 1U) << *processes.begin();
  EXPECT_EQ(passes["forward"].size(), 4U);
  EXPECT_EQ(passes["weights"], passes["forward"]);
  EXPECT_EQ(passes["backward"], passes["forward"]);
}

TEST_F(PlanTest, RefusesToTraceAStepThatItCannotPredictAndLeavesNoFile) {
  const std::string trace = (directory_ / "none.json").string();
  const Said said = run_krigtune({"plan", session(1.0), "--trace", trace});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_NE(said.err.find("--trace: no step can be predicted: this machine was not measured"), std::string::npos)
      << said.err;
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST_F(PlanTest, SaysInOneLineWhyItKnowsNoTime) {
  const Said said = run_krigtune({"plan", session(1.0)});
  EXPECT_NE(said.out.find("Time of a step\n  not predicted: this machine was not measured"), std::string::npos)
      << said.out;
  EXPECT_TRUE(parse_json(run_krigtune({"plan", session(1.0), "--json"}).out, "plan")["best"].empty());
}

TEST_F(PlanTest, OfSimulatedTrialsIsFollowedByThem) {
  const std::string file = directory_.write("gpus.json", named_gpus("simulate")).string();
  EXPECT_NE(run_krigtune({"plan", file}).out.find("6 trials at most, simulated: nothing runs"), std::string::npos);
  const Said said = run_krigtune({"tune", file, "--full-budget", "--out", (directory_ / "run").string()});
  ASSERT_EQ(said.code, 0) << said.err;
  const CsvTable trials = parse_csv(read_text(directory_ / "run" / "trials.csv"), "trials");
  EXPECT_EQ(trials.rows.size(), 6U);
  for (const auto& row : trials.rows) {
    EXPECT_NE(row[static_cast<std::size_t>(trials.column("predicted_memory_bytes"))], "");
  }
}

TEST_F(PlanTest, ExitsWithOneWhenNothingFits) {
  const Said said = run_krigtune({"plan", session(0.000001)});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("no configuration fits in memory"), std::string::npos);
  const TemporaryDirectory bench;
  bench.write_program("krigtune-bench", "exit 1\n");
  const Said tuned =
      run_krigtune({"tune", session(0.000001), "--out", (directory_ / "run").string()}, bench / "krigtune");
  EXPECT_EQ(tuned.code, 1) << tuned.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

TEST_F(PlanTest, OfATuneWithoutTheBenchProgramIsRefusedWithThree) {
  const ScopedVariable path("PATH", "/nowhere");
  const Said said = run_krigtune({"tune", session(1.0), "--out", (directory_ / "run").string()});
  EXPECT_EQ(said.code, 3);
  EXPECT_NE(said.err.find("krigtune-bench is neither in '/nowhere' nor on PATH"), std::string::npos) << said.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

// Users of FSDP or Megatron-LM know other names.
TEST_F(PlanTest, SaysWhatTheFrameworkCallsItsParameters) {
  const auto planned = [&](const std::string& framework) {
    const std::string file = directory_
                                 .write(framework + ".json", R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50257, "seq_len": 1024}, "train_batch_size": 64, "framework": ")" +
                                                                 framework + R"("},
      "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb"},
      "space": {"zero_stage": [1, 3], "micro_batch": [1, 2], "tensor_parallel": [1, 2]},
      "baseline": null, "runner": {"kind": "simulate"}})")
                                 .string();
    return run_krigtune({"plan", file}).out;
  };
  const std::string fsdp = planned("fsdp");
  EXPECT_NE(
      fsdp.find("in fsdp's words: zero_stage is sharding_strategy (FULL_SHARD is 3, SHARD_GRAD_OP 2, NO_SHARD 0)\n"),
      std::string::npos)
      << fsdp;
  const std::string megatron = planned("megatron");
  EXPECT_NE(megatron.find("micro_batch is micro_batch_size"), std::string::npos) << megatron;
  EXPECT_NE(megatron.find("tensor_model_parallel_size"), std::string::npos) << megatron;
  EXPECT_EQ(planned("deepspeed").find("words:"), std::string::npos);
}

}  // namespace krigtune::plan_test

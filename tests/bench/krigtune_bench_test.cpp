// The program krigtune-bench as its callers see it: exit codes, documents, texts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>

#include "bench/ended.h"
#include "core/files.h"
#include "core/json.h"
#include "engine/trainer.h"
#include "plan/build_plan.h"
#include "programs/bench/bench_result.h"
#include "workload/measured_machine.h"
#include "workload/measured_rates.h"

namespace krigtune::krigtune_bench_test {

class KrigtuneBench : public testing::Test {
 protected:
  KrigtuneBench() {
    folder_ = std::filesystem::temp_directory_path() / ("krigtune_bench_test_" + std::to_string(getpid()) + "_" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    config_ = {{"workload", {{"model", {{"layers", 2}, {"hidden", 32}, {"heads", 2}, {"vocab", 64}, {"seq_len", 16}}}}},
               {"cluster", {{"gpus_per_node", 2}}},
               {"memory", {{"limit_gib", 1}}},
               {"configuration", {{"zero_stage", 1}, {"micro_batch", 2}, {"gradient_accumulation_steps", 2}}}};
    config_["workload"]["precision"] = "fp32";
  }
  ~KrigtuneBench() override { std::filesystem::remove_all(folder_); }

  Ended run(const std::string& arguments, const std::string& before = "") {
    write_atomically(folder_ / "config.json", config_.dump());
    return run_shell(before + "'" + KRIGTUNE_BENCH + "' " + arguments, folder_);
  }
  std::string config() const { return "--config '" + (folder_ / "config.json").string() + "' "; }

  std::filesystem::path folder_;
  Json config_;
};

TEST_F(KrigtuneBench, PrintsEveryFieldOfAGoodRun) {
  const Ended result = run(config() + "--json --steps 5");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = result.document();
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["status"], "ok");
  EXPECT_EQ(document["reason"], "");
  EXPECT_EQ(document["steps"], 5);
  for (const char* field :
       {"step_time_s",        "step_time_sem_s",    "samples_per_s",        "tokens_per_s",         "flops_per_s",
        "planned_peak_bytes", "arena_peak_bytes",   "process_peak_bytes",   "exposed_comm_s",       "loss_first",
        "loss_last",          "step_time_mean_s",   "step_time_mad_s",      "autocorrelation_time", "outliers",
        "drift_per_step_s",   "drift_per_minute",   "palm_flops_per_s",     "hardware_flops_per_s", "communication_s",
        "overlap_fraction",   "planned_host_bytes", "host_arena_peak_bytes"}) {
    ASSERT_TRUE(document.contains(field) && document[field].is_number()) << field;
    EXPECT_TRUE(std::isfinite(document[field].get<double>())) << field;
  }
  EXPECT_EQ(document["planned_peak_bytes"], document["arena_peak_bytes"]);
  EXPECT_GT(document["process_peak_bytes"].get<std::int64_t>(), 2 * document["arena_peak_bytes"].get<std::int64_t>());
  EXPECT_GT(document["median_rank_kernels_s"].get<double>(), 0.0);
  EXPECT_GE(document["slowest_rank_kernels_s"].get<double>(), document["median_rank_kernels_s"].get<double>());
  EXPECT_EQ(document["stopped"], "steps");
  EXPECT_TRUE(document["contention_s"].is_null());  // not requested
  EXPECT_GT(document["breakdown"]["forward_s"].get<double>(), 0.0);
  EXPECT_GT(document["breakdown"]["span_s"].get<double>(), document["breakdown"]["backward_s"].get<double>());
  EXPECT_TRUE(document["emulated_network"].is_null());
  EXPECT_EQ(document["parameters_fnv1a64"].get<std::string>().size(), 16U);
  // 2 ranks, 2 sequences, 2 micro-steps of 16 tokens.
  const double step_time_s = document["step_time_s"];
  EXPECT_LE(std::abs(document["samples_per_s"].get<double>() * step_time_s - 8.0), 1e-9);
  EXPECT_LE(std::abs(document["tokens_per_s"].get<double>() * step_time_s - 128.0), 1e-9);
  const workload::ModelSpec model{
      .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ffn_hidden = 128, .vocab = 64, .seq_len = 16};
  EXPECT_LE(std::abs(document["flops_per_s"].get<double>() * step_time_s * 2.0 / workload::model_flops(model, 8) - 1.0),
            1e-9);
  // Stage 1 sends half of all gradients and half of all parameters. Every tensor here is padded to a multiple of 32.
  EXPECT_EQ(document["wire_bytes"]["all_reduce"], 0);
  EXPECT_EQ(document["wire_bytes"]["reduce_scatter"], document["wire_bytes"]["all_gather"]);
  EXPECT_EQ(document["wire_bytes"]["all_gather"].get<std::int64_t>(), workload::parameter_count(model) * 4 / 2);
}

TEST_F(KrigtuneBench, TrainsWhatTheTrainerTrains) {
  const Json document = run(config() + "--json --steps 3 --seed 7").document();
  const SystemClock clock;
  workload::Workload workload;
  workload.model = {
      .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ffn_hidden = 128, .vocab = 64, .seq_len = 16};
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = 2;
  engine::Trainer trainer(plan::build_plan(workload, cluster,
                                           {{"zero_stage", std::int64_t{1}},
                                            {"micro_batch", std::int64_t{2}},
                                            {"gradient_accumulation_steps", std::int64_t{2}}}),
                          std::nullopt, clock, {.seed = 7});
  const double first = trainer.step().loss;
  trainer.step();
  const double last = trainer.step().loss;
  EXPECT_EQ(document["loss_first"].get<double>(), first);
  EXPECT_EQ(document["loss_last"].get<double>(), last);
  EXPECT_EQ(document["parameters_fnv1a64"], trainer.parameters_fnv1a64());
}

TEST_F(KrigtuneBench, TrainsAdaptersWithinThePlannedMemory) {
  config_["workload"]["model"].update(
      {{"norm", "rmsnorm"}, {"positions", "rotary"}, {"qk_norm", "head"}, {"head_dim", 24}});
  config_["workload"]["training"] = {{"lora", {{"rank", 2}, {"dropout", 0.1}}}};
  const Ended result = run(config() + "--json --steps 3");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = result.document();
  EXPECT_EQ(document["planned_peak_bytes"], document["arena_peak_bytes"]);
  EXPECT_EQ(run(config() + "--check").exit_code, 0);
}

TEST_F(KrigtuneBench, ChecksPlansThatItDoesNotTrain) {
  config_["workload"]["model"]["experts"] = {{"count", 2}, {"per_token", 1}};
  const Ended result = run(config());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("/workload: krigtune-bench does not train experts, which can only be predicted"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(run(config() + "--check").exit_code, 0);
}

TEST_F(KrigtuneBench, MeasuresWithoutCommunicationAndTracesAStepWhenAsked) {
  config_["cluster"]["emulate_network"] = {{"latency_us", 5000}, {"bytes_per_s", 3e9}};
  const std::string trace = (folder_ / "trace.json").string();
  const Ended result = run(config() + "--json --steps 8 --compare-null --trace '" + trace + "'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = result.document();
  const double step_time_s = document["step_time_s"];
  const double difference_s = document["exposed_comm_difference_s"];
  EXPECT_EQ(difference_s, step_time_s - document["step_time_without_communication_s"].get<double>());
  EXPECT_EQ(document["contention_s"].get<double>(), difference_s - document["exposed_comm_s"].get<double>());
  EXPECT_GE(document["exposed_comm_s"].get<double>(), 0.005);  // at least the last all-gather
  // Steps without communication come last and do not change the report.
  EXPECT_EQ(document["parameters_fnv1a64"], run(config() + "--json --steps 8").document()["parameters_fnv1a64"]);
  const Json traced = load_json(trace);
  EXPECT_GT(traced["traceEvents"].size(), 100U);
  EXPECT_GE(traced["otherData"]["step"].get<int>(), 3);  // after two of warm-up
  EXPECT_EQ(run(config() + "--json --steps 1 --trace /nowhere/t.json").exit_code, 2);
}

TEST_F(KrigtuneBench, LabelsAnEmulatedNetwork) {
  config_["cluster"]["emulate_network"] = {{"latency_us", 30}, {"bytes_per_s", 3e9}};
  const Json document = run(config() + "--json --steps 2").document();
  EXPECT_EQ(document["emulated_network"]["latency_us"], 30);
  EXPECT_EQ(document["emulated_network"]["bytes_per_s"], 3e9);
  const Ended text = run(config() + "--steps 2");
  EXPECT_NE(text.out.find("EMULATED"), std::string::npos);
  EXPECT_NE(text.out.find("over an emulated network"), std::string::npos);
}

TEST_F(KrigtuneBench, RunsNothingThatDoesNotFit) {
  const Ended result = run(config() + "--json --steps 1 --memory-limit 0.0001");
  EXPECT_EQ(result.exit_code, 10);
  const Json document = result.document();
  EXPECT_EQ(document["status"], "oom");
  EXPECT_EQ(document["reason"], "predicted");
  EXPECT_TRUE(document["steps"].is_null());
  EXPECT_TRUE(document["step_time_s"].is_null());
  const std::int64_t limit = 107374;  // 0.0001 GiB
  EXPECT_EQ(document["memory"]["missing_bytes"].get<std::int64_t>(),
            document["planned_peak_bytes"].get<std::int64_t>() - limit);
  std::int64_t terms = document["memory"]["fragmentation_bytes"];
  for (const auto& [name, bytes] : document["memory"]["terms"].items()) terms += bytes.get<std::int64_t>();
  EXPECT_EQ(document["planned_peak_bytes"], terms);
}

TEST_F(KrigtuneBench, TakesTheLimitOfTheConfigWithoutAReserve) {
  const std::int64_t peak = run(config() + "--json --steps 1").document()["planned_peak_bytes"];
  config_["memory"]["limit_gib"] = static_cast<double>(peak) / (1 << 30);
  EXPECT_EQ(run(config() + "--json --steps 1").exit_code, 0);
  config_["memory"]["limit_gib"] = static_cast<double>(peak - 1) / (1 << 30);
  EXPECT_EQ(run(config() + "--json --steps 1").exit_code, 10);
}

TEST_F(KrigtuneBench, SaysWhenMemoryCannotBeHad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than this test allows";
#endif
  config_["workload"]["model"]["hidden"] = 1024;  // 100 MB of parameters, the same for gradients, and more
  config_["memory"]["limit_gib"] = 100;
  const Ended result = run(config() + "--json --steps 1", "ulimit -v 300000; ");
  EXPECT_EQ(result.exit_code, 11) << result.err;
  EXPECT_EQ(result.document()["status"], "oom");
  EXPECT_EQ(result.document()["reason"], "allocation");
}

TEST_F(KrigtuneBench, RefusesBadInputInOneLineAndStillPrintsTheDocument) {
  const auto refused = [&](const std::string& arguments, const std::string& word) {
    const Ended result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.document()["status"], "failed") << arguments;
    EXPECT_EQ(result.document()["reason"], "invalid") << arguments;
    EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  };
  refused("--json", "--config");
  refused(config() + "--json --stpes 3", "--steps");
  refused(config() + "--json --steps 0", "--steps");
  refused(config() + "--json --steps three", "three");
  refused(config() + "--json --measure-s 0", "--measure-s");
  refused(config() + "--json --device tpu", "tpu");
  refused("--json --config /nowhere/c.json", "/nowhere/c.json");
  config_["configuration"]["zero_stage"] = 4;
  refused(config() + "--json", "zero_stage");
  config_["configuration"] = {{"zero_stge", 1}};
  refused(config() + "--json", "zero_stage");
  config_["configuration"] = {{"nccl_max_ctas", 8}};
  refused(config() + "--json --device cpu", "the ranks run on processors: only GPUs exchange by NCCL");
  config_["configuration"] = Json::object();
  config_["cluster"]["gpus_per_node"] = 1000;
  refused(config() + "--json", "/cluster");
  config_["worklod"] = 1;
  refused(config() + "--json", "workload");
}

TEST_F(KrigtuneBench, PrintsItsMannersForPeople) {
  const Ended result = run(config() + "--steps 4");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* words : {"# krigtune-bench", "# configuration: zero_stage=1", "optimizer_state", "planned peak",
                            "reduce_scatter", "busbw (GB/s)", "step time (ms)", "samples/s", "loss",
                            "where the step of rank 0 went", "forward", "as PaLM counts", "outliers", "hidden"}) {
    EXPECT_NE(result.out.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(run("--version").out.find("krigtune-bench "), 0U);
  for (const char* option : {"--config", "--json", "--steps", "--memory-limit", "--device", "--probe", "--check",
                             "--warmup-s", "--measure-s", "--seed", "--version"}) {
    EXPECT_NE(run("--help").out.find(option), std::string::npos) << option;
  }
  std::istringstream help(run("--help").out);  // one screen of 80 columns and 40 lines
  int lines = 0;
  for (std::string line; std::getline(help, line); ++lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_LE(lines, 40);
}

TEST_F(KrigtuneBench, SaysWhyItCannotTrainOnGpus) {
  if (run("--probe").exit_code == 0) GTEST_SKIP() << "there is a GPU";
  const Ended result = run(config() + "--json --device cuda");
  EXPECT_EQ(result.exit_code, 77);
  EXPECT_EQ(result.document()["status"], "failed");
  EXPECT_EQ(result.document()["reason"], "environment");
  EXPECT_NE(result.err.find("use --device cpu"), std::string::npos);
  EXPECT_EQ(run(config() + "--json --device cpu --steps 1").exit_code, 0);
}

TEST_F(KrigtuneBench, TrainsForAGpuThatIsNamedOnlyWhereThereIsOne) {
  if (run("--probe").exit_code == 0) GTEST_SKIP() << "there is a GPU";
  config_["cluster"]["gpu"] = "h100-80gb";
  const Ended result = run(config() + "--json");
  EXPECT_EQ(result.exit_code, 77);
  EXPECT_EQ(result.document()["reason"], "environment");
  EXPECT_NE(result.err.find("no device: the cluster's GPU is h100-80gb, but "), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(run(config() + "--json --device cpu").exit_code, 2);
}

TEST_F(KrigtuneBench, MeasuresThisMachine) {
  const Ended result = run("--measure-machine 2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const workload::MeasuredMachine machine = workload::read_measured_machine(result.document(), "machine", "");
  EXPECT_EQ(machine.key, workload::machine_key(2, workload::Precision::kFp32));
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    EXPECT_TRUE(std::isfinite(machine.rates[i].flops_per_s) || std::isfinite(machine.rates[i].bytes_per_s)) << i;
  }
  for (const workload::ClassRate& exchange : machine.exchanges) EXPECT_TRUE(std::isfinite(exchange.bytes_per_s));
  EXPECT_GT(machine.step_overhead_s, 0.0);
  EXPECT_EQ(run("--measure-machine 0").exit_code, 2);
  EXPECT_EQ(run("--measure-machine 2 --measure-rates").exit_code, 2);
  EXPECT_EQ(run("--measure-machine 2 --precision fp8").exit_code, 2);
}

TEST_F(KrigtuneBench, ProbesForAGpu) {
  const Ended result = run("--probe");
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 77) << result.exit_code;
  EXPECT_EQ(result.exit_code == 77, result.out.find("no GPU") != std::string::npos) << result.out;
  EXPECT_EQ(run("--probe --json").exit_code, result.exit_code);
}

TEST(BenchEnding, OfALossThatIsNoNumberIsANumericalFailure) {
  bench::Measurement measurement;
  EXPECT_EQ(bench::ending_of(measurement).exit_code, 0);
  measurement.diverged = true;
  measurement.steps = 4;
  EXPECT_EQ(bench::ending_of(measurement).exit_code, 14);
  EXPECT_EQ(std::string(bench::ending_of(measurement).status), "failed");
}

// The cluster is enough for this command: four CPU ranks on two nodes over an emulated network.
TEST_F(KrigtuneBench, MeasuresTheRatesOfItsRanks) {
  config_ = {{"cluster",
              {{"nodes", 2}, {"gpus_per_node", 2}, {"emulate_network", {{"latency_us", 10}, {"bytes_per_s", 4e9}}}}}};
  const Ended result = run(config() + "--measure-rates --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const workload::MeasuredRates rates = workload::read_measured_rates(result.document(), "out");
  EXPECT_EQ(rates.device, "cpu");
  EXPECT_EQ(rates.started_by, "alone");
  EXPECT_EQ(rates.nodes, (std::vector<std::int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(rates.emulated_network, "10 us + 4000 MB/s");
  EXPECT_GT(rates.memory_bytes, 0);
  EXPECT_FALSE(rates.processor.empty());
  config_["cluster"].erase("emulate_network");
  const Ended refused = run(config() + "--measure-rates");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("the cluster has 2 nodes, and this is one process"), std::string::npos) << refused.err;
  EXPECT_TRUE(refused.out.empty());
}

}  // namespace krigtune::krigtune_bench_test

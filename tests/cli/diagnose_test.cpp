#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::diagnose_test {

constexpr const char* kSession = R"({
  "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 64},
  "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb"},
  "space": {"zero_stage": [1, 2], "micro_batch": [1, 2, 4, 8, 64], "activation_checkpointing": ["none", "full"]},
  "baseline": {"zero_stage": 2, "micro_batch": 4, "activation_checkpointing": "full"},
  "runner": {"kind": "simulate", "noise": 0.01, "systematic_error": 0.05,
             "stragglers": {"probability": 0}, "failures": {"unforeseen_fraction": 0, "crash_probability": 0}},
  "budget": {"trials": 4, "regret": 0, "least_gain": 0}})";

class DiagnoseCommand : public testing::Test {
 protected:
  std::string session() const { return directory_.write("job.json", kSession).string(); }
  std::string run() const {
    const std::string out = (directory_ / "run").string();
    EXPECT_EQ(run_krigtune({"tune", session(), "--out", out, "--seed", "1"}).code, 0);
    return out;
  }
  TemporaryDirectory directory_;
};

TEST_F(DiagnoseCommand, OfAPlanNamesRecomputationThatIsNotNeeded) {
  const Said said = run_krigtune({"diagnose", "--plan", session(), "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = parse_json(said.out, "diagnose");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["command"], "diagnose");
  EXPECT_TRUE(json["measured"]["step_time_s"].is_null());
  EXPECT_TRUE(json["factors"].is_null());
  const Json& first = json["verdicts"][0];
  EXPECT_EQ(first["limit"], "recomputation");
  EXPECT_GE(first["number"].get<double>(), first["threshold"].get<double>());
  const Json& advice = first["advice"][0];
  EXPECT_EQ(advice["changes"][0]["parameter"], "activation_checkpointing");
  EXPECT_EQ(advice["changes"][0]["before"], "full");
  EXPECT_EQ(advice["in_space"], true);
  const double before = json["predicted"]["samples_per_s"].get<double>();
  EXPECT_NEAR(advice["predicted_samples_per_s"].get<double>() / before, advice["speedup"].get<double>(), 1e-9);
  EXPECT_LE(advice["memory"]["predicted_bytes"].get<std::int64_t>(), json["usable_bytes_per_rank"].get<std::int64_t>());
}

TEST_F(DiagnoseCommand, PrintsTheSameForPeopleInHundredColumns) {
  const Said said = run_krigtune({"diagnose", "--plan", session()});
  EXPECT_EQ(said.code, 0) << said.err;
  for (const char* part : {"the baseline of job: ", "\nWhere the step goes, as predicted\n", "\nWhat limits it\n",
                           "1. unnecessary recomputation: ", "activation_checkpointing=none instead of full"}) {
    EXPECT_NE(said.out.find(part), std::string::npos) << part << said.out;
  }
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST_F(DiagnoseCommand, TakesAnotherConfigurationThanTheBaseline) {
  const Json json = parse_json(
      run_krigtune({"diagnose", "--plan", session(), "--json", "--try", R"({"micro_batch": 8})"}).out, "diagnose");
  EXPECT_EQ(json["configuration"]["micro_batch"], 8);
  EXPECT_EQ(json["configuration"]["gradient_accumulation_steps"], 1);
}

TEST_F(DiagnoseCommand, OfARunTakesWhatWasMeasuredOfTheBestOrOfTheTrialNamed) {
  const std::string directory = run();
  const Json best = parse_json(run_krigtune({"diagnose", directory, "--json"}).out, "diagnose");
  const Json results = parse_json(run_krigtune({"results", directory, "--json"}).out, "results");
  EXPECT_EQ(best["trial"], results["best_trial"]);
  const Json first = parse_json(run_krigtune({"diagnose", directory, "--json", "--trial", "0"}).out, "diagnose");
  EXPECT_EQ(first["trial"], 0);
  EXPECT_EQ(first["verdicts"][0]["limit"], "recomputation");
  EXPECT_EQ(first["verdicts"][0]["measured"], true);
  const double measured = first["measured"]["step_time_s"].get<double>();
  EXPECT_NEAR(first["corrected"]["step_time_s"].get<double>(), measured, 0.05 * measured);
  EXPECT_GT(first["factors"]["kernels"].get<double>(), 0.5);
}

TEST_F(DiagnoseCommand, BadInputIsOneLine) {
  const std::string file = session();
  const std::string directory = run();
  const auto line = [](const std::vector<std::string>& arguments) {
    const Said said = run_krigtune(arguments);
    EXPECT_EQ(said.code, 2) << said.err;
    EXPECT_EQ(said.out, "");
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    return said.err;
  };
  EXPECT_NE(line({"diagnose"}).find("nothing to diagnose is named"), std::string::npos);
  EXPECT_NE(line({"diagnose", directory, "--plan", file}).find("more than one thing to diagnose is named"),
            std::string::npos);
  EXPECT_NE(line({"diagnose", "--plan", file, "--trial", "1"}).find("only run directories have trials"),
            std::string::npos);
  EXPECT_NE(line({"diagnose", directory, "--try", "{}"}).find("what has run has its configuration"), std::string::npos);
  EXPECT_NE(line({"diagnose", directory, "--trial", "99"}).find("there is no trial 99"), std::string::npos);
  EXPECT_NE(line({"diagnose", (directory_ / "nothing").string()}).find("nothing"), std::string::npos);
  const std::string bare = directory_.write("bare.json", R"({"space": {"a": [1, 2]}, "baseline": {"a": 1}})").string();
  EXPECT_NE(line({"diagnose", "--plan", bare}).find("no workload is given"), std::string::npos);
  const std::string other = directory_
                                .write("other.json", R"({
    "workload": {"model": {"preset": "gpt2-124m"}, "precision": "bf16"}, "cluster": {"gpu": "a100-80gb", "gpus_per_node": 8},
    "space": {"micro_batch": [1, 2]}, "baseline": null, "runner": {"kind": "none"}})")
                                .string();
  EXPECT_NE(line({"diagnose", "--plan", other}).find("has no baseline"), std::string::npos);
}

TEST_F(DiagnoseCommand, OfATrialThatFailedNothingCanBeSaid) {
  const std::string file = replay_session(directory_).string();
  const std::string directory = (directory_ / "replayed").string();
  ASSERT_EQ(run_krigtune({"tune", file, "--out", directory, "--seed", "1", "--trials", "12"}).code, 0);
  const Json rows = parse_json(run_krigtune({"results", directory, "--json"}).out, "results")["trials"];
  bool found = false;
  for (const Json& row : rows) {
    if (row["status"] != "failed") continue;
    found = true;
    const Said said = run_krigtune({"diagnose", directory, "--trial", row["trial"].dump()});
    EXPECT_EQ(said.code, 2);
    EXPECT_NE(said.err.find("has no measurement"), std::string::npos) << said.err;
  }
  EXPECT_TRUE(found);
}

constexpr const char* kTrace = R"({"traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0, "dur": 100},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": 90, "dur": 60}]})";

TEST_F(DiagnoseCommand, OfATraceSaysWhatCouldBeGainedAtMost) {
  const std::string file = directory_.write("trace.json", kTrace).string();
  const Json json = parse_json(run_krigtune({"diagnose", "--trace", file, "--json"}).out, "diagnose");
  const Json& first = json["verdicts"][0];
  EXPECT_EQ(first["limit"], "communication");
  EXPECT_NEAR(first["share"].get<double>(), 50.0 / 150.0, 1e-9);
  EXPECT_NEAR(first["speedup_at_most"].get<double>(), 1.5, 1e-9);
  EXPECT_TRUE(json["verdicts"][1]["speedup_at_most"].is_null());  // work that must be done
  const Said said = run_krigtune({"diagnose", "--trace", file});
  EXPECT_NE(said.out.find("1. exposed communication: 33 % of the time\n"), std::string::npos) << said.out;
  const Said cut =
      run_krigtune({"diagnose", "--trace", directory_.write("cut.json", std::string(kTrace, 90)).string()});
  EXPECT_EQ(cut.code, 2);
  EXPECT_EQ(lines_in(cut.err), 1U) << cut.err;
}

TEST_F(DiagnoseCommand, OfMegatronsTimersAndDeepSpeedsMonitorSaysWhereAStepGoes) {
  std::string log;
  for (int i = 1; i <= 6; ++i) {
    log += " [2024-04-06 02:59:36] iteration " + std::to_string(i) +
           "/     100 | consumed samples: 5504 | elapsed time per iteration (ms): 500.0 | lm loss: 1.8E+00 |\n"
           "(min, max) time across ranks (ms):\n"
           "    forward-backward ...............................: (395.00, 400.00)\n"
           "    all-grads-sync .................................: (90.00, 100.00)\n"
           "    optimizer ......................................: (40.00, 45.00)\n";
  }
  const Json timers = parse_json(
      run_krigtune({"diagnose", "--log", directory_.write("train.log", log).string(), "--json"}).out, "diagnose");
  EXPECT_EQ(timers["verdicts"][0]["limit"], "data_communication");
  EXPECT_NEAR(timers["verdicts"][0]["share"].get<double>(), 0.2, 1e-9);

  const char* const rows = "step,elapsed\n16,100\n32,100\n48,100\n64,100\n80,100\n96,100\n";
  std::filesystem::create_directories(directory_ / "monitor/job");
  for (const char* timer : {"forward", "backward", "backward_allreduce", "step"}) {
    directory_.write(std::string("monitor/job/Train_Samples_elapsed_time_ms_") + timer + ".csv", rows);
  }
  const Said said = run_krigtune({"diagnose", "--log", (directory_ / "monitor").string()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("reduction of gradients, exposed"), std::string::npos) << said.out;
  const Said none = run_krigtune({"diagnose", "--log", directory_.path().string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("is neither a file nor a folder of DeepSpeed's csv_monitor"), std::string::npos) << none.err;
}

constexpr const char* kResult = R"({"program": "krigtune-bench", "status": "ok", "step_time_s": 0.5,
  "exposed_comm_s": 0.2, "process_peak_bytes": 1073741824, "planned_peak_bytes": 1048576,
  "memory": {"limit_bytes": 2097152}, "median_rank_kernels_s": 0.25, "slowest_rank_kernels_s": 0.28,
  "collectives": {"all_reduce": {"time_s": 0.25}}, "gpu": null, "emulated_network": {"name": "eth-25"},
  "configuration": {"zero_stage": 2, "micro_batch": 4, "activation_checkpointing": "full"},
  "breakdown": {"forward_s": 0.1, "recompute_s": 0, "backward_s": 0.15, "optimizer_s": 0.02,
                "all_reduce_exposed_s": 0.2, "reduce_scatter_exposed_s": 0, "all_gather_exposed_s": 0,
                "copies_exposed_s": 0, "host_work_exposed_s": 0, "waiting_s": 0.02, "idle_s": 0.01, "span_s": 0.5}})";

TEST_F(DiagnoseCommand, OfABenchResultReadsItsBreakdown) {
  const std::string file = directory_.write("result.json", kResult).string();
  const Json json = parse_json(run_krigtune({"diagnose", file, "--json"}).out, "diagnose");
  EXPECT_EQ(json["verdicts"][0]["limit"], "communication");
  EXPECT_NEAR(json["verdicts"][0]["share"].get<double>(), 0.4, 1e-9);
  EXPECT_EQ(json["verdicts"][1]["limit"], "compute");
  const Said said = run_krigtune({"diagnose", file});
  for (const char* part :
       {"the process took 1.00 GiB", "a rank's plan takes 1.00 MiB of 2.00 MiB", "the network is emulated: eth-25",
        "kernels of the slowest rank take 280 ms, of the median rank 250 ms", "all_reduce, exposed",
        "of 250 ms in all"}) {
    EXPECT_NE(said.out.find(part), std::string::npos) << part << said.out;
  }
}

TEST_F(DiagnoseCommand, OfABenchResultWithItsSessionAsksTheModelsToo) {
  const std::string file = directory_.write("result.json", kResult).string();
  const Json json = parse_json(run_krigtune({"diagnose", file, "--plan", session(), "--json"}).out, "diagnose");
  EXPECT_EQ(json["measured"]["step_time_s"], 0.5);
  EXPECT_EQ(json["configuration"]["activation_checkpointing"], "full");
  EXPECT_FALSE(json["verdicts"][0]["advice"].empty());
}

TEST_F(DiagnoseCommand, OfWhatIsNoResultSaysSo) {
  const auto line = [&](const std::string& text) {
    const Said said = run_krigtune({"diagnose", directory_.write("other.json", text).string()});
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    return said.err;
  };
  EXPECT_NE(line("{}").find("this is not a result of krigtune-bench --json"), std::string::npos);
  EXPECT_NE(line("[1").find("other.json"), std::string::npos);
  EXPECT_NE(line(R"({"program": "krigtune-bench", "status": "oom", "message": "needs 2 GiB", "breakdown": null})")
                .find("nothing was measured, its status is 'oom': needs 2 GiB"),
            std::string::npos);
}

TEST_F(DiagnoseCommand, OfALogFindsTheRecipeByItself) {
  std::string text;
  for (int i = 1; i <= 40; ++i) {
    text +=
        " [2024-04-06 02:59:36] iteration " + std::to_string(i) +
        "/     100 | consumed samples: 5504 | elapsed time per iteration (ms): " + (i % 8 == 0 ? "9000.0" : "3000.0") +
        " | lm loss: 1.8E+00 |\n";
  }
  const std::string file = directory_.write("train.log", text).string();
  const Json json = parse_json(run_krigtune({"diagnose", "--log", file, "--json"}).out, "diagnose");
  EXPECT_EQ(json["verdicts"][0]["limit"], "long_steps");
  const Json by_name =
      parse_json(run_krigtune({"diagnose", "--log", file, "--recipe", "megatron", "--json"}).out, "diagnose");
  EXPECT_EQ(by_name["parts"], json["parts"]);
  const Said none = run_krigtune({"diagnose", "--log", directory_.write("empty.log", "hello\n").string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(lines_in(none.err), 1U) << none.err;
  EXPECT_NE(run_krigtune({"diagnose", file, "--recipe", "megatron"}).err.find("only logs are read by recipes"),
            std::string::npos);
}

}  // namespace krigtune::diagnose_test

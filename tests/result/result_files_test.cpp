#include "result/result_files.h"

#include <gtest/gtest.h>

#include "core/csv.h"
#include "core/files.h"
#include "result/export.h"
#include "result/report_fixtures.h"
#include "result/trial_table.h"
#include "trial/temporary_directory.h"

namespace krigtune::result_files_test {

std::optional<std::string> text_of(const std::string& name, const report::RunView& run) {
  for (const result::ResultFile& file : result::result_files()) {
    if (name == file.name) return file.text(run);
  }
  ADD_FAILURE() << "no result file is called " << name;
  return std::nullopt;
}

TEST(TrialsCsv, HasExactlyTheColumnsOfTheContractAndARowForEveryClosedTrial) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  EXPECT_EQ(
      text_of("trials.csv", run_view(session, history, std::nullopt)).value(),
      "trial,status,reason,strategy,zero_stage,micro_batch,reduce_bucket_size,overlap_comm,gradient_accumulation_steps,"
      "value,value_sem,step_time_s,peak_memory_bytes,predicted_value,predicted_memory_bytes,exposed_comm_s,suggest_s,"
      "wall_s,started_at,where,metric_exposed_comm_s,metric_samples_per_s,metric_step_time_s\n"
      "0,ok,,baseline,2,2,500,false,2,100,1.5,0.08,123456,,,0.001,0.25,2.5,2026-08-23T10:00:00.000000,,0.001,100,0.08\n"
      "1,oom,,bayes,0,1,500,true,4,,,,,,,,0.25,2.5,2026-08-23T10:00:00.000000,,,,\n"
      "2,oom,predicted,bayes,1,4,500,false,1,,,,,,,,0.25,2.5,2026-08-23T10:00:00.000000,,,,\n"
      "3,failed,timeout,bayes,3,1,500,false,4,,,,,,,,0.25,2.5,2026-08-23T10:00:00.000000,,,,\n"
      "4,bounded,,bayes,3,2,500,true,2,50,,,,,,,0.25,2.5,2026-08-23T10:00:00.000000,,,,\n"
      "5,ok,,bayes,3,4,500,true,1,125,1.5,0.064,123456,130.5,120000,0.001,0.25,2.5,2026-08-23T10:00:00.000000,,"
      "0.001,125,0.064\n");
}

TEST(TrialsCsv, NamesEveryReasonForWhichATrialFails) {
  const session::Session session = bench_session();
  for (const trial::FailureReason reason :
       {trial::FailureReason::kTimeout, trial::FailureReason::kHang, trial::FailureReason::kCrash,
        trial::FailureReason::kInvalid, trial::FailureReason::kInterrupted, trial::FailureReason::kBadResult,
        trial::FailureReason::kEnvironment}) {
    const search::History history = {trial_record(0, configuration(2, 2, false), trial::Failed{reason, 1, ""})};
    const CsvTable table = parse_csv(text_of("trials.csv", run_view(session, history, std::nullopt)).value(), "trials");
    EXPECT_EQ(table.rows.at(0).at(1), "failed");
    EXPECT_EQ(table.rows.at(0).at(2), trial::to_string(reason));
  }
}

TEST(TrialsCsv, OfARunWithoutTrialsIsItsHeader) {
  const session::Session session = bench_session();
  const CsvTable table = parse_csv(text_of("trials.csv", run_view(session, {}, std::nullopt)).value(), "trials");
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.header.size(), 20U);
}

TEST(TrialsCsv, IsATableThatTheReplayRunnerReads) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const TemporaryDirectory directory;
  const auto file = directory.write("trials.csv", text_of("trials.csv", run_view(session, history, {})).value());
  const session::Session replay = session::with_recorded_trials(session, file);
  EXPECT_EQ(replay.table->optimum(replay.space), 125.0);
  EXPECT_TRUE(replay.table->contains(configuration(0, 1, true)));
  EXPECT_FALSE(replay.table->contains(configuration(1, 1, true))) << "that trial still runs";
}

TEST(DsConfig, IsCompleteAndTrainsWhatWasMeasured) {
  const session::Session session = bench_session();
  const Json expected = parse_json(R"({
    "train_batch_size": 8, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1,
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 500, "allgather_bucket_size": 500000000,
                          "overlap_comm": true, "contiguous_gradients": true, "reduce_scatter": true},
    "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}},
    "fp16": {"enabled": false}, "bf16": {"enabled": false}})",
                                   "expected");
  const std::string text = text_of("ds_config_optimal.json", run_view(session, {}, recommendation())).value();
  EXPECT_EQ(parse_json(text, "written"), expected) << text;
}

TEST(DsConfig, RoundsAllgatherBucketsUpToEvenNumbersAsDeepSpeedAsserts) {
  const session::Session session = bench_session();
  search::Recommendation best = recommendation();
  best.configuration.set("allgather_bucket_size", std::int64_t{501});
  const Json json = parse_json(text_of("ds_config_optimal.json", run_view(session, {}, best)).value(), "written");
  EXPECT_EQ(json["zero_optimization"]["allgather_bucket_size"], 502);
}

TEST(DsConfig, KeepsTheBatchIdentityOfDeepSpeed) {
  const session::Session session = bench_session();
  for (const std::int64_t micro_batch : {1, 2, 4}) {
    search::Recommendation best = recommendation();
    best.configuration = configuration(2, micro_batch, true);
    const Json json = parse_json(text_of("ds_config_optimal.json", run_view(session, {}, best)).value(), "written");
    EXPECT_EQ(json["train_batch_size"].get<int>(), json["train_micro_batch_size_per_gpu"].get<int>() *
                                                       json["gradient_accumulation_steps"].get<int>() *
                                                       session.cluster.ranks());
  }
}

TEST(BestJson, HoldsTheConfigurationAndItsEvidence) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const Json json = parse_json(text_of("best.json", run_view(session, history, recommendation())).value(), "written");
  EXPECT_EQ(json["trial"], 5);
  EXPECT_EQ(json["session"], "fixture");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(space::configuration_from_json(json["configuration"], "written", ""), configuration(3, 4, true));
  EXPECT_EQ(json["value"], 125);
  EXPECT_EQ(json["posterior"], parse_json(R"({"mean": 124, "lower_95": 120, "upper_95": 128})", "expected"));
  EXPECT_EQ(json["reference"], parse_json(R"({"trial": 0, "value": 100, "measurements": 1})", "expected"));
  EXPECT_EQ(json["gain"], 1.25);
  EXPECT_EQ(json["trials"], parse_json(R"({"ok": 2, "oom": 2, "failed": 1, "bounded": 1})", "expected"));
  EXPECT_FALSE(json.contains("emulated_network"));
}

// Such trials use no budget, and the summary of tune does not count them either.
TEST(BestJson, CountsNoTrialThatTheEnvironmentFailed) {
  const session::Session session = bench_session();
  search::History history = all_outcomes();
  for (const trial::FailureReason reason : {trial::FailureReason::kEnvironment, trial::FailureReason::kInterrupted}) {
    history.push_back(history.back());
    history.back().outcome = trial::Failed{reason, 1, ""};
  }
  const Json json = parse_json(text_of("best.json", run_view(session, history, recommendation())).value(), "written");
  EXPECT_EQ(json["trials"], parse_json(R"({"ok": 2, "oom": 2, "failed": 1, "bounded": 1})", "expected"));
}

// Whoever shows the result shows them, without knowing what they are about.
TEST(Remarks, AreInBestJsonTheSummaryAndTheNotesOfTheTable) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  report::RunView run = run_view(session, history, recommendation());
  EXPECT_FALSE(parse_json(text_of("best.json", run).value(), "written").contains("weather"));
  run.answer.remarks = {{"weather", "It rained on the last trials."}};
  EXPECT_EQ(parse_json(text_of("best.json", run).value(), "written")["weather"], "It rained on the last trials.");
  EXPECT_NE(result::export_markdown(run, "/export").files.front().text.find("\nIt rained on the last trials.\n"),
            std::string::npos);
  EXPECT_EQ(result::trial_table(run).notes.front(), "It rained on the last trials.");
}

TEST(BestJson, IsLabelledWhereTheNetworkIsEmulated) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const Json json = parse_json(text_of("best.json", run_view(session, {}, recommendation())).value(), "written");
  EXPECT_EQ(json["label"], "emulated network eth-25");
  EXPECT_TRUE(json.contains("emulated_network"));
}

TEST(BenchCommand, MeasuresTheRecommendedConfigurationAsItsTrialWas) {
  const session::Session session = bench_session();
  const search::History none;
  const report::RunView run = run_view(session, none, recommendation());
  EXPECT_EQ(text_of("cmd_optimal.txt", run).value(),
            "/opt/krigtune-bench --config '/runs/it'\\''s/config_optimal.json' --json --warmup-s 0.5 --measure-s 2\n");
  const Json config = parse_json(text_of("config_optimal.json", run).value(), "written");
  EXPECT_EQ(space::configuration_from_json(config["configuration"], "written", ""), configuration(3, 4, true));
  EXPECT_EQ(workload::read_workload(config["workload"], "written", "").model, session.workload->model);
}

session::Session command_session() {
  return session::read_session(
      parse_json(R"({"space": {"lr": [1, 2], "momentum": {"min": 0, "max": 4, "when": "lr == 2"}},
    "baseline": null, "objective": {"metric": "speed", "direction": "maximize"},
    "runner": {"kind": "command", "argv": ["python3", "it's.py", "{config}", "--to={result}", "{dir}/{trial}", "{{x}"],
               "env": {"OMP_NUM_THREADS": "4"}, "cwd": "/"}})",
                 "session"),
      "session", ".");
}

search::Recommendation recommended(int trial, space::Configuration configuration) {
  search::Recommendation best = recommendation();
  best.trial = trial;
  best.configuration = std::move(configuration);
  return best;
}

TEST(UserCommand, IsTheTrialsWithTheRecommendedConfiguration) {
  const session::Session session = command_session();
  const search::History none;
  const report::RunView run = run_view(session, none, recommended(3, {{"lr", std::int64_t{1}}}));
  EXPECT_EQ(text_of("cmd_optimal.txt", run).value(),
            "cd / && env OMP_NUM_THREADS=4 python3 'it'\\''s.py' '/runs/it'\\''s/config_optimal.json' "
            "'--to=/runs/it'\\''s/result_optimal.json' '/runs/it'\\''s/3' '{x}'\n");
  EXPECT_EQ(parse_json(text_of("config_optimal.json", run).value(), "written"), parse_json(R"({"lr": 1})", "expected"));
  EXPECT_FALSE(text_of("ds_config_optimal.json", run)) << "there is no model";
}

TEST(UserCommand, IsNoneWhereTrialsAreRunByHandButTheConfigurationIsThere) {
  session::Session session = command_session();
  session.runner = runner::NoRunner();
  const search::History none;
  const report::RunView run = run_view(session, none, recommended(3, {{"lr", std::int64_t{1}}}));
  EXPECT_FALSE(text_of("cmd_optimal.txt", run));
  EXPECT_TRUE(text_of("config_optimal.json", run));
}

TEST(TrialsCsv, LeavesOutWhatDoesNotExistInAConfigurationAndAddsFurtherMetrics) {
  const session::Session session = command_session();
  trial::Measured measured;
  measured.metrics = {{"speed", 5.0}, {"loss", 0.25}};
  const search::History history = {trial_record(0, {{"lr", std::int64_t{1}}}, trial::OutOfMemory{}),
                                   trial_record(1, {{"lr", std::int64_t{2}}, {"momentum", std::int64_t{3}}}, measured)};
  const CsvTable table = parse_csv(text_of("trials.csv", run_view(session, history, std::nullopt)).value(), "trials");
  const auto cell = [&](std::size_t row, const char* name) {
    return table.rows.at(row).at(static_cast<std::size_t>(table.column(name)));
  };
  EXPECT_EQ(cell(0, "momentum"), "");
  EXPECT_EQ(cell(0, "metric_loss"), "");
  EXPECT_EQ(cell(1, "momentum"), "3");
  EXPECT_EQ(cell(1, "metric_loss"), "0.25");
}

TEST(DsConfig, WritesEveryKnobOfTheConfigurationWhereDeepSpeedReadsIt) {
  const session::Session session = bench_session();
  search::Recommendation best = recommendation();
  best.configuration.set("stage3_prefetch_bucket_size", std::int64_t{1000});
  best.configuration.set("offload_optimizer", "cpu");
  best.configuration.set("offload_param", "none");
  const auto written = [&] {
    return parse_json(text_of("ds_config_optimal.json", run_view(session, {}, best)).value(), "written");
  };
  const Json zero = written()["zero_optimization"];
  EXPECT_EQ(zero["stage3_prefetch_bucket_size"], 1000);
  EXPECT_EQ(zero["offload_optimizer"], parse_json(R"({"device": "cpu", "pin_memory": true})", "expected"));
  EXPECT_FALSE(zero.contains("offload_param"));
  best.configuration.set("zero_stage", std::int64_t{2});
  EXPECT_FALSE(written()["zero_optimization"].contains("stage3_prefetch_bucket_size")) << "it says nothing there";
}

TEST(ResultFiles, SayNothingOfABestBeforeATrialIsOk) {
  const session::Session session = bench_session();
  const TemporaryDirectory directory;
  const search::History none;
  report::RunView run = run_view(session, none, std::nullopt);
  run.directory = directory.path();
  EXPECT_EQ(result::write_result_files(run), std::vector<std::string>{"trials.csv"});
}

TEST(ResultFiles, OfASessionWithoutWorkloadHaveNoTrainingConfiguration) {
  session::Session session;
  session.runner = runner::ReplaySpec();
  const TemporaryDirectory directory;
  const search::History none;
  report::RunView run = run_view(session, none, recommendation());
  run.directory = directory.path();
  EXPECT_EQ(result::write_result_files(run), (std::vector<std::string>{"trials.csv", "best.json"}));
}

// 32 sequences per step instead of the baseline's 8: by hand k = 4. No exported file changes because of it.
TEST(ResultFiles, AdviseOnTheLearningRateWhereTheBatchIsAnother) {
  session::Session session = bench_session();
  session.workload->train_batch_size.reset();
  search::Recommendation best = recommendation();
  best.configuration.set("gradient_accumulation_steps", std::int64_t{4});
  const search::History history = all_outcomes();
  const report::RunView run = run_view(session, history, best);
  const Json json = parse_json(text_of("best.json", run).value(), "written");
  EXPECT_EQ(json["batch_advice"].dump(),
            R"({"base_batch":8,"batch":32,"optimizer":"adamw","rule":"square-root","learning_rate_times":2,)"
            R"("linear":4,"square_root":2,"warmup_steps_times":0.25})");
  const std::string command = text_of("cmd_optimal.txt", run).value();
  EXPECT_NE(command.find("\n# 32 sequences a step, not 8: advice for training, nothing exported is changed by it\n"
                         "# learning rate x 2 (square-root rule for AdamW; linear x 4)\n"
                         "# steps of the warm-up x 0.25 (as many samples)\n"),
            std::string::npos)
      << command;
  EXPECT_EQ(parse_json(text_of("ds_config_optimal.json", run).value(), "written")["optimizer"]["params"]["lr"], 1e-3);
  // There is no advice if the batch is the same.
  const report::RunView same = run_view(session, history, recommendation());
  EXPECT_FALSE(parse_json(text_of("best.json", same).value(), "written").contains("batch_advice"));
  EXPECT_EQ(text_of("cmd_optimal.txt", same).value().find('#'), std::string::npos);
}

}  // namespace krigtune::result_files_test

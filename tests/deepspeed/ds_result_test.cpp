// Results for a user's own DeepSpeed job: the file, the command, and their differences.
#include "deepspeed/result/ds_result.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/text.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/result/loss_check.h"
#include "report/change_text.h"
#include "result/export.h"
#include "result/report_fixtures.h"
#include "result/result_files.h"
#include "result/trial_table.h"
#include "trial/temporary_directory.h"

namespace krigtune::ds_result_test {

deepspeed::DsUserJob job() {
  deepspeed::DsUserJob job;
  job.source = "ds_config.json";
  job.config = deepspeed::read_ds_config(R"({
    "steps_per_print": 10, "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 8, "autotuning": {"enabled": true},
    "zero_optimization": {"overlap_comm": false, "stage": [1, 2, 3], "reduce_bucket_size": 500000000,
                          "sub_group_size": 7},
    "optimizer": {"type": "AdamW", "params": {"lr": 0.0003, "betas": [0.9, 0.95]}}, "my_key": null})",
                                         job.source);
  job.command = {
      "deepspeed", "--num_gpus", "2", "train.py", "--deepspeed", "ds.json", "--per_device_train_batch_size=4",
      "--lr",      "3e-4"};
  job.ranks = 2;
  return job;
}

space::Configuration best_configuration() {
  return {{"zero_stage", std::int64_t{2}},
          {"micro_batch", std::int64_t{16}},
          {"gradient_accumulation_steps", std::int64_t{2}},
          {"overlap_comm", true}};
}

search::Recommendation best_of_job() {
  search::Recommendation best = recommendation();
  best.configuration = best_configuration();
  best.changes.each = {{"zero_stage", space::Value(std::int64_t{1}), space::Value(std::int64_t{2}),
                        search::Change::Alone::kTooLarge, std::nullopt},
                       {"micro_batch", space::Value(std::int64_t{4}), space::Value(std::int64_t{16}),
                        search::Change::Alone::kPossible, search::Gain{1.8, 1.6, 2.0}},
                       {"gradient_accumulation_steps", space::Value(std::int64_t{8}), space::Value(std::int64_t{2}),
                        search::Change::Alone::kFollows, std::nullopt},
                       {"overlap_comm", space::Value(false), space::Value(true), search::Change::Alone::kPossible,
                        search::Gain{1.12, 1.041, 1.21}}};
  best.changes.together = search::Gain{2.0, 1.7, 2.4};
  return best;
}

TEST(DsResult, IsTheUsersFileInTheUsersOrderWithWhatWasTunedAndCleanOfAutotuning) {
  EXPECT_EQ(deepspeed::ds_config_of(job(), best_configuration()).dump(),
            R"({"steps_per_print":10,"train_batch_size":64,"train_micro_batch_size_per_gpu":16,)"
            R"("gradient_accumulation_steps":2,"zero_optimization":{"overlap_comm":true,"stage":2,)"
            R"("reduce_bucket_size":500000000,"sub_group_size":7},"optimizer":{"type":"AdamW","params":{"lr":0.0003,)"
            R"("betas":[0.9,0.95]}},"my_key":null})");
}

TEST(DsResult, CommandIsTheUsersWithTheNewFileAndFlagsThatAgreeWithIt) {
  EXPECT_EQ(join(deepspeed::ds_command_of(job(), best_configuration(), "/run/ds_config_optimal.json"), " "),
            "deepspeed --num_gpus 2 train.py --deepspeed /run/ds_config_optimal.json --per_device_train_batch_size=16 "
            "--lr 3e-4 --gradient_accumulation_steps 2");
}

TEST(DsResult, DiffNamesEachChangedKeyAndFlagWithItsGainAndNothingElse) {
  const session::Objective objective;
  const std::string text = deepspeed::ds_config_diff(job(), objective, best_of_job(), {{}, {"learning rate x 2"}});
  const char* rows =
      "| key or flag | before | after | gain |\n|---|---|---|---|\n"
      "| `train_micro_batch_size_per_gpu` | `4` | `16` | 1.8 times faster (1.6 to 2.0) |\n"
      "| `gradient_accumulation_steps` | `8` | `2` | follows from the others |\n"
      "| `autotuning` | `{\"enabled\":true}` | left out | it would end a training after its profile steps |\n"
      "| `zero_optimization.overlap_comm` | `false` | `true` | 12 % faster (4.1 % to 21 %) |\n"
      "| `zero_optimization.stage` | `[1,2,3]` | `2` | without it the rest does not fit into memory |\n"
      "| `--per_device_train_batch_size` | 4 | 16 | 1.8 times faster (1.6 to 2.0) |\n"
      "| `--gradient_accumulation_steps` |  | 2 | follows from the others |\n"
      "\nA gain is";
  EXPECT_NE(text.find(rows), std::string::npos) << text;
  EXPECT_NE(text.find("All changes together, by the model: 2.0 times faster (1.7 to 2.4)."), std::string::npos) << text;
  EXPECT_NE(text.find("\nlearning rate x 2\n"), std::string::npos) << text;
}

TEST(DsResult, DiffOfAnUnchangedFileSaysSo) {
  deepspeed::DsUserJob same = job();
  same.config = deepspeed::read_ds_config(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1,
    "zero_optimization": {"stage": 1}, "train_batch_size": 4})",
                                          same.source);
  same.command = {"python", "train.py", "--deepspeed_config", "ds.json"};
  search::Recommendation best = recommendation();
  best.configuration = {{"zero_stage", std::int64_t{1}},
                        {"micro_batch", std::int64_t{2}},
                        {"gradient_accumulation_steps", std::int64_t{1}}};
  const std::string text = deepspeed::ds_config_diff(same, session::Objective(), best, {});
  EXPECT_NE(text.find("Nothing: what you have is the best that was found."), std::string::npos) << text;
}

TEST(DsResult, NewOffloadIsOneRowWithTheGainOfItsKnob) {
  search::Recommendation best = best_of_job();
  best.configuration.set("offload_optimizer", "cpu");
  best.changes.each.push_back({"offload_optimizer", space::Value("none"), space::Value("cpu"),
                               search::Change::Alone::kPossible, search::Gain{0.9, 0.85, 0.95}});
  const std::string text = deepspeed::ds_config_diff(job(), session::Objective(), best, {});
  EXPECT_NE(text.find("| `zero_optimization.offload_optimizer` |  | `{\"device\":\"cpu\",\"pin_memory\":true}` | "
                      "10 % slower (5.0 % to 15 %) |"),
            std::string::npos)
      << text;
}

TEST(DsResult, IsWhatTheRunDirectoryOfADeepSpeedSessionGets) {
  const TemporaryDirectory directory;
  const auto file = directory.write("ds.json", job().config.dump());
  const session::Session session = session::read_session(parse_json(R"({
    "cluster": {"gpus_per_node": 2},
    "space": {"zero_stage": [1, 2, 3], "micro_batch": [4, 16], "gradient_accumulation_steps": [2, 8],
              "overlap_comm": [false, true]}, "baseline": null,
    "runner": {"kind": "deepspeed", "argv": ["deepspeed", "it's.py", "--deepspeed_config", "ds.json", "--mb", "4"],
               "ds_config": "ds.json", "env": {"A": "1"}, "arg_mappings": {"train_micro_batch_size_per_gpu": "--mb"}}})",
                                                                    "session"),
                                                         "session", directory.path());
  const search::History history = all_outcomes();
  report::RunView run = run_view(session, history, best_of_job());
  run.directory = directory / "run";
  std::filesystem::create_directory(run.directory);
  EXPECT_EQ(result::write_result_files(run),
            (std::vector<std::string>{"trials.csv", "best.json", "ds_config_optimal.json", "ds_config_diff.md",
                                      "cmd_optimal.txt"}));
  const std::string config = (run.directory / "ds_config_optimal.json").string();
  EXPECT_EQ(read_text(config), deepspeed::ds_config_text(deepspeed::ds_config_of(job(), best_configuration())));
  EXPECT_EQ(read_text(run.directory / "cmd_optimal.txt"),
            "cd " + directory.path().string() + " && env A=1 deepspeed 'it'\\''s.py' --deepspeed_config " + config +
                " --mb 16\n");
  EXPECT_NE(read_text(run.directory / "ds_config_diff.md").find("| `--mb` | 4 | 16 | 1.8 times faster"),
            std::string::npos);
  EXPECT_EQ(load_json(run.directory / "best.json")["changes"]["each"].size(), 4U);
  // Exports the same file.
  EXPECT_EQ(result::export_format_from("deepspeed", "").make(run, "/out").files.at(0).text, read_text(config));
}

// A session of a DeepSpeed job with its files, two trials that split the batch in the same way, and the losses that
// they printed.
class DsLossCheck : public ::testing::Test {
 protected:
  DsLossCheck() {
    directory_.write("ds.json", job().config.dump());
    history_[5] = trial_record(5, configuration(3, 2, true), measured_samples(125.0, 1.5));
    best_.configuration = configuration(3, 2, true);
  }
  void leave(int number, const std::string& losses) {
    const auto folder = directory_ / "trials" / run::trial_folder(history_[static_cast<std::size_t>(number)]);
    std::filesystem::create_directories(folder);
    write_atomically(folder / "result.json", R"({"losses": )" + losses + R"(, "loss_resolution": 1e-6})");
  }
  report::RunView run() const {
    report::RunView view = run_view(session_, history_, best_);
    view.directory = directory_.path();
    return view;
  }
  std::string file(const std::string& name) const {
    result::write_result_files(run());
    return read_text(directory_ / name);
  }

  TemporaryDirectory directory_;
  session::Session session_ = session::read_session(parse_json(R"({"cluster": {"gpus_per_node": 2},
    "space": {"zero_stage": [1, 2, 3], "micro_batch": [2, 4]}, "baseline": null,
    "runner": {"kind": "deepspeed", "argv": ["deepspeed", "train.py", "--deepspeed_config", "ds.json"]}})",
                                                               "session"),
                                                    "session", directory_.path());
  search::History history_ = all_outcomes();
  search::Recommendation best_ = recommendation();
};

TEST_F(DsLossCheck, ADisagreementStandsOnTopOfTheResultAndHidesNothing) {
  leave(0, "[6.5, 6.4, 6.3]");
  leave(5, "[6.5, 6.4, 7.3]");
  const std::string diff = file("ds_config_diff.md");
  EXPECT_LE(diff.find("**Warning:** the losses of trial 5 differ from those of trial 0 from step 3 on: by 14 %"),
            diff.find("The best is trial 5"))
      << diff;
  EXPECT_NE(diff.find("| `zero_optimization.stage` |"), std::string::npos);
  EXPECT_EQ(load_json(directory_ / "best.json").at("loss_check").at("verdict"), "differ");
  EXPECT_EQ(load_json(directory_ / "best.json").at("loss_check").at("first").at("loss"), 3);
  EXPECT_EQ(result::trial_table(run()).notes.at(0).substr(0, 41), "warning: the losses of trial 5 differ fro");
}

TEST_F(DsLossCheck, AnAgreementIsANoteAndItsAbsenceHasAReason) {
  leave(0, "[6.5, 6.4, 6.3]");
  leave(5, "[6.5, 6.4, 6.3001]");
  const std::string diff = file("ds_config_diff.md");
  EXPECT_EQ(diff.find("Warning"), std::string::npos);
  EXPECT_GT(diff.find("the losses of trial 5 agree with those of trial 0 within 0.0016 % over the first 3 steps"),
            diff.find("A gain is"));
  leave(5, "[]");
  EXPECT_NE(file("ds_config_diff.md").find("cannot be compared with those of trial 0: the script prints none"),
            std::string::npos);
  history_[5].proposal.configuration.set("gradient_accumulation_steps", std::int64_t{8});
  leave(5, "[6.5, 6.4, 6.3]");
  EXPECT_NE(file("ds_config_diff.md").find("their batches differ"), std::string::npos);
  best_.trial = best_.reference_trial;
  EXPECT_FALSE(deepspeed::loss_check(run()));
}

TEST_F(DsLossCheck, AFileThatHasChangedSinceIsNotWhatTheResultIsAbout) {
  std::get<deepspeed::DeepSpeedSpec>(session_.runner).ds_config_text = job().config.dump();
  EXPECT_EQ(file("ds_config_diff.md").find("Warning"), std::string::npos);
  const std::string before = file("ds_config_optimal.json");
  directory_.write("ds.json", R"({"train_batch_size": 2})");
  EXPECT_EQ(file("ds_config_optimal.json"), before);
  EXPECT_NE(file("ds_config_diff.md").find("**Warning:** ds.json has changed since the session began"),
            std::string::npos);
}

TEST_F(DsLossCheck, TheCommandHoldsTheConfigurationWhereTrialsDid) {
  std::get<deepspeed::DeepSpeedSpec>(session_.runner).config_as = deepspeed::DsConfigAs::kBase64;
  EXPECT_NE(file("cmd_optimal.txt")
                .find("--deepspeed_config " +
                      deepspeed::ds_config_base64(deepspeed::ds_config_of(job(), best_.configuration)) + "\n"),
            std::string::npos);
}

// 2 ranks, 64 sequences per step in the file, 8 * 16 * 2 in the best configuration; there is no workload.
TEST_F(DsLossCheck, AnotherBatchHasAdviceByTheFilesOwnOptimizer) {
  best_.configuration.set("micro_batch", std::int64_t{16});
  best_.configuration.set("gradient_accumulation_steps", std::int64_t{8});
  EXPECT_NE(file("ds_config_diff.md")
                .find("256 sequences a step, not 64: advice for training, nothing exported is changed by it\n"
                      "learning rate x 2: 0.0006, not 0.0003 (square-root rule for AdamW; linear x 4)\n"
                      "steps of the warm-up x 0.25"),
            std::string::npos);
  EXPECT_EQ(load_json(directory_ / "best.json").at("batch_advice").at("learning_rate_times"), 2);
  Json config = job().config;
  config["optimizer"] = {{"type", "SGD"}};
  directory_.write("ds.json", config.dump());
  EXPECT_NE(file("cmd_optimal.txt").find("# learning rate x 4 (linear rule for SGD; square root x 2)\n"),
            std::string::npos);
  config.erase("optimizer");
  directory_.write("ds.json", config.dump());
  EXPECT_NE(file("cmd_optimal.txt").find("square-root rule for optimizers like Adam; linear x 4"), std::string::npos);
  best_.configuration.set("gradient_accumulation_steps", std::int64_t{2});
  EXPECT_EQ(file("cmd_optimal.txt").find("learning rate"), std::string::npos);
}

TEST(ChangeText, TellsGainsWithTheirIntervals) {
  session::Objective objective;
  search::Recommendation doubtful;
  doubtful.trial = 6;
  doubtful.gain_by_model = search::Gain{2.71, 0.74, 3.07};
  EXPECT_EQ(report::doubt_about_gain(doubtful),
            "this gain is not certain: its 95 % interval, 0.74 to 3.07 times, includes 1; krigtune tune "
            "--repeat 5 measures both again");
  doubtful.measurements = doubtful.reference_measurements = 5;
  EXPECT_EQ(report::doubt_about_gain(doubtful),
            "this gain is not certain: its 95 % interval, 0.74 to 3.07 times, includes 1");
  EXPECT_EQ(report::expected_gain_text(doubtful), "2.71x trial 0, 95 % interval 0.74x to 3.07x");
  doubtful.gain_by_model->lower_95 = 1.002;  // printed as 1.00
  EXPECT_EQ(report::doubt_about_gain(doubtful),
            "this gain is not certain: its 95 % interval, 1.00 to 3.07 times, includes 1");
  doubtful.gain_by_model->lower_95 = 1.2;
  EXPECT_EQ(report::doubt_about_gain(doubtful), "");
  EXPECT_EQ(report::gain_sentence(objective, {1.33, 0.995, 1.77}), "perhaps 33 % faster (-0.5 % to 77 %)");
  EXPECT_EQ(report::gain_sentence(objective, {0.8, 0.6, 1.1}), "perhaps 20 % slower (-40 % to 10 %)");
  EXPECT_EQ(report::gain_sentence(objective, {1.12, 1.041, 1.21}), "12 % faster (4.1 % to 21 %)");
  EXPECT_EQ(report::gain_sentence(objective, {0.9, 0.85, 0.95}), "10 % slower (5.0 % to 15 %)");
  EXPECT_EQ(report::gain_sentence(objective, {0.5, 0.4, 0.625}), "2.0 times slower (1.6 to 2.5)");
  EXPECT_EQ(report::gain_sentence(objective, {1.01, 0.98, 1.04}), "no clear effect (-2.0 % to 4.0 %)");
  objective.metric = "accuracy";
  EXPECT_EQ(report::gain_sentence(objective, {1.12, 1.04, 1.2}), "12 % better (4.0 % to 20 %)");
  const std::vector<std::string> lines = report::change_lines(session::Objective(), best_of_job().changes);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "zero_stage 1 -> 2: without it the rest does not fit into memory");
  EXPECT_EQ(lines[1], "micro_batch 4 -> 16: 1.8 times faster (1.6 to 2.0)");
  EXPECT_EQ(lines[4], "all together: 2.0 times faster (1.7 to 2.4)");
}

}  // namespace krigtune::ds_result_test

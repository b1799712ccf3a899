// changes.md of a job that does not use DeepSpeed.
#include "jobs/result/changes.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "deepspeed/result/loss_check.h"
#include "jobs/session/job_session.h"
#include "result/report_fixtures.h"
#include "run/loop.h"
#include "trial/temporary_directory.h"
#include "words.h"

namespace krigtune::changes_test {

using jobs::SaidPlace;

TEST(SaidPlaces, AreFlagsOverridesVariablesAndKeysOfFiles) {
  const jobs::TrainingCommand command{
      {"python", "t.py", "--mbs", "4", "--lr=3e-4", "--amp", "x.yaml", "--shift", "-2", "++train.lr=1", "--mbs", "8"},
      {{"BATCH", "2"}},
      {{"c.yaml", "a:\n  b: 1\n  c: [x]\n"}, {"notes.txt", "a: 1\n"}}};
  const std::vector<SaidPlace> wanted = {{"$BATCH", "2"},      {"--mbs", "8"},        {"--lr", "3e-4"},
                                         {"--amp", ""},        {"--shift", "-2"},     {"train.lr", "1"},
                                         {"c.yaml: a.b", "1"}, {"c.yaml: a.c.0", "x"}};
  const std::vector<SaidPlace> said = jobs::said_places(command, {"--amp"});
  ASSERT_EQ(said.size(), wanted.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_EQ(said[i].place, wanted[i].place);
    EXPECT_EQ(said[i].text, wanted[i].text) << said[i].place;
  }
}

class Changes : public testing::Test {
 protected:
  Changes() {
    directory_.write("conf.yaml", "train:\n  steps: 10\n  lr: 0.1\n");
    session_ = session::read_session(parse_json(R"json({
      "space": {"micro_batch": [1, 2, 4], "lr": [0.1, 0.2], "amp": [false, true], "workers": [0, 1], "kept": [1, 2]},
      "baseline": {"micro_batch": 1, "lr": 0.1, "amp": false, "workers": 0, "kept": 1},
      "objective": {"metric": "value", "direction": "maximize"},
      "runner": {"kind": "command", "argv": ["python", "t.py", "{dir}/conf.yaml", "--mbs", "{micro_batch}", "--k={kept}"],
                 "env": {"WORKERS": "{workers}"}, "flags": {"amp": {"true": ["--amp"], "false": []}},
                 "set": {"conf.yaml": {"train.lr": "{lr}"}},
                 "measure": {"value": {"regex": "v ([0-9]+)"}, "loss": {"regex": "l ([0-9]+)"}}}})json",
                                                "session"),
                                     "session", directory_.path());
    best_.trial = 1;
    best_.gain = 1.5;
    best_.configuration = configuration(4, 0.2, true, 1);
    const auto change = [&](const char* name, space::Value before, space::Value after, double factor) {
      best_.changes.each.push_back(
          {name, before, after, search::Change::Alone::kPossible, search::Gain{factor, factor - 0.1, factor + 0.1}});
    };
    change("micro_batch", std::int64_t{1}, std::int64_t{4}, 1.3);
    change("lr", 0.1, 0.2, 1.0);
    change("amp", false, true, 1.4);
    change("workers", std::int64_t{0}, std::int64_t{1}, 1.5);
    best_.changes.together = search::Gain{1.5, 1.4, 1.6};
  }
  static space::Configuration configuration(std::int64_t micro, double lr, bool amp, std::int64_t workers) {
    return {{"micro_batch", micro}, {"lr", lr}, {"amp", amp}, {"workers", workers}, {"kept", std::int64_t{1}}};
  }
  std::string page() const {
    const report::RunView run{
        session_, history_, "t", {}, directory_ / "run", {}, answer::answer_of(session_, history_, best_)};
    return jobs::changes_of_job(run).value_or("none");
  }

  TemporaryDirectory directory_;
  session::Session session_;
  search::History history_ = {
      trial_record(0, configuration(1, 0.1, false, 0), trial::Outcome(trial::Measured{{{"value", 100.0}}, 0.0, {}})),
      trial_record(1, configuration(4, 0.2, true, 1), trial::Outcome(trial::Measured{{{"value", 150.0}}, 0.0, {}}))};
  search::Recommendation best_;
};

TEST_F(Changes, NameEachChangedPlaceWithItsGainAndNothingElse) {
  const std::string text = page();
  EXPECT_NE(text.find("# What is changed in the command of t\n\nThe best is trial 1, 1.50 times trial 0 as measured. "
                      "All changes together, by the model: 1.5 times better (1.4 to 1.6)."),
            std::string::npos)
      << text;
  const char* rows =
      "| flag, key or variable | before | after | gain |\n|---|---|---|---|\n"
      "| `$WORKERS` | `0` | `1` | 1.5 times better (1.4 to 1.6) |\n"
      "| `--mbs` | `1` | `4` | 30 % better (20 % to 40 %) |\n"
      "| `--amp` |  | there | 40 % better (30 % to 50 %) |\n"
      "| `conf.yaml: train.lr` | `0.1` | `0.2` | no clear effect (-10 % to 10 %) |\n\n";
  EXPECT_NE(text.find(rows), std::string::npos) << text;
}

// Trial 0 stated values that the command leaves to their defaults. They were credited with the gain of another change.
TEST_F(Changes, NameWhatTrialZeroHadWhereTheCommandSaysNothing) {
  jobs::JobRequest request;
  request.command = words_of(
      "torchrun --nproc_per_node 2 sft.py --output_dir o --bf16 --per_device_train_batch_size 2 "
      "--gradient_accumulation_steps 4 --model_name_or_path Qwen/Qwen3-4B --max_length 1024");
  request.directory = directory_.path();
  session_ = jobs::session_of_job(request).session;
  ASSERT_TRUE(session_.baseline);
  ASSERT_TRUE(session_.baseline->boolean("ddp_find_unused_parameters", false));
  best_.configuration = *session_.baseline;
  best_.configuration.set("ddp_find_unused_parameters", false);
  best_.changes.each = {{"ddp_find_unused_parameters", space::Value(true), space::Value(false),
                         search::Change::Alone::kPossible, search::Gain{1.17, 1.08, 1.26}}};
  const std::string text = page();
  EXPECT_NE(text.find("| `--ddp_find_unused_parameters` | `true` in trial 0 | `false` | 17 % faster"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| `--ddp_bucket_cap_mb` | `25` in trial 0 | `25` | as trial 0 had it |"), std::string::npos)
      << text;
}

TEST_F(Changes, SayWhyLossesCannotBeCompared) {
  EXPECT_NE(
      page().find("the losses of trial 1 cannot be compared with those of trial 0: 'lr' differs, which may change "
                  "what is learned"),
      std::string::npos)
      << page();
}

// Twice the micro-batch on half as many replicas is the same batch. Their batches were said to differ.
TEST_F(Changes, CompareLossesWhereRanksShareASequence) {
  best_.changes.each.clear();
  for (journal::Trial& trial : history_) {
    const std::int64_t ranks = trial.number + 1;
    trial.proposal.configuration = {{"micro_batch", ranks}, {"context_parallel", ranks}};
    const std::filesystem::path folder = directory_ / "run" / "trials" / run::trial_folder(trial);
    std::filesystem::create_directories(folder);
    write_atomically(folder / "measured.json", R"({"losses": [6.5, 6.4, 6.3]})");
  }
  EXPECT_NE(page().find("the losses of trial 1 agree with those of trial 0"), std::string::npos) << page();
}

TEST_F(Changes, AreNoneWhereTheBaselineIsBest) {
  best_.configuration = configuration(1, 0.1, false, 0);
  best_.trial = 0;
  best_.changes = {};
  EXPECT_NE(page().find("Nothing: what you have is the best that was found."), std::string::npos);
}

}  // namespace krigtune::changes_test

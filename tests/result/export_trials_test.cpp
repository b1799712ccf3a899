// All trials as MLflow's store, as JSON, and as text.
#include <gtest/gtest.h>

#include "core/json.h"
#include "jobs/recipe/config_values.h"
#include "result/export.h"
#include "result/report_fixtures.h"

namespace krigtune::export_trials_test {

result::Export exported(const char* format, const report::RunView& run) {
  return result::export_format_from(format, "--format").make(run, "/my runs/it/export");
}

using Files = std::map<std::string, std::string>;

Files files_of(const result::Export& made) {
  Files files;
  for (const result::ExportedFile& file : made.files) files[file.name] = file.text;
  return files;
}

std::string value_in(const std::string& yaml, const char* key) {
  const jobs::ConfigValues values = jobs::config_values_of(yaml, ".yaml", "meta.yaml");
  const auto found = values.find(key);
  return found == values.end() ? "absent" : space::to_string(found->second);
}

// Returns the files of the run with that title, by their names in it.
Files run_called(const Files& files, const std::string& title) {
  std::string folder;
  for (const auto& [name, text] : files) {
    if (name.find("/tags/mlflow.runName") != std::string::npos && text == title) {
      folder = name.substr(0, name.find("tags/"));
    }
  }
  Files found;
  for (const auto& [name, text] : files) {
    if (!folder.empty() && name.rfind(folder, 0) == 0) found[name.substr(folder.size())] = text;
  }
  return found;
}

TEST(MlflowExport, HasARunForEachClosedTrialWithItsParametersMetricsAndStatus) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const Files files = files_of(exported("mlflow", run_view(session, history, recommendation())));
  const Files best = run_called(files, "trial 5");
  EXPECT_EQ(best.at("params/zero_stage"), "3");
  EXPECT_EQ(best.at("params/overlap_comm"), "true");
  EXPECT_EQ(best.at("metrics/throughput").find(" 125 0\n"), best.at("metrics/throughput").find(' '));
  EXPECT_EQ(best.count("metrics/samples_per_s"), 0U) << "it is the throughput";
  EXPECT_EQ(best.count("metrics/step_time_s"), 1U);
  EXPECT_EQ(best.at("tags/krigtune.best"), "true");
  EXPECT_EQ(value_in(best.at("meta.yaml"), "status"), "3");
  EXPECT_EQ(value_in(best.at("meta.yaml"), "run_name"), "trial 5");
  const Files bounded = run_called(files, "trial 4");
  EXPECT_EQ(value_in(bounded.at("meta.yaml"), "status"), "5");
  EXPECT_EQ(bounded.count("metrics/throughput_bound"), 1U);
  const Files failed = run_called(files, "trial 3");
  EXPECT_EQ(value_in(failed.at("meta.yaml"), "status"), "4");
  EXPECT_EQ(failed.at("tags/krigtune.reason"), "timeout");
  EXPECT_EQ(failed.count("tags/krigtune.best"), 0U);
  EXPECT_TRUE(run_called(files, "trial 6").empty()) << "it still runs";
  for (const Files& run : {best, bounded, failed}) {  // MLflow 3 finds no runs without these folders
    EXPECT_EQ(run.count("metrics/wall_s"), 1U);
    EXPECT_EQ(run.count("params/zero_stage"), 1U);
    EXPECT_EQ(run.count("artifacts/configuration.json"), 1U);
  }
}

TEST(MlflowExport, NamesItselfConsistentlyAndTheSameEachTime) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const Files files = files_of(exported("mlflow", run_view(session, history, recommendation())));
  EXPECT_EQ(files, files_of(exported("mlflow", run_view(session, history, recommendation()))));
  for (const auto& [name, text] : files) {
    if (name.find("meta.yaml") == std::string::npos) continue;
    const std::filesystem::path folder = std::filesystem::path(name).parent_path();
    const bool is_run = std::distance(folder.begin(), folder.end()) == 3;
    const std::filesystem::path experiment = is_run ? folder.parent_path() : folder;
    const jobs::ConfigValues values = jobs::config_values_of(text, ".yaml", name);
    EXPECT_NE(text.find("experiment_id: '" + experiment.filename().string() + "'"), std::string::npos) << text;
    const std::string place = "file:///my%20runs/it/export/" + folder.string();
    EXPECT_EQ(space::to_string(values.at(is_run ? "artifact_uri" : "artifact_location")),
              is_run ? place + "/artifacts" : place);
    if (is_run) {
      EXPECT_NE(text.find("run_id: \"" + folder.filename().string() + "\""), std::string::npos) << text;
    }
  }
}

// Metrics have the names that the user's program gives them.
TEST(MlflowExport, LeavesItsFolderForNoName) {
  const session::Session session = bench_session();
  trial::Measured measured;
  measured.metrics = {{"samples_per_s", 1.0}, {"../../secret", 2.0}, {"..", 3.0}, {"loss (train)", 4.0}};
  const search::History history = {trial_record(0, configuration(2, 2, false), measured)};
  const Files run = run_called(files_of(exported("mlflow", run_view(session, history, std::nullopt))), "trial 0");
  EXPECT_EQ(run.count("metrics/.._.._secret"), 1U);
  EXPECT_EQ(run.count("metrics/_.."), 1U);
  EXPECT_EQ(run.count("metrics/loss _train_"), 1U);
}

TEST(JsonExport, HasTheBestWithItsEvidenceAndEveryTrial) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const result::Export made = exported("json", run_view(session, history, recommendation()));
  const Json json = parse_json(made.files.at(0).text, "written");
  EXPECT_EQ(made.files[0].name, "run.json");
  EXPECT_EQ(json["best"]["trial"], 5);
  EXPECT_EQ(json["best"]["gain"], 1.25);
  ASSERT_EQ(json["trials"].size(), 6U);
  EXPECT_EQ(json["trials"][5]["value"], 125);
  EXPECT_EQ(json["trials"][5]["configuration"]["zero_stage"], 3);
  EXPECT_EQ(json["trials"][5]["peak_memory_bytes"], 123456);
  EXPECT_EQ(json["trials"][4]["bound"], 50);
  EXPECT_TRUE(json["trials"][3]["value"].is_null());
  EXPECT_EQ(json["trials"][3]["reason"], "timeout");
}

search::Recommendation with_changes() {
  search::Recommendation best = recommendation();
  best.changes.each = {{"zero_stage", space::Value(std::int64_t{2}), space::Value(std::int64_t{3}),
                        search::Change::Alone::kPossible, search::Gain{1.12, 1.04, 1.21}},
                       {"micro_batch", space::Value(std::int64_t{2}), space::Value(std::int64_t{4}),
                        search::Change::Alone::kPossible, search::Gain{1.01, 0.97, 1.05}}};
  best.changes.together = best.gain_by_model = search::Gain{1.24, 1.18, 1.3};
  return best;
}

TEST(MarkdownExport, ComparesTheBestWithTheUsersOwnAndSaysHowToReproduceIt) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const std::string text = exported("markdown", run_view(session, history, with_changes())).files.at(0).text;
  for (const char* part :
       {"**1.25x your own configuration**, throughput 125 samples/s (100 samples/s) as measured; by the model of all "
        "trials 24 % faster (18 % to 30 %). Trial 5 of `fixture`.\n",
        ", 95 % interval 120 to 128 samples/s.\n",
        "| setting | before | after | gain of this change alone |\n|---|---|---|---|\n"
        "| `zero_stage` | `2` | `3` | 12 % faster (4.0 % to 21 %) |\n"
        "| `micro_batch` | `2` | `4` | no clear effect (-3.0 % to 5.0 %) |\n",
        "6 trials by the strategy bayes: 2 ok, 2 oom, 1 failed, 1 bounded; ", "rank-hours spent in them.\n",
        "```sh\n/opt/krigtune-bench --config ",
        "The same session with `--strategy bayes --seed 7` proposes the same"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
}

// The time that such trials took was spent all the same.
TEST(MarkdownExport, CountsNoTrialThatTheEnvironmentFailedOrThatWasInterrupted) {
  const session::Session session = bench_session();
  search::History history = all_outcomes();
  const auto line = [&] {
    const std::string text = exported("markdown", run_view(session, history, with_changes())).files.at(0).text;
    const std::size_t begin = text.find("6 trials by the strategy");
    return begin == std::string::npos ? text : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line().find("6 trials by the strategy bayes: 2 ok, 2 oom, 1 failed, 1 bounded; 0.0083 "), 0U) << line();
  for (const auto reason : {trial::FailureReason::kInterrupted, trial::FailureReason::kEnvironment}) {
    history = all_outcomes();
    history.back().outcome = trial::Failed{reason, 1, ""};
    history.back().wall_s = 36000.0;
    const std::string after = line();
    EXPECT_EQ(after, "6 trials by the strategy bayes: 2 ok, 2 oom, 1 failed, 1 bounded; 20 rank-hours spent in them.");
  }
}

TEST(MarkdownExport, LetsNoValueBreakItsTables) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  search::Recommendation best = with_changes();
  best.changes.each[0].after = space::Value(std::string("a|b`c\nd"));
  const std::string text = exported("markdown", run_view(session, history, best)).files.at(0).text;
  EXPECT_NE(text.find("| `zero_stage` | `2` | `` a\\|b`c d `` | 12 % faster"), std::string::npos) << text;
}

TEST(MarkdownExport, OfATrialThatWasAskedForListsItsSettings) {
  const session::Session session = bench_session();
  const search::History history = {all_outcomes()[5]};
  search::Recommendation asked;
  asked.trial = 5;
  asked.configuration = history[0].proposal.configuration;
  const std::string text = exported("markdown", run_view(session, history, asked)).files.at(0).text;
  EXPECT_NE(text.find("Configuration of trial 5 of `fixture`, as it was proposed.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| `micro_batch` | `4` |\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("0.00x"), std::string::npos) << text;
  EXPECT_TRUE(parse_json(exported("json", run_view(session, history, asked)).files.at(0).text, "j")["best"].is_null());
}

TEST(MarkdownExport, SaysWhereTheNetworkIsEmulated) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const search::History history = all_outcomes();
  const std::string text = exported("markdown", run_view(session, history, with_changes())).files.at(0).text;
  EXPECT_NE(text.find("emulated network eth-25"), std::string::npos) << text;
}

}  // namespace krigtune::export_trials_test

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "cli/cli_fixtures.h"
#include "core/columns.h"
#include "core/csv.h"
#include "core/json.h"
#include "report/labels.h"
#include "trial/event_clock.h"

namespace krigtune::session_test {

class SessionTest : public testing::Test {
 protected:
  std::string session(const std::string& more = "") const { return replay_session(directory_, more).string(); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  CsvTable table(const std::string& name) const { return parse_csv(read_text(directory_ / name), name); }
  Said tune(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"tune", session(), "--out", path(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_krigtune(arguments);
  }
  TemporaryDirectory directory_;
};

TEST_F(SessionTest, EndsWithTheBestItsGainWhyItEndedAndWhereTheFilesAre) {
  const Said said = tune("run", {"--trials", "12"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find(": zero_stage=2 micro_batch=4\n"), std::string::npos) << said.out;
  const CsvTable trials = table("run/trials.csv");
  const double first = std::stod(trials.rows[0][static_cast<std::size_t>(trials.column("value"))]);
  const Json best = load_json(directory_ / "run/best.json");
  EXPECT_EQ(best["gain"].get<double>(), 40.0 / first);
  EXPECT_EQ(trials.rows[best["trial"].get<std::size_t>()][static_cast<std::size_t>(trials.column("value"))], "40");
  EXPECT_NE(said.out.find("speed 40, " + report::gain_text(40.0 / first) + " trial 0 ("), std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("the session has no baseline"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("trials     12: 10 ok, 1 oom, 1 failed\n"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("ended      the budget of trials is spent\n"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find(path("run") + ": trials.csv best.json report.html\n"), std::string::npos) << said.out;
}

TEST_F(SessionTest, SaysOneLineForEachClosedTrialWhenPiped) {
  const Said said = tune("run", {"--trials", "12"});
  EXPECT_EQ(said.err.find('\r'), std::string::npos);
  EXPECT_NE(said.err.find("\ntrial "), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("\n    0*"), std::string::npos) << "numbers are the journal's: " << said.err;
  EXPECT_NE(said.err.find("\n   11 "), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("  OOM "), std::string::npos) << said.err;
  EXPECT_EQ(lines_in(said.err), 15U) << "the space, the titles, 12 trials, why one failed: " << said.err;
  std::istringstream lines(said.err);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 80) << line;
  EXPECT_EQ(tune("quiet", {"-q"}).err, "");
}

TEST_F(SessionTest, IsExportedWholeOrATrialOfItAndOnlyAsWhatThereIs) {
  tune("run", {"--trials", "12"});
  const Said whole = run_krigtune({"export", path("run"), "--format", "csv", "--json"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  const Json document = parse_json(whole.out, "export");
  EXPECT_EQ(document["trial"], load_json(directory_ / "run/best.json")["trial"]);
  EXPECT_EQ(document["files"][0]["file"], path("run/export/trials.csv"));
  EXPECT_EQ(read_text(path("run/export/trials.csv")), read_text(path("run/trials.csv")));
  const Said one = run_krigtune({"export", path("run"), "--format", "csv", "--trial", "3", "--out", path("one")});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out.rfind("trial 3: ", 0), 0U) << one.out;
  ASSERT_EQ(table("one/trials.csv").rows.size(), 1U);
  EXPECT_EQ(table("one/trials.csv").rows[0][0], "3");
  for (const auto& [more, line] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--format", "excel"}, "there are deepspeed, accelerate, torchtitan"},
           {{"--format", "wandb"}, "export as tensorboard"},
           {{"--format", "megatron"}, "nobody knows what its parameters mean to Megatron-LM"},
           {{"--format", "trace"}, "no step can be predicted: no workload is given"},
           {{"--format", "csv", "--trial", "99"}, "--trial: the run has no trial 99"},
           {{"--format", "accelerate"}, "no DeepSpeed configuration"},
           {{}, "--format is missing"}}) {
    std::vector<std::string> arguments = {"export", path("run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Said refused = run_krigtune(arguments);
    EXPECT_EQ(refused.code, 2) << line;
    EXPECT_NE(refused.err.find(line), std::string::npos) << refused.err;
    EXPECT_EQ(lines_in(refused.err), 1U) << refused.err;
  }
}

// export --out . replaced a user's own file of that name without a word.
TEST_F(SessionTest, ExportsReplaceNoFileOfTheUser) {
  tune("run", {"--trials", "12"});
  const auto export_to = [&](const std::string& trial) {
    return run_krigtune({"export", path("run"), "--format", "csv,json", "--trial", trial, "--out", path("mine")});
  };
  std::filesystem::create_directory(directory_ / "mine");
  write_atomically(directory_ / "mine/trials.csv", "my,own\n");
  const Said refused = export_to("3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "krigtune: export: '" + path("mine/trials.csv") +
                             "' exists, and krigtune export did not write it as it is now; move it away, or choose "
                             "another folder with --out\n");
  EXPECT_EQ(read_text(path("mine/trials.csv")), "my,own\n");
  EXPECT_FALSE(std::filesystem::exists(path("mine/run.json"))) << "all or nothing";
  std::filesystem::remove(path("mine/trials.csv"));
  EXPECT_EQ(export_to("3").code, 0);
  EXPECT_EQ(export_to("4").code, 0) << "it replaces what it wrote";
  EXPECT_EQ(table("mine/trials.csv").rows[0][0], "4");
  write_atomically(directory_ / "mine/trials.csv", "edited\n");
  EXPECT_EQ(export_to("4").code, 2);
}

TEST_F(SessionTest, IsExportedInSeveralFormatsAtOnceWithFoldersOfTheirOwn) {
  tune("run", {"--trials", "12"});
  const Said said = run_krigtune({"export", path("run"), "--format", "tensorboard,mlflow,markdown,json"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("tensorboard --logdir " + path("run/export/tensorboard")), std::string::npos) << said.out;
  EXPECT_EQ(lines_in(said.out), 5U) << "a line of the trial and one of each format: " << said.out;
  EXPECT_TRUE(std::filesystem::exists(path("run/export/tensorboard/trial_0011/events.out.tfevents.krigtune")));
  EXPECT_EQ(load_json(directory_ / "run/export/run.json")["trials"].size(), 12U);
  const Json document = parse_json(run_krigtune({"export", path("run"), "--format", "mlflow", "--json"}).out, "export");
  EXPECT_TRUE(document["omissions"].empty());
  for (const Json& file : document["files"]) EXPECT_TRUE(std::filesystem::exists(file["file"].get<std::string>()));
}

TEST_F(SessionTest, AsksTheSameQuestionsForTheSameSeedAndOthersForAnother) {
  tune("a", {"--seed", "5"});
  tune("b", {"--seed", "5"});
  tune("c", {"--seed", "6"});
  EXPECT_EQ(read_text(path("a/trials.csv")), read_text(path("b/trials.csv")));
  EXPECT_NE(read_text(path("a/trials.csv")), read_text(path("c/trials.csv")));
}

TEST_F(SessionTest, GoesOnWithTheSameCommandAndEndsWhereOneCallWouldHave) {
  tune("whole", {"--trials", "9"});
  tune("parts", {"--trials", "4"});
  EXPECT_EQ(table("parts/trials.csv").rows.size(), 4U);
  EXPECT_EQ(tune("parts", {"--trials", "9"}).code, 0);
  EXPECT_EQ(read_text(path("parts/trials.csv")), read_text(path("whole/trials.csv")));
  const Said again = tune("parts", {"--trials", "9"});
  EXPECT_EQ(again.code, 0) << "the budget was already spent, and a trial is ok";
  EXPECT_EQ(read_text(path("parts/trials.csv")), read_text(path("whole/trials.csv")));
}

TEST_F(SessionTest, GoesOnWithAnotherSeedAndStrategyAndSaysSo) {
  tune("run", {"--trials", "4"});
  const Said said = tune("run", {"--trials", "6", "--seed", "2", "--strategy", "random"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("goes on with another search: /strategy was \"bayes\", now \"random\", /seed was 1, now 2"),
            std::string::npos)
      << said.err;
  EXPECT_EQ(table("run/trials.csv").rows.size(), 6U);
}

TEST_F(SessionTest, GoesOnWhereTheRunItselfIsNamed) {
  tune("whole", {"--trials", "9", "--seed", "3"});
  for (const char* named : {"parts", "parts/session.json"}) {
    std::filesystem::remove_all(path("parts"));
    tune("parts", {"--trials", "4", "--seed", "3"});
    const Said said = run_krigtune({"tune", path(named), "--trials", "9"});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(said.err.find("goes on with another"), std::string::npos) << said.err;
    EXPECT_EQ(read_text(path("parts/trials.csv")), read_text(path("whole/trials.csv")));
  }
  const Said other = run_krigtune({"tune", path("parts"), "--", "python", "train.py"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("continues with the command that it began with"), std::string::npos) << other.err;
}

TEST_F(SessionTest, OverwritesNoFilesOfADirectoryThatHoldsNoRun) {
  std::filesystem::create_directory(path("mine"));
  directory_.write("mine/run.yaml", "lr: 1\n");
  const Said said = tune("mine");
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_NE(said.err.find("not empty (run.yaml)"), std::string::npos) << said.err;
  EXPECT_FALSE(std::filesystem::exists(path("mine/journal.log")));
}

TEST_F(SessionTest, MovesAnOlderRunAsideWhenFreshAndDeletesNothing) {
  tune("run");
  const std::string before = read_text(path("run/journal.log"));
  EXPECT_EQ(tune("run", {"--seed", "2", "--fresh"}).code, 0);
  EXPECT_EQ(read_text(path("run.1/journal.log")), before);
  EXPECT_EQ(tune("run", {"--seed", "3", "--fresh"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("run.2/journal.log")));
}

TEST_F(SessionTest, DoesNotMoveADirectoryThatHoldsNoRun) {
  std::filesystem::create_directory(path("mine"));
  directory_.write("mine/thesis.txt", "years of work");
  EXPECT_EQ(tune("mine", {"--fresh"}).code, 2);
  EXPECT_EQ(read_text(path("mine/thesis.txt")), "years of work");
}

TEST_F(SessionTest, FailsWhenTheBestIsSlowerThanAskedFor) {
  EXPECT_EQ(tune("run", {"--trials", "12", "--fail-if-slower-than", "1"}).code, 0);
  const Said said = tune("run", {"--trials", "12", "--fail-if-slower-than", "4.1"});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("x trial 0, less than the 4.10x of --fail-if-slower-than"), std::string::npos) << said.err;
}

TEST_F(SessionTest, WithoutAnOkTrialEndsWithOneAndTheReasons) {
  directory_.write("failures.csv", "a,v,status\n1,,oom\n2,,crash\n");
  const std::string file = directory_
                               .write("failures.json", R"({"space": {"a": [1, 2]}, "baseline": null,
      "runner": {"kind": "replay", "table": "failures.csv", "value": "v", "status": "status"}})")
                               .string();
  const Said said = run_krigtune({"tune", file, "--out", path("run")});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("no trial succeeded: 1 failed (crash), 1 oom"), std::string::npos) << said.err;
  EXPECT_FALSE(std::filesystem::exists(path("run/best.json")));
  const Said trials = run_krigtune({"export", path("run"), "--format", "csv,json,tensorboard,mlflow"});
  EXPECT_EQ(trials.code, 0) << trials.err;
  EXPECT_TRUE(load_json(directory_ / "run/export/run.json")["best"].is_null());
  const Said best = run_krigtune({"export", path("run"), "--format", "csv,markdown"});
  EXPECT_EQ(best.code, 1);
  EXPECT_NE(best.err.find("no trial has succeeded yet, so there is no best one"), std::string::npos) << best.err;
}

TEST_F(SessionTest, PrintsOneJsonDocumentAndNothingElse) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"tune", session(), "--out", path("run"), "--json"},
        {"results", path("run"), "--json"},
        {"results", path("run"), "--format", "json"},
        {"predict", path("run"), "--json"},
        {"plan", session(), "--json"},
        {"compare", session(), "--json", "--seeds", "2", "--out", path("compared")}}) {
    const Said said = run_krigtune(arguments);
    EXPECT_EQ(said.code, 0) << said.err;
    const Json json = parse_json(said.out, arguments[0]);
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["command"], arguments[0]);
    EXPECT_TRUE(json.contains("krigtune_version"));
  }
}

TEST_F(SessionTest, ShowsResultsSortedCutAndInEachFormat) {
  tune("run", {"--trials", "12"});
  const CsvTable csv = parse_csv(run_krigtune({"results", path("run"), "--format", "csv"}).out, "results");
  ASSERT_EQ(csv.rows.size(), 12U);
  EXPECT_EQ(csv.rows[0][static_cast<std::size_t>(csv.column("value"))], "40") << "the best first";
  EXPECT_EQ(csv.rows[0][static_cast<std::size_t>(csv.column("best"))], "true");
  const CsvTable by_trial = parse_csv(
      run_krigtune({"results", path("run"), "--format", "csv", "--sort", "trial", "--top", "3"}).out, "results");
  ASSERT_EQ(by_trial.rows.size(), 3U);
  EXPECT_EQ(by_trial.rows[2][0], "2");
  EXPECT_NE(run_krigtune({"results", path("run")}).out.find("OOM"), std::string::npos);
  EXPECT_EQ(run_krigtune({"results", path("run"), "--format", "md"}).out.rfind("| trial |", 0), 0U);
  EXPECT_EQ(run_krigtune({"results", path("run"), "--sort", "valeu"}).code, 2);
  const std::string fitted = run_krigtune({"results", path("run")}).out;
  EXPECT_EQ(fitted.find("status"), std::string::npos) << "the value says it: " << fitted;
  EXPECT_EQ(run_krigtune({"results", path("run"), "--wide"}).out.rfind("trial  status  reason  strategy", 0), 0U);
}

TEST_F(SessionTest, PredictsTheWholeSpaceOrAPartOfIt) {
  tune("run");
  EXPECT_EQ(run_krigtune({"predict", path("run")}).code, 0);
  const CsvTable all = table("run/predictions.csv");
  EXPECT_EQ(all.rows.size(), 12U);
  EXPECT_EQ(all.header[0], "zero_stage");
  EXPECT_EQ(run_krigtune({"predict", path("run"), "--where", "zero_stage=2", "--out", path("two.csv")}).code, 0);
  const CsvTable two = table("two.csv");
  EXPECT_EQ(two.rows.size(), 4U);
  for (const auto& row : two.rows) EXPECT_EQ(row[0], "2");
  run_krigtune(
      {"predict", path("run"), "--where", "zero_stage=2", "--where", "micro_batch=4", "--out", path("one.csv")});
  EXPECT_EQ(table("one.csv").rows.size(), 1U);
  run_krigtune({"predict", path("run"), "--sample", "5", "--out", path("five.csv")});
  EXPECT_EQ(table("five.csv").rows.size(), 5U);
  const Said said = run_krigtune({"predict", path("run"), "--where", "zero_stag=2"});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("did you mean 'zero_stage'?"), std::string::npos) << said.err;
}

TEST_F(SessionTest, ComparesStrategiesFromATableAndFromARecordedRun) {
  const Said said = run_krigtune({"compare", session(), "--seeds", "3", "--trials", "6", "--out", path("compared")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("optimum speed 40: of the table"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("median regret after 1 to 6 trials"), std::string::npos) << said.out;
  EXPECT_EQ(table("compared/comparison.csv").rows.size(), 3U * 3U * 6U + 6U) << "stagewise runs once";
  EXPECT_EQ(table("compared/comparison_summary.csv").rows.size(), 4U);
  tune("run", {"--trials", "12"});
  const Said recorded = run_krigtune({"compare", session(), "--strategies", "random", "--seeds", "2", "--from",
                                      path("run"), "--out", path("recorded")});
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_EQ(table("recorded/comparison_summary.csv").rows.size(), 1U);
}

/// A smooth table of 24 configurations with one optimum. The budget's text says what ends a session. Each call of the
/// clock is a second later than the one before, so that trials cost something.
class EndingTest : public SessionTest {
 protected:
  std::string smooth_session(const std::string& budget) const {
    std::string table = "a,b,speed\n";
    for (int a = 0; a < 6; ++a) {
      for (const int b : {1, 2, 4, 8}) {
        table += std::to_string(a) + "," + std::to_string(b) + "," +
                 std::to_string(10.0 * b * std::exp(-0.1 * (a - 3) * (a - 3))) + "\n";
      }
    }
    directory_.write("smooth.csv", table);
    return directory_
        .write("smooth.json", R"({"space": {"a": {"min": 0, "max": 5}, "b": [1, 2, 4, 8]}, "baseline": null,
      "objective": {"metric": "speed", "direction": "maximize"},
      "runner": {"kind": "replay", "table": "smooth.csv", "value": "speed"}, "budget": )" +
                                  budget + "}")
        .string();
  }
  Said tune(const std::string& budget, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"tune", smooth_session(budget), "--out", path("run")});
    std::atomic<int> now{0};
    return run_krigtune(more, "/nowhere/krigtune", EventClock([&] { return static_cast<double>(++now); }));
  }
};

TEST_F(EndingTest, SaysInOneLineByWhichRuleAndHowToGoOn) {
  const struct {
    std::string budget, word, line;
  } kRules[] = {
      {R"({"trials": 24, "regret": 0.5, "least_gain": 0})", "sure", "stopped: the remaining gain is at most "},
      {R"({"trials": 24, "regret": 0, "least_gain": 0.02})", "little_to_gain",
       "stopped: no further trial is expected to gain 2 % or more; "},
      {R"({"trials": 24, "regret": 0, "least_gain": 0, "run_gpu_hours": 1e-4})", "not_worth_it",
       "stopped: one more trial is not worth its cost: "},
  };
  for (const auto& rule : kRules) {
    const Said said = tune(rule.budget, {"--fresh"});
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.out.find("\nended      " + rule.line), std::string::npos) << said.out;
    EXPECT_EQ(said.out.find("\nleft "), std::string::npos) << "the line has said it";
    EXPECT_NE(said.out.find("\ncontinue   krigtune tune " + path("smooth.json") + " --out " + path("run") +
                            " --full-budget\n"),
              std::string::npos)
        << said.out;
    EXPECT_LT(table("run/trials.csv").rows.size(), 24U) << rule.word;
    const Json json = parse_json(tune(rule.budget, {"--json"}).out, "tune");
    EXPECT_EQ(json["end_reason"], rule.word);
    EXPECT_EQ(json["trials_now"], 0) << "it stays ended";
    EXPECT_TRUE(json["go_on"].get<std::string>().ends_with(" --full-budget"));
  }
}

TEST_F(EndingTest, OfAFullBudgetIsTheBudget) {
  const std::string every_rule = R"({"trials": 20, "regret": 0.5, "least_gain": 0.02, "run_gpu_hours": 1e-4})";
  ASSERT_LT(parse_json(tune(every_rule, {"--json"}).out, "tune")["trials_now"].get<int>(), 20);
  const Said said = tune(every_rule, {"--full-budget"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("\nended      the budget of trials is spent\noutlook    "), std::string::npos) << said.out;
  EXPECT_EQ(said.out.find("\ngo on "), std::string::npos) << said.out;
  EXPECT_EQ(table("run/trials.csv").rows.size(), 20U);
}

TEST_F(SessionTest, KeepsALogWithTheTimesOfEverything) {
  tune("run", {"-q", "--log-file", path("log")});
  EXPECT_EQ(tune("run", {"--log-file", path("log")}).code, 0);
  const std::string log = read_text(path("log"));
  EXPECT_NE(log.find("1970-"), std::string::npos) << log;
  EXPECT_NE(log.find("trial 3 begins"), std::string::npos) << "as detailed as -v";
}

}  // namespace krigtune::session_test

// krigtune report.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::report_test {

class ReportCommand : public testing::Test {
 protected:
  ReportCommand() { run_krigtune({"tune", replay_session(directory_).string(), "--out", run()}); }
  std::string run() const { return (directory_ / "run").string(); }
  TemporaryDirectory directory_;
};

TEST_F(ReportCommand, IsWrittenByTuneWithWhyItEnded) {
  const std::string html = read_text(directory_ / "run/report.html");
  EXPECT_NE(html.find("8 trials. The budget of trials is spent."), std::string::npos);
}

TEST_F(ReportCommand, WritesThePageAgain) {
  std::filesystem::remove(directory_ / "run/report.html");
  const Said said = run_krigtune({"report", run()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, run() + "/report.html\n");
  EXPECT_NE(read_text(directory_ / "run/report.html").find("No trial is running"), std::string::npos);
  const Json json = parse_json(
      run_krigtune({"report", run(), "--json", "--out", (directory_ / "other/page.html").string()}).out, "printed");
  EXPECT_EQ(json.at("file"), (directory_ / "other/page.html").string());
  EXPECT_TRUE(std::filesystem::exists(directory_ / "other/page.html"));
}

TEST_F(ReportCommand, RefusesWhatItCannotReadOrWrite) {
  const Said none = run_krigtune({"report", (directory_ / "nothing").string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(lines_in(none.err), 1U) << none.err;
  const Said folder = run_krigtune({"report", run(), "--out", directory_.path().string()});
  EXPECT_EQ(folder.code, 2);
  EXPECT_NE(folder.err.find("is a directory; name a file in it"), std::string::npos) << folder.err;
  const std::filesystem::path file = directory_.write("file", "");
  const Said below = run_krigtune({"report", run(), "--out", (file / "page.html").string()});
  EXPECT_NE(below.code, 0);
  EXPECT_EQ(lines_in(below.err), 1U) << below.err;
}

TEST_F(ReportCommand, ComparesOnAPage) {
  const std::string page = (directory_ / "compare.html").string();
  const Said said =
      run_krigtune({"compare", replay_session(directory_).string(), "--strategies", "bayes,random", "--seeds", "3",
                    "--trials", "6", "--out", (directory_ / "compared").string(), "--html", page});
  ASSERT_EQ(said.code, 0) << said.err;
  const std::string html = read_text(page);
  EXPECT_NE(html.find("krigtune compare: job"), std::string::npos);
  EXPECT_NE(html.find("The optimum is that of the table."), std::string::npos);
  for (const char* strategy : {"bayes", "random"}) EXPECT_NE(html.find(strategy), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">6</th>"), std::string::npos) << "a row for each trial";
}

// Returns the trials of a journal repeated `times` times under new numbers.
std::string repeated(const std::string& journal, int times) {
  std::istringstream lines(journal);
  std::vector<Json> records;
  std::string text;
  int trials = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json record = parse_json(line, "journal");
    const int code = record.at("op_code");
    if (code == 0 || code == 3) {
      text += line + "\n";
      continue;
    }
    if (record.contains("trial_id")) trials = std::max(trials, record.at("trial_id").get<int>() + 1);
    records.push_back(record);
  }
  for (int i = 0; i < times; ++i) {
    for (Json record : records) {
      if (record.contains("trial_id")) record["trial_id"] = record["trial_id"].get<int>() + i * trials;
      text += record.dump() + "\n";
    }
  }
  return text;
}

TEST_F(ReportCommand, OfThousandsOfTrialsTakesTheBestThatTuneRecorded) {
  Json best = parse_json(read_text(directory_ / "run/best.json"), "best.json");
  const int recommended = best.at("trial");
  int other = -1;  // another successful trial
  const Json results = parse_json(run_krigtune({"results", run(), "--json"}).out, "results");
  for (const Json& row : results.at("trials")) {
    if (row.at("status") == "ok" && row.at("trial") != recommended) other = row.at("trial");
  }
  ASSERT_GE(other, 0);
  best["trial"] = other;
  directory_.write("run/best.json", best.dump());
  const auto reported = [&] {
    const Said said = run_krigtune({"report", run(), "--json"});
    EXPECT_EQ(said.code, 0) << said.err;
    return parse_json(said.out, "printed").at("best_trial").get<int>();
  };
  EXPECT_EQ(reported(), recommended) << "of eight trials by a fit";
  directory_.write("run/journal.log", repeated(read_text(directory_ / "run/journal.log"), 300));
  EXPECT_EQ(reported(), other) << "of 2400 trials without one";
}

TEST_F(ReportCommand, ShowsWhatWasComparedBesideIt) {
  const std::string session = replay_session(directory_).string();
  const auto compare = [&](const std::string& file, const std::string& out) {
    const Said said = run_krigtune({"compare", file, "--strategies", "grid,random", "--seeds", "3", "--out", out});
    ASSERT_EQ(said.code, 0) << said.err;
  };
  compare(session, run() + "-compare");
  ASSERT_EQ(run_krigtune({"report", run()}).code, 0);
  const std::string html = read_text(directory_ / "run/report.html");
  EXPECT_NE(html.find("grid in krigtune compare"), std::string::npos);
  EXPECT_NE(html.find("random in krigtune compare, median of 3 runs"), std::string::npos);

  const std::string other =
      directory_
          .write("other.json", std::string(read_text(session)).insert(1, R"("constraints": ["micro_batch < 8"],)"))
          .string();
  compare(other, (directory_ / "elsewhere").string());
  const Said refused = run_krigtune({"report", run(), "--compare", (directory_ / "elsewhere").string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(lines_in(refused.err), 1U) << refused.err;
  EXPECT_NE(refused.err.find("it compares another session: constraints differs"), std::string::npos) << refused.err;
}

TEST_F(ReportCommand, PlansOnAPage) {
  const std::string session =
      directory_
          .write("plan.json", R"({"workload": {"model": {"preset": "gpt2-124m", "seq_len": 128}, "train_batch_size": 8},
                 "cluster": {"gpus_per_node": 2, "gpu": "a100-40gb"}, "runner": {"kind": "none"},
                 "space": {"zero_stage": [0, 2], "micro_batch": [1, 2, 4]}})")
          .string();
  const std::string page = (directory_ / "plan.html").string();
  const Said said = run_krigtune({"plan", session, "--html", page});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find(page + ": written"), std::string::npos) << said.out;
  EXPECT_NE(read_text(page).find("6 configurations looked at"), std::string::npos);
}

}  // namespace krigtune::report_test

#include <gtest/gtest.h>

#include <iostream>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "journal/journal.h"
#include "run/by_hand.h"
#include "run/prepared.h"

namespace krigtune::ask_tell_test {

/// Six configurations that only the test runs.
class AskTellTest : public testing::Test {
 protected:
  AskTellTest() {
    session_ = directory_.write("own.json", R"({
      "space": {"threads": [1, 2, 4], "mode": ["fast", "safe"]}, "baseline": {"threads": 1, "mode": "safe"},
      "objective": {"metric": "speed", "direction": "maximize"}, "runner": {"kind": "none"}})");
  }
  std::string run_directory() const { return (directory_ / "run").string(); }
  Said ask(std::vector<std::string> more = {}) const { return call("ask", std::move(more)); }
  Said tell(std::vector<std::string> more) const { return call("tell", std::move(more)); }
  Said call(const std::string& command, std::vector<std::string> more) const {
    more.insert(more.begin(), {command, run_directory()});
    return run_krigtune(more);
  }
  /// Asks for a trial. The first call names the session.
  Json asked(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--session", session_.string()});
    return lines(ask(std::move(more)).out);
  }
  /// Reads one JSON object from each line.
  static Json lines(const std::string& text) {
    Json objects = Json::array();
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) objects.push_back(parse_json(line, "ask"));
    return objects;
  }
  CsvTable trials() const { return parse_csv(read_text(directory_ / "run/trials.csv"), "trials"); }
  std::string in_row(std::size_t row, const std::string& column) const {
    const CsvTable table = trials();
    return table.rows.at(row).at(static_cast<std::size_t>(table.column(column)));
  }
  void expect_refused(const std::vector<std::string>& more, const std::string& line) const {
    const Said said = tell(more);
    EXPECT_EQ(said.code, 2) << line;
    EXPECT_EQ(said.out, "");
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    EXPECT_NE(said.err.find(line), std::string::npos) << said.err;
  }

  TemporaryDirectory directory_;
  std::filesystem::path session_;
};

TEST_F(AskTellTest, FirstCallMakesTheDirectoryAndProposesTheBaseline) {
  const Said said = ask({"--session", session_.string()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(said.out,
            "{\"trial\":0,\"configuration\":{\"threads\":1,\"mode\":\"safe\"},\"predicted_value\":null,"
            "\"predicted_memory_bytes\":null}\n");
  EXPECT_TRUE(std::filesystem::exists(directory_ / "run/session.json"));
}

TEST_F(AskTellTest, NeedsASessionForANewDirectoryOnly) {
  const Said said = ask();
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("name its session: krigtune ask " + run_directory() + " --session SESSION"),
            std::string::npos)
      << said.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  asked();
  EXPECT_EQ(ask().code, 0);
  EXPECT_EQ(ask({"--session", session_.string()}).code, 0) << "the same line again";
}

TEST_F(AskTellTest, NeverProposesTheSameTwiceAndEndsWithOneWhenNothingIsLeft) {
  std::vector<std::string> seen;
  const Json first = asked({"--count", "4"});
  for (const Json& trial : first) seen.push_back(trial["configuration"].dump());
  ASSERT_EQ(seen.size(), 4U);
  const Said rest = ask({"--count", "4"});
  EXPECT_EQ(rest.code, 0);
  EXPECT_NE(rest.err.find("only 2 of 4"), std::string::npos) << rest.err;
  const Json last = lines(rest.out);
  EXPECT_EQ(last.size(), 2U);
  for (const Json& trial : last) seen.push_back(trial["configuration"].dump());
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 6U);
  const Said none = ask();
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(lines_in(none.err), 1U) << none.err;
}

TEST_F(AskTellTest, PrintsOneDocumentWithJsonAndTheSameProposals) {
  const Said said = ask({"--session", session_.string(), "--count", "4", "--json"});
  EXPECT_EQ(said.code, 0) << said.err;
  const Json document = parse_json(said.out, "ask");
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["command"], "ask");
  ASSERT_EQ(document["trials"].size(), 4U);
  EXPECT_EQ(document["trials"][3]["trial"], 3);
  EXPECT_EQ(document["trials"][0].size(), 4U);
  const Said none = ask({"--json", "--count", "9"});
  EXPECT_EQ(parse_json(none.out, "ask")["trials"].size(), 2U);
  const Said nothing = ask({"--json"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_TRUE(parse_json(nothing.out, "ask")["trials"].empty());
}

TEST_F(AskTellTest, PrintsEachProposalOnceItIsInTheJournal) {
  const session::Session session = session::load_session(session_);
  const run::Prepared prepared(session);
  run::LoopOptions options;
  std::vector<int> printed;
  const auto trials = run::ask_by_hand(prepared.session, prepared.candidates, run_directory(), options, ManualClock(),
                                       3, [&](const journal::Trial& trial) {
                                         printed.push_back(trial.number);
                                         EXPECT_EQ(journal::read_journal(directory_ / "run/journal.log").size(),
                                                   static_cast<std::size_t>(trial.number) + 1);
                                       });
  EXPECT_EQ(printed, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(trials.size(), 3U);
}

TEST_F(AskTellTest, KeepsItsSeedAndStrategyFromTheLastCallThatNamesThem) {
  ask({"--session", session_.string(), "--seed", "5", "--strategy", "random"});
  EXPECT_EQ(ask().code, 0);
  const Said said = ask({"--seed", "6"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find("goes on with another search: /seed was 5, now 6"), std::string::npos) << said.err;
  EXPECT_EQ(ask().err, "");
  const Json record = load_json(directory_ / "run/session.json");
  EXPECT_EQ(record["strategy"], "random");
  EXPECT_EQ(record["seed"], 6);
}

TEST_F(AskTellTest, TellClosesATrialAndRewritesTheFiles) {
  asked({"--count", "2"});
  EXPECT_EQ(tell({"--trial", "0", "--value", "10"}).err, "trial 0: ok, speed 10, 1.00x trial 0; best trial 0\n");
  const Said said = tell({"--trial", "1", "--value", "13.5", "--peak-memory-bytes", "4.096e3"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(said.err, "trial 1: ok, speed 13.5, 1.35x trial 0; best trial 1\n");
  EXPECT_EQ(in_row(1, "value"), "13.5");
  EXPECT_EQ(in_row(1, "peak_memory_bytes"), "4096");
  EXPECT_EQ(load_json(directory_ / "run/best.json")["trial"], 1);
  EXPECT_EQ(load_json(directory_ / "run/config_optimal.json"),
            load_json(directory_ / "run/best.json")["configuration"]);
}

TEST_F(AskTellTest, TellRecordsFailuresWithTheirReason) {
  asked({"--count", "4"});
  EXPECT_EQ(tell({"--trial", "0", "--status", "oom"}).err, "trial 0: oom; no trial has succeeded yet\n");
  EXPECT_EQ(tell({"--trial", "1", "--status", "failed"}).code, 0);
  EXPECT_EQ(tell({"--trial", "2", "--status", "failed", "--reason", "timeout"}).err,
            "trial 2: failed (timeout); no trial has succeeded yet\n");
  EXPECT_EQ(in_row(0, "status"), "oom");
  EXPECT_EQ(in_row(1, "reason"), "crash");
  EXPECT_EQ(in_row(2, "reason"), "timeout");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/best.json"));
}

TEST_F(AskTellTest, AnInterruptedTrialMayBeAskedAgain) {
  const std::string configuration = asked({"--strategy", "grid"})[0]["configuration"].dump();
  EXPECT_EQ(tell({"--trial", "0", "--status", "failed", "--reason", "interrupted"}).code, 0);
  const Json again = lines(ask().out)[0];
  EXPECT_EQ(again["trial"], 1);
  EXPECT_EQ(again["configuration"].dump(), configuration);
}

TEST_F(AskTellTest, TellReadsAResultLikeTheCommandRunner) {
  asked({"--count", "3"});
  const std::string good = directory_.write("r.json", R"({"speed": 7, "loss": 2.5, "value_sem": 0.5})").string();
  EXPECT_EQ(tell({"--trial", "0", "--result", good}).code, 0);
  EXPECT_EQ(in_row(0, "value"), "7");
  EXPECT_EQ(in_row(0, "value_sem"), "0.5");
  EXPECT_EQ(in_row(0, "metric_loss"), "2.5");
  const std::string oom = directory_.write("oom.json", R"({"status": "oom"})").string();
  EXPECT_EQ(tell({"--trial", "1", "--result", oom, "--status", "oom"}).code, 0);
  EXPECT_EQ(in_row(1, "status"), "oom");
  const std::string bad = directory_.write("bad.json", "speed = 7").string();
  const Said said = tell({"--trial", "2", "--result", bad});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find("trial 2: failed (bad_result): "), std::string::npos) << said.err;
}

TEST_F(AskTellTest, TellReadsAResultFromStandardInput) {
  asked();
  std::istringstream in(R"({"speed": 3})");
  std::streambuf* before = std::cin.rdbuf(in.rdbuf());
  const Said said = tell({"--trial", "0", "--result", "-"});
  std::cin.rdbuf(before);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(in_row(0, "value"), "3");
}

TEST_F(AskTellTest, TellPrintsADocumentForPrograms) {
  asked({"--count", "2"});
  tell({"--trial", "0", "--value", "10"});
  const Json json = parse_json(tell({"--trial", "1", "--value", "5", "--json"}).out, "tell");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["trial"], 1);
  EXPECT_EQ(json["status"], "ok");
  EXPECT_EQ(json["value"], 5);
  EXPECT_EQ(json["gain"], 0.5);
  EXPECT_EQ(json["best_trial"], 0);
}

TEST_F(AskTellTest, TellRefusesWhatContradictsItselfInOneLine) {
  asked({"--count", "2"});
  expect_refused({"--value", "1"}, "--trial is missing");
  expect_refused({"--trial", "0"}, "give --value, --values, --status or --result");
  expect_refused({"--trial", "0", "--status", "ok"}, "--status ok needs --value");
  expect_refused({"--trial", "0", "--status", "oom", "--value", "1"}, "--value cannot be combined with --status oom");
  expect_refused({"--trial", "0", "--value", "1", "--reason", "crash"}, "--reason cannot be combined with --status ok");
  expect_refused({"--trial", "0", "--status", "oom", "--peak-memory-bytes", "1"}, "write --status ok");
  expect_refused({"--trial", "0", "--status", "okay"}, "did you mean 'ok'?");
  expect_refused({"--trial", "0", "--status", "failed", "--reason", "timeuot"}, "did you mean 'timeout'?");
  expect_refused({"--trial", "0", "--value", "nan"}, "--value: 'nan' is not accepted");
  const std::string file = directory_.write("r.json", R"({"speed": 7})").string();
  expect_refused({"--trial", "0", "--value", "1", "--result", file}, "--value cannot be combined with --result");
  expect_refused({"--trial", "0", "--status", "oom", "--result", file}, "--status oom, but " + file + " says ok");
  expect_refused({"--trial", "0", "--result", (directory_ / "absent").string()}, "absent");
  expect_refused({"--trial", "7", "--value", "1"}, "there is no trial 7");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/trials.csv")) << "nothing was closed";
}

TEST_F(AskTellTest, TellClosesATrialOnce) {
  asked();
  tell({"--trial", "0", "--value", "1"});
  expect_refused({"--trial", "0", "--value", "2"}, "trial 0 is closed already: ok");
  EXPECT_EQ(in_row(0, "value"), "1");
}

TEST_F(AskTellTest, AKnownMetricMustBeAboveZeroAndHasItsUnit) {
  session_ = directory_.write("own.json", R"({"space": {"threads": [1, 2, 4]}, "baseline": null,
    "runner": {"kind": "none"}})");
  asked();
  expect_refused({"--trial", "0", "--value=-1"}, "--value: ");
  EXPECT_EQ(tell({"--trial", "0", "--value", "12.3"}).err,
            "trial 0: ok, 12.3 samples/s, 1.00x trial 0; best trial 0\n");
}

TEST_F(AskTellTest, NobodyButTheUserRunsTrialsOfSuchASession) {
  for (const char* command : {"tune", "compare"}) {
    const Said said = run_krigtune({command, session_.string(), "--out", run_directory()});
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    EXPECT_NE(said.err.find("use krigtune ask and krigtune tell"), std::string::npos) << said.err;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  }
}

TEST_F(AskTellTest, GoodputIsToldAsThroughput) {
  session_ = directory_.write("goodput.json", R"({
      "workload": {"model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 128, "seq_len": 32}},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb"}, "space": {"micro_batch": [1, 2, 4, 8]},
      "baseline": {"micro_batch": 1}, "objective": {"metric": "goodput", "noise_scale": 24},
      "runner": {"kind": "none"}})");
  EXPECT_EQ(asked()[0]["configuration"]["micro_batch"], 1);
  EXPECT_EQ(tell({"--trial", "0", "--value", "100"}).code, 0);
  const std::int64_t micro_batch = asked()[0]["configuration"]["micro_batch"];
  const std::string result = directory_.write("r.json", R"({"throughput": 300, "status": "ok"})").string();
  const Said said = tell({"--trial", "1", "--result", result});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(in_row(0, "value"), "100");
  const double efficiency = 32.0 / (24.0 + 8.0 * static_cast<double>(micro_batch));
  EXPECT_NEAR(std::stod(in_row(1, "value")), 300.0 * efficiency, 1e-9);
  EXPECT_EQ(in_row(1, "metric_throughput"), "300");
}

TEST_F(AskTellTest, AWarmStartIsRecordedByTheCallThatNamesIt) {
  asked({"--count", "4"});
  for (int i = 0; i < 4; ++i) tell({"--trial", std::to_string(i), "--value", std::to_string(10 * (i + 1))});
  const std::string old = (directory_ / "old").string();
  std::filesystem::rename(run_directory(), old);
  asked();
  EXPECT_FALSE(load_json(directory_ / "run/session.json").contains("warm_start"));
  const Said first = ask({"--warm-start", old});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("goes on with another search: /warm_start was []"), std::string::npos) << first.err;
  EXPECT_EQ(load_json(directory_ / "run/session.json")["warm_start"][0]["trials"].size(), 4U);
  std::filesystem::remove_all(old);
  EXPECT_EQ(ask().code, 0);
  EXPECT_EQ(ask({"--session", session_.string(), "--warm-start", old}).code, 0) << "the same line again";
  EXPECT_EQ(load_json(directory_ / "run/session.json")["warm_start"][0]["trials"].size(), 4U);
}

// The first attempt had a mistake in its session, and its trial failed.
TEST_F(AskTellTest, AnotherSessionBeginsAgainWhereNothingWasMeasured) {
  asked();
  session_ = directory_.write("own.json", R"({
      "space": {"threads": [1, 2, 8]}, "objective": {"metric": "speed", "direction": "maximize"},
      "runner": {"kind": "none"}})");
  const Said refused = ask({"--session", session_.string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("was begun with another session: /space/threads was [1,2,4], now [1,2,8]"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(refused.err.find("--out"), std::string::npos) << refused.err;
  tell({"--trial", "0", "--status", "failed"});
  const Said said = ask({"--session", session_.string()});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("begins again, because no trial was measured yet"), std::string::npos) << said.err;
  EXPECT_EQ(lines(said.out)[0]["trial"], 0);
}

}  // namespace krigtune::ask_tell_test

// A session with several objectives from the command line: the front in every output, and the user's pick.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune {
namespace {

/// Eight batches, of which the largest does not fit: speed and memory both grow with the batch, and each further mode
/// needs more memory for the same speed. So the front is mode a with the seven batches that fit.
std::filesystem::path two_goals(const TemporaryDirectory& directory, const std::string& modes = "ab") {
  std::string table = "batch,mode,speed,peak,status\n";
  Json words = Json::array();
  for (const char mode : modes) words.push_back(std::string(1, mode));
  for (int batch = 1; batch <= 8; ++batch) {
    for (const char mode : modes) {
      const std::int64_t peak = std::int64_t{1'000'000'000} * (batch + 3 * (mode - 'a'));
      const std::string start = std::to_string(batch) + "," + mode + ",";
      table += start + (batch == 8 ? ",,oom\n" : std::to_string(10 * batch) + "," + std::to_string(peak) + ",ok\n");
    }
  }
  directory.write("table.csv", table);
  return directory.write("job.json", R"({
    "space": {"batch": [1, 2, 3, 4, 5, 6, 7, 8], "mode": )" +
                                         words.dump() +
                                         R"(}, "baseline": null,
    "objectives": [{"metric": "throughput"}, {"metric": "peak_memory_bytes", "direction": "minimize"}],
    "runner": {"kind": "replay", "table": "table.csv", "value": "speed", "status": "status",
               "metrics": {"peak_memory_bytes": "peak"}},
    "budget": {"trials": )" + std::to_string(8 * modes.size()) +
                                         R"(, "regret": 0, "least_gain": 0}})");
}

Json best_json(const TemporaryDirectory& directory) { return load_json(directory / "run" / "best.json"); }

TEST(SeveralObjectives, HaveTheirFrontInEveryOutput) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Said tuned = run_krigtune({"tune", two_goals(directory).string(), "--out", run});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("front      trial "), std::string::npos) << tuned.out;
  const Json best = best_json(directory);
  ASSERT_EQ(best["front"].size(), 7);
  EXPECT_EQ(best["front"][0]["values"].dump(), R"({"throughput":70,"peak_memory_bytes":7000000000})");
  EXPECT_EQ(best["front"][6]["configuration"].dump(), R"({"batch":1,"mode":"a"})");
  EXPECT_EQ(best["trial"], best["front"][0]["trial"]) << "the best by the first objective is recommended";
  EXPECT_EQ(best["objectives"][1]["metric"], "peak_memory_bytes");
  const Said results = run_krigtune({"results", run});
  EXPECT_NE(
      results.out.find("a front of 7 configurations: throughput 10 to 70, peak_memory_bytes 953.7 MiB to 6.52 GiB"),
      std::string::npos)
      << results.out;
  EXPECT_NE(results.out.find("pick: trial "), std::string::npos);
  const Said watched = run_krigtune({"watch", run});
  EXPECT_NE(watched.out.find("front    a front of 7 configurations"), std::string::npos) << watched.out;
  ASSERT_EQ(run_krigtune({"report", run}).code, 0);
  EXPECT_NE(read_text(directory / "run" / "report.html").find("id=\"front\""), std::string::npos);
}

TEST(SeveralObjectives, LetTheUserPickFromTheFront) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  const Json picked =
      parse_json(run_krigtune({"results", run, "--json", "--prefer", "throughput >= 0.7 best"}).out, "results");
  const auto member = std::find_if(picked["front"].begin(), picked["front"].end(),
                                   [&](const Json& one) { return one["trial"] == picked["pick"]; });
  ASSERT_NE(member, picked["front"].end());
  EXPECT_EQ((*member)["configuration"].dump(), R"({"batch":5,"mode":"a"})") << "50 is more than 0.7 x 70";
  const Said exported = run_krigtune({"export", run, "--format", "json", "--prefer", "throughput >= 0.7 best"});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.out.find("batch=5 mode=a"), std::string::npos) << exported.out;
}

TEST(SeveralObjectives, RefuseAPreferenceInOneLine) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  for (const char* text : {"power <= 3", "throughput <= 3", "throughput >= 71", "fast"}) {
    const Said said = run_krigtune({"results", run, "--prefer", text});
    EXPECT_EQ(said.code, 2) << text;
    EXPECT_EQ(lines_in(said.err), 1) << said.err;
  }
  const Said both = run_krigtune({"export", run, "--format", "json", "--trial", "1", "--prefer", "throughput >= 3"});
  EXPECT_EQ(both.code, 2);
  const std::string one = (directory / "one").string();
  ASSERT_EQ(run_krigtune({"tune", replay_session(directory).string(), "--out", one}).code, 0);
  EXPECT_EQ(run_krigtune({"results", one, "--prefer", "speed >= 3"}).code, 2);
}

TEST(SeveralObjectives, ContinueWhereTheyWereInterrupted) {
  const TemporaryDirectory directory;
  const std::string session = two_goals(directory).string();
  const std::string whole = (directory / "whole").string();
  const std::string parts = (directory / "parts").string();
  ASSERT_EQ(run_krigtune({"tune", session, "--out", whole, "--trials", "12"}).code, 0);
  ASSERT_EQ(run_krigtune({"tune", session, "--out", parts, "--trials", "5"}).code, 0);
  ASSERT_EQ(run_krigtune({"tune", session, "--out", parts, "--trials", "12"}).code, 0);
  const auto trials = [](const std::string& run) {
    return parse_json(run_krigtune({"results", run, "--json", "--sort", "trial"}).out, "results")["trials"].dump();
  };
  EXPECT_EQ(trials(parts), trials(whole));
}

TEST(SeveralObjectives, EndWhenTheFrontIsKnown) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  std::string text = read_text(two_goals(directory, "abcd"));
  const std::string off = R"(, "regret": 0, "least_gain": 0)";
  text.erase(text.find(off), off.size());
  const std::string session = directory.write("ends.json", text).string();
  const Said tuned = run_krigtune({"tune", session, "--out", run});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("ended      stopped: "), std::string::npos) << tuned.out;
  EXPECT_EQ(best_json(directory)["front"].size(), 7) << tuned.out;
}

/// Speed and power grow with the batch: 10 and 30 W for each.
std::filesystem::path limited_power(const TemporaryDirectory& directory, const std::string& limit) {
  std::string table = "batch,speed,power,status\n";
  for (int batch = 1; batch <= 8; ++batch) {
    table += std::to_string(batch) + "," + std::to_string(10 * batch) + "," + std::to_string(30 * batch) + ",ok\n";
  }
  directory.write("table.csv", table);
  return directory.write("job.json", R"({
    "space": {"batch": [1, 2, 3, 4, 5, 6, 7, 8]}, "baseline": null, "objective": {"metric": "throughput"},
    "limits": [")" + limit + R"("],
    "runner": {"kind": "replay", "table": "table.csv", "value": "speed", "status": "status",
               "metrics": {"power_w": "power"}},
    "budget": {"trials": 8, "regret": 0, "least_gain": 0}})");
}

TEST(LimitsOfMetrics, TheBestKeepsToThemAndOthersAreShownAsBreakingThem) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Said tuned = run_krigtune({"tune", limited_power(directory, "power_w <= 160").string(), "--out", run});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(best_json(directory)["configuration"].dump(), R"({"batch":5})");
  EXPECT_NE(run_krigtune({"results", run}).out.find("80 (breaks a limit)"), std::string::npos);
  EXPECT_NE(read_text(directory / "run" / "trials.csv").find("limit: power_w 240 (limit 160)"), std::string::npos);
  ASSERT_EQ(run_krigtune({"report", run}).code, 0);
}

TEST(LimitsOfMetrics, ThatNothingKeepsToEndWithoutABest) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Said tuned = run_krigtune({"tune", limited_power(directory, "power_w <= 20").string(), "--out", run});
  EXPECT_EQ(tuned.code, 1);
  EXPECT_NE(tuned.err.find("no configuration kept to the limits"), std::string::npos) << tuned.err;
  EXPECT_FALSE(std::filesystem::exists(directory / "run" / "best.json"));
}

TEST(LimitsOfMetrics, ThatCannotBeReadAreRefusedInOneLine) {
  const TemporaryDirectory directory;
  const Said refused = run_krigtune({"plan", limited_power(directory, "power_w < 160").string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("/limits/0"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace krigtune

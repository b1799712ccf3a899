// A session with several objectives from the command line: the front in every output, and the user's pick.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
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

// The pick among the members: 50 is more than 0.7 x 70, and no smaller batch has that.
constexpr const char* kWanted = "throughput >= 0.7 best";
constexpr const char* kPicked = R"({"batch":5,"mode":"a"})";

TEST(SeveralObjectives, RecommendWhatTuneIsToldToPrefer) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Said tuned = run_krigtune({"tune", two_goals(directory).string(), "--out", run, "--prefer", kWanted});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("throughput 50, peak_memory_bytes 4.66 GiB (throughput >= 0.7 best)"), std::string::npos)
      << tuned.out;
  EXPECT_EQ(tuned.out.find("runner-up"), std::string::npos) << "that it is faster is not noise: " << tuned.out;
  EXPECT_EQ(tuned.out.find("measured the largest"), std::string::npos) << tuned.out;
  const Json best = best_json(directory);
  EXPECT_EQ(best["configuration"].dump(), kPicked);
  EXPECT_EQ(best["prefer"], kWanted);
  EXPECT_EQ(best["pick"], best["trial"]);
  EXPECT_EQ(best["front"].size(), 7);
  // The directory remembers it.
  const Json later = parse_json(run_krigtune({"results", run, "--json"}).out, "results");
  EXPECT_EQ(later["pick"], best["trial"]);
  EXPECT_EQ(later["best_trial"], best["trial"]);
  EXPECT_NE(run_krigtune({"watch", run}).out.find("pick     trial "), std::string::npos);
  // Another preference is no other session, and none is the best by the first objective.
  const std::string other = "peak_memory_bytes <= 2e9";
  ASSERT_EQ(run_krigtune({"tune", run, "--prefer", other}).code, 0);
  EXPECT_EQ(best_json(directory)["configuration"].dump(), R"({"batch":2,"mode":"a"})");
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  EXPECT_EQ(best_json(directory)["configuration"].dump(), R"({"batch":7,"mode":"a"})");
}

TEST(SeveralObjectives, SayThatNothingMeetsThePreference) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  const Said tuned =
      run_krigtune({"tune", two_goals(directory).string(), "--out", run, "--prefer", "throughput >= 71"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const std::string said = "no configuration of the front has throughput >= 71; the best by throughput is recommended";
  EXPECT_NE(tuned.out.find(said), std::string::npos) << tuned.out;
  EXPECT_EQ(best_json(directory)["preference"], said);
  EXPECT_EQ(best_json(directory)["configuration"].dump(), R"({"batch":7,"mode":"a"})");
}

TEST(SeveralObjectives, ShowThePickInTheReport) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  const Said said = run_krigtune({"report", run, "--prefer", kWanted, "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json picked = parse_json(run_krigtune({"results", run, "--json", "--prefer", kWanted}).out, "results")["pick"];
  EXPECT_EQ(parse_json(said.out, "report")["best_trial"], picked);
  const std::string page = read_text(directory / "run" / "report.html");
  EXPECT_NE(page.find(std::to_string(picked.get<int>()) + " ★"), std::string::npos);
  EXPECT_NE(page.find("This is about throughput, the first of 2 objectives"), std::string::npos);
  EXPECT_NE(page.find("It is the pick of the front: trial "), std::string::npos);
  EXPECT_NE(page.find("The recommended one is trial " + std::to_string(picked.get<int>())), std::string::npos);
  EXPECT_EQ(run_krigtune({"report", run, "--prefer", "throughput >= 71"}).code, 2);
}

TEST(SeveralObjectives, AreToldByHand) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"ask", run, "--session", two_goals(directory).string(), "--count", "2"}).code, 0);
  for (const std::vector<std::string>& incomplete : {std::vector<std::string>{"--value", "12"},
                                                     {"--values", "throughput=12"},
                                                     {"--values", "peak_memory_bytes=1e9"}}) {
    std::vector<std::string> words = {"tell", run, "--trial", "0"};
    words.insert(words.end(), incomplete.begin(), incomplete.end());
    const Said refused = run_krigtune(words);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_EQ(lines_in(refused.err), 1) << refused.err;
  }
  EXPECT_NE(run_krigtune({"tell", run, "--trial", "0", "--value", "12"}).err.find("peak_memory_bytes is missing"),
            std::string::npos);
  const Said told =
      run_krigtune({"tell", run, "--trial", "0", "--values", "throughput=12,peak_memory_bytes=1e9", "--json"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(parse_json(told.out, "tell")["values"].dump(), R"({"throughput":12,"peak_memory_bytes":1000000000})");
  ASSERT_EQ(run_krigtune({"tell", run, "--trial", "1", "--value", "10", "--peak-memory-bytes", "5e8"}).code, 0);
  EXPECT_EQ(best_json(directory)["front"].size(), 2) << "the second is slower and needs less";
  EXPECT_EQ(run_krigtune({"tell", run, "--trial", "1", "--values", "throughput"}).code, 2);
}

TEST(SeveralObjectives, HavePredictionsEach) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  const Said said = run_krigtune({"predict", run});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("about throughput, the first of 2 objectives"), std::string::npos) << said.out;
  const CsvTable table = parse_csv(read_text(directory / "run" / "predictions.csv"), "predictions.csv");
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(table.header.begin(), table.header.end(), name) - table.header.begin());
  };
  ASSERT_LT(column("peak_memory_bytes_observed"), table.header.size());
  int measured = 0;
  for (const std::vector<std::string>& row : table.rows) {
    const std::string& observed = row[column("peak_memory_bytes_observed")];
    const double low = std::stod(row[column("peak_memory_bytes_lower_95")]);
    const double high = std::stod(row[column("peak_memory_bytes_upper_95")]);
    const double median = std::stod(row[column("peak_memory_bytes_median")]);
    EXPECT_TRUE(low <= median && median <= high);
    if (observed.empty()) continue;
    ++measured;
    const double batch = std::stod(row[column("batch")]);
    const double peak = 1e9 * (batch + (row[column("mode")] == "b" ? 3.0 : 0.0));
    EXPECT_DOUBLE_EQ(std::stod(observed), peak) << "as the table has it";
    EXPECT_NEAR(median / peak, 1.0, 0.1);
  }
  EXPECT_EQ(measured, 14);
}

TEST(SeveralObjectives, AreNotComparedByTheFirstAlone) {
  const TemporaryDirectory directory;
  const Said said = run_krigtune({"compare", two_goals(directory).string(), "--out", (directory / "c").string()});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(lines_in(said.err), 1) << said.err;
  EXPECT_NE(said.err.find("compare knows one number"), std::string::npos) << said.err;
}

TEST(SeveralObjectives, StandInExports) {
  const TemporaryDirectory directory;
  const std::string run = (directory / "run").string();
  ASSERT_EQ(run_krigtune({"tune", two_goals(directory).string(), "--out", run}).code, 0);
  ASSERT_EQ(run_krigtune({"export", run, "--format", "json,markdown", "--prefer", kWanted}).code, 0);
  const Json exported = load_json(directory / "run" / "export" / "run.json");
  EXPECT_EQ(exported["best"]["configuration"].dump(), kPicked);
  EXPECT_EQ(exported["front"].size(), 7);
  const std::string summary = read_text(directory / "run" / "export" / "summary.md");
  EXPECT_NE(summary.find("It is one of a front of 7 configurations"), std::string::npos) << summary;
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

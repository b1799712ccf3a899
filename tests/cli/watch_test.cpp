#include <gtest/gtest.h>

#include <functional>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "journal/lock.h"
#include "run/run_directory.h"

namespace krigtune::watch_test {

/// Whenever a second has passed, another process does the next thing.
class ScriptedClock final : public Clock {
 public:
  explicit ScriptedClock(std::vector<std::function<void()>> acts) : acts_(std::move(acts)) {}
  double now_s() const override { return now_s_; }
  std::int64_t unix_us() const override { return static_cast<std::int64_t>(now_s_ * 1e6); }
  void sleep_until_s(double deadline_s) const override {
    now_s_ = deadline_s;
    while (next_ < acts_.size() && now_s_ >= static_cast<double>(next_) + 0.5) acts_[next_++]();
  }

 private:
  std::vector<std::function<void()>> acts_;
  mutable std::size_t next_ = 0;
  mutable double now_s_ = 0.0;
};

class WatchTest : public testing::Test {
 protected:
  void SetUp() override { ask(3); }
  std::string run_directory() const { return (directory_ / "run").string(); }
  void ask(int count) const {
    const std::string session = directory_
                                    .write("own.json", R"({"space": {"threads": [1, 2, 4, 8]}, "baseline": null,
      "objective": {"metric": "speed", "direction": "maximize"}, "runner": {"kind": "none"}, "budget": {"trials": 4}})")
                                    .string();
    run_krigtune(
        {"ask", run_directory(), "--session", session, "--count", std::to_string(count), "--strategy", "grid"});
  }
  void tell(int trial, const std::string& value) const {
    run_krigtune({"tell", run_directory(), "--trial", std::to_string(trial), "--value", value});
  }
  Said watch(const Clock& clock, bool terminal, int width = 80) const {
    std::ostringstream out;
    std::ostringstream err;
    cli::Console console{out, err, clock, "/nowhere/krigtune"};
    console.out_is_terminal = terminal;
    console.width = width;
    const int code = cli::run_command_line({"watch", run_directory()}, console);
    return {code, out.str(), err.str()};
  }
  TemporaryDirectory directory_;
};

TEST_F(WatchTest, SaysALineForEachTrialThatIsClosedMeanwhileWhenPiped) {
  ask(1);
  tell(0, "10");
  const ScriptedClock clock({[&] { tell(1, "15"); },
                             [&] {
                               run_krigtune({"tell", run_directory(), "--trial", "2", "--status", "oom"});
                             },
                             [&] { tell(3, "5"); }});
  const Said said = watch(clock, false);
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out.find('\033'), std::string::npos);
  EXPECT_NE(said.out.find(": 1 of 4 trials, grid, seed 1\nbest     trial 0: speed 10, 1.00x trial 0 (10)\n"),
            std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("\n    1*                    15   1.50x             threads="), std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("\n    2                    OOM                     threads="), std::string::npos)
      << said.out;
  EXPECT_EQ(said.out.find("\n    0"), std::string::npos) << "it was closed before";
  EXPECT_EQ(said.err, "ended: the budget of trials is spent\n");
}

TEST_F(WatchTest, RewritesItsPanelInPlaceOnATerminal) {
  const ScriptedClock clock({[&] { tell(0, "10"); }, [&] { tell(1, "15"); }, [&] { tell(2, "5"); }});
  const Said said = watch(clock, true);
  EXPECT_EQ(said.code, 0);
  const std::size_t begin = said.out.rfind("A\r");
  ASSERT_NE(begin, std::string::npos) << said.out;
  const std::string panel = said.out.substr(begin + 2);
  EXPECT_NE(panel.find(": 3 of 4 trials, grid, seed 1\033[K\n"), std::string::npos) << panel;
  EXPECT_NE(panel.find("closed   3 ok\033[K\n"), std::string::npos) << panel;
  EXPECT_NE(panel.find("running  none; no tuning run is active\033[K\n"), std::string::npos) << panel;
  EXPECT_NE(panel.find("    1*                    15   1.50x             "), std::string::npos) << panel;
  EXPECT_EQ(said.out.find("\033[2J"), std::string::npos) << "the screen is never cleared: that flickers";
  EXPECT_EQ(said.err, "ended: no tuning run is active, and no trial of krigtune ask is open\n");
}

TEST_F(WatchTest, KeepsEveryLineOfThePanelWithinTheTerminal) {
  tell(0, "10");
  for (const int width : {20, 40, 80, 200}) {
    const ScriptedClock clock({[&] { tell(1, "15"), tell(2, "1"), ask(1), tell(3, "1"); }});
    std::istringstream lines(watch(clock, true, width).out);
    for (std::string line; std::getline(lines, line);) {
      while (line.find('\033') != std::string::npos) {
        const std::size_t begin = line.find('\033');
        line.erase(begin, line.find_first_of("AKJ", begin) - begin + 1);
      }
      line.erase(0, line.rfind('\r') + 1);
      EXPECT_LT(static_cast<int>(line.size()), std::max(width, 21)) << line;
    }
  }
}

TEST_F(WatchTest, ShowsTheStateOnceWhenAskedTo) {
  tell(0, "10");
  const Said said = run_krigtune({"watch", run_directory(), "--once"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.out.find("running  trial 1 (by hand) for "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("         trial 2 (by hand) for "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("\n    0*                    10   1.00x             "), std::string::npos) << said.out;
  EXPECT_EQ(said.err, "");
}

TEST_F(WatchTest, PrintsTheStateForPrograms) {
  tell(0, "10");
  const Json json = parse_json(run_krigtune({"watch", run_directory(), "--json"}).out, "watch");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["closed"], 1);
  EXPECT_EQ(json["by_class"], parse_json(R"({"ok": 1})", "expected"));
  EXPECT_EQ(json["running"].size(), 2U);
  EXPECT_EQ(json["running"][0]["by_hand"], true);
  EXPECT_EQ(json["best"]["gain"], 1);
  EXPECT_EQ(json["tune_runs"], false);
}

TEST_F(WatchTest, NamesTheBestThatTheFilesOfTheRunName) {
  tell(0, "10");
  tell(1, "15");
  tell(2, "5");
  const Json best = load_json(directory_ / "run/best.json");
  const Json json = parse_json(run_krigtune({"watch", run_directory(), "--json"}).out, "watch");
  EXPECT_EQ(json["best"]["trial"], best["trial"]);
  EXPECT_EQ(json["best"]["gain"], best["gain"]);
  EXPECT_EQ(json["raw_best_trial"], 1);
  // With the journal alone, the result is the same.
  std::filesystem::remove(directory_ / "run/best.json");
  const Json fitted = parse_json(run_krigtune({"watch", run_directory(), "--json"}).out, "watch");
  EXPECT_EQ(fitted["best"], json["best"]);
  directory_.write("run/best.json", R"({"trial": 99, "reference": 3})");
  const Json damaged = parse_json(run_krigtune({"watch", run_directory(), "--json"}).out, "watch");
  EXPECT_EQ(damaged["best"], json["best"]);
}

TEST_F(WatchTest, GoesOnAsLongAsATuneIsAtWork) {
  for (int trial = 0; trial < 3; ++trial) tell(trial, "1");
  auto claim = std::make_unique<journal::TunerClaim>(run::journal_path(run_directory()));
  const ScriptedClock clock({[] {}, [] {}, [&] { claim.reset(); }});
  const Said said = watch(clock, true);
  EXPECT_EQ(said.code, 0);
  EXPECT_GE(clock.now_s(), 3.0);
  EXPECT_EQ(said.out.find("A\r"), said.out.rfind("A\r")) << "rewritten once, when the tune ended: " << said.out;
}

TEST_F(WatchTest, EndsWithZeroOnCtrlC) {
  const ScriptedClock clock({[] {}, [] { ::kill(::getpid(), SIGINT); }});
  EXPECT_EQ(watch(clock, false).code, 0) << "two trials still wait";
}

TEST_F(WatchTest, RefusesADirectoryWithoutARun) {
  EXPECT_EQ(run_krigtune({"watch", directory_.path().string()}).code, 2);
}

}  // namespace krigtune::watch_test

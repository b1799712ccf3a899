// Where the values of options come from: the command line, then KRIGTUNE_* variables, then the session, then the
// default.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::arguments_test {

class Precedence : public testing::Test {
 protected:
  // Returns value and origin of the budget of trials, as the command resolves it.
  std::string trials(const cli::Environment& environment, const std::vector<std::string>& options = {},
                     const std::string& session = "job.json") const {
    std::vector<std::string> arguments = {"tune", (directory_ / session).string(), "--show-config", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Said said = run_with(environment, arguments);
    EXPECT_EQ(said.code, 0) << said.err;
    const Json json = parse_json(said.out, "show-config");
    return json["session"]["budget"]["trials"].dump() + ", " + json["origins"]["/budget/trials"].get<std::string>();
  }

  TemporaryDirectory directory_;
  std::string session_ = replay_session(directory_).string();
};

TEST_F(Precedence, IsCommandLineThenEnvironmentThenSessionThenDefault) {
  directory_.write("plain.json", R"({"space": {"zero_stage": [0, 1], "micro_batch": [1, 2]}, "baseline": null,
    "objective": {"metric": "speed", "direction": "maximize"},
    "runner": {"kind": "replay", "table": "table.csv", "value": "speed", "status": "status",
               "columns": {"micro_batch": "mb"}}})");
  EXPECT_EQ(trials({}, {}, "plain.json"), "30, default");
  EXPECT_EQ(trials({}), "8, session file");
  EXPECT_EQ(trials({{"KRIGTUNE_TRIALS", "5"}}), "5, environment: KRIGTUNE_TRIALS");
  EXPECT_EQ(trials({{"KRIGTUNE_TRIALS", "5"}}, {"--trials", "4"}), "4, command line: --trials");
}

TEST_F(Precedence, TakesAnEmptyVariableForUnset) { EXPECT_EQ(trials({{"KRIGTUNE_TRIALS", ""}}), "8, session file"); }

TEST_F(Precedence, HoldsForARunAsWellAsForWhatIsShown) {
  const std::string out = (directory_ / "run").string();
  const Said said =
      run_with({{"KRIGTUNE_TRIALS", "3"}, {"KRIGTUNE_OUT", out}, {"KRIGTUNE_STRATEGY", "random"}}, {"tune", session_});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("trials     3: "), std::string::npos) << said.out;
  EXPECT_EQ(load_json(out + "/session.json")["strategy"], "random");
}

TEST_F(Precedence, NamesTheVariableInErrors) {
  const auto expect_refused = [&](const cli::Environment& environment, const std::string& command,
                                  const std::string& line) {
    const Said said = run_with(environment, {command, session_});
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.err, "krigtune: " + line + "\n");
  };
  expect_refused({{"KRIGTUNE_TRIALS", "many"}}, "tune",
                 "KRIGTUNE_TRIALS: 'many' is not accepted; write a whole number from 1 to 1000000");
  expect_refused({{"KRIGTUNE_HOURS", "-1"}}, "tune", "KRIGTUNE_HOURS: '-1' is not accepted; write a number above 0");
  expect_refused({{"KRIGTUNE_STRATEGY", "bayse"}}, "tune",
                 "KRIGTUNE_STRATEGY: unknown strategy 'bayse'; did you mean 'bayes'?");
  expect_refused({{"KRIGTUNE_STRATEGIES", "grid,grid"}}, "compare",
                 "KRIGTUNE_STRATEGIES: 'grid' is listed twice; name each once");
  expect_refused({{"KRIGTUNE_LOG_FILE", "/nowhere/log"}}, "plan",
                 "KRIGTUNE_LOG_FILE: cannot write '/nowhere/log'; choose another file");
}

TEST_F(Precedence, AsksTheEnvironmentForNothingThatIsMeantForOneCall) {
  const std::string out = (directory_ / "run").string();
  ASSERT_EQ(run_krigtune({"tune", session_, "--out", out, "--trials", "3"}).code, 0);
  const Said said = run_with({{"KRIGTUNE_FRESH", "1"}, {"KRIGTUNE_JSON", "1"}, {"KRIGTUNE_HELP", "1"}},
                             {"tune", session_, "--out", out, "--trials", "3"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("trials     3: "), std::string::npos) << "neither JSON nor help";
  EXPECT_FALSE(std::filesystem::exists(out + ".1")) << "nothing was moved aside";
  EXPECT_NE(said.err.find("warning: environment variable KRIGTUNE_FRESH is ignored; type --fresh\n"), std::string::npos)
      << said.err;
}

TEST_F(Precedence, WarnsOnceOfAVariableThatNoCommandKnows) {
  const cli::Environment environment = {{"KRIGTUNE_TRAILS", "3"}, {"KRIGTUNE_SEEDS", "3"},
                                        {"KRIGTUNE_TEST_X", "1"}, {"KRIGTUNE_WERROR", "ON"},
                                        {"KRIGTUNE_", "x"},       {"KRIGTUNE_QQQQQQQQQQ", ""}};
  const Said said = run_with(environment, {"plan", session_});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.err,
            "krigtune: warning: environment variable KRIGTUNE_ is not an option of krigtune; unset it\n"
            "krigtune: warning: environment variable KRIGTUNE_QQQQQQQQQQ is not an option of krigtune; unset it\n"
            "krigtune: warning: environment variable KRIGTUNE_TRAILS is not an option of krigtune; did you mean "
            "KRIGTUNE_TRIALS?\n");
}

TEST_F(Precedence, IsSaidInTheHelpOfEveryOptionThatHasAVariable) {
  const std::string help = run_krigtune({"tune", "--help-all"}).out;
  for (const char* variable : {"KRIGTUNE_TRIALS", "KRIGTUNE_SEED", "KRIGTUNE_OUT", "KRIGTUNE_LOG_FILE"}) {
    EXPECT_NE(help.find(std::string("also")), std::string::npos);
    EXPECT_NE(help.find(variable), std::string::npos) << variable;
  }
  for (const char* variable : {"KRIGTUNE_FRESH", "KRIGTUNE_JSON", "KRIGTUNE_HELP"}) {
    EXPECT_EQ(help.find(variable), std::string::npos) << variable;
  }
}

}  // namespace krigtune::arguments_test

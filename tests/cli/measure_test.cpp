// krigtune measure: what would be read from a log.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::measure_command_test {

constexpr const char* kLog =
    "loading\n"
    "\x1b[32mstep 1/3 | loss 6.9 | step_time 155.5 ms\x1b[0m\n"
    "step 2/3 | loss 6.8 | step_time 145.5 ms\n"
    "step 3/3 | loss 6.7 | step_time 150.5 ms\n";

TEST(Measure, MarksEachMatchBelowItsLineAndAddsThemUp) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", kLog).string();
  const Said said = run_krigtune({"measure", "--log", log, "--regex", "loss=loss ([0-9.]+)", "--lines", "2"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.err, "");
  EXPECT_EQ(said.out,
            "     2  step 1/3 | loss 6.9 | step_time 155.5 ms\n"
            "                   ~~~~~^^^  loss: 6.9\n"
            "     3  step 2/3 | loss 6.8 | step_time 145.5 ms\n"
            "                   ~~~~~^^^  loss: 6.8\n"
            "... 1 more matches\n"
            "\n"
            "metric  lines  steps  median  last  unit\n"
            "loss        3      3     6.8   6.7\n"
            "\n"
            "loss: 6.7\n");
}

TEST(Measure, ALogInWhichNothingMatchesShowsTheClosestLinesAndIsNoSuccess) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", kLog).string();
  const Said said = run_krigtune({"measure", "--log", log, "--regex", "step_time_s=step time ([0-9.]+)"});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.out.find("the most similar line: step 1/3 | loss 6.9 | step_time 155.5 ms\n"), std::string::npos)
      << said.out;
  EXPECT_EQ(said.err, "krigtune: " + log + ": nothing matched in 4 lines\n");
  const Said json = run_krigtune({"measure", "--log", log, "--regex", "step_time_s=step time ([0-9.]+)", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(Json::parse(json.out).at("closest").at("step_time_s").size(), 3U);
}

TEST(Measure, ReadsASessionAndSaysWhatTheObjectiveWouldBe) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", kLog).string();
  const std::string session = dir.write("job.json", R"~({
    "workload": {"model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 256, "seq_len": 32}, "train_batch_size": 8},
    "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "A100-80GB"},
    "space": {"micro_batch": [1, 2, 4]},
    "runner": {"kind": "command", "argv": ["train", "{config}"], "warmup_steps": 0,
      "measure": {"iteration": {"regex": "step (\\d+)/"}, "step_time_s": {"regex": "step_time ([0-9.]+)", "times": "ms"}}}})~")
                                  .string();
  const Said said = run_krigtune({"measure", "--log", log, "--session", session});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("step_time_s: 0.1555 s\n"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("from 3 steps after 0 of the warm-up"), std::string::npos) << said.out;
  const Json json = Json::parse(run_krigtune({"measure", "--log", log, "--session", session, "--json"}).out);
  EXPECT_EQ(json.at("command"), "measure");
  EXPECT_EQ(json.at("lines"), 4);
  EXPECT_EQ(json.at("match_count"), 6);
  EXPECT_EQ(json.at("result").at("objective"), "throughput");
  EXPECT_LE(std::abs(json.at("result").at("value").get<double>() - 8 / 0.1505), 1e-9);
  EXPECT_EQ(json.at("matches")[0].at("printed"), "1");
}

TEST(Measure, SaysOfABadValueThatTheTrialWouldFail) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", "step 1 loss nan\n").string();
  const Said said = run_krigtune({"measure", "--log", log, "--regex", "loss=loss (\\S+)"});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.out.find("a trial with this line would fail: the loss is not a number: step 1 loss nan\n"),
            std::string::npos)
      << said.out;
}

TEST(Measure, ShowsOfALongLineWhatIsAroundTheNumber) {
  const TemporaryDirectory dir;
  const std::string log =
      dir.write("train.log", std::string(500, 'x') + " \xE2\x94\x81 loss 6.9 " + std::string(500, 'y') + "\n").string();
  const Said said = run_krigtune({"measure", "--log", log, "--regex", "loss=loss ([0-9.]+)"});
  const std::string line = said.out.substr(0, said.out.find('\n'));
  EXPECT_EQ(line.substr(0, 31), "     1  ...xxxxx \xE2\x94\x81 loss 6.9 y");
  EXPECT_EQ(line.substr(line.size() - 4), "y...");
  EXPECT_EQ(said.out.substr(line.size() + 1, 39), "                   ~~~~~^^^  loss: 6.9\n");
}

TEST(Measure, ColoursOnATerminalUnlessNobodyWantsThem) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", "loss 6.9 end\n").string();
  const ManualClock clock;
  for (const bool colors : {true, false}) {
    std::ostringstream out, err;
    cli::Console console{out, err, clock, "/nowhere/krigtune"};
    console.out_is_terminal = true;
    console.colors = colors;
    EXPECT_EQ(cli::run_command_line({"measure", "--log", log, "--regex", "loss=loss ([0-9.]+)"}, console), 0);
    EXPECT_EQ(out.str().find("\x1b[0;4mloss \x1b[0;1;4;32m6.9\x1b[0m end\n") != std::string::npos, colors) << out.str();
    EXPECT_EQ(out.str().find('\x1b') != std::string::npos, colors);
  }
}

TEST(Measure, BadRequestsAreRefusedInOneLine) {
  const TemporaryDirectory dir;
  const std::string log = dir.write("train.log", kLog).string();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "measure");
    const Said said = run_krigtune(arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    return said.err;
  };
  EXPECT_EQ(refused({"--log", log, "--regex", "loss=loss ([0-9"}),
            "krigtune: --regex: loss: 'loss ([0-9' is not a regular expression: a [ has no ]; write one as in "
            "JavaScript, without "
            "back-references\n");
  EXPECT_NE(refused({"--log", log, "--regex", "loss=loss"}).find("has no groups where one was expected"),
            std::string::npos);
  EXPECT_NE(refused({"--log", log, "--regex", "loss"}).find("'loss' has no name"), std::string::npos);
  EXPECT_NE(refused({"--log", log}).find("there is no expression to look for; give --regex NAME=REGEX"),
            std::string::npos);
  EXPECT_NE(refused({"--regex", "loss=(.)"}).find("--log is missing"), std::string::npos);
  EXPECT_NE(refused({"--log", "/nowhere", "--regex", "loss=(.)"}).find("'/nowhere' does not exist"), std::string::npos);
  EXPECT_NE(refused({"--log", log, "--session", replay_session(dir).string()}).find("only the runner 'command'"),
            std::string::npos);
}

// Lines of Megatron-LM 0.x, recorded: NVIDIA/Megatron-LM#756.
TEST(Measure, ReadsTheLinesThatARecipeKnows) {
  const TemporaryDirectory dir;
  std::string text;
  for (int i = 43; i < 49; ++i) {
    text += " [2024-04-06 02:59:36] iteration       " + std::to_string(i) +
            "/     100 | consumed samples:         5504 | elapsed time per iteration (ms): 5444.9 | throughput per GPU "
            "(TFLOP/s/GPU): 239.8 | learning rate: 8.600000E-06 | global batch size:   128 | lm loss: 1.825991E+00 |\n";
  }
  const std::string log = dir.write("megatron.log", text).string();
  const Said said = run_krigtune({"measure", "--log", log, "--recipe", "megatron", "--lines", "0"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("step_time_s: 5.4449 s, from 4 steps after 2 of the warm-up\n"), std::string::npos)
      << said.out;
  const Said unknown = run_krigtune({"measure", "--log", log, "--recipe", "megatrn"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("there is no recipe 'megatrn'; did you mean 'megatron'?"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(run_krigtune({"measure", "--log", log, "--recipe", "megatron", "--session", "s.json"}).code, 2);
}

}  // namespace krigtune::measure_command_test
